"""The shell commands with which the hosts of a load begin and end it, each run as root on a host.

Load and recorders are services of their own, so that a connection which drops disturbs neither.
"""

import shlex
from collections.abc import Sequence

from loadlab.reasons.validity_reasons import VOID
from loadlab.run.formatting import plain
from loadlab.run.run_dir import ERROR, ON_HOSTS, PROCESSES, RUN, STATUS

_TOOLS = "/usr/local/lib/loadlab"
_LOAD, _RECORD = "loadlab-load", "loadlab-record"
# Exists on the server if the stack was restarted and has had no load since.
_RESTARTED = "/run/loadlab-restarted"
# How often a host that records a load had lost its link before, until it is booted.
_BEGUN = "/run/loadlab-begun"
# A host that is being shut down loses its connection within this time, seconds.
_SHUTDOWN_S = 120
# A disk with less room than this is full, bytes.
_ROOM = 1 << 20


def restart(started: Sequence[str], restarted: Sequence[str], again: bool) -> str:
    """Return the command that restarts the stack, and starts what it needs where that is down.

    ``started``, ``restarted``: units of the server; empty where none of the latter is to be
    restarted. ``again``: whether a restart that began at the end of the previous measurement counts
    if nothing used the services since, and if what the stack needs was up then: an application that
    began without its database may answer errors for seconds after the database is back, or never
    begin.
    """
    if not restarted:
        return ""
    restart = f'systemctl "$verb" {" ".join(restarted)}'
    needed = f"systemctl start {shlex.join(started)}" if started else "true"
    if not again:
        return f"verb=restart; rm -f {_RESTARTED} && {needed} && {restart}"
    # A unit has another invocation once it was started. A service may run as instances of itself.
    units = shlex.join([name for unit in started for name in (unit, f"{unit}@*")])
    up = f"systemctl show --property=Id,InvocationID {units}" if units else "true"
    return (
        f"verb=restart; [ ! -e {_RESTARTED} ] || verb=start; rm -f {_RESTARTED}; up=$({up}); "
        f'{needed} && {{ [ "$up" = "$({up})" ] || verb=restart; {restart}; }}'
    )


def prepare(restart: str, recording: str) -> str:
    """Return the command that runs both, the second if the first succeeds; ``restart`` may be
    empty."""
    return f"{{ {restart}; }} && {recording}" if restart else recording


def restart_early(restarted: Sequence[str]) -> str:
    """Return the command that begins the restart for the next measurement; empty for no units."""
    if not restarted:
        return ""
    return f"touch {_RESTARTED} && systemctl --no-block restart {' '.join(restarted)}"


def record(interface: str, options: str, most_s: float) -> str:
    """Return the command that starts a host's recorder.

    ``interface``: that carries the load; ``options``: of systemd-run.
    A recording may remain from a controller that stopped. This one ends with the load, or after
    ``most_s`` seconds. SESSION is the control group of the lab's own login.
    """
    return (
        f"{{ {stopped(_RECORD)}; }} && {_link_losses(interface)} >{_BEGUN} && "
        f"systemd-run --quiet --collect --unit={_RECORD} "
        f"--property=KillMode=mixed --property=RuntimeMaxSec={plain(most_s)} "
        f"--setenv=SESSION=\"$(sed -n 's/^0:://p' /proc/self/cgroup)\" {options} "
        f"{_TOOLS}/record-host.sh"
    )


def begin(remote: str, folder: str, recording: str, options: str, most_s: float) -> str:
    """Return the command that starts the recorder and the load of a client.

    ``remote``: the repetition's folder there; ``folder``: the client's own. A load that hangs ends
    after ``most_s`` seconds, also where the controller is gone. The shell variable
    BEGIN_AT is the agreed start of several clients; see run-load.sh.
    """
    return (
        f"install -d -o loadlab -g loadlab {remote} {folder} && {recording} && "
        f"systemd-run --quiet --collect --unit={_LOAD} --property=LimitNOFILE=1048576 {options} "
        f"--property=RuntimeMaxSec={plain(most_s)} "
        f'--setenv=BEGIN_AT="$BEGIN_AT" {_TOOLS}/run-load.sh'
    )


def over(folder: str, batch: bool) -> str:
    """Return the command that asks the first client whether its load is over.

    It prints the client's progress. A load that is about to end is waited for on the host, which is
    quicker than another call; a batch's client is the subject, and is left alone.
    """
    tries, wait = ("1", "") if batch else ("1 2 3 4 5", "sleep 0.1; ")
    return (
        f"cd {folder} && cat {STATUS}; for try in {tries}; do [ ! -e {RUN} ] || exit 0; {wait}done"
        f"; ! systemctl --quiet is-active {_LOAD}"
    )


def end(interface: str, folder: str, most_s: float) -> str:
    """Return the command that waits for the end of a client's load, ``most_s`` seconds at most,
    and ends its recording. It fails with the client's error.

    ``interface``: that carries the load.
    """
    return (
        f"cd {folder} || exit 1; for try in $(seq {int(5 * most_s)}); do [ ! -e {RUN} ] || break; "
        f"systemctl --quiet is-active {_LOAD} || {{ sleep 0.5; break; }}; sleep 0.2; done; "
        f"{stopped(_RECORD)}; "
        f'[ -e {RUN} ] || echo "did not finish, last seen $(cat {STATUS}); '
        f'see journalctl -u {_LOAD}" >{ERROR}; '
        f"{_causes(interface, folder)}; "
        f'[ -z "$causes" ] && [ ! -e {ERROR} ] || '
        f'{{ echo "$causes$([ ! -e {ERROR} ] || cat {ERROR})" >&2; exit 1; }}'
    )


def end_recording(interface: str, folder: str) -> str:
    """Return the command that ends the server's recording, without which its CPU time cannot be
    attributed."""
    missing = f"no {PROCESSES}: $(journalctl --unit={_RECORD} --lines=6 --output=cat --no-pager)"
    return (
        f"{stopped(_RECORD)}; {_causes(interface, folder)}; "
        f'[ -z "$causes" ] && [ -e {folder}/{PROCESSES} ] || '
        f'{{ echo "${{causes:-{missing}}}" >&2; exit 1; }}'
    )


def _causes(interface: str, folder: str) -> str:
    """Return the command that puts into the shell variable ``causes`` what became of a host since
    its recording began, if anything did.

    A lost link is a cause where the load failed; otherwise it makes the repetition void. A host
    that is being shut down starts no unit; whoever connects anew finds it booted.
    """
    shut_down = "is being shut down. Find out who does it: its journal says"
    booted = "was booted during the load. Find out who boots it: its journal says"
    gone = f"the folder {folder} was removed during the load. Find out who removes it"
    full = f"the disk with {ON_HOSTS} is full. Free some of it"
    down = f"the link {interface} was down during the load. {VOID['link_down'].remedy}"
    return (
        f'stopping=$(systemctl is-system-running | grep -x stopping); [ -z "$stopping" ] || '
        f'sleep {_SHUTDOWN_S}; causes=$([ -z "$stopping" ] || printf "%s. " "{shut_down}"; '
        f'[ -e {_BEGUN} ] || printf "%s. " "{booted}"; '
        f'if [ ! -d {folder} ]; then printf "%s. " "{gone}"; '
        f'elif [ $(($(stat -f -c "%a * %S" {folder}))) -lt {_ROOM} ]; then printf "%s. " "{full}"; '
        "fi; "
        f"[ ! -e {_BEGUN} ] || [ ! -e {folder}/{ERROR} ] || "
        f'[ "$({_link_losses(interface)})" = "$(cat {_BEGUN})" ] || printf "%s. " "{down}")'
    )


def _link_losses(interface: str) -> str:
    return f"cat /sys/class/net/{interface}/carrier_down_count"


def stop() -> str:
    """Return the command that ends what a client still offers and records."""
    return f"{stopped(_LOAD)}; {stopped(_RECORD)}"


def stopped(unit: str) -> str:
    """Return the command that stops a unit where it is active."""
    return f"! systemctl --quiet is-active {unit} || systemctl stop {unit}"

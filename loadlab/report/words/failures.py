"""Words for a task that failed on a host: the cause, and the remedy where it is known."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from loadlab.hosts.probe import ssh_reason
from loadlab.run.formatting import one_line

# Actions whose failure message the lab wrote itself.
REFUSING = ("ansible.builtin.assert", "ansible.builtin.fail", "lab.bench.")
# Where a result has what was said, the most telling first.
_SAID = ("stderr", "module_stderr", "msg", "stdout")
# Lines of a program's output that are shown of an unknown cause.
LAST_LINES = 3
AGAIN = "Remove the cause and run the same command again."
_ELSEWHERE = (
    "or, on machines of your own, let this machine fetch the packages with -e hosts_online=false."
)


class Failure(Struct, frozen=True, kw_only=True):
    """A task that failed on a host."""

    host: str  #: Where; of a host that does not answer, that one.
    task: str  #: Its name.
    text: str  #: What it said.
    refusal: bool = False  #: Whether the text is a sentence of the lab's own.
    lost: bool = False  #: Whether the host does not answer over SSH.


class BegunRun(Struct, frozen=True, kw_only=True):
    """The run of a playbook that ended too early."""

    measured: bool  #: Whether it has a result.
    resume: str  #: The command that goes on with it; "" where that is the stage's own command.
    #: Whether the lab made its hosts, and boots or makes again those that are gone.
    makes_hosts: bool = False


class Cause(Struct, frozen=True):
    """Why packages do not come: the words of pip, apt, npm, Go or Python for it (a regular
    expression), the sentence with {server} in it, and the remedy."""

    said: str
    words: str
    remedy: str


# The first that fits counts: a certificate that is not trusted ends in retries and timeouts too.
CAUSES = (
    Cause(
        r"certificate.verif|SSLCertVerificationError|self.signed.cert|unable to get \w+ issuer"
        r"|UNABLE_TO_(GET_ISSUER|VERIFY)|x509: |certificate is NOT trusted",
        "it does not trust the certificate of {server}",
        f"Install your CA there (update-ca-certificates), {_ELSEWHERE}",
    ),
    Cause(
        r"name resolution|name or service not known|no address associated|could not resolve"
        r"|failure resolving|no such host|ENOTFOUND|EAI_AGAIN",
        "it cannot resolve the name {server}",
        f"Mend its DNS, set a proxy in /etc/environment there, {_ELSEWHERE}",
    ),
    Cause(
        r"connection refused|ECONNREFUSED",
        "{server} refuses its connection",
        f"Set the proxy or the mirror that it should use there, {_ELSEWHERE}",
    ),
    Cause(
        r"timed? ?out|ETIMEDOUT|unreachable|no route to host|connection reset|EOF occurred",
        "it does not reach {server}",
        f"Open the way there, set a proxy in /etc/environment there, {_ELSEWHERE}",
    ),
    Cause(
        r"proxy authentication|HTTP Error (?:4|5)\d\d|50[234] +\w"
        r"|401 +Unauthorized|403 +Forbidden|404 +Not Found|410 +Gone|E40[134]\b",
        "{server} does not serve it",
        f"See the proxy or the mirror that it uses, {_ELSEWHERE}",
    ),
)
# What pip says of a package without a wheel that fits, and of its versions that have one, of which
# the newest are shown.
_NO_WHEEL = re.compile(r"No matching distribution found for (\S+)")
_NEWEST = 3
_WHEELS = re.compile(r"\(from versions: (?!none)([^)]+)\)")
# A user and a password before the name are left out.
_SERVER = re.compile(
    r"host='([^']+)'|https?://(?:[^/@\s]*@)?([\w.-]+(?::\d+)?|\[[^\]]+\](?::\d+)?)"
)


def refuses(action: str, message: object) -> bool:
    """Return whether a failed task's message is the lab's own, which needs no task name beside it.

    Ansible itself reports a task that could not run at all, with "Task failed: ".
    """
    own = isinstance(message, str) and not message.startswith("Task failed: ")
    return own and action.startswith(REFUSING)


def known(text: str) -> tuple[str, str] | None:
    """Return the cause and the remedy where packages did not come from a server, else None."""
    server = _SERVER.search(text)
    for cause in CAUSES if server else ():
        if re.search(cause.said, text, re.IGNORECASE):
            named = next(filter(None, server.groups())) if server else ""
            return cause.words.format(server=named), cause.remedy
    return None


def sources_refusal(text: str) -> str:
    """Return why a host's package sources cannot be used, and the remedies; "" where they can.

    ``text``: lines "address<tab>reason", as roles/host_check/files/ask-sources.py prints them.
    """
    reasons, remedies = list[str](), list[str]()
    for line in text.splitlines():
        url, _, problem = line.partition("\t")
        words, remedy = known(f"{problem} {url}") or (f"{url} does not serve it", AGAIN)
        reasons.append(f"{words} ({url}: {one_line(problem)})")
        remedies.append(remedy)
    return " ".join([f"{'; '.join(reasons)}.", *dict.fromkeys(remedies)]) if reasons else ""


def said(result: Mapping[str, Any]) -> str:
    """Return what a failed task's result says; of a loop the first item that failed."""
    for item in result.get("results") or []:
        if item.get("failed") or item.get("unreachable"):
            return said(item)
    texts = [str(result.get(name) or "").strip() for name in _SAID]
    kept = [text for text in texts if text and text != "non-zero return code"]
    return kept[0] if kept else f"exit status {result.get('rc', 'unknown')}"


def failure(host: str, task: Mapping[str, Any], result: Mapping[str, Any]) -> Failure:
    """Return a failure; ``task``: its name and action, ``result``: of the task."""
    action = task["action"]
    return Failure(
        host=host,
        task=task["name"] or action,
        text=said(result),
        refusal=refuses(action, result.get("msg")),
    )


def lacks_wheel(text: str, python: str) -> tuple[str, str] | None:
    """Return the cause and the remedy where the index has no wheel of a package, else None.

    ``python``: the Python that it is for, such as "Python 3.13"; "" where users choose none.
    """
    package = _NO_WHEEL.search(text)
    if not package:
        return None
    versions = _WHEELS.search(text)
    newest = versions[1].split(", ")[-_NEWEST:] if versions else []
    has = f" (the newest that have one: {', '.join(newest)})" if newest else ""
    other = ", or take another Python with -e python=" if python else ""
    return (
        f"the package index has no wheel of {package[1]} for {python or 'the Python there'}",
        f"Require a version that has one{has}{other}, and run the command again.",
    )


def reason(failure: Failure, python: str = "") -> str:
    """Return why a task failed and what to do, without the host's name; ``python``: as in
    lacks_wheel."""
    if failure.refusal:
        return failure.text
    # Where pip does not reach the index, it finds no wheel either.
    cause = known(failure.text) or lacks_wheel(failure.text, python)
    if cause:
        return f"{failure.task}: {cause[0]}. {cause[1]}"
    last = [line for line in failure.text.splitlines() if line.strip()][-LAST_LINES:]
    return f"{failure.task}: {one_line(' '.join(last)).rstrip('.')}. {AGAIN}"


def last_lines(failures: Sequence[Failure], run: BegunRun | None) -> list[str]:
    """Return the last lines of a playbook that failed, a line for each failure.

    ``run``: the run that it began or resumed; None where it did neither.
    """
    return [_line(failure, run) for failure in failures]


def _line(failure: Failure, run: BegunRun | None) -> str:
    if failure.refusal or not failure.lost:
        return f"{failure.host}: {reason(failure)}"
    resume = run.resume if run is not None and run.measured else ""
    if run is not None and run.makes_hosts:
        remedy = "lab.yml brings it back where it is gone; then the same command goes on"
        if resume:
            remedy = f"This brings it back where it is gone, and goes on: {resume}"
    else:
        command = f"go on with {resume}" if resume else "the same command goes on"
        remedy = f"When it answers again, {command}"
    return (
        f"{failure.host}: unreachable over SSH ({ssh_reason(failure.text)}) at the task "
        f"'{failure.task}'. {_kept(run)}{remedy}"
    )


def interrupted(cut_off: str, run: BegunRun | None) -> str:
    """Return the last line of a playbook that the user interrupted.

    ``cut_off``: what ran, as UnderWay.cut_off returns it. ``run``: as in last_lines.
    """
    remedy = "Run the same command again."
    if run is not None and run.resume:
        remedy = f"Go on with {run.resume}"
    return f"Interrupted{cut_off}. {_kept(run)}{remedy}"


def _kept(run: BegunRun | None) -> str:
    if run is None:
        return ""
    return "What was measured is kept. " if run.measured else "Nothing was measured. "

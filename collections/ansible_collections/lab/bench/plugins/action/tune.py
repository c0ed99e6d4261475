"""Action plugin lab.bench.tune: reads, sets, reads back and verifies the settings of a host.

Its result: ``rows`` of the ledger, also where a required setting did not take effect, which fails
the task; ``lines`` where it only reads; ``hand_back``: when the host itself starts what was
stopped, "" for never. loadlab/tuning decides.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Literal

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.hosts.probe import HostProbe
from loadlab.model import LedgerRow
from loadlab.run.errors import LabError
from loadlab.stacks import reverse_proxies
from loadlab.tuning import host_state, ledger, service_ledger, sizing
from loadlab.tuning.host_state import HostState
from loadlab.tuning.ledger import Change
from loadlab.tuning.profiles import TuningProfile
from loadlab.tuning.service_ledger import Serving
from loadlab.tuning.sizing import PooledStack

# Functions of the shell that read and set each part.
_SCRIPTS = {
    "machine": ["files/cards.sh", "roles/tuning/files/tunables.sh"],
    "postgresql": ["roles/postgresql/files/settings.sh"],
    "serving": ["roles/reverse_proxy/files/serving.sh"],
}


class Arguments(Struct, kw_only=True, frozen=True):
    """A part of a host, and the profile that it is to have."""

    part: Literal["machine", "postgresql", "serving"]
    root: Path  #: Top folder of the lab.
    profile: TuningProfile | None = None  #: None restores the original settings.
    #: host, hosts: this one and all of the lab, as host_check describes them.
    host: HostProbe | None = None
    hosts: list[HostProbe] = []
    stacks: list[PooledStack] = []  #: All of the run, for the number of their database connections.
    together: int = 1  #: How many of them are up at once.
    hand_back_s: int = 0  #: Seconds until the host itself starts what is stopped; 0 for never.
    may_reboot: bool = False  #: Whether the host may be booted again for a kernel parameter.
    forget: bool = False  #: Whether to delete the original values of what is restored.
    #: Requirements of the reverse proxy and the application, whose roles write the files.
    serving: Serving | None = None
    before: list[str] | None = None  #: The lines that were read before that.
    verify: bool = True  #: False only reads.


class ActionModule(ControllerAction[Arguments]):
    _requires_connection = True
    name: str
    # The functions of the part, then their variables.
    script: str

    def work(self, args: Arguments) -> dict[str, object]:
        self.name = str(self.variables["inventory_hostname"])
        self.script = "".join((args.root / path).read_text() for path in _SCRIPTS[args.part])
        if args.part == "machine":
            return self._machine(args)
        return self._postgresql(args) if args.part == "postgresql" else self._serving(args)

    def _machine(self, args: Arguments) -> dict[str, object]:
        assert args.host is not None
        groups, granted = self.variables["group_names"], args.host.manifest.nofile
        settings = (
            sizing.machine_settings(args.profile, groups, _sizes(args)) if args.profile else []
        )
        self._set(
            KEYS=[*(setting.key for setting in settings), ledger.PROBE],
            NIC=[args.host.interface],
            FILES=host_state.FILES,
            WANTED=[hashlib.sha256(msgspec.json.encode(settings)).hexdigest()],
        )
        before = after = self._run("look")
        state = host_state.decide(settings, before, granted)
        if self._task.check_mode:
            if changed := bool(state.differing or state.files):
                keys = "".join(f" {c.key}: {c.before} -> {c.value};" for c in state.differing)
                tell(f"{self.name} would get{keys} files: {', '.join(state.files) or 'none'}")
            return self._result(host_state.rows(state, before), changed, state.differing)
        changed = bool(state.files)
        if state.differing and state.to_save != state.originals:
            # Before the first change, so that a crash at any later point can be repaired.
            self._run(_of_originals("keep", state.to_save))
            changed = True
        if state.boot and args.may_reboot:
            self._boot(state.boot)
            # A reboot resets every setting without a file.
            after = self._run("look")
            state = host_state.decide(settings, after, granted, state)
            changed = True
        hand_back = ""
        if args.hand_back_s:
            # Before anything is stopped. The load asks for the timer while originals are stored.
            own = f"{self.script}\nhand_back\n"
            when = self._run(f"arm {args.hand_back_s} <<'SCRIPT'\n{own}SCRIPT")
            hand_back = "".join(when) if settings else ""
        if state.differing or state.files:
            after = self._run(*_apply(state))
            changed = changed or ledger.parse_readings(after) != ledger.parse_readings(before)
        rows = host_state.rows(state, after)
        if args.forget:
            left = ledger.unrestored(rows, state.originals)
            changed = bool(self._run(_of_originals("forget", left))) or changed
        remedy = "Give this host the right to set them"
        if state.boot and not args.may_reboot:
            remedy = "Set tuning_may_reboot to true in the inventory, as it has to be booted again"
        elif any(row.required and row.state == "not_namespaced" for row in rows):
            remedy = "A container cannot set them: use a machine of its own"
        if settings:
            remedy += ", or choose a profile without them with -e tuning=<name>"
        problem = f"Settings that are required did not take on {self.name}: {{}}. {remedy}."
        result = self._result(rows, changed, state.differing, problem)
        return {**result, "hand_back": hand_back}

    def _boot(self, changes: Sequence[Change]) -> None:
        keys = ", ".join(change.key for change in changes)
        tell(f"{self.name} is booted again, as the kernel reads {keys} only then")
        # This boot is the lab's own, so it gives nothing back.
        self._run(*(_put(change) for change in changes), "disarm")
        self._reboot()

    def _reboot(self) -> None:
        task = self._task.copy()
        task.args = {"reboot_timeout": 900}
        reboot = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.reboot",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        result = reboot.run(task_vars=self.variables)
        if result.get("failed"):
            raise LabError(
                f"it does not come back after its reboot: {result['msg']}. Look at its console. "
                "Then the same command goes on, and boots a local virtual machine that is down"
            )

    def _postgresql(self, args: Arguments) -> dict[str, object]:
        settings = sizing.postgresql_settings(args.profile, _sizes(args)) if args.profile else []
        self._set(KEYS=[setting.key for setting in settings])
        check = self._task.check_mode
        try:
            before = after = self._run("look")
        except LabError:
            if check:
                # Check mode does not install PostgreSQL.
                return self._result(service_ledger.rows(settings, [], []), False)
            raise
        state = service_ledger.postgresql_state(settings, before)
        changes = service_ledger.changes(settings, before)
        if state.outdated and check:
            names = ", ".join(setting.key.partition(".")[2] for setting in settings)
            tell(f"{self.name}: PostgreSQL would get {names or 'its own settings'}")
        elif state.outdated:
            lines = self._run(f"configure {quote(state.file)} {quote(state.content)}")
            if lines:
                raise LabError(
                    f"PostgreSQL on {self.name} does not take the settings of the tuning profile: "
                    f"{' '.join(lines).removeprefix('rejected').strip()}. Its former settings are "
                    "in force. Mend the profile in files/tuning/, or choose another with -e "
                    "tuning=<name>."
                )
            after = self._run("look")
        problem = (
            f"PostgreSQL settings did not take on {self.name}: {{}}. Look at the server's log with "
            "journalctl -u 'postgresql@*'."
        )
        rows = service_ledger.rows(settings, before, after)
        result = self._result(rows, state.outdated, changes, problem)
        outdated = service_ledger.postgresql_state(settings, after).outdated
        if outdated and not check and "failed" not in result:
            raise LabError(
                f"PostgreSQL on {self.name} has settings in force that its files do not have, or "
                "waits for a start. Another may have changed them just now; run the same command "
                "again."
            )
        return result

    def _serving(self, args: Arguments) -> dict[str, object]:
        assert args.profile is not None
        assert args.serving is not None
        name = args.serving.reverse_proxy
        proxy = reverse_proxies.reverse_proxy(args.root, name)
        self._set(PROXY=[name], PORT=[str(proxy.port)], READ=[proxy.read or ":"])
        lines = self._run("look")
        if not args.verify:
            return {"lines": lines}
        settings = service_ledger.serving_settings(args.profile, args.serving, proxy, lines)
        before = lines if args.before is None else args.before
        rows = service_ledger.rows(settings, before, lines)
        problem = (
            f"What serves on {self.name} did not take all that is required of it: {{}}. Look at "
            f"its log with journalctl -u {name} -u loadlab-app, or choose another profile with "
            "-e tuning=<name>."
        )
        return self._result(rows, False, problem=problem)

    def _set(self, **values: Iterable[str]) -> None:
        """Set variables of the script, each to words with spaces between."""
        self.script += "".join(
            f"\n{name}={quote(' '.join(words))}" for name, words in values.items()
        )

    def _run(self, *commands: str) -> list[str]:
        """Run commands after the script, as the module raw does; return the lines that they print.

        Raises LabError where they fail.
        """
        text = "\n".join([self.script, *commands])
        answer = self._low_level_execute_command(text, executable=False)
        if answer["rc"]:
            reason = answer["stderr"].strip() or f"exit status {answer['rc']} of {commands[-1]}"
            raise LabError(
                f"A command of the tuning failed on {self.name}: {reason}. Remove the cause and "
                "run the same command again."
            )
        lines: list[str] = answer["stdout"].splitlines()
        return lines

    def _result(
        self,
        rows: Sequence[LedgerRow],
        changed: bool,
        changes: Sequence[Change] = (),
        problem: str = "",
    ) -> dict[str, object]:
        """Return the result, failed with ``problem`` where a required setting is not in force."""
        result = {"changed": changed, "rows": msgspec.to_builtins(list(rows))}
        if self._task.diff and changes:
            result["diff"] = {
                side: "".join(f"{change.key} = {getattr(change, name)}\n" for change in changes)
                for side, name in (("before", "before"), ("after", "value"))
            }
        left = ledger.not_taken(rows)
        if left and not self._task.check_mode:
            result |= {"failed": True, "msg": problem.format("; ".join(left))}
        return result


def _sizes(args: Arguments) -> sizing.Sizes:
    assert args.host is not None
    return sizing.sizes(
        args.host, args.hosts, args.stacks, sizing.largest_pool(args.root), args.together
    )


def _of_originals(function: str, values: Mapping[str, str]) -> str:
    """Return the call of a function of tunables.sh that reads original values."""
    lines = "".join(f"{key} = {value}\n" for key, value in values.items())
    return f"{function} <<'ORIGINALS'\n{lines}ORIGINALS"


def _put(change: Change) -> str:
    return f"put {quote(change.key)} {quote(change.value)}"


def _apply(state: HostState) -> list[str]:
    """Return the commands that set what differs, and read it back.

    A rejected value does not prevent the others; the values read back show it.
    """
    return [
        'rm -f "$KEPT/settled"',
        *(f"place {quote(path)} {quote(content)} || exit" for path, content in state.files.items()),
        *(_put(change) for change in state.changes),
        "settle",
    ]

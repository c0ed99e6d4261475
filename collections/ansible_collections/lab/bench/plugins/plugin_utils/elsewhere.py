"""Run commands on several hosts at once, from one action."""

import copy
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.action import ActionBase
from msgspec import Struct

from loadlab.hosts.probe import ssh_reason
from loadlab.run.errors import LabError


class Answer(Struct, frozen=True):
    """What came of a command: its exit status, its output, and the seconds that it took."""

    code: int
    output: str
    errors: str
    took_s: float

    def failure(self) -> str:
        """Return why the command failed."""
        return self.errors.strip() or self.output.strip() or f"exit status {self.code}"


class HostLost(AnsibleConnectionFailure):  # type: ignore[misc]
    """A host that is not the task's own is out of reach; ``host``: its name."""

    def __init__(self, host: str, problem: AnsibleConnectionFailure) -> None:
        super().__init__(str(problem))
        self.host = host


@contextmanager
def failing_for_lost_hosts() -> Iterator[None]:
    """Turn HostLost into LabError: its task then fails, and its block may rescue it.

    The task's own host stays in the play until the rescue does not reach the lost one either.
    """
    try:
        yield
    except HostLost as lost:
        reason = ssh_reason(str(lost))
        raise LabError(f"{lost.host}: unreachable over SSH ({reason})") from lost


class Elsewhere:
    """A host as an action reaches it with delegate_to.

    Ansible's own code connects, so the inventory's options of SSH and of becoming root hold, and
    the persistent connection is the one of Ansible's tasks.
    """

    def __init__(self, action: ActionBase, name: str, variables: Mapping[str, Any]) -> None:
        """``variables``: of the task, as an action gets them."""
        of_host = variables["hostvars"][name]
        task, templar = action._task, action._templar
        context = action._play_context.set_task_and_variable_override(task, of_host, templar)
        executor = TaskExecutor(
            None, task, {}, context, action._loader, action._shared_loader_obj, None, None
        )
        kind = of_host.get("ansible_connection") or task.connection
        executor._connection = executor._get_connection(of_host, templar, kind)
        executor._set_connection_options(of_host, templar)
        self.name = name
        self._action = copy.copy(action)
        self._action._play_context = context
        self._action._connection = executor._connection

    def reconnect(self) -> None:
        """Connect anew where there is no connection any more, with one attempt.

        Raises ConnectionError where the host is out of reach.
        """
        connection = self._action._connection
        retries = connection.get_option("reconnection_retries")
        connection.set_option("reconnection_retries", 0)
        try:
            self._action._low_level_execute_command("true", sudoable=False)
        except AnsibleConnectionFailure as problem:
            raise ConnectionError(str(problem)) from problem
        finally:
            connection.set_option("reconnection_retries", retries)

    def run(self, command: str) -> Answer:
        """Run a command of the shell. Raises AnsibleConnectionFailure where the host is out of
        reach."""
        begun = time.monotonic()
        # As the module raw does.
        result = self._action._low_level_execute_command(command, executable=False)
        took_s = time.monotonic() - begun
        return Answer(result["rc"], result["stdout"], result["stderr"], took_s)


def at_once(hosts: Mapping[str, Elsewhere], commands: Mapping[str, str]) -> dict[str, Answer]:
    """Run a command on each of several hosts, all at once, and wait for all.

    Raises HostLost where a host is out of reach, and else LabError with the reasons of all that
    fail; with the hosts' names where there are several.
    """
    with ThreadPoolExecutor(len(commands)) as pool:
        futures = {name: pool.submit(hosts[name].run, text) for name, text in commands.items()}
    for name, future in futures.items():
        lost = future.exception()
        if isinstance(lost, AnsibleConnectionFailure):
            raise HostLost(name, lost)
    named = {name: f"{name}: " if len(commands) > 1 else "" for name in commands}
    answers = {name: future.result() for name, future in futures.items()}
    reasons = [
        f"{named[name]}{answer.failure()}" for name, answer in answers.items() if answer.code
    ]
    if reasons:
        raise LabError("; ".join(reasons))
    return answers

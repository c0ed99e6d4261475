"""Callback for EC2: the end of a command tells what goes on costing money, or removes it."""

import atexit
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

from ansible import context
from ansible.executor.task_result import CallbackTaskResult
from ansible.plugins.callback import CallbackBase

from loadlab.hosts import ec2_price

DOCUMENTATION = """
name: instances
type: aggregate
short_description: Ends a command with the price of the instances that go on, or removes them
description:
  - Reads the fact C(aws_hosts_running) of the role aws_hosts. Where its C(keep) is false, runs
    C(playbooks/teardown.yml) with the inventory and the variables of the command, however the
    command ends, also by Ctrl-C.
author: the lab's developers
"""

ROOT = Path(__file__).parents[6]


class Running(TypedDict):
    """Instances that a command uses: whether they stay, what they cost, and what removes them."""

    keep: bool
    usd_per_hour: float
    teardown: str


class CallbackModule(CallbackBase):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "lab.bench.instances"

    def __init__(self) -> None:
        super().__init__()
        self._running: Running | None = None

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        running = result.result.get("ansible_facts", {}).get("aws_hosts_running")
        if running and self._running is None:
            # Also where another callback ends the process with a status.
            atexit.register(self._end, os.getpid())
        self._running = running or self._running

    def _end(self, process: int) -> None:
        if self._running is None or os.getpid() != process:
            return
        if self._running["keep"]:
            price, command = self._running["usd_per_hour"], self._running["teardown"]
            self._display.display(f"  {ec2_price.going_on(price)} Remove them: `{command}`")
            return
        self._display.display("  aws_hosts_keep is false: removing the instances")
        if self._teardown() != 0:
            # The status of this process must tell that something goes on costing money.
            sys.stdout.flush()
            os._exit(1)

    def _teardown(self) -> int:
        arguments = context.CLIARGS
        words = [word for source in arguments["inventory"] or () for word in ("-i", source)]
        words += [word for option in arguments["extra_vars"] for word in ("-e", option)]
        command = [sys.argv[0], *words, str(ROOT / "playbooks" / "teardown.yml")]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as teardown:
            assert teardown.stdout
            for line in teardown.stdout:
                self._display.display(line.decode(errors="replace").rstrip())
        return teardown.returncode

"""Action plugin lab.bench.fetch: fetches a run's raw files from the host of a task with rsync.

Also moves into the run what an earlier controller fetched and did not move. A failed fetch is tried
again as often as SSH tries a connection, for about a minute; then it fails with rsync's message.
loadlab/run/fetched_files.py says what is copied.
"""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct

from loadlab.run import fetched_files
from loadlab.run.errors import LabError
from loadlab.run.run_dir import RunDir

# Seconds between two attempts.
APART_S = 9


class Arguments(Struct, kw_only=True, frozen=True):
    """A run's folder on the controller."""

    run_dir: Path


class ActionModule(ControllerAction[Arguments]):
    _requires_connection = True

    def work(self, args: Arguments) -> dict[str, object]:
        if self._task.check_mode:
            return {}
        run = RunDir(args.run_dir)
        host = str(self._task.delegate_to or self.variables["inventory_hostname"])
        of_host = self.variables["hostvars"][host]
        # One folder per host: two rsync processes must not share a target.
        arrived = run.arriving(host)
        try:
            self._fetch(run, arrived, of_host)
        finally:
            # Also the files of a failed or interrupted fetch.
            moved, taken = fetched_files.move(arrived, args.run_dir)
        for name in taken:
            tell(f"{host} sent {name}, which is there already: the first one stays.")
        return {"changed": bool(moved)}

    def _fetch(self, run: RunDir, arrived: Path, of_host: Mapping[str, Any]) -> None:
        connection, user = self._connection, of_host["host_check_host"]["user"]
        server = "servers" in of_host["group_names"]
        # rsync cannot answer a sudo password prompt, so it runs as the login user.
        if user != "root":
            files = run.on_hosts
            self._low_level_execute_command(f"[ ! -e {files} ] || chown -R {user} {files}")
        ssh = [word.decode() for word in connection._build_command("ssh", "ssh")]
        command = fetched_files.rsync(
            run.path, server, ssh[ssh.index("ssh") + 1 :], connection.get_option("host"), arrived
        )
        attempts = 1 + connection.get_option("reconnection_retries")
        for attempt in range(attempts):
            time.sleep(APART_S if attempt else 0)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
        raise LabError(done.stderr.strip() or f"rsync ended with {done.returncode}")

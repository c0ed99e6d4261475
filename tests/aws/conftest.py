import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .cloud import REGION, Cloud

ROOT = Path(__file__).parents[2]
SECRET = f"secret-{secrets.token_hex(16)}"
Play = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def server() -> Iterator[Cloud]:
    with Cloud() as cloud:
        yield cloud


@pytest.fixture
def cloud(server: Cloud) -> Cloud:
    """An empty account."""
    server.reset()
    return server


@pytest.fixture
def environment(cloud: Cloud, tmp_path: Path) -> dict[str, str]:
    """What AWS's tools read, and nothing of who runs the test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **kept,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": cloud.url,
        "AWS_REGION": REGION,
        "HOME": str(tmp_path),
        # Compiled Python lets each start of Ansible take a second less.
        "PYTHONDONTWRITEBYTECODE": "",
        "no_proxy": "127.0.0.1",
    }


@pytest.fixture
def play(environment: dict[str, str]) -> Play:
    """ansible-playbook -i inventory/aws, as a user would; what it printed, without the secret, and
    how it ended."""

    def run(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        chosen = {name: value for name, value in {**environment, **changes}.items() if value}
        done = subprocess.run(
            ["ansible-playbook", "-i", "inventory/aws", *words],
            cwd=ROOT,
            env=chosen,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert SECRET not in done.stdout
        return done

    return run

"""roles/reverse_proxy/files/original.sh on a host of files and of programs that only say things."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit import stand_ins

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / name for name in ("files/aside.sh", "roles/reverse_proxy/files/original.sh")]
LABS = "http { server { location = /lab/status { stub_status; } } }\n"
MINE = "http { server { listen 80; } }\n"
PROGRAMS = {
    # A service is there, runs or starts at boot where there is a file that says so.
    "systemctl": """
        case $* in
        *is-active*) [ -e "$ROOT/runs" ] ;;
        *is-enabled*) [ -e "$ROOT/boots" ] ;;
        cat*) [ -e "$ROOT/usr/sbin/nginx" ] ;;
        *) echo "systemctl $*" >>"$ROOT/said" ;;
        esac""",
    "nginx": 'if [ -e "$ROOT/refuses" ]; then echo "unknown directive" >&2; exit 1; fi',
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder that stands for the root of a file system, nginx not installed."""
    stand_ins.put(tmp_path / "bin", PROGRAMS)
    return tmp_path


def install(host: Path) -> Path:
    """As the package does, and as its service is then."""
    conf = host / "etc/nginx/nginx.conf"
    names = ("etc/nginx/nginx.conf", "usr/sbin/nginx", "runs", "boots")
    stand_ins.tree(host, dict.fromkeys(names, MINE))
    conf.chmod(0o640)
    os.utime(conf, (1_700_000_000, 1_700_000_000))
    return conf


def deploy(host: Path) -> list[Path]:
    """What the lab writes."""
    conf = "etc/nginx/nginx.conf"
    (host / conf).unlink()
    others = ("etc/systemd/system/nginx.service.d/loadlab.conf", "etc/nginx/loadlab/10.77.1.11.key")
    stand_ins.tree(host, dict.fromkeys((conf, *others), LABS))
    return [host / name for name in others]


def run(host: Path, command: str, status: int = 0) -> str:
    """What the command says, errors last."""
    script = "\n".join(path.read_text() for path in SCRIPTS).replace("=/etc/", f"={host}/etc/")
    proxy = f"UNIT=nginx CONF={host}/etc/nginx/nginx.conf LOG= CHECK='nginx -t -c'"
    variables = f"{proxy} MARK='location = /lab/status' ROOT={host} KEPT={host}/kept"
    text = "\n".join([f"export PATH={host}/bin:$PATH {variables}", script, command])
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def told(host: Path) -> list[str]:
    said = host / "said"
    lines = said.read_text().splitlines() if said.exists() else []
    said.unlink(missing_ok=True)
    return lines


def is_mine(conf: Path) -> bool:
    status = conf.stat()
    attributes = (conf.read_text(), status.st_mode & 0o777, status.st_mtime)
    return attributes == (MINE, 0o640, 1_700_000_000)


def test_an_nginx_that_ran_is_as_it_was_and_runs(host: Path) -> None:
    conf = install(host)
    assert run(host, "is_kept || echo no") == "no\n"
    run(host, "keep")
    others = deploy(host)
    # A later run finds the lab's own, and it running.
    run(host, "keep; is_kept")
    deploy(host)
    run(host, "keep")
    assert told(host) == []

    assert run(host, "put_back") == "put back\n"
    assert is_mine(conf)
    assert [path for path in others if path.parent.exists()] == []
    assert not (host / "kept").exists()
    ended = ["systemctl restart nginx", "systemctl --quiet enable nginx"]
    assert told(host) == ["systemctl daemon-reload", *ended]
    # And nothing is left to do, nor taken for the lab's.
    assert run(host, "put_back; is_kept || echo no") == "no\n"
    assert told(host) == []


def test_one_that_the_lab_installed_has_the_packages_own_and_does_not_run(host: Path) -> None:
    run(host, "keep")
    conf = install(host)
    run(host, "keep")
    deploy(host)
    run(host, "put_back")
    assert is_mine(conf)
    ended = ["systemctl stop nginx", "systemctl --quiet disable nginx"]
    assert told(host) == ["systemctl daemon-reload", *ended]


@pytest.mark.parametrize("later", [False, True], ids=["before", "after"])
def test_original_interrupted_while_saved_is_saved_again(host: Path, later: bool) -> None:
    conf = install(host)
    (host / "kept").mkdir()
    (host / "kept/part").write_text("half of it")
    if later:
        (host / "kept/state").write_text("restart enable\n")
        (host / "runs").unlink()
    run(host, "keep")
    deploy(host)
    run(host, "put_back")
    assert is_mine(conf)
    assert told(host)[1:] == ["systemctl restart nginx", "systemctl --quiet enable nginx"]


def test_a_configuration_that_nginx_does_not_take_is_back_but_not_in_force(host: Path) -> None:
    conf = install(host)
    run(host, "keep")
    deploy(host)
    (host / "refuses").touch()
    assert "runs on with the lab's: unknown directive" in run(host, "put_back", status=1)
    assert is_mine(conf)
    assert told(host) == ["systemctl daemon-reload"]
    # Tried again when that is mended.
    (host / "refuses").unlink()
    run(host, "put_back")
    assert told(host)[1:] == ["systemctl restart nginx", "systemctl --quiet enable nginx"]
    assert not (host / "kept").exists()


def test_an_original_that_an_earlier_version_stored_is_restored(host: Path) -> None:
    conf = install(host)
    run(host, f'mkdir "$KEPT"; tar -C {conf.parent} -cf "$KEPT/conf.tar" nginx.conf')
    deploy(host)
    run(host, "put_back")
    assert is_mine(conf)
    assert not (host / "kept").exists()


def test_what_was_never_kept_is_not_called_restored(host: Path) -> None:
    conf = install(host)
    others = deploy(host)
    run(host, "is_kept")
    assert "before the lab's is not kept" in run(host, "put_back", status=1)
    assert conf.read_text() == LABS
    assert all(path.exists() for path in others)
    assert told(host) == []


def test_an_nginx_that_was_purged_since_is_not_missed(host: Path) -> None:
    install(host)
    run(host, "keep")
    others = deploy(host)
    shutil.rmtree(host / "etc/nginx")
    (host / "usr/sbin/nginx").unlink()
    run(host, "put_back")
    assert not (host / "kept").exists()
    assert not others[0].parent.exists()
    assert told(host) == ["systemctl daemon-reload"]


def test_where_there_was_no_lab_nothing_is_done(host: Path) -> None:
    conf = install(host)
    assert run(host, "put_back") == ""
    assert is_mine(conf)
    assert told(host) == []

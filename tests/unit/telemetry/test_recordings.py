import os
from pathlib import Path

from loadlab.telemetry.recordings import remembered


def test_the_servers_file_is_read_once_for_several_clients(tmp_path: Path) -> None:
    read: list[str] = []

    @remembered
    def reader(path: Path) -> str:
        read.append(path.name)
        return path.read_text()

    for name in ("server", "one", "two"):
        (tmp_path / name).write_text(name)
    for client in ("one", "two"):
        assert [reader(tmp_path / name) for name in ("server", client)] == ["server", client]
    assert read == ["server", "one", "two"]
    (tmp_path / "server").write_text("longer")
    assert reader(tmp_path / "server") == "longer"
    os.utime(tmp_path / "server", ns=(1, 1))
    (tmp_path / "server").write_text("changed")
    assert reader(tmp_path / "server") == "changed"

import os
from pathlib import Path

from loadlab.telemetry.recordings import ascending, remembered


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


def test_readings_stay_in_order_where_the_clock_was_set_back() -> None:
    assert ascending([]) == []
    assert ascending([1.0, 2.0, 3.5]) == [1.0, 2.0, 3.5]
    # Set back by 10 s after the third reading, and by 1 s after the fifth.
    set_back = [20.0, 21.0, 22.0, 13.0, 14.0, 14.0, 15.0]
    assert ascending(set_back) == [20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0]
    # Set back before the second reading, and again before the third.
    assert ascending([9.0, 5.0, 4.0, 5.0]) == [9.0, 10.0, 11.0, 12.0]

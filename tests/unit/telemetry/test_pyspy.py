"""Profiles of a worker: py-spy's stacks, their figures, the flame graph and what claims read."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.model import FunctionFraction, KindCpu, PySpyProfile
from loadlab.report.plots import flamegraph
from loadlab.run import run_dir
from loadlab.run.errors import ResultError
from loadlab.telemetry import pyspy

# As py-spy 0.4.3 wrote it with --native, of an event loop of asyncio; shortened.
LOOP = "0x7f67d2c4524a (libc.so.6);run (asyncio/runners.py:160);_run_once (base_events.py:1845)"
WAITING = "select (selectors.py:451);select_epoll_poll (selectmodule.c:841);epoll_wait (libc.so.6)"
RECORDED = f"""\
{LOOP};{WAITING} 60
{LOOP};Handle._run (asyncio/events.py:78);main (app.py:8);work (app.py:2) 30
{LOOP};Handle._run (asyncio/events.py:78);task_step (_asynciomodule.c:2990);main (app.py:8) 10
"""


def test_the_figures_of_an_event_loop() -> None:
    assert pyspy.figures(pyspy.read(RECORDED)) == PySpyProfile(
        samples=100,
        idle_fraction=0.6,
        # Native frames are none of Python's.
        depth_median=5,
        depth_interval=[5, 5],
        native=True,
        top=[
            FunctionFraction(function="work (app.py:2)", fraction=0.75),
            FunctionFraction(function="main (app.py:8)", fraction=0.25),
        ],
    )


@pytest.mark.parametrize(
    "leaf",
    [
        *("epoll_wait (libc.so.6)", "__poll (libc.so.6)", "clock_nanosleep (libc.so.6)"),
        *("EpollSelector.select (selectors.py:451)", "Condition.wait (threading.py:327)"),
        "pthread_cond_timedwait (libc.so.6)",
    ],
)
def test_a_thread_that_waits_is_idle(leaf: str) -> None:
    assert pyspy.is_idle(["run (app.py:1)", leaf])
    # What calls it and then goes on is not.
    assert not pyspy.is_idle([leaf, "work (app.py:2)"])


# As py-spy wrote it of uvloop on Debian 13, whose libc waits in functions that have no name.
UVLOOP = "run (asyncio/runners.py:195);run_forever (loop.c:31528);uv_run (core.c:452);uv__io_poll "
UNNAMED = "0x7f245ffb63cd (libc.so.6);0x7f245ffb63a7 (libc.so.6)"


def test_a_frame_without_a_name_is_that_of_its_caller() -> None:
    idle = f"{UVLOOP}(linux.c:1432);epoll_pwait (libc.so.6);{UNNAMED} 72\n"
    reads = f"{UVLOOP}(linux.c:1528);uv__read (stream.c:1059);read (libc.so.6);{UNNAMED} 28\n"
    found = pyspy.figures(pyspy.read(idle + reads))
    assert found.idle_fraction == 0.72
    assert found.top == [FunctionFraction(function="read (libc.so.6)", fraction=1)]
    (stack,) = pyspy.read(f"{UNNAMED} 1\n")
    assert stack == ([UNNAMED.partition(";")[0]], 1)
    assert not pyspy.is_idle(stack[0])


@pytest.mark.parametrize(
    "leaf",
    [
        *("selected (app.py:1)", "poll_results (app.py:2)", "waits (x.so)", "recv (libc.so.6)"),
        "sleep (asyncio/tasks.py:637)",
    ],
)
def test_a_name_that_only_looks_like_waiting_is_work(leaf: str) -> None:
    assert not pyspy.is_idle([leaf])


def test_outside_of_python_nothing_runs_of_the_application() -> None:
    # As py-spy writes a worker of uWSGI that waits for a request.
    found = pyspy.figures(pyspy.read(" 99\nindex (app.py:3) 1\n"))
    assert (found.samples, found.idle_fraction) == (100, 0.99)
    assert (found.depth_median, found.native) == (1, False)
    idle = pyspy.figures(pyspy.read(" 99\n"))
    assert (idle.idle_fraction, idle.depth_median, idle.top) == (1, None, [])
    assert (found.depth_interval, idle.depth_interval) == (None, None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "profile.txt is not there: py-spy: no such process"),
        ("", "profile.txt holds no samples"),
        ("main (app.py:1)\n", "a line that is no stack: 'main (app.py:1)'"),
        ("main (app.py:1) 0\n", "a line that is no stack: 'main (app.py:1) 0'"),
        ("main (app.py:1) 99999999\n", "a line that is no stack: 'main (app.py:1) 99999999'"),
    ],
)
def test_what_is_no_profile_is_told(tmp_path: Path, content: str | None, words: str) -> None:
    (tmp_path / run_dir.PROFILE_LOG).write_text("py-spy: no such process\n")
    if content is not None:
        (tmp_path / run_dir.PROFILE).write_text(content)
    with pytest.raises(ResultError, match=re.escape(words)):
        pyspy.reduce(tmp_path)


def test_the_lock_is_held_in_a_part_of_the_looks(tmp_path: Path) -> None:
    (tmp_path / run_dir.PROFILE).write_text(RECORDED)
    assert pyspy.reduce(tmp_path).gil_fraction is None
    held = (
        "run (asyncio/runners.py:160);work (app.py:2) 90\nrun (asyncio/runners.py:160) 30\n# 500\n"
    )
    (tmp_path / run_dir.LOCK_PROFILE).write_text(held)
    assert pyspy.reduce(tmp_path).gil_fraction == 0.24
    # Nobody held it.
    (tmp_path / run_dir.LOCK_PROFILE).write_text("# 500\n")
    assert pyspy.reduce(tmp_path).gil_fraction == 0
    (tmp_path / run_dir.LOCK_PROFILE).write_text("run (asyncio/runners.py:160) 30\n")
    with pytest.raises(ResultError, match=r"gil.txt does not end with the number of looks"):
        pyspy.reduce(tmp_path)


# As py-spy 0.4.3 wrote the lab's Tornado, whose handlers are classes; shortened.
TASK = f"{LOOP};Handle._run (asyncio/events.py:78);task_step (_asynciomodule.c:2990)"
EXECUTE = f"{TASK};RequestHandler._execute (tornado/web.py:1958)"
TORNADO = f"""\
{LOOP};{WAITING} 100
{EXECUTE};Index.get (app.py:64);Handler.finish_json (app.py:58);send (libc.so.6) 20
{EXECUTE};RenderTable.get (app.py:92);RequestHandler.render (tornado/web.py:1001) 30
{EXECUTE};Lookup.get (app.py:128);lookup (work.py:133) 40
{EXECUTE};write (tornado/iostream.py:519) 7
{TASK} 3
"""
# And its Bottle, whose handlers are functions behind decorators.
WSGI = "Bottle.__call__ (bottle.py:1131);JSONPlugin.apply.<locals>.wrapper (bottle.py:2023)"
BOTTLE = f"""\
{WSGI};index (app.py:21);lookup (app.py:76) 20
{WSGI};render_table (app.py:47);SimpleTemplate.execute (bottle.py:4244);<module> (table.tpl:1) 30
{WSGI};make.<locals>.lookup (shop/views.py:9);lookup (work.py:133) 40
{WSGI};write (bottle.py:1) 10
"""


@pytest.mark.parametrize("text", [TORNADO, BOTTLE])
def test_a_kind_of_request_has_the_samples_of_its_handler(tmp_path: Path, text: str) -> None:
    kinds = ["/index", "render_table", "lookup", "write", "module"]
    (tmp_path / run_dir.PROFILE).write_text(text)
    log = tmp_path / run_dir.PROFILE_LOG
    log.write_text("process 7: python3\nown: /app.py\nown: /src/shop/views.py\npy-spy> done\n")
    # Another file's write is not the application's, nor is a module a function.
    shares = pyspy.reduce(tmp_path, kinds).kinds or []
    assert [(share.name, share.fraction) for share in shares] == [
        *[("/index", 0.2), ("render_table", 0.3), ("lookup", 0.4), ("write", None)],
        *[("module", None), (None, 0.1)],
    ]
    # Of 30 in 100, as Clopper and Pearson have it.
    assert shares[1].interval == pytest.approx([0.2124, 0.3998], abs=1e-4)
    # A handler that only waits computes nothing, and is there.
    (tmp_path / run_dir.PROFILE).write_text(
        f"{text}{EXECUTE};write (app.py:1);poll (libc.so.6) 9\n"
    )
    waited = (pyspy.reduce(tmp_path, kinds).kinds or [])[3]
    assert waited == KindCpu(name="write", fraction=0, interval=waited.interval)
    # There is nothing to divide of one kind, and nothing to tell without the files.
    assert pyspy.reduce(tmp_path, ["index"]).kinds is None
    log.write_text("process 7: python3\n")
    assert pyspy.reduce(tmp_path, kinds).kinds is None


def test_the_depth_has_the_interval_of_a_median() -> None:
    """Of 100 stacks 1 to 100 deep the 40th and the 61st bound it, as binomial tables have it."""
    frame = "f (app.py:1)"
    found = pyspy.figures([([frame] * depth, 1) for depth in range(1, 101)])
    assert (found.depth_median, found.depth_interval) == (50.5, [40, 61])


FRAMES = st.sampled_from(
    ["a (app.py:1)", "b (app.py:2)", "<lambda> (app.py:3)", "epoll_wait (libc.so.6)", "& (x.so)"]
)


@given(st.lists(st.tuples(st.lists(FRAMES, max_size=6), st.integers(1, 500)), min_size=1))
def test_any_stacks_are_figures_and_a_flame_graph(stacks: list[pyspy.Stack]) -> None:
    text = "".join(f"{';'.join(frames)} {count}\n" for frames, count in stacks)
    assert pyspy.read(text) == stacks
    found = pyspy.figures(stacks)
    assert found.samples == sum(count for _, count in stacks)
    assert 0 <= found.idle_fraction <= 1
    assert sum(one.fraction for one in found.top) <= 1 + 1e-9
    if found.depth_interval and found.depth_median is not None:
        low, high = found.depth_interval
        assert low <= found.depth_median <= high

    page = ET.fromstring(flamegraph.svg(stacks, 'of "a" <worker>'))
    assert page.get("aria-label") == 'of "a" <worker>'
    width = float(str(page.get("viewBox")).split()[2])
    for rectangle in page.iter("{http://www.w3.org/2000/svg}rect"):
        left, wide = float(rectangle.attrib["x"]), float(rectangle.attrib["width"])
        assert left >= 0
        assert left + wide <= width + 0.5


def test_a_flame_graph_shows_shares_by_width() -> None:
    page = ET.fromstring(flamegraph.svg(pyspy.read(RECORDED), "seen"))
    groups = [*page.iter("{http://www.w3.org/2000/svg}g")]
    drawn = {group[0].text: float(group[1].attrib["width"]) for group in groups}
    assert drawn["all: 100 samples, 100.0 %"] == pytest.approx(flamegraph.WIDTH, abs=1)
    assert drawn["work (app.py:2): 30 samples, 30.0 %"] == pytest.approx(330, abs=1)
    colours = {group[0].text: group[1].attrib["fill"] for group in groups}
    assert colours["epoll_wait (libc.so.6): 60 samples, 60.0 %"] in flamegraph.WAITING

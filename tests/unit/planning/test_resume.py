from __future__ import annotations

from loadlab.planning import resume


def test_a_run_that_goes_on_began_when_it_began_and_forgets_no_comparison() -> None:
    one, two = ({"by": "tuning", "base": "a", "head": head} for head in "bc")
    first = {
        "started": "1",
        "argv": ["lab.yml"],
        "plan": {"tracks": [1], "comparisons": [one], "twins": [["a", "a-twin"]]},
    }
    now = {
        "started": "2",
        "argv": ["lab.yml", "-e", "x=y"],
        "plan": {"tracks": [2], "comparisons": [one, two], "twins": []},
    }
    found = resume.gone_on(first, now)
    assert found == {
        "started": "1",
        "argv": ["lab.yml"],
        "plan": {"tracks": [2], "comparisons": [one, two], "twins": [["a", "a-twin"]]},
        "resumed": [{"started": "2", "argv": ["lab.yml", "-e", "x=y"]}],
    }
    # What it was begun on is not for those to say who go on.
    hosts = {"hosts": {"server": {}}, "reach": "-i x"}
    kept = resume.gone_on({**first, **hosts}, {**now, "reach": ""})
    assert {key: kept[key] for key in hosts} == hosts
    again = resume.gone_on(found, {**now, "started": "3"})
    assert [each["started"] for each in again["resumed"]] == ["2", "3"]

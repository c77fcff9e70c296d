"""Loops and timelines recorded from Cluster Autoscaler 1.36, replayed."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path

import pytest

from fairlead.conformance.autoscaler.case import compare_autoscaler, decide_autoscaler
from fairlead.conformance.run import compare_file

RECORDED = Path(__file__).parent / "data" / "autoscaler"
FAMILIES = {
    "scaledown_drain": 143,
    "scaledown_flags": 40,
    "scaledown_limits": 90,
    "scaledown_mix": 78,
    "scaledown_pdb": 38,
    "scaledown_place": 61,
    "scaledown_times": 40,
    "scaledown_util": 60,
    "scaleup_balance": 63,
    "scaleup_basic": 120,
    "scaleup_expander": 76,
    "scaleup_limits": 102,
    "scaleup_mix": 88,
    "scaleup_predicates": 102,
    "scaleup_state": 105,
    "scaleup_templates": 68,
    "scaleup_variants": 18,
    "timeline_atomic": 6,
    "timeline_backoff": 10,
    "timeline_basic": 10,
    "timeline_bulk": 10,
    "timeline_completion": 4,
    "timeline_delays": 10,
    "timeline_drain": 22,
    "timeline_fast": 6,
    "timeline_kill": 4,
    "timeline_misc": 4,
    "timeline_mix": 32,
    "timeline_provision": 6,
    "timeline_unready": 6,
}
# Every fourth case is replayed in the quick suite, all of them in the long one.
STRIDE = 4


def cases(family):
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_of_the_recorded_decisions_agrees(family):
    """Every fourth case agrees."""
    differing = {}
    for line in cases(family)[::STRIDE]:
        difference = compare_autoscaler(line["expect"], decide_autoscaler(line["case"]))
        if difference is not None:
            differing[line["case"]["name"]] = str(difference)
    assert differing == {}


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_every_recorded_decision_is_ours(family):
    """No case differs, and all recorded cases are compared."""
    result = compare_file("autoscaler", RECORDED / f"{family}.jsonl.gz")
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert result.cases == FAMILIES[family]


def test_no_recorded_family_is_left_out():
    """All recorded files are replayed."""
    assert sorted(FAMILIES) == sorted(path.name.split(".")[0] for path in RECORDED.iterdir())


def first(family, wanted):
    """Return the first case of a family whose first loop satisfies `wanted`."""
    return next(line for line in cases(family) if wanted(line["expect"]["loops"][0]))


def changed(line, path, value):
    """Return the expectation with one value replaced."""
    expect = copy.deepcopy(line["expect"])
    inner = expect["loops"][0]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return expect


@pytest.mark.parametrize(
    ("family", "path", "value"),
    [
        pytest.param("scaleup_basic", ("scaleUp", 0, "result"), "Other", id="a result"),
        pytest.param("scaleup_basic", ("actions", 0, "delta"), 99, id="a size"),
        pytest.param("scaleup_basic", ("expander", 0, "options", 0, "pods"), [], id="the pods"),
        pytest.param("scaleup_basic", ("expander", 0, "equals"), ["x"], id="the equal groups"),
        pytest.param("scaleup_basic", ("actions", 0, "t_ms"), 5, id="a time"),
        pytest.param("scaleup_basic", ("scaleDown", "unneeded"), ["n"], id="an unneeded node"),
    ],
)
def test_a_changed_expectation_differs(family, path, value):
    """The comparison finds one changed value."""
    line = first(family, lambda loop: loop.get("actions") and loop.get("expander"))
    found = decide_autoscaler(line["case"])
    assert compare_autoscaler(line["expect"], found) is None
    assert compare_autoscaler(changed(line, path, value), found) is not None


def test_utilization_is_compared_with_a_relative_error():
    """A relative error of 1e-9 is ignored, one of 1e-6 is not."""
    line = first("scaledown_util", lambda loop: loop["scaleDown"]["utilization"])
    found = decide_autoscaler(line["case"])
    node, used = next(iter(line["expect"]["loops"][0]["scaleDown"]["utilization"].items()))
    path = ("scaleDown", "utilization", node, "utilization")
    same = changed(line, path, used["utilization"] * (1 + 1e-12))
    other = changed(line, path, used["utilization"] + 1e-6)
    assert compare_autoscaler(same, found) is None
    assert compare_autoscaler(other, found) is not None

"""Load curves: amounts between points, steps, repetition, and how long nothing changes."""

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import (
    LoadCurve,
    annotated_load,
    beginning,
    parse_load,
    vary,
)

STEP_AND_RAMP = LoadCurve(
    ((0, 1000), (seconds(60), 1000), (seconds(60), 4000), (seconds(120), 2000)), start=seconds(10)
)
KEY = ("Deployment", "shop", "web")
DAILY = LoadCurve(((0, 100), (seconds(40), 300), (seconds(80), 300)), period=seconds(100))


@pytest.mark.parametrize(
    ("curve", "at_s", "amount"),
    [
        pytest.param(STEP_AND_RAMP, 0, 1000, id="before the start, the first amount"),
        pytest.param(STEP_AND_RAMP, 69, 1000, id="just before a step"),
        pytest.param(STEP_AND_RAMP, 70, 4000, id="at a step, the new amount"),
        pytest.param(STEP_AND_RAMP, 100, 3000, id="halfway down a ramp"),
        pytest.param(STEP_AND_RAMP, 999, 2000, id="after the end, the last amount"),
        pytest.param(DAILY, 20, 200, id="in the first period"),
        pytest.param(DAILY, 220, 200, id="in the third period"),
        pytest.param(DAILY, 95, 300, id="after the last point of a period"),
    ],
)
def test_the_amount_follows_the_points(curve, at_s, amount):
    assert curve.at(seconds(at_s)) == amount


@pytest.mark.parametrize(
    ("curve", "at_s", "until_s"),
    [
        pytest.param(STEP_AND_RAMP, 20, 70, id="up to the step"),
        pytest.param(STEP_AND_RAMP, 80, 80, id="on a ramp"),
        pytest.param(STEP_AND_RAMP, 130, None, id="forever after the last point"),
        pytest.param(DAILY, 50, 80, id="up to the next point"),
        pytest.param(DAILY, 85, 100, id="up to the next period"),
        pytest.param(LoadCurve(((0, 5), (9, 5)), period=10), 0, None, id="always the same"),
    ],
)
def test_the_end_of_a_constant_amount_is_computed(curve, at_s, until_s):
    until = None if until_s is None else seconds(until_s)
    assert curve.constant_until(seconds(at_s)) == until


@pytest.mark.parametrize(
    ("curve", "at_s", "until_s"),
    [
        pytest.param(STEP_AND_RAMP, 20, 70, id="up to the step"),
        pytest.param(STEP_AND_RAMP, 80, 130, id="to the end of a ramp"),
        pytest.param(STEP_AND_RAMP, 130, None, id="forever after the last point"),
        pytest.param(DAILY, 210, 240, id="a ramp of a later period"),
        pytest.param(DAILY, 85, 100, id="after the last point, up to the next period"),
    ],
)
def test_the_end_of_a_monotonic_amount_is_computed(curve, at_s, until_s):
    until = None if until_s is None else seconds(until_s)
    assert curve.linear_until(seconds(at_s)) == until


def test_an_annotation_states_a_constant_load():
    found = annotated_load({"fairlead.dev/load": "cpu=1.5, memory=2Gi"})
    assert {name: curve.at(7) for name, curve in found.items()} == {"cpu": 1500, "memory": 2 << 30}


@pytest.mark.parametrize("text", ["gpu=1", "cpu", "cpu=x", "cpu=-1", ""])
def test_an_invalid_annotation_states_no_load(text):
    assert annotated_load({"fairlead.dev/load": text}) == {}
    with pytest.raises(ValueError, match=r".+"):
        parse_load(text)


def test_a_curve_that_begins_later_has_its_first_amount_until_then():
    """This also applies to a curve that repeats: the end of a period is not its past."""
    begin = seconds(250)
    curve = beginning({KEY: {"cpu": DAILY}}, begin)[KEY]["cpu"]
    assert [curve.at(seconds(at)) for at in (0, 249, 250, 270)] == [100, 100, 100, 200]
    assert curve.constant_until(0) == curve.linear_until(0) == begin


def test_curves_that_never_begin_are_constant():
    loads = {KEY: {"cpu": DAILY, "memory": STEP_AND_RAMP}}
    held = beginning(loads, None)
    assert vary(loads)
    assert not vary(held)
    assert [held[KEY][name].at(seconds(999)) for name in ("cpu", "memory")] == [100, 1000]

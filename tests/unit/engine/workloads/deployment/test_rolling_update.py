"""Rolling updates: the sizes of the ReplicaSets after each step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.objects import RollingUpdate, UpdateStrategy
from fairlead.engine.workloads.deployment.rolling_update import (
    Bounds,
    ReplicaSetState,
    grown,
    is_scaling,
    proportional,
    recreated,
    rolled,
)


def strategy(surge=None, unavailable=None, kind="RollingUpdate"):
    rolling = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    return UpdateStrategy(type=kind, rolling_update=rolling)


def part(key, replicas, available=None, **fields):
    available = replicas if available is None else available
    return ReplicaSetState(
        key=key, replicas=replicas, available=available, age=(key, key), **fields
    )


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        pytest.param(None, None, 10, (3, 2), id="a quarter, up and down"),
        pytest.param(None, None, 1, (1, 0), id="one replica is never missed"),
        pytest.param("0%", "0%", 5, (0, 1), id="both nothing: one may be missing"),
        pytest.param(0, "1%", 5, (0, 1), id="rounded down to nothing: likewise"),
        pytest.param(2, 9, 4, (2, 4), id="no more than all may be missing"),
        pytest.param("nonsense", 1, 4, (0, 1), id="a bound that makes no sense is none"),
        pytest.param(None, None, 0, (0, 0), id="nothing of nothing"),
    ],
)
def test_the_bounds_of_a_rolling_update(surge, unavailable, replicas, expected):
    bounds = Bounds.of(strategy(surge, unavailable), replicas)
    assert (bounds.surge, bounds.unavailable) == expected


def test_recreate_has_no_bounds():
    """Neither a surge nor a minimum of available pods."""
    bounds = Bounds.of(strategy(5, 5, kind="Recreate"), 4)
    assert (bounds.max_pods, bounds.min_available) == (4, 4)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(part("n", 0), [part("a", 4)], {"n": 1}, id="the new one grows first"),
        pytest.param(
            part("n", 1, 1), [part("a", 4)], {"a": 2}, id="then old ones shrink to the least"
        ),
        pytest.param(part("n", 1, 0), [part("a", 4)], {"a": 3}, id="unready new ones do not count"),
        pytest.param(
            part("n", 1, 0), [part("a", 4, 2)], {"a": 3}, id="unhealthy old ones go first"
        ),
        pytest.param(part("n", 2, 0), [part("a", 3)], {}, id="nothing to do but wait"),
        pytest.param(part("n", 4, 4), [part("a", 1)], {"a": 0}, id="the last one"),
        pytest.param(part("n", 6), [], {"n": 4}, id="too large"),
        pytest.param(
            part("n", 3, 3), [part("a", 1), part("b", 1)], {"a": 0, "b": 0}, id="oldest first"
        ),
    ],
)
def test_steps_of_a_rolling_update(new, old, expected):
    """Four replicas, with maxSurge 1 and maxUnavailable 1."""
    steps = rolled(new, old, Bounds(4, 1, 1))
    assert {key: size for step in steps for key, size in step.items()} == expected


def test_a_new_replica_set_starts_with_the_surge():
    assert grown(0, 10, Bounds(10, 3, 2)) == 3
    assert grown(0, 0, Bounds(10, 3, 2)) == 10


def test_recreate_waits_until_old_pods_have_ended():
    old = [part("a", 3)]
    assert recreated(None, old, 3, is_quiet=False) == {"a": 0}
    assert recreated(part("n", 0), [part("a", 0)], 3, is_quiet=False) == {}
    assert recreated(part("n", 0), [part("a", 0)], 3, is_quiet=True) == {"n": 3}


def test_scaling_is_detected_by_the_desired_replicas_annotation():
    assert is_scaling([part("a", 3, desired=3)], 5)
    assert not is_scaling([part("a", 3, desired=5)], 5)
    assert not is_scaling([part("a", 0, desired=3)], 5)
    assert not is_scaling([part("a", 3)], 5)


@pytest.mark.parametrize(
    ("new", "old", "replicas", "expected"),
    [
        pytest.param(part("n", 2), [], 5, {"n": 5}, id="the only one takes it all"),
        pytest.param(None, [part("a", 2), part("b", 0)], 5, {"a": 5}, id="the only active one"),
        pytest.param(None, [part("a", 0), part("b", 0)], 5, {"b": 5}, id="the latest if none is"),
        pytest.param(
            part("n", 5, max_pods=15),
            [part("a", 10, max_pods=15)],
            20,
            {"n": 8, "a": 17},
            id="growing in proportion, what is left over to the largest",
        ),
        pytest.param(
            part("n", 5, max_pods=15),
            [part("a", 10, max_pods=15)],
            5,
            {"n": 3, "a": 7},
            id="shrinking in proportion",
        ),
        pytest.param(
            part("n", 5, max_pods=15),
            [part("a", 10, max_pods=15)],
            0,
            {"n": 0, "a": 0},
            id="to nothing",
        ),
        pytest.param(
            part("n", 4, desired=4), [part("a", 1)], 4, {"a": 0}, id="a saturated one has won"
        ),
        pytest.param(None, [], 2, {}, id="paused before its first ReplicaSet"),
    ],
)
def test_proportional_scaling(new, old, replicas, expected):
    """Surge 5 throughout; 5 and 10 come from the book's example of a rollout of 10."""
    bounds = Bounds(replicas, 5, 0)
    assert proportional(new, old, bounds, is_rolling=True, reported=0) == expected


def test_only_rolling_updates_scale_proportionally():
    found = proportional(
        part("n", 2), [part("a", 2)], Bounds(9, 0, 0), is_rolling=False, reported=0
    )
    assert found == {}


@given(
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(1, 10),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_a_step_never_exceeds_its_bounds(new, old, available, replicas, surge, unavailable):
    """It never adds beyond the most, and never takes an available pod below the least."""
    bounds = Bounds(replicas, surge, max(unavailable, 0 if surge else 1))
    available = min(old, available)
    steps = rolled(part("n", new, 0), [part("a", old, available)], bounds)
    sizes = {key: size for step in steps for key, size in step.items()}
    if sizes.get("n", 0) > new:
        assert sizes["n"] + old <= bounds.max_pods
    if sizes.get("a", old) < old:
        taken_available = max(0, available - sizes["a"])
        assert available - taken_available >= min(available, bounds.min_available)

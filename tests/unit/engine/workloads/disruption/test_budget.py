"""Computations of disruption budgets, compared with upstream and with recounts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode, decode_as
from fairlead.api.objects import Pod
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.disruption.budget import (
    DisruptionBudget,
    Member,
    desired_healthy,
)
from fairlead.engine.workloads.int_or_percent import IntOrPercentError, scaled

NOW = seconds(10_000)


@pytest.mark.parametrize(
    ("value", "total", "expected"),
    [
        (3, 10, 3),
        (30, 10, 30),
        ("0%", 7, 0),
        ("100%", 7, 7),
        ("50%", 7, 4),
        ("1%", 1, 1),
        ("33%", 100, 33),
        ("200%", 3, 6),
        ("50%", 0, 0),
    ],
)
def test_integers_and_percentages_are_scaled(value, total, expected):
    """An integer is unchanged; a percentage is rounded up."""
    assert scaled(value, total) == expected


@pytest.mark.parametrize("value", ["5", "", "%", "-5%", "5.5%", "5 %", "five%"])
def test_invalid_percentages_are_refused(value):
    with pytest.raises(IntOrPercentError, match="string is not a percentage"):
        scaled(value, 10)


@given(st.integers(0, 400), st.integers(0, 10_000))
def test_percentages_are_rounded_as_in_upstream(percent, total):
    """Upstream computes with floats: ceil(percent * total / 100)."""
    assert scaled(f"{percent}%", total) == math.ceil(percent * total / 100)


@pytest.mark.parametrize(
    ("spec", "expected", "desired"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": "50%"}, 5, 3),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": "50%"}, 5, 2),
        ({"maxUnavailable": 9}, 5, 0),
        ({}, 5, 0),
    ],
)
def test_the_number_of_desired_healthy_pods(build, spec, expected, desired):
    assert desired_healthy(decode(build.budget(**spec)), expected) == desired


def pod(name, *, ready=True, leaving=False, owner="web"):
    metadata = {"name": name, "namespace": "ns"}
    if leaving:
        metadata["deletionTimestamp"] = format_timestamp(NOW)
    if owner:
        metadata["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return decode_as(Pod, {"metadata": metadata, "status": {"conditions": [condition]}})


def budget(build, pods, *, disrupted=None, **spec):
    one = DisruptionBudget(decode(build.budget(status={"disruptedPods": disrupted or {}}, **spec)))
    for member in pods:
        one.put(member.metadata.name, Member.of(member))
    return one


@pytest.mark.parametrize(
    ("case", "age_s", "healthy", "kept"),
    [
        ("an eviction under way is not given back", 1, 1, True),
        ("nor just before its time is over", 119, 1, True),
        ("on the second it is healthy but still noted", 120, 2, True),
        ("after that it is forgotten", 121, 2, False),
    ],
)
def test_evictions_in_progress_count_as_disruptions(build, case, age_s, healthy, kept):
    stamp = {"a": format_timestamp(NOW - seconds(age_s))}
    one = budget(build, [pod("a"), pod("b")], disrupted=stamp, minAvailable=1)
    status = one.status(0, NOW)
    assert status.current_healthy == healthy, case
    assert status.disrupted_pods == (stamp if kept else {}), case
    assert one.next_recheck(NOW) == (NOW + seconds(120 - age_s) if kept else None)


@pytest.mark.parametrize("member", [pod("a", leaving=True), pod("other")])
def test_an_eviction_is_dropped_after_the_pod_is_terminating(build, member):
    one = budget(build, [member], disrupted={"a": format_timestamp(NOW)}, minAvailable=1)
    assert one.status(0, NOW).disrupted_pods == {}
    assert one.next_recheck(NOW) is None


def test_without_expected_pods_no_disruption_is_allowed(build):
    """minAvailable 0 is satisfied, but the first pods must not be unprotected."""
    assert budget(build, [], minAvailable=0).status(0, NOW).disruptions_allowed == 0
    assert budget(build, [pod("a")], minAvailable=0).status(0, NOW).disruptions_allowed == 1


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 6), st.booleans(), st.booleans(), st.sampled_from(["", "a", "b"])),
        max_size=30,
    ),
    removals=st.lists(st.integers(0, 6), max_size=8),
    disrupted=st.dictionaries(
        st.integers(0, 6).map(lambda place: f"p{place}"), st.integers(0, 200), max_size=3
    ),
    spec=st.one_of(
        st.integers(0, 8).map(lambda value: {"minAvailable": value}),
        st.integers(0, 100).map(lambda value: {"minAvailable": f"{value}%"}),
        st.integers(0, 8).map(lambda value: {"maxUnavailable": value}),
        st.integers(0, 100).map(lambda value: {"maxUnavailable": f"{value}%"}),
    ),
    scale=st.integers(0, 9),
)
def test_counting_by_change_equals_recounting(build, *, rows, removals, disrupted, spec, scale):
    """This holds after any additions, changes and deletions of pods."""
    stamps = {name: format_timestamp(NOW - seconds(age)) for name, age in disrupted.items()}
    one = budget(build, [], disrupted=stamps, **spec)
    pods = {}
    for place, ready, leaving, owner in rows:
        pods[f"p{place}"] = pod(f"p{place}", ready=ready, leaving=leaving, owner=owner)
        one.put(f"p{place}", Member.of(pods[f"p{place}"]))
    for place in removals:
        assert one.remove(f"p{place}") is (pods.pop(f"p{place}", None) is not None)
    healthy = 0
    for name, member in pods.items():
        ready = member.status.conditions[0].status == "True"
        under_way = name in disrupted and disrupted[name] < 120
        healthy += ready and not member.metadata.deletion_timestamp and not under_way
    expected = len(pods) if isinstance(spec.get("minAvailable"), int) else scale
    if "maxUnavailable" in spec:
        desired = max(0, expected - scaled(spec["maxUnavailable"], expected))
    else:
        desired = scaled(spec["minAvailable"], expected)
    status = one.status(scale, NOW)
    assert status.current_healthy == healthy
    assert status.expected_pods == expected
    assert status.desired_healthy == desired
    assert status.disruptions_allowed == (max(0, healthy - desired) if expected else 0)
    owners = {
        reference for member in pods.values() for reference in member.metadata.owner_references
    }
    assert set(one.owners) == owners

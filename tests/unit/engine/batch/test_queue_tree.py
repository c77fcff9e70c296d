"""The division of resources among queues: trees, bounds, and the algorithm of kube-batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.batch.defect import FIXED, UPSTREAM
from fairlead.engine.batch.info.request import KUBE_BATCH_SLACK
from fairlead.engine.batch.shares.deserved import divide
from fairlead.engine.batch.shares.queue_tree import Claim, QueueTree

CPU = 0


def cpu(request, weight=1, *, bound=None, guarantee=None, entitled=None, parent=""):
    def amount(value):
        return () if value is None else ((CPU, value),)

    return Claim(weight, {CPU: request}, amount(bound), amount(guarantee), amount(entitled), parent)


def shares(whole, **claims):
    return QueueTree(claims).divide(CPU, whole)


@pytest.mark.parametrize(
    ("claims", "deserved"),
    [
        ({"a": cpu(100), "b": cpu(100)}, {"a": 30, "b": 30}),
        ({"a": cpu(100, 2), "b": cpu(100, 1)}, {"a": 40, "b": 20}),
        ({"a": cpu(10), "b": cpu(100)}, {"a": 10, "b": 50}),
        ({"a": cpu(10), "b": cpu(20)}, {"a": 10, "b": 20}),
        ({"a": cpu(100, 0), "b": cpu(20)}, {"a": 0, "b": 20}),
        ({"a": cpu(100, bound=5), "b": cpu(100)}, {"a": 5, "b": 55}),
        ({"a": cpu(0, guarantee=40), "b": cpu(100)}, {"a": 0, "b": 20}),
        ({"a": cpu(100, guarantee=40), "b": cpu(100)}, {"a": 40, "b": 20}),
        ({"a": cpu(100, guarantee=20), "b": cpu(100)}, {"a": 30, "b": 30}),
        ({"a": cpu(100, guarantee=20), "b": cpu(10)}, {"a": 50, "b": 10}),
        (
            {"a": cpu(100, guarantee=40), "b": cpu(100), "c": cpu(5)},
            {"a": 40, "b": 15, "c": 5},
        ),
        (
            {"a": cpu(100, guarantee=30), "b": cpu(100, guarantee=18), "c": cpu(100)},
            {"a": 30, "b": 18, "c": 12},
        ),
        ({"a": cpu(100, 0, guarantee=10), "b": cpu(100)}, {"a": 10, "b": 50}),
        ({"a": cpu(100, guarantee=50), "b": cpu(100, guarantee=40)}, {"a": 50, "b": 40}),
        ({"a": cpu(100, entitled=50), "b": cpu(100)}, {"a": 50, "b": 10}),
        ({"a": cpu(10, entitled=50), "b": cpu(100)}, {"a": 10, "b": 50}),
        ({"a": cpu(100, entitled=40), "b": cpu(100, entitled=40)}, {"a": 30, "b": 30}),
    ],
)
def test_60_cpus_are_divided_by_weight_and_demand(claims, deserved):
    assert shares(60, **claims) == pytest.approx(deserved)


def test_children_share_what_their_parent_gets():
    found = shares(
        60,
        org=cpu(0, 1),
        team1=cpu(100, 3, parent="org"),
        team2=cpu(100, 1, parent="org"),
        other=cpu(100, 1),
    )
    assert found == pytest.approx({"org": 30, "team1": 22.5, "team2": 7.5, "other": 30})


def test_the_guarantee_of_a_child_is_guaranteed_to_its_parent():
    """Without the guarantee, each of the two top queues would deserve 30."""
    found = shares(60, org=cpu(0), team=cpu(100, guarantee=40, parent="org"), other=cpu(100))
    assert found == pytest.approx({"org": 40, "team": 40, "other": 20})


def test_the_demand_of_a_parent_is_that_of_its_children_up_to_its_bound():
    found = shares(60, org=cpu(0, 1, bound=20), team=cpu(100, parent="org"), other=cpu(100))
    assert found == pytest.approx({"org": 20, "team": 20, "other": 40})


def test_jobs_of_a_queue_with_children_share_its_resources_with_the_children():
    found = shares(60, org=cpu(100, 1), team=cpu(100, 1, parent="org"))
    assert found == pytest.approx({"org": 60, "team": 30})


def test_the_guarantee_of_an_idle_sibling_takes_nothing_from_a_guarantee():
    """The parent deserves what its children want, which is less than their guarantees."""
    org = {"org": cpu(0), "a": cpu(20, guarantee=20, parent="org")}
    found = shares(60, **org, b=cpu(0, guarantee=20, parent="org"), other=cpu(100))
    assert found["a"] == pytest.approx(20)


@pytest.mark.parametrize(
    ("claims", "limits"),
    [
        ({"a": cpu(9), "b": cpu(9)}, {"a": None, "b": None}),
        ({"a": cpu(9, bound=5), "b": cpu(9)}, {"a": 5, "b": None}),
        ({"a": cpu(9, guarantee=40), "b": cpu(9)}, {"a": None, "b": 20}),
        ({"a": cpu(9, guarantee=40), "b": cpu(9, bound=30)}, {"a": None, "b": 20}),
        ({"a": cpu(9, guarantee=40), "b": cpu(9, bound=5)}, {"a": None, "b": 5}),
        ({"a": cpu(9, guarantee=40), "b": cpu(9, guarantee=10)}, {"a": 50, "b": 20}),
        ({"a": cpu(9, guarantee=40), "b": cpu(9, guarantee=70)}, {"a": 40, "b": 70}),
        (
            {"org": cpu(0, bound=30), "a": cpu(9, guarantee=10, parent="org")}
            | {"b": cpu(9, parent="org"), "other": cpu(9)},
            {"org": 30, "a": None, "b": 20, "other": 50},
        ),
    ],
)
def test_a_queue_must_leave_the_guarantees_of_its_siblings(claims, limits):
    found = QueueTree(claims).limits({CPU: 60})
    assert {name: dict(limit).get(CPU) for name, limit in found.items()} == limits


def test_an_unknown_parent_or_a_cycle_means_the_root():
    assert shares(60, a=cpu(100, parent="gone"), b=cpu(100)) == pytest.approx({"a": 30, "b": 30})
    circle = {"a": cpu(100, parent="b"), "b": cpu(100, parent="a"), "c": cpu(100)}
    assert shares(60, **circle) == pytest.approx({"a": 20, "b": 20, "c": 20})


def test_the_path_of_a_queue_starts_at_the_root():
    tree = QueueTree({"a": cpu(0), "b": cpu(0, parent="a"), "c": cpu(0, parent="b")})
    assert tree.path_of("c") == ["a", "b", "c"]


FLAT = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(cpu, st.integers(0, 100), st.integers(1, 5), bound=st.none() | st.integers(0, 100)),
    min_size=1,
)


@given(FLAT, st.integers(0, 300))
def test_deserved_amounts_sum_to_the_requested_part_of_the_capacity(claims, whole):
    """Either everything is divided, or every claim is satisfied."""
    wanted = sum(min(c.request[CPU], *(b for _, b in c.bound), 10**9) for c in claims.values())
    assert sum(shares(whole, **claims).values()) == pytest.approx(min(whole, wanted))


@given(FLAT, st.integers(0, 300))
def test_no_queue_deserves_more_than_its_demand_or_capability(claims, whole):
    for name, amount in shares(whole, **claims).items():
        claim = claims[name]
        assert -1e-9 <= amount <= min(claim.request[CPU], *(b for _, b in claim.bound), 10**9)


@given(FLAT, st.integers(0, 300), st.sampled_from("abcdef"))
def test_more_weight_never_reduces_the_deserved_amount(claims, whole, name):
    if name not in claims:
        return
    before = shares(whole, **claims)[name]
    claim = claims[name]
    claims[name] = Claim(claim.weight + 1, claim.request, claim.bound)
    assert shares(whole, **claims)[name] >= before - 1e-9


@given(
    st.dictionaries(
        st.sampled_from("abc"), st.builds(cpu, st.integers(1, 100), st.integers(1, 3)), min_size=1
    ),
    st.integers(1, 300),
)
def test_kube_batch_divides_equally_with_one_resource(claims, whole):
    """The two algorithms only differ with several dimensions; with equal dimensions they agree."""
    both = {
        name: Claim(c.weight, {0: c.request[CPU] * 1000, 1: c.request[CPU] * 10**9})
        for name, c in claims.items()
    }
    total = {0: whole * 1000, 1: whole * 10**9}
    upstream = divide(total, both, KUBE_BATCH_SLACK, UPSTREAM)
    fixed = divide(total, both, KUBE_BATCH_SLACK, FIXED)
    for name, claim in both.items():
        # A queue that gets exactly what it wants is never "less" for kube-batch, and it stops
        # when less than its least amounts remain.
        mine = min(upstream[name][0], float(claim.request[0]))
        assert mine == pytest.approx(fixed[name][0], abs=10 * len(claims))

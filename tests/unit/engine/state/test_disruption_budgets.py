"""Which budgets select a pod, and which changes of budgets matter for preemption."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.objects import PodDisruptionBudget
from fairlead.engine.core.stimulus import ObjectChanged
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.disruption_budgets import DisruptionBudgets
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod

WEB = {"matchLabels": {"app": "web"}}


def budget(name="a", selector=WEB, *, namespace="default", allowed=0, healthy=0, evicted=()):
    manifest = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {} if selector is None else {"selector": selector},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "disruptedPods": dict.fromkeys(evicted, "2026-11-20T05:00:00Z"),
        },
    }
    return decode_as(PodDisruptionBudget, manifest)


def placed(cluster, name="p", **fields):
    """Place a pod in `cluster`, and return its PodInfo."""
    pod = make_pod(name, node="n", **fields)
    cluster.apply(ObjectChanged(pod))
    return cluster.pods[pod.key]


@pytest.fixture
def cluster():
    made = Cluster()
    made.apply(ObjectChanged(make_node("n")))
    return made


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (WEB, {"app": "web", "tier": "x"}, True),
        (WEB, {"app": "db"}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {"app": "db"}, True),
        ({}, {"app": "web"}, False),
        (None, {"app": "web"}, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {}, False),
    ],
    ids=[
        "a matching label",
        "another value",
        "an expression",
        "an empty selector",
        "no selector",
        "a pod without labels",
    ],
)
def test_which_pods_a_budget_selects(cluster, selector, labels, expected):
    budgets = DisruptionBudgets([budget("a", selector), budget("b", WEB, namespace="other")])
    found = budgets.selecting(placed(cluster, labels=labels))
    assert [one.key for one in found] == ["default/a"] * expected


def test_a_pod_outside_the_state_is_compared_with_each_selector(cluster):
    pod = PodInfo(make_pod("p", labels={"app": "web"}), placed(cluster).shape)
    assert pod.pod_class is None
    assert [one.key for one in DisruptionBudgets([budget()]).selecting(pod)] == ["default/a"]


def test_the_newest_status_of_a_selecting_budget_is_returned(cluster):
    budgets, pod = DisruptionBudgets([budget(allowed=1)]), placed(cluster, labels={"app": "web"})
    assert [one.status.disruptions_allowed for one in budgets.selecting(pod)] == [1]
    budgets.put(budget(allowed=0))
    assert [one.status.disruptions_allowed for one in budgets.selecting(pod)] == [0]


@pytest.mark.parametrize(
    ("after", "matters"),
    [
        (budget(healthy=7), False),
        (budget(allowed=1), True),
        (budget(evicted=("p",)), True),
        (budget(selector={"matchLabels": {"app": "db"}}), True),
        (budget("b"), True),
    ],
    ids=["healthy pods", "allowed disruptions", "recorded evictions", "the selector", "a new one"],
)
def test_the_version_increases_if_a_change_matters_for_preemption(after, matters):
    budgets = DisruptionBudgets([budget()])
    before = budgets.version
    budgets.put(after)
    assert (budgets.version != before) == matters


def test_a_removed_budget_selects_no_pod(cluster):
    budgets, pod = DisruptionBudgets([budget()]), placed(cluster, labels={"app": "web"})
    assert budgets.selecting(pod)
    before = budgets.version
    assert budgets.remove("default/a") == budget()
    assert budgets.remove("default/a") is None
    assert (budgets.selecting(pod), len(budgets)) == ([], 0)
    assert budgets.version != before


APPS = st.sampled_from(["web", "db", "job"])
NAMESPACES = st.sampled_from(["default", "other"])
BUDGETS = st.builds(
    lambda name, app, namespace: budget(name, {"matchLabels": {"app": app}}, namespace=namespace),
    st.sampled_from("abc"),
    APPS,
    NAMESPACES,
)
PODS = st.tuples(NAMESPACES, st.fixed_dictionaries({}, optional={"app": APPS, "tier": APPS}))


@given(st.lists(st.one_of(BUDGETS, st.sampled_from("abc")), max_size=12), st.lists(PODS))
def test_kept_selections_equal_new_ones(changes, pods):
    """After any changes of budgets: a budget is put, or a name is removed from `default`."""
    cluster = Cluster()
    cluster.apply(ObjectChanged(make_node("n")))
    infos = [
        placed(cluster, f"p{number}", namespace=namespace, labels=labels)
        for number, (namespace, labels) in enumerate(pods)
    ]
    budgets = DisruptionBudgets()
    for change in changes:
        for pod in infos:
            budgets.selecting(pod)
        if isinstance(change, str):
            budgets.remove(f"default/{change}")
        else:
            budgets.put(change)
    again = DisruptionBudgets(budgets)
    for pod in infos:
        assert {one.key for one in budgets.selecting(pod)} == {
            one.key for one in again.selecting(PodInfo(pod.pod, pod.shape))
        }
    assert list(budgets) == list(again) == sorted(budgets, key=lambda one: one.key)

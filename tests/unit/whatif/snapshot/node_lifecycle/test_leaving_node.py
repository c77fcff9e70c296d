"""Nodes that an autoscaler was removing when the dump was taken stay, and a note says so."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.planner.baseline import read_baseline
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.node_lifecycle.leaving_node import nodes_to_be_deleted

TAKEN_AT = "2026-05-05T10:00:00Z"
SECONDS = int(parse_timestamp(TAKEN_AT)) // 1_000_000_000
BEGUN = "ToBeDeletedByClusterAutoscaler"
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
INTERRUPTED = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
NOTE = "a was being removed when the dump was taken; the answer assumes that it stays"


def begun(before_s):
    return {"key": BEGUN, "value": str(SECONDS - before_s), "effect": "NoSchedule"}


@pytest.fixture
def taken(snapshot, make):
    """Returns a snapshot with node `a`, which has the taints and metadata, and node `b`."""

    def take(*taints, **meta):
        node = make.node("a")
        node["metadata"] |= {"creationTimestamp": "2026-05-01T10:00:00Z", **meta}
        node["spec"] = {"taints": list(taints)}
        other = make.node("b")
        other["metadata"]["creationTimestamp"] = TAKEN_AT
        return snapshot(node, other)

    return take


@pytest.mark.parametrize(
    ("taints", "meta", "in_plans", "in_simulations"),
    [
        pytest.param([begun(60)], {}, True, True, id="by Cluster Autoscaler"),
        pytest.param([begun(600)], {}, False, False, id="a removal that failed"),
        pytest.param([DISRUPTED], {}, True, True, id="by Karpenter"),
        pytest.param([INTERRUPTED], {}, True, True, id="by the cloud provider"),
        pytest.param([{**DISRUPTED, "key": "x"}], {}, False, False, id="another taint"),
        pytest.param(
            [],
            {"deletionTimestamp": TAKEN_AT, "finalizers": ["karpenter.sh/termination"]},
            True,
            False,
            id="being deleted by Karpenter, which simulations continue",
        ),
        pytest.param(
            [],
            {"deletionTimestamp": TAKEN_AT, "finalizers": ["x/hold"]},
            True,
            True,
            id="being deleted, but kept by another finalizer",
        ),
    ],
)
def test_a_note_names_nodes_that_stay(taken, taints, meta, in_plans, in_simulations):
    snapshot = taken(*taints, **meta)
    plan = read_baseline(snapshot, SchedulerConfig(), NO_CHOICE, NoProgress())
    assert any(one.startswith(NOTE) for one in plan.notes) == in_plans
    notes = what_if(snapshot, ClusterChange()).without.notes
    assert any(one.startswith(NOTE) for one in notes) == in_simulations


def test_a_note_names_nodes_of_karpenter_that_go_before_the_change(taken):
    snapshot = taken(deletionTimestamp=TAKEN_AT, finalizers=["karpenter.sh/termination"])
    answer = what_if(snapshot, ClusterChange(cordon=("b",)))
    assert [node.name for node in answer.without.nodes] == ["b"]
    drained = "the simulation continues Karpenter's drain of it."
    note = f"a was being deleted when the dump was taken; {drained}"
    assert note in answer.without.notes
    assert not any("deleted" in one for one in what_if(taken(), ClusterChange()).without.notes)


@pytest.mark.parametrize(
    ("taint", "autoscaler", "other"),
    [
        (DISRUPTED, "by_karpenter", "by_cluster_autoscaler"),
        (begun(60), "by_cluster_autoscaler", "by_karpenter"),
    ],
)
def test_a_simulated_autoscaler_decides_anew(taken, taint, autoscaler, other):
    snapshot = taken(taint)
    counts = {autoscaler: True, other: False}
    assert nodes_to_be_deleted(snapshot.manifests, snapshot.taken_at, **counts) == ["a"]
    counts = {autoscaler: False, other: True}
    assert nodes_to_be_deleted(snapshot.manifests, snapshot.taken_at, **counts) == []


def test_no_simulated_autoscaler_keeps_an_interrupted_machine(taken):
    snapshot = taken(INTERRUPTED)
    counts = {"by_karpenter": False, "by_cluster_autoscaler": False}
    assert nodes_to_be_deleted(snapshot.manifests, snapshot.taken_at, **counts) == ["a"]


@pytest.mark.parametrize(("autoscale", "is_noted"), [("cluster-autoscaler", False), ("off", True)])
def test_a_note_does_not_contradict_a_simulated_autoscaler(taken, autoscale, is_noted):
    """Cluster Autoscaler removes its taint in its first loop."""
    options = AutoscaleOptions(autoscale)
    plan = read_baseline(
        taken(begun(60)), SchedulerConfig(), NO_CHOICE, NoProgress(), autoscale=options
    )
    assert any(one.startswith(NOTE) for one in plan.notes) == is_noted


@pytest.mark.parametrize(
    ("finalizer", "note"),
    [
        pytest.param(
            "x/hold",
            "a was being removed when the dump was taken; without the change, the answer assumes "
            "that it stays.",
            id="kept by a finalizer",
        ),
        pytest.param(
            "karpenter.sh/termination",
            "a was being deleted when the dump was taken; the simulation continues Karpenter's "
            "drain of it.",
            id="drained by Karpenter",
        ),
    ],
)
def test_the_notes_about_a_deletion_that_the_change_repeats_agree(taken, finalizer, note):
    """No other note says that the node stays, or that the change starts its drain."""
    snapshot = taken(deletionTimestamp=TAKEN_AT, finalizers=[finalizer])
    found = what_if(snapshot, ClusterChange(delete=("node/a",)))
    about_removal = [
        one
        for one in found.changed.notes
        if any(words in one for words in ("dump was taken", "stays", "starts a drain"))
    ]
    assert about_removal == [note]

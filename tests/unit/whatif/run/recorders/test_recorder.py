"""What a run reports about preemption and evictions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from fairlead.api.codec import decode
from fairlead.api.objects import OwnerReference
from fairlead.api.pods.original import REPLACES
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import (
    NominationsWasted,
    PodEvicted,
    PodPreempting,
    PodUnschedulable,
)
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod
from fairlead.whatif.run.recorders.recorder import Recorder


def preempting(by, *victims):
    return PodPreempting(
        pod=ObjectRef("Pod", "ns", by, by),
        node="n",
        victims=tuple(ObjectRef("Pod", "ns", name, name) for name in victims),
        pdb_violations=0,
        rule="cheapest first",
        candidates=1,
        equals=1,
        at=0,
        workload=f"Job/ns/{by}",
        victim_workloads=tuple(f"Job/ns/{name}" for name in victims),
        victim_priorities=(0,) * len(victims),
    )


def test_a_victim_that_is_already_terminating_is_counted_once():
    """A second preemptor may need the node of a pod that the first has preempted."""
    recorder = Recorder(now=0)
    recorder.report(preempting("first", "low"))
    recorder.report(preempting("second", "low", "other"))
    assert [(one.pod.name, one.by) for one in recorder.preempted] == [
        ("low", "ns/first"),
        ("other", "ns/second"),
    ]


def test_a_sentence_does_not_begin_with_the_name_of_a_pod():
    """The verdict capitalizes the first letter of the message."""
    recorder = Recorder(now=0)
    recorder.report(NominationsWasted(ObjectRef("Pod", "ns", "p", "1"), times=3, at=0))
    [found] = recorder.recurrences
    assert found.message.startswith("preemption made room for pod ns/p 3 times in a row, but")


def test_nominations_that_a_pod_did_not_use_name_its_workload():
    """The verdict depends on whether the workload has all its pods at the end."""
    recorder = Recorder(now=0)
    pod = make_pod("p")
    owner = OwnerReference(kind="ReplicaSet", name="web", uid="w", controller=True)
    recorder.observe(
        ObjectChanged(changed(pod, metadata=changed(pod.metadata, owner_references=(owner,)))), 0
    )
    meta = pod.metadata
    ref = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
    recorder.report(NominationsWasted(ref, times=3, at=0))
    [found] = recorder.recurrences
    assert (str(found.workload), found.times) == ("rs/default/web", 0)


def test_a_replacement_keeps_the_first_start_of_its_pod():
    """The scale-down of a node evicts a pod, and its controller creates another one."""
    recorder = Recorder(now=0)
    recorder.observe(ObjectsLoaded([make_node("n")]), 0)
    first = make_pod("p", node="n", status={"phase": "Running"})
    recorder.observe(ObjectChanged(first), seconds(12))
    recorder.observe(ObjectDeleted(first), seconds(60))
    second = make_pod("q", node="n", status={"phase": "Running"})
    meta = changed(second.metadata, annotations={REPLACES: "p"})
    recorder.observe(ObjectChanged(changed(second, metadata=meta)), seconds(90))
    [end] = recorder.ends().values()
    assert (end.name, end.started_at, end.first_started_at) == ("p", seconds(90), seconds(12))


class OneByOne(Recorder):
    """Records each pod of a snapshot as a pod that is new."""

    def _load_pod(self, pod):
        self._record_pod(pod)

    def _end_of(self, track):
        self._like = None  # nothing is copied from the previous pod
        return super()._end_of(track)


OWNERS = [
    (OwnerReference(api_version="v1", kind=kind, name=name, uid=name, controller=True),)
    for kind, name in (("ReplicaSet", "web-1"), ("Node", "a"), ("DaemonSet", "log"))
]


def loaded_pod(name, node, phase, owners, *, ends):
    """A pod that shares the parts of its metadata with others."""
    found = make_pod(name, node=node, status={"phase": phase}, terminating=ends, labels=LABELS)
    meta = changed(found.metadata, owner_references=owners, labels=LABELS, annotations=NOTHING)
    return changed(found, metadata=meta)


LABELS = {"pod-template-hash": "1"}
NOTHING: dict[str, str] = {}
pods = st.builds(
    loaded_pod,
    st.sampled_from(("p", "q", "r", "s")),
    st.sampled_from(("a", "b", "absent", "")),
    st.sampled_from(("Running", "Pending", "Failed")),
    st.sampled_from(((), *OWNERS)),
    ends=st.booleans(),
)


def machine(name="n", *, ready=True):
    """A node that works, or whose kubelet has stopped."""
    status = "True" if ready else "Unknown"
    condition = {"type": "Ready", "status": status}
    return decode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }
    )


@given(st.lists(pods, max_size=6))
def test_a_snapshot_is_recorded_like_its_single_pods(found):
    runs = [Recorder(now=10**18), OneByOne(now=10**18)]
    for run in runs:
        run.observe(ObjectsLoaded([machine("a"), machine("b", ready=False), *found]), 10**18)
    results = [
        (run.all_pods(), list(run.ends().items()), run.counts, run.waits(0), run.history)
        for run in runs
    ]
    assert results[0] == results[1]


def replica(name):
    """A running pod on node n that shares its owner with the other replicas."""
    return loaded_pod(name, "n", "Running", OWNERS[0], ends=False)


@pytest.mark.parametrize(
    ("stimuli", "running", "down"),
    [
        pytest.param([], 2, 0, id="A pod on a node that works runs"),
        pytest.param(
            [ObjectChanged(machine(ready=False))], 0, 2, id="A node that fails takes its pods down"
        ),
        pytest.param(
            [ObjectChanged(machine(ready=False)), ObjectChanged(machine())],
            2,
            0,
            id="The pods of a node that returns run again",
        ),
        pytest.param([ObjectDeleted(machine())], 0, 2, id="The pods of a deleted node are down"),
        pytest.param(
            [ObjectDeleted(machine()), ObjectChanged(machine())],
            2,
            0,
            id="The pods of a node that is created again run again",
        ),
        pytest.param(
            [ObjectChanged(machine(ready=False)), ObjectDeleted(replica("p"))],
            0,
            1,
            id="A pod that is deleted on a failed node is no longer down",
        ),
        pytest.param(
            [ObjectChanged(machine(ready=False)), ObjectChanged(replica("r"))],
            0,
            3,
            id="A pod that is bound to a failed node is down",
        ),
    ],
)
def test_pods_on_nodes_that_do_not_work_count_as_down(stimuli, running, down):
    recorder = Recorder(now=0)
    recorder.observe(ObjectsLoaded([machine(), replica("p"), replica("q")]), 0)
    for at, stimulus in enumerate(stimuli, 1):
        recorder.observe(stimulus, seconds(at))
    last = recorder.counts.samples[-1]
    assert (last.running, last.down) == (running, down)


def budget(**selector):
    """A budget that allows no disruption of the pods that `selector` selects."""
    return decode(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": selector},
        }
    )


def evicting(why, owner="ReplicaSet"):
    """Record the eviction of a pod on node `a` that a budget protects."""
    (owners,) = (one for one in OWNERS if one[0].kind == owner)
    pod = loaded_pod("p", "a", "Running", owners, ends=False)
    recorder = Recorder(now=0)
    recorder.observe(ObjectsLoaded((make_node("a"), budget(matchLabels=LABELS), pod)), 0)
    meta = pod.metadata
    ref = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
    recorder.report(PodEvicted(ref, "a", why, 1))
    return recorder


@pytest.mark.parametrize(
    ("why", "asks"),
    [
        ("drain", True),
        ("node scale down", True),
        ("karpenter drain", True),
        ("karpenter termination grace period", False),
        ("taint node.kubernetes.io/unreachable:NoExecute", False),
    ],
)
def test_an_eviction_that_bypasses_budgets_may_breach_them(why, asks):
    recorder = evicting(why)
    assert [(one.pod.name, one.node, one.why) for one in recorder.evicted] == [("p", "a", why)]
    assert [one.by for one in recorder.budgets.breaches] == ([] if asks else [why])


def test_a_preemption_may_breach_a_budget_that_the_scheduler_ignores():
    """kube-scheduler ignores a budget with an empty selector, but the budget protects all pods."""
    recorder = Recorder(now=0)
    pod = make_pod("low")
    meta = pod.metadata
    recorder.observe(ObjectsLoaded((make_node("n"), budget(), pod)), 0)
    victim = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
    recorder.report(
        changed(
            preempting("top"),
            victims=(victim,),
            victim_workloads=("Pod/ns/low",),
            victim_priorities=(0,),
        )
    )
    assert [(one.pdb, one.by) for one in recorder.budgets.breaches] == [("default/b", "ns/top")]


@pytest.mark.parametrize("why", ["node scale down", "karpenter drain"])
def test_a_daemon_sets_pod_that_leaves_with_its_node_does_not_count(why):
    assert evicting(why, owner="DaemonSet").evicted == []


def test_the_explanation_of_a_waiting_pod_is_replaced_until_a_reason_is_recorded():
    """As on a dashboard, where other schedulers change the pod's status."""
    recorder = Recorder(now=0)
    recorder.observe(ObjectsLoaded([make_pod("p")]), 0)

    def explained(text):
        recorder.explain_waiting(lambda _pod: text)
        [end] = recorder.ends().values()
        return end.reason

    for text in ("1 node(s) were unschedulable", "2 Insufficient cpu", ""):
        assert explained(text) == text
    refused = PodUnschedulable(
        pod=ObjectRef("Pod", "default", "p", "uid-p"),
        at=1,
        message="3 Insufficient cpu",
        plugins=(),
        nominated_node=None,
        is_error=False,
        is_binding=False,
        started=1,
        attempt=1,
        profile="default-scheduler",
    )
    recorder.report(refused)
    assert explained("2 Insufficient cpu") == "3 Insufficient cpu"

"""Node-pressure eviction: the conditions that nodes report, and the pods that they evict."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.usage import parse_usage
from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodEvicted
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.kubelet.eviction_config import Signal, eviction_of_flags
from fairlead.engine.kubelet.node_pressure import Shortage, may_be_evicted, message, ranked
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)


def pod_json(name, used, requested="100Mi", *, priority=0, grace=None, **meta):
    resources = {"requests": {"memory": requested}} if requested else {}
    annotations = {"fairlead.dev/usage": used} if used else {}
    spec = {
        "nodeName": "n1",
        "priority": priority,
        "containers": [{"name": "c", "image": "i", "resources": resources}],
    }
    if grace is not None:
        spec["terminationGracePeriodSeconds"] = grace
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "annotations": annotations} | meta,
        "spec": spec,
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(*args, **options):
    return decode_as(Pod, pod_json(*args, **options))


class Node:
    """A node of 1Gi of memory, 10Gi of disk and 100 process ids; times are in seconds."""

    def __init__(self, *pods, used="", **flags):
        self.records = []
        flags = {name.replace("_", "-"): text for name, text in flags.items()}
        config = KubeletConfig(eviction=eviction_of_flags(flags))
        kubelets = Kubelets(config, self)
        self.world = SimulatedWorld(Engine(Cluster(), [kubelets]), start=START)
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "annotations": {"fairlead.dev/usage": used} if used else {}},
            "status": {
                "capacity": {
                    "memory": "1Gi",
                    "ephemeral-storage": "10Gi",
                    "pids": "100",
                },
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.world.load([node, *pods])

    def report(self, record):
        self.records.append(record)

    def run(self, until_s):
        self.world.run(START + seconds(until_s))
        return self

    def annotate(self, after_s, kind, name, key, value):
        patch = {"metadata": {"annotations": {f"fairlead.dev/{key}": value}}}
        namespace = "" if kind is NODE else "ns"
        self.world.at(
            START + seconds(after_s),
            lambda store, now: store.patch(kind, namespace, name, patch, now),
        )

    def condition(self, kind):
        conditions = self.world.store.get(NODE, "", "n1")["status"]["conditions"]
        return next((one["status"] for one in conditions if one["type"] == kind), "")

    def pod(self, name):
        return self.world.store.get(POD, "ns", name)

    def phases(self):
        return {
            one["metadata"]["name"]: one["status"]["phase"] for one in self.world.store.list(POD)
        }

    @property
    def evicted(self):
        """Return [(name, why)] in order."""
        assert all(isinstance(record, PodEvicted) for record in self.records)
        return [(record.pod.name, record.why) for record in self.records]


def test_pods_that_exceed_their_requests_are_evicted_first():
    """Then by priority and excess; pods within their requests are last."""
    pods = [
        pod("greedy", "memory=500Mi"),
        pod("more", "memory=600Mi"),
        pod("important", "memory=900Mi", priority=5),
        pod("within", "memory=800Mi", "1Gi", priority=-5),
        pod("dear-within", "memory=800Mi", "1Gi"),
    ]
    order = ["more", "greedy", "important", "within", "dear-within"]
    assert [one.metadata.name for one in ranked(pods, "memory")] == order


def test_under_pid_pressure_pods_are_ranked_by_priority_and_usage():
    """Process IDs cannot be requested."""
    pods = [
        pod("a", "pids=10", priority=1),
        pod("b", "pids=20"),
        pod("c", "pids=30"),
        pod("low", "memory=1Mi", priority=-1),
    ]
    assert [one.metadata.name for one in ranked(pods, "pids")] == ["low", "c", "b", "a"]


def test_static_and_critical_pods_are_not_evicted():
    assert may_be_evicted(pod("p", ""))
    assert not may_be_evicted(pod("p", "", priority=2_000_000_000))
    assert not may_be_evicted(pod("p", "", annotations={"kubernetes.io/config.mirror": "x"}))


def test_an_evicted_pod_has_the_reason_in_its_status():
    shortage = Shortage(Signal.MEMORY, 100 * 2**20, 50 * 2**20)
    assert message(pod("p", "memory=900Mi"), shortage) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container c was using 900Mi, request is 100Mi, has larger consumption of memory. "
    )
    assert message(pod("p", "memory=90Mi"), shortage) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
    )


def test_pods_are_evicted_one_by_one_until_enough_is_available():
    """The first two free more than 100Mi; the node reports the pressure until then."""
    node = Node(
        pod_json("a", "memory=300Mi"),
        pod_json("b", "memory=400Mi"),
        pod_json("c", "memory=200Mi", "200Mi"),
        used="memory=600Mi",
    )
    assert node.run(14).evicted == [("b", "low on memory"), ("a", "low on memory")]
    assert node.phases() == {"a": "Failed", "b": "Failed", "c": "Running"}
    assert node.condition("MemoryPressure") == "True"
    status = node.pod("b")["status"]
    assert (status["reason"], status["message"][:40]) == (
        "Evicted",
        "The node was low on resource: memory. Th",
    )
    disrupted = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
    assert (disrupted["status"], disrupted["reason"]) == ("True", "TerminationByKubelet")
    events = [one.event.reason for one in node.world.events.to_list()]
    assert events == ["EvictionThresholdMet", "Evicted"] * 2
    assert all(isinstance(one.event, RecordEvent) for one in node.world.events.to_list())


def test_pressure_is_reported_for_a_transition_period_after_its_end():
    node = Node(pod_json("a", "memory=950Mi"), pod_json("b", ""))
    assert node.run(12).condition("MemoryPressure") == "True"
    assert node.run(300).condition("MemoryPressure") == "True"
    assert node.run(312).condition("MemoryPressure") == "False"
    assert node.phases() == {"a": "Failed", "b": "Running"}


def test_a_changed_usage_annotation_is_read_at_the_next_check():
    """The usage of the pod grows."""
    node = Node(pod_json("a", "memory=100Mi"))
    node.annotate(1_000, POD, "a", "usage", "memory=1000Mi")
    assert node.run(999).evicted == []
    assert node.run(1_010).evicted == [("a", "low on memory")]


def test_disk_and_process_id_thresholds_evict_pods():
    """Disk thresholds are fractions of the capacity."""
    node = Node(
        pod_json("a", "ephemeral-storage=9500Mi"),
        pod_json("b", "pids=95"),
        eviction_hard="nodefs.available<10%,pid.available<10",
    )
    node.run(30)
    assert node.evicted == [("a", "low on ephemeral-storage"), ("b", "low on pids")]
    assert (node.condition("DiskPressure"), node.condition("PIDPressure")) == ("True", "True")


SOFT = {
    "eviction_soft": "memory.available<200Mi",
    "eviction_soft_grace_period": "memory.available=1m",
}


def test_a_soft_threshold_evicts_after_its_grace_period():
    """The pressure is reported at once, but no pod is evicted for a minute."""
    node = Node(pod_json("a", "memory=850Mi"), **SOFT)
    assert node.run(60).evicted == []
    assert node.condition("MemoryPressure") == "True"
    assert node.run(72).evicted == [("a", "low on memory")]


def test_a_soft_threshold_that_is_no_longer_crossed_evicts_no_pods():
    node = Node(pod_json("a", "memory=850Mi"), **SOFT)
    node.annotate(50, POD, "a", "usage", "memory=10Mi")
    node.annotate(70, POD, "a", "usage", "memory=850Mi")
    assert node.run(120).evicted == []
    assert node.run(145).evicted == [("a", "low on memory")]


@pytest.mark.parametrize(("grace", "ends_after"), [(5, 5), (60, 20)])
def test_a_soft_eviction_gives_pods_a_grace_period(grace, ends_after):
    """The pod's own grace period, up to the kubelet's maximum; no other pod is evicted then."""
    node = Node(
        pod_json("a", "memory=850Mi", grace=grace),
        pod_json("b", "memory=150Mi", "1Gi"),
        eviction_max_pod_grace_period="20",
        eviction_hard="",
        **SOFT,
    )
    ended = None
    for second in range(60, 120):
        if ended is None and node.run(second).phases()["a"] == "Failed":
            ended = second
    assert [name for name, _ in node.evicted] == ["a"]
    began = (node.records[0].at - START) / seconds(1)
    assert began + ends_after <= ended <= began + ends_after + 1


def test_the_minimum_reclaim_must_be_available():
    """A crossed threshold counts until that much more is available."""
    reclaim = {"eviction_minimum_reclaim": "memory.available=300Mi"}
    pods = [pod_json("a", "memory=900Mi"), pod_json("b", "memory=50Mi")]
    assert len(Node(*pods, used="memory=650Mi").run(30).evicted) == 1
    assert len(Node(*pods, used="memory=550Mi", **reclaim).run(30).evicted) == 1
    assert len(Node(*pods, used="memory=650Mi", **reclaim).run(30).evicted) == 2


def test_a_stopped_kubelet_evicts_no_pods():
    """The eviction follows when the kubelet is back."""
    node = Node(pod_json("a", "memory=100Mi"))
    node.annotate(1, NODE, "n1", "kubelet", "stopped")
    node.annotate(2, POD, "a", "usage", "memory=1000Mi")
    assert node.run(300).evicted == []
    node.annotate(301, NODE, "n1", "kubelet", None)
    assert node.run(312).evicted == [("a", "low on memory")]


def test_without_annotations_no_check_is_due():
    node = Node(pod_json("a", ""))
    before = node.run(1).world.last_change
    assert node.run(86_400).world.last_change == before


@pytest.mark.parametrize(
    "text", ["memory", "inodes=1", "cpu=-1", "memory=-1", "memory=x", "memory=1Mi,"]
)
def test_an_invalid_usage_annotation_is_reported(text):
    """An event reports it, and the usage counts as 0."""
    with pytest.raises(ValueError, match=r"."):
        parse_usage(text)
    node = Node(pod_json("a", text)).run(20)
    assert node.evicted == []
    (event,) = [one.event for one in node.world.events.to_list()]
    assert event.note.startswith("metadata.annotations[fairlead.dev/usage]: ")

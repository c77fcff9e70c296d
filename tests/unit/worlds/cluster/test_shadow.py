"""Shadow: comparison of the placements of another scheduler with Fairlead's choices."""

from __future__ import annotations

import io
import json

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.worlds.cluster.shadow import Shadow, ShadowAgreement
from fairlead.worlds.cluster.shadow_record import ShadowRecord

NOW = 1_000_000_000


def node(name, cpu="4", **spec):
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"allocatable": room, "capacity": room}
    meta = {"name": name, "uid": f"u-{name}"}
    obj = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}
    return decode(obj)


REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pod(
    name,
    node="",
    *,
    cpu="1",
    nominated="",
    scheduler="default-scheduler",
    priority=0,
    conditions=(),
):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "schedulerName": scheduler, "priority": priority}
    spec |= {"nodeName": node} if node else {}
    meta = {"name": name, "namespace": "d", "uid": f"u-{name}"}
    status = {"phase": "Pending", "conditions": [*conditions]}
    status |= {"nominatedNodeName": nominated} if nominated else {}
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}
    return decode(obj)


class Following:
    """A shadow of a cluster with these objects, and its decisions."""

    def __init__(self, *objects, **configs):
        self.decisions = []
        configs = configs or {"present": SchedulerConfig()}
        self.shadow = Shadow(configs, self.decisions.append)
        self.shadow.handle(ObjectsLoaded(objects), NOW)

    def observe(self, *pods):
        for one in pods:
            self.shadow.handle(ObjectChanged(one), NOW)
        return [one.agreement for one in self.decisions]


def test_a_placement_on_one_of_the_best_nodes_is_equal():
    following = Following(node("a"), node("b"), node("small", cpu="1100m"))
    assert following.observe(pod("p"), pod("p", node="b")) == [ShadowAgreement.EQUAL]
    (decision,) = following.decisions
    assert (decision.choices, decision.equals, decision.feasible) == (("a", "b"), 2, 3)


def test_a_placement_on_a_node_with_a_lower_score_is_lower():
    following = Following(node("a"), node("small", cpu="1100m"))
    assert following.observe(pod("p"), pod("p", node="small")) == [ShadowAgreement.LOWER]
    (decision,) = following.decisions
    assert decision.score < decision.best_score


@pytest.mark.parametrize(
    ("better", "expected"), [(20, ShadowAgreement.SAMPLED), (21, ShadowAgreement.LOWER)]
)
def test_a_lower_score_is_attributed_to_sampling_if_a_sample_can_leave_out_all_better_nodes(
    better, expected
):
    """Of 120 feasible nodes, a sample contains 100."""
    large = [node(f"large-{number}", cpu="8") for number in range(better)]
    equal = [node(f"n{number}") for number in range(120 - better)]
    following = Following(*large, *equal)
    assert following.observe(pod("p"), pod("p", node="n0")) == [expected]


def test_the_sample_of_an_unknown_scheduler_is_that_of_the_first_profile():
    config = SchedulerConfig(profiles=(Profile(node_percentage=100),))
    nodes = [node("large", cpu="8"), *(node(f"n{number}") for number in range(119))]
    following = Following(*nodes, present=config)
    placed = pod("p", node="n0", scheduler="other")
    assert following.observe(pod("p", scheduler="other"), placed) == [ShadowAgreement.LOWER]


def test_a_node_that_does_not_fit_is_infeasible_and_the_reason_is_named():
    following = Following(node("a"), node("full", cpu="500m"))
    assert following.observe(pod("p"), pod("p", node="full")) == [ShadowAgreement.INFEASIBLE]
    assert following.decisions[0].reason == "Insufficient cpu"


def test_a_pod_that_fits_no_node_is_unschedulable():
    following = Following(node("full", cpu="500m"))
    assert following.observe(pod("p"), pod("p", node="full")) == [ShadowAgreement.UNSCHEDULABLE]
    assert following.decisions[0].reason.startswith("0/1 nodes are available")


def test_the_victims_of_the_preemption_in_the_shadow_are_named():
    following = Following(node("a", cpu="1"), pod("low", node="a"), pod("p", priority=9))
    assert following.observe(pod("p", node="a", priority=9)) == [ShadowAgreement.UNSCHEDULABLE]
    assert following.decisions[0].victims == ("d/low",)


def test_each_pod_is_compared_on_the_actual_state():
    """A pod is compared on the state that includes the placements of the pods before it."""
    following = Following(node("a", cpu="1500m"), node("b", cpu="1500m"))
    following.observe(pod("p"), pod("q"), pod("p", node="a"), pod("q", node="a"))
    assert [one.agreement for one in following.decisions] == [
        ShadowAgreement.EQUAL,
        ShadowAgreement.INFEASIBLE,
    ]


def test_a_deleted_pod_frees_its_resources():
    following = Following(node("a", cpu="1500m"), pod("old", node="a"))
    following.shadow.handle(ObjectDeleted(pod("old", node="a")), NOW)
    assert following.observe(pod("p"), pod("p", node="a")) == [ShadowAgreement.EQUAL]


@pytest.mark.parametrize(
    ("room", "expected"), [("4", ShadowAgreement.NEEDLESS), ("500m", ShadowAgreement.PREEMPTED)]
)
def test_a_preemption_is_needless_if_the_pod_fits_without_it(room, expected):
    following = Following(node("a", cpu="1"), node("b", cpu=room), pod("low", node="a"))
    preempting = pod("p", nominated="a", conditions=[REFUSED])
    assert following.observe(pod("p"), preempting) == [expected]


@pytest.mark.parametrize("conditions", [(), (REFUSED,)], ids=["first attempt", "later attempt"])
def test_a_nomination_before_the_binding_is_the_placement(conditions):
    """As before a wait for volumes. The pod is counted on the node, and not compared again."""
    following = Following(node("a", cpu="1500m"), node("b", cpu="1500m"))
    pending, expected = (pod("p", nominated=one, conditions=conditions) for one in ("", "a"))
    following.observe(pending, expected, pod("q"), pod("q", node="b"), pod("p", node="a"))
    assert [(one.pod, one.agreement, one.choices) for one in following.decisions] == [
        ("d/p", ShadowAgreement.EQUAL, ("a", "b")),
        ("d/q", ShadowAgreement.EQUAL, ("b",)),
    ]


def test_a_pod_that_gets_another_node_than_expected_is_compared_again():
    """It frees the resources of the node that it was expected on."""
    following = Following(node("a", cpu="1500m"), node("b", cpu="1500m"))
    following.observe(pod("p"), pod("p", nominated="a"), pod("p", node="b"))
    following.observe(pod("q"), pod("q", node="a"))
    compared = [(one.pod, one.node) for one in following.decisions]
    assert compared == [("d/p", "a"), ("d/p", "b"), ("d/q", "a")]
    assert following.decisions[-1].agreement is ShadowAgreement.EQUAL


def test_a_pod_whose_binding_is_given_up_frees_its_resources():
    following = Following(node("a", cpu="1500m"))
    given_up = pod("p", conditions=[REFUSED])
    following.observe(pod("p"), pod("p", nominated="a"), given_up, pod("q"), pod("q", node="a"))
    assert [one.agreement for one in following.decisions] == [ShadowAgreement.EQUAL] * 2


def test_a_pod_that_waits_for_its_binding_at_the_start_is_counted_on_its_node():
    following = Following(node("a", cpu="1500m"), node("b", cpu="1500m"), pod("p", nominated="a"))
    following.observe(pod("q"), pod("q", node="b"), pod("p", node="a"))
    assert [(one.pod, one.choices) for one in following.decisions] == [("d/q", ("b",))]


@pytest.mark.parametrize(
    "seen",
    [[pod("static", node="a")], [pod("p"), pod("p")], [pod("p", node="a"), pod("p", node="a")]],
    ids=["created on a node", "unchanged", "placed before"],
)
def test_only_placements_by_a_scheduler_are_compared(seen):
    assert Following(node("a")).observe(*seen) == []


def test_pods_of_any_scheduler_are_compared_by_the_first_profile():
    following = Following(node("a"))
    pending, placed = pod("p", scheduler="x"), pod("p", node="a", scheduler="x")
    assert following.observe(pending, placed) == [ShadowAgreement.EQUAL]


def test_two_configurations_are_compared_side_by_side():
    args = {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}
    packing = SchedulerConfig(profiles=(Profile(args=args),))
    following = Following(
        node("empty"), node("used"), pod("old", node="used"), present=SchedulerConfig(), new=packing
    )
    following.observe(pod("p"), pod("p", node="empty"))
    found = {one.configuration: one for one in following.decisions}
    assert found["present"].choices == ("empty",)
    assert found["new"].agreement in (ShadowAgreement.LOWER, ShadowAgreement.EQUAL)
    assert found["new"].best_score != found["present"].best_score


def test_decisions_are_counted_and_written():
    lines = io.BytesIO()
    record = ShadowRecord(["present"], lines.write)
    shadow = Shadow({"present": SchedulerConfig()}, record.record)
    shadow.handle(ObjectsLoaded([node("a"), node("small", cpu="1100m")]), NOW)
    for number, place in enumerate(("a", "small", "a")):
        for one in (pod(f"p{number}"), pod(f"p{number}", node=place)):
            shadow.handle(ObjectChanged(one), NOW)
    summary = record.summary()["present"]
    assert summary["placements"] == 3
    assert summary["decisions"]["equal"] == 2
    assert summary["agreementRatio"] == 0.6667
    assert summary["averageScoreLost"] > 0
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [one["agreement"] for one in written] == ["equal", "lower", "equal"]
    assert written[1]["bestScore"] - written[1]["score"] == summary["averageScoreLost"]


def test_there_is_no_agreement_without_placements():
    record = ShadowRecord(["present"])
    summary = record.summary()["present"]
    assert (summary["placements"], summary["agreementRatio"], summary["equalRatio"]) == (
        0,
        None,
        None,
    )
    [ratio] = [one for one in record.collect() if one.name == "fairlead_shadow_agreement_ratio"]
    assert ratio.samples == []

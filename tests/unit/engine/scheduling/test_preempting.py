"""Preemption from the failed cycle to the binding of the preemptor: commands and their order."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import DeleteObject, PatchStatus
from fairlead.engine.core.reporter import PodPreempting
from fairlead.engine.core.stimulus import CommandSucceeded, FailureReason
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene

FULL = {"requests": {"cpu": "1"}}
BIG = {"requests": {"cpu": "4"}}
PREEMPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "default-scheduler: preempting to accommodate a higher priority pod",
}
SHORT = "0/1 nodes are available: 1 Insufficient cpu."
NOT_YET = (
    f"{SHORT} no new claims to deallocate, "
    "preemption: not eligible due to a terminating pod on the nominated node."
)


def victim(name, priority=0, **more):
    return make_pod(name, node="n1", priority=priority, **(FULL | more))


def preemptor(name="p", priority=100, **more):
    return make_pod(name, priority=priority, **(BIG | more))


def failed(name, text, fields):
    condition = ("PodScheduled", "False", "Unschedulable", text)
    return [("event", name, "FailedScheduling", text), ("patch", name, fields, condition)]


def marked(name):
    """Return the patch that adds the condition DisruptionTarget to a victim."""
    return ("patch", name, {}, tuple(PREEMPTED.values()))


def preempted(name, by="p"):
    return ("event", name, "Preempted", f"Preempted by pod uid-{by} on node n1")


# --- a complete preemption -------------------------------------------------------------------


def test_a_preemptor_is_bound_after_its_victim_is_deleted(stage):
    """Nominate the preemptor, patch and delete the victim, wait for its end, bind."""
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), preemptor())
    assert scene.step() == [*failed("p", SHORT, {"nominatedNodeName": "n1"}), marked("v")]
    assert (scene.nominated("p"), scene.place("p")) == ("n1", "unschedulable")
    assert scene.done() == []
    assert scene.put(preemptor(nominated="n1")) == []
    assert scene.done() == [("delete", "v")]
    scene.put(victim("v", requests={"cpu": "4"}, terminating=True, status=conditions(PREEMPTED)))
    assert scene.done() == [preempted("v")]
    assert not scene.is_due()
    scene.gone(victim("v", requests={"cpu": "4"}))
    assert scene.step() == [("bind", "p", "n1")]
    (record,) = scene.records.of(PodPreempting)
    assert (record.node, record.rule, record.candidates) == ("n1", "only candidate", 1)


def conditions(*entries):
    return {"conditions": [dict(entry) for entry in entries]}


def test_victims_are_patched_and_deleted_in_order(stage):
    """All victims but the least important are patched at once; each is deleted after its patch."""
    victims = [victim("v1", 1), victim("v2", 2), victim("v3", 3), victim("v4", 4)]
    scene = stage(make_node("n1"), *victims, preemptor())
    assert scene.step()[2:] == [marked("v4"), marked("v3"), marked("v2")]
    scene.done("patch")
    assert scene.done() == [("delete", "v4")]
    assert scene.done() == [("delete", "v3")]
    assert scene.done() == [("delete", "v2")]
    assert scene.done() == [preempted("v4")]
    assert scene.done() == [preempted("v3")]
    assert scene.done() == [preempted("v2"), marked("v1")]
    assert scene.done() == [("delete", "v1")]
    assert scene.done() == [preempted("v1")]
    assert scene.sent == []


def test_a_preemptor_is_gated_while_its_victims_are_deleted(stage):
    """Deleted victims do not activate it before its last victim is terminating."""
    scene = stage(make_node("n1"), *(victim(f"v{i}", i) for i in range(1, 5)), preemptor())
    scene.step()
    scene.done("patch")
    scene.put(preemptor(nominated="n1"))
    scene.gone(victim("v4", 4))
    assert (scene.place("p"), scene.is_due()) == ("unschedulable", False)
    while scene.sent[-1].target.name != "v1":
        scene.done()
    assert (scene.place("p"), scene.is_due()) == ("unschedulable", False)
    scene.put(victim("v1", 1, terminating=True))
    scene.gone(victim("v3", 3))
    assert scene.is_due()


# --- outcomes --------------------------------------------------------------------------------


def test_a_victim_that_is_already_deleted_counts_as_preempted(stage):
    """There is no event about it."""
    scene = stage(make_node("n1"), *(victim(f"v{i}", i) for i in (1, 2, 3, 4)), preemptor())
    scene.step()
    scene.done("patch")
    assert scene.refused(FailureReason.NOT_FOUND) == []
    assert scene.done() == [("delete", "v3")]
    assert scene.done() == [("delete", "v2")]
    assert scene.refused(FailureReason.NOT_FOUND) == []
    assert scene.done() == [preempted("v2"), marked("v1")]
    assert scene.refused(FailureReason.NOT_FOUND) == []
    assert scene.sent == []


@pytest.mark.parametrize("reason", [FailureReason.INTERNAL_ERROR, FailureReason.CONFLICT])
def test_the_last_victim_is_not_deleted_if_another_deletion_fails(stage, reason):
    """Earlier deletions are completed; then the preemptor is retried without backoff."""
    scene = stage(make_node("n1"), *(victim(f"v{i}", i) for i in (1, 2, 3, 4)), preemptor())
    scene.step()
    scene.done("patch")
    scene.put(preemptor(nominated="n1"))
    assert scene.refused(reason) == []
    assert scene.done() == [("delete", "v3")]
    assert scene.done() == [("delete", "v2")]
    assert scene.done() == [preempted("v3")]
    assert scene.place("p") == "unschedulable"
    assert scene.done() == [preempted("v2")]
    assert (scene.place("p"), scene.sent) == ("active", [])


def test_retries_for_a_victim_that_cannot_be_deleted_are_limited(stage):
    """The preemptor is retried at once, but not without end at one instant."""
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), preemptor())
    attempts = 0
    while scene.is_due() or scene.sent:
        if scene.sent:
            scene.refused() if scene.sent[0].target.name == "v" else scene.done()
        else:
            scene.step()
            attempts += 1
        assert attempts < 50
    assert attempts == 11
    assert scene.place("p") == "error_backoff"
    assert scene.engine.next_deadline() > scene.now


def test_outcomes_of_commands_of_other_clients_are_ignored(stage):
    """Another client may patch or delete the same pod at the same time."""
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), preemptor())
    scene.step()
    target = scene.sent[1].target
    for foreign in (PatchStatus(target, {"phase": "Running"}), DeleteObject(target)):
        assert scene.engine.handle(CommandSucceeded(foreign), scene.now) == []
    scene.done("patch")
    assert scene.done() == [("delete", "v")]


# --- victims that get no patch or deletion ---------------------------------------------------


def test_a_victim_with_a_disruption_target_condition_is_only_deleted(stage):
    """An earlier attempt that did not complete has set the condition."""
    full = victim("v", requests={"cpu": "4"}, status=conditions(PREEMPTED))
    scene = stage(make_node("n1"), full, preemptor())
    assert scene.step()[2:] == [("delete", "v")]


def test_a_disruption_target_condition_set_after_the_dry_run_is_noticed(stage):
    """Dry-run results are cached, and their victims may have newer versions."""
    full = victim("v", requests={"cpu": "4"})
    scene = stage(make_node("n1"), full, preemptor())
    assert scene.step()[2:] == [marked("v")]
    scene.done("patch")
    scene.put(preemptor(nominated="n1"))
    scene.done("patch")
    scene.put(victim("v", requests={"cpu": "4"}, status=conditions(PREEMPTED)))
    scene.refused()
    commands = scene.step()
    assert commands[-1] == ("delete", "v")
    assert marked("v") not in commands


def test_terminating_victims_are_not_deleted_again(stage):
    """Other victims on the node are deleted."""
    leaving = victim("v1", 1, requests={"cpu": "2"}, terminating=True)
    scene = stage(make_node("n1"), leaving, victim("v2", 2, requests={"cpu": "2"}), preemptor())
    assert scene.step()[2:] == [marked("v2")]


def test_nothing_is_sent_if_all_victims_are_terminating(stage):
    """Nominations of lower priority on the node are kept, as in upstream."""
    leaving = victim("v", requests={"cpu": "4"}, terminating=True)
    lesser = preemptor("low", 50, nominated="n1")
    scene = stage(make_node("n1"), leaving, lesser, preemptor())
    assert scene.step() == failed("p", SHORT, {"nominatedNodeName": "n1"})
    assert (scene.nominated("p"), scene.nominated("low")) == ("n1", "n1")


# --- nominations -----------------------------------------------------------------------------


def test_a_preemptor_of_higher_priority_clears_lower_nominations(stage):
    """The nominations are cleared one by one, before the victims are deleted."""
    lesser = [preemptor("low", 50, nominated="n1"), preemptor("lower", 40, nominated="n1")]
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), *lesser, preemptor())
    commands = scene.step()
    assert commands[2:] == [("patch", "low", {"nominatedNodeName": None})]
    scene.done("patch")
    assert scene.done() == [("patch", "lower", {"nominatedNodeName": None})]
    assert scene.done() == [marked("v")]


@pytest.mark.parametrize("reason", [FailureReason.NOT_FOUND, FailureReason.INTERNAL_ERROR])
def test_a_nomination_that_cannot_be_cleared_does_not_end_the_preemption(stage, reason):
    """The preemption continues."""
    lesser = preemptor("low", 50, nominated="n1")
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), lesser, preemptor())
    scene.step()
    scene.done("patch")
    assert scene.refused(reason) == [marked("v")]


@pytest.mark.parametrize("priority", [100, 200], ids=["an equal", "a stronger one"])
def test_a_nominated_pod_of_equal_priority_counts_and_stays_nominated(stage, priority):
    """The preemptor does not fit beside it, so there is no candidate."""
    other = preemptor("other", priority, nominated="n1")
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), other, preemptor())
    scene.scheduler.queue.remove("default/other")
    text = f"{SHORT} no new claims to deallocate, preemption: {SHORT}"
    assert scene.step() == failed("p", text, {})
    assert scene.nominated("other") == "n1"


def test_a_nominated_node_is_used_without_evaluating_others(stage):
    """Even if another node would be better."""
    scene = stage(make_node("n1", cpu="5"), make_node("n2", cpu="64"), preemptor(nominated="n1"))
    assert scene.step() == [("bind", "p", "n1")]
    assert scene.records[0].via == "nominated"


def test_a_nominated_node_that_does_not_fit_is_replaced_by_another(stage):
    """The nomination ends with the binding."""
    full = victim("v", requests={"cpu": "4"}, terminating=True, status=conditions(PREEMPTED))
    scene = stage(make_node("n1"), make_node("n2"), full, preemptor(nominated="n1"))
    assert scene.step() == [("bind", "p", "n2")]
    assert scene.nominated("p") == ""


def test_nominated_resources_are_reserved_against_pods_of_lower_priority(stage):
    """This includes pods of equal priority; these may use the remaining resources."""
    waiting = preemptor(nominated="n1", requests={"cpu": "3"})
    scene = stage(make_node("n1"), make_pod("big", requests={"cpu": "2"}), waiting)
    scene.scheduler.queue.remove("default/p")
    assert scene.step()[0][1:3] == ("big", "FailedScheduling")
    scene.done("patch")
    scene.put(make_pod("small", requests={"cpu": "1"}))
    assert scene.step() == [("bind", "small", "n1")]


def test_pods_of_higher_priority_ignore_a_nomination(stage):
    """The earlier arrival of the nominated pod does not matter."""
    scene = stage(make_node("n1"), preemptor("strong", 500))
    scene.put(preemptor(nominated="n1"))
    assert scene.step() == [("bind", "strong", "n1")]


def test_a_preemptor_does_not_preempt_again_while_its_victims_terminate(stage):
    """Its nomination is kept, and no other nomination is cleared."""
    full = victim("v", requests={"cpu": "4"}, terminating=True, status=conditions(PREEMPTED))
    scene = stage(make_node("n1"), full, preemptor(nominated="n1"))
    assert scene.step() == failed("p", NOT_YET, {})
    assert scene.nominated("p") == "n1"


def test_pods_that_terminate_for_other_reasons_do_not_delay_a_preemptor(stage):
    """Only pods that were preempted by a scheduler count."""
    full = victim("v", requests={"cpu": "4"}, terminating=True)
    scene = stage(make_node("n1"), full, preemptor(nominated="n1"))
    assert scene.step()[0][3] == SHORT


def test_without_candidates_an_earlier_nomination_is_cleared(stage):
    """All pods on the node now have at least the priority of the preemptor."""
    scene = stage(
        make_node("n1"), victim("v", 1000, requests={"cpu": "4"}), preemptor(nominated="n1")
    )
    text = (
        f"{SHORT} no new claims to deallocate, preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )
    assert scene.step() == failed("p", text, {"nominatedNodeName": None})
    assert scene.nominated("p") == ""


def test_a_pod_with_preemption_policy_never_does_not_preempt(stage):
    """It keeps its nomination, if there is one."""
    pod = preemptor(nominated="n1", spec={"preemptionPolicy": "Never"})
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), pod)
    text = (
        f"{SHORT} no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert scene.step() == failed("p", text, {})
    assert scene.nominated("p") == "n1"


def test_the_deletion_of_a_nominated_pod_wakes_pods_up_to_its_priority(stage):
    """The resources are free for pods of equal or lower priority."""
    waiting = preemptor(nominated="n1")
    others = [make_pod(f"x{i}", priority=i, requests={"cpu": "4"}) for i in (99, 100)]
    scene = stage(make_node("n1"), victim("v", 1000, requests={"cpu": "1"}), waiting, *others)
    for _ in range(3):
        scene.step()
        scene.all_done()
    scene.put(waiting)
    scene.gone(waiting)
    assert (scene.place("x99"), scene.place("x100")) == ("backoff", "backoff")


def test_a_nomination_cleared_by_another_client_wakes_pods(stage):
    """The resources are no longer reserved for the preemptor."""
    waiting = preemptor(nominated="n1")
    scene = stage(make_node("n1"), victim("v", 1000, requests={"cpu": "1"}), waiting)
    scene.put(make_pod("x", priority=99, requests={"cpu": "4"}))
    for _ in range(2):
        scene.step()
        scene.all_done()
    scene.put(waiting)
    assert (scene.place("x"), scene.nominated("p")) == ("unschedulable", "n1")
    scene.put(preemptor())
    assert (scene.place("x"), scene.nominated("p")) == ("backoff", "")


def test_nominations_of_other_schedulers_wake_no_pods(stage):
    """This scheduler ignores such nominations."""
    foreign = preemptor("f", nominated="n1", spec={"schedulerName": "other"})
    scene = stage(make_node("n1", cpu="1"), foreign, make_pod("x", requests={"cpu": "2"}))
    scene.step()
    scene.all_done()
    scene.gone(foreign)
    assert (scene.place("x"), scene.nominated("f")) == ("unschedulable", "")


# --- what is kept from one search for the next -------------------------------------------------


def test_the_nomination_of_a_pod_counts_for_an_equal_pod():
    """It does not count for the pod itself; both pods share the cached results."""
    big = {"cpu": "4"}
    scene = PluginScene(nodes=[make_node("n1"), make_pod("v", node="n1", requests=big)])
    first, second = (make_pod(name, priority=100, requests=big) for name in ("a", "b"))
    scene.nominate(first, "n1")
    assert scene.make_room(first).nominated_node == "n1"
    assert scene.make_room(second) is None
    assert scene.make_room(first).nominated_node == "n1"


def test_pods_with_different_labels_do_not_share_anti_affinity_results():
    """Each node has a pod of high priority that repels one of the two pods."""
    full, some = {"cpu": "3"}, {"cpu": "1"}
    objects = []
    for node, unwanted in (("n1", "x"), ("n2", "z")):
        term = {
            "labelSelector": {"matchLabels": {"app": unwanted}},
            "topologyKey": "kubernetes.io/hostname",
        }
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        guard = make_pod(f"g-{node}", node=node, priority=1000, requests=some,
                         spec={"affinity": apart})  # fmt: skip
        host = make_node(node, labels={"kubernetes.io/hostname": node})
        objects += [host, guard, make_pod(f"v-{node}", node=node, requests=full)]
    scene = PluginScene(nodes=objects)
    rooms = {
        app: scene.make_room(make_pod(f"p-{app}", priority=100, requests=full, labels={"app": app}))
        for app in ("x", "z")
    }
    assert {app: room.nominated_node for app, room in rooms.items()} == {"x": "n2", "z": "n1"}

"""Preemption from the failed cycle to the bound preemptor: the commands and their order."""

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
    """The patch that adds the condition DisruptionTarget to a victim."""
    return ("patch", name, {}, tuple(PREEMPTED.values()))


def preempted(name, by="p"):
    return ("event", name, "Preempted", f"Preempted by pod uid-{by} on node n1")


# --- the whole story -------------------------------------------------------------------------


def test_a_preemptor_makes_room_and_gets_it(stage):
    """Nominate, mark, delete, wait for the victim to go, bind."""
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), preemptor())
    assert scene.turn() == [*failed("p", SHORT, {"nominatedNodeName": "n1"}), marked("v")]
    assert (scene.nominated("p"), scene.place("p")) == ("n1", "unschedulable")
    assert scene.done() == []
    assert scene.put(preemptor(nominated="n1")) == []
    assert scene.done() == [("delete", "v")]
    scene.put(victim("v", requests={"cpu": "4"}, terminating=True, status=conditions(PREEMPTED)))
    assert scene.done() == [preempted("v")]
    assert not scene.is_due()
    scene.gone(victim("v", requests={"cpu": "4"}))
    assert scene.turn() == [("bind", "p", "n1")]
    (record,) = scene.records.of(PodPreempting)
    assert (record.node, record.rule, record.candidates) == ("n1", "only candidate", 1)


def conditions(*entries):
    return {"conditions": [dict(entry) for entry in entries]}


def test_victims_in_order(stage):
    """All victims but the least important are patched at once; each is deleted after its patch."""
    victims = [victim("v1", 1), victim("v2", 2), victim("v3", 3), victim("v4", 4)]
    scene = stage(make_node("n1"), *victims, preemptor())
    assert scene.turn()[2:] == [marked("v4"), marked("v3"), marked("v2")]
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


def test_while_its_victims_are_told_a_preemptor_is_not_tried(stage):
    """Deleted victims do not activate it until its last victim is terminating."""
    scene = stage(make_node("n1"), *(victim(f"v{i}", i) for i in range(1, 5)), preemptor())
    scene.turn()
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


# --- answers ---------------------------------------------------------------------------------


def test_a_victim_that_is_gone_counts_as_told(stage):
    """Without an event."""
    scene = stage(make_node("n1"), *(victim(f"v{i}", i) for i in (1, 2, 3, 4)), preemptor())
    scene.turn()
    scene.done("patch")
    assert scene.refused(FailureReason.NOT_FOUND) == []
    assert scene.done() == [("delete", "v3")]
    assert scene.done() == [("delete", "v2")]
    assert scene.refused(FailureReason.NOT_FOUND) == []
    assert scene.done() == [preempted("v2"), marked("v1")]
    assert scene.refused(FailureReason.NOT_FOUND) == []
    assert scene.sent == []


@pytest.mark.parametrize("reason", [FailureReason.INTERNAL_ERROR, FailureReason.CONFLICT])
def test_a_victim_that_cannot_be_told_spares_the_last(stage, reason):
    """What was begun is carried out; then the preemptor is tried again, backoff or not."""
    scene = stage(make_node("n1"), *(victim(f"v{i}", i) for i in (1, 2, 3, 4)), preemptor())
    scene.turn()
    scene.done("patch")
    scene.put(preemptor(nominated="n1"))
    assert scene.refused(reason) == []
    assert scene.done() == [("delete", "v3")]
    assert scene.done() == [("delete", "v2")]
    assert scene.done() == [preempted("v3")]
    assert scene.place("p") == "unschedulable"
    assert scene.done() == [preempted("v2")]
    assert (scene.place("p"), scene.sent) == ("active", [])


def test_a_victim_that_can_never_be_deleted_does_not_stop_the_clock(stage):
    """The preemptor is tried again at once, but not for ever at one instant."""
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), preemptor())
    attempts = 0
    while scene.is_due() or scene.sent:
        if scene.sent:
            scene.refused() if scene.sent[0].target.name == "v" else scene.done()
        else:
            scene.turn()
            attempts += 1
        assert attempts < 50
    assert attempts == 11
    assert scene.place("p") == "error_backoff"
    assert scene.engine.next_deadline() > scene.now


def test_answers_to_others_are_not_taken_for_ours(stage):
    """Another client may patch or delete the same pod at the same time."""
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), preemptor())
    scene.turn()
    target = scene.sent[1].target
    for foreign in (PatchStatus(target, {"phase": "Running"}), DeleteObject(target)):
        assert scene.engine.handle(CommandSucceeded(foreign), scene.now) == []
    scene.done("patch")
    assert scene.done() == [("delete", "v")]


# --- who is not told -------------------------------------------------------------------------


def test_a_victim_that_is_marked_is_only_deleted(stage):
    """The condition is there from an attempt that came to nothing."""
    full = victim("v", requests={"cpu": "4"}, status=conditions(PREEMPTED))
    scene = stage(make_node("n1"), full, preemptor())
    assert scene.turn()[2:] == [("delete", "v")]


def test_a_mark_that_came_after_the_first_look_is_seen(stage):
    """What a dry run found is kept, and its victims have newer versions since."""
    full = victim("v", requests={"cpu": "4"})
    scene = stage(make_node("n1"), full, preemptor())
    assert scene.turn()[2:] == [marked("v")]
    scene.done("patch")
    scene.put(preemptor(nominated="n1"))
    scene.done("patch")
    scene.put(victim("v", requests={"cpu": "4"}, status=conditions(PREEMPTED)))
    scene.refused()
    commands = scene.turn()
    assert commands[-1] == ("delete", "v")
    assert marked("v") not in commands


def test_victims_on_their_way_are_not_told_again(stage):
    """Others on the node are."""
    leaving = victim("v1", 1, requests={"cpu": "2"}, terminating=True)
    scene = stage(make_node("n1"), leaving, victim("v2", 2, requests={"cpu": "2"}), preemptor())
    assert scene.turn()[2:] == [marked("v2")]


def test_where_all_victims_are_on_their_way_nothing_is_sent(stage):
    """Then lesser nominations on the node stay too, as upstream leaves them."""
    leaving = victim("v", requests={"cpu": "4"}, terminating=True)
    lesser = preemptor("low", 50, nominated="n1")
    scene = stage(make_node("n1"), leaving, lesser, preemptor())
    assert scene.turn() == failed("p", SHORT, {"nominatedNodeName": "n1"})
    assert (scene.nominated("p"), scene.nominated("low")) == ("n1", "n1")


# --- nominations -----------------------------------------------------------------------------


def test_a_stronger_preemptor_takes_the_node_over(stage):
    """Lesser nominations are taken back one by one, before the victims are told."""
    lesser = [preemptor("low", 50, nominated="n1"), preemptor("lower", 40, nominated="n1")]
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), *lesser, preemptor())
    commands = scene.turn()
    assert commands[2:] == [("patch", "low", {"nominatedNodeName": None})]
    scene.done("patch")
    assert scene.done() == [("patch", "lower", {"nominatedNodeName": None})]
    assert scene.done() == [marked("v")]


@pytest.mark.parametrize("reason", [FailureReason.NOT_FOUND, FailureReason.INTERNAL_ERROR])
def test_a_nomination_that_cannot_be_taken_back_does_not_matter(stage, reason):
    """The preemption goes on."""
    lesser = preemptor("low", 50, nominated="n1")
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), lesser, preemptor())
    scene.turn()
    scene.done("patch")
    assert scene.refused(reason) == [marked("v")]


@pytest.mark.parametrize("priority", [100, 200], ids=["an equal", "a stronger one"])
def test_a_promise_to_an_equal_is_counted_and_kept(stage, priority):
    """No room can be made beside it, so there is no candidate."""
    other = preemptor("other", priority, nominated="n1")
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), other, preemptor())
    scene.scheduler.queue.remove("default/other")
    text = f"{SHORT} no new claims to deallocate, preemption: {SHORT}"
    assert scene.turn() == failed("p", text, {})
    assert scene.nominated("other") == "n1"


def test_a_nominated_node_is_used_without_evaluating_others(stage):
    """Even if another one would be better."""
    scene = stage(make_node("n1", cpu="5"), make_node("n2", cpu="64"), preemptor(nominated="n1"))
    assert scene.turn() == [("bind", "p", "n1")]
    assert scene.records[0].via == "nominated"


def test_a_nominated_node_that_does_not_fit_is_replaced_by_another(stage):
    """The promise ends with the binding."""
    full = victim("v", requests={"cpu": "4"}, terminating=True, status=conditions(PREEMPTED))
    scene = stage(make_node("n1"), make_node("n2"), full, preemptor(nominated="n1"))
    assert scene.turn() == [("bind", "p", "n2")]
    assert scene.nominated("p") == ""


def test_room_on_a_nominated_node_is_kept_from_lower_priority_pods(stage):
    """And from equals; what is beyond it is theirs."""
    waiting = preemptor(nominated="n1", requests={"cpu": "3"})
    scene = stage(make_node("n1"), make_pod("big", requests={"cpu": "2"}), waiting)
    scene.scheduler.queue.remove("default/p")
    assert scene.turn()[0][1:3] == ("big", "FailedScheduling")
    scene.done("patch")
    scene.put(make_pod("small", requests={"cpu": "1"}))
    assert scene.turn() == [("bind", "small", "n1")]


def test_stronger_pods_ignore_a_promise(stage):
    """First come is not first served here."""
    scene = stage(make_node("n1"), preemptor("strong", 500))
    scene.put(preemptor(nominated="n1"))
    assert scene.turn() == [("bind", "strong", "n1")]


def test_a_preemptor_waits_for_its_victims(stage):
    """It may not preempt again meanwhile; its nomination is kept, and nothing is cleared."""
    full = victim("v", requests={"cpu": "4"}, terminating=True, status=conditions(PREEMPTED))
    scene = stage(make_node("n1"), full, preemptor(nominated="n1"))
    assert scene.turn() == failed("p", NOT_YET, {})
    assert scene.nominated("p") == "n1"


def test_a_pod_that_leaves_for_another_reason_does_not_hold_a_preemptor_up(stage):
    """Only those whom a scheduler told to go count."""
    full = victim("v", requests={"cpu": "4"}, terminating=True)
    scene = stage(make_node("n1"), full, preemptor(nominated="n1"))
    assert scene.turn()[0][3] == SHORT


def test_no_candidate_takes_an_earlier_nomination_back(stage):
    """All pods on the node now have a priority that is at least as high."""
    scene = stage(
        make_node("n1"), victim("v", 1000, requests={"cpu": "4"}), preemptor(nominated="n1")
    )
    text = (
        f"{SHORT} no new claims to deallocate, preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )
    assert scene.turn() == failed("p", text, {"nominatedNodeName": None})
    assert scene.nominated("p") == ""


def test_whoever_may_never_preempt_waits(stage):
    """With the nomination it has, if it has one."""
    pod = preemptor(nominated="n1", spec={"preemptionPolicy": "Never"})
    scene = stage(make_node("n1"), victim("v", requests={"cpu": "4"}), pod)
    text = (
        f"{SHORT} no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert scene.turn() == failed("p", text, {})
    assert scene.nominated("p") == "n1"


def test_a_nomination_that_ends_wakes_lesser_pods(stage):
    """By deletion of the preemptor; its room is free for its equals and below."""
    waiting = preemptor(nominated="n1")
    others = [make_pod(f"x{i}", priority=i, requests={"cpu": "4"}) for i in (99, 100)]
    scene = stage(make_node("n1"), victim("v", 1000, requests={"cpu": "1"}), waiting, *others)
    for _ in range(3):
        scene.turn()
        scene.all_done()
    scene.put(waiting)
    scene.gone(waiting)
    assert (scene.place("x99"), scene.place("x100")) == ("backoff", "backoff")


def test_a_nomination_that_another_client_takes_back_wakes_lesser_pods(stage):
    """And the room on the node is no longer kept for the preemptor."""
    waiting = preemptor(nominated="n1")
    scene = stage(make_node("n1"), victim("v", 1000, requests={"cpu": "1"}), waiting)
    scene.put(make_pod("x", priority=99, requests={"cpu": "4"}))
    for _ in range(2):
        scene.turn()
        scene.all_done()
    scene.put(waiting)
    assert (scene.place("x"), scene.nominated("p")) == ("unschedulable", "n1")
    scene.put(preemptor())
    assert (scene.place("x"), scene.nominated("p")) == ("backoff", "")


def test_nominations_of_other_schedulers_wake_nobody(stage):
    """They do not exist for this one."""
    foreign = preemptor("f", nominated="n1", spec={"schedulerName": "other"})
    scene = stage(make_node("n1", cpu="1"), foreign, make_pod("x", requests={"cpu": "2"}))
    scene.turn()
    scene.all_done()
    scene.gone(foreign)
    assert (scene.place("x"), scene.nominated("f")) == ("unschedulable", "")


# --- what is kept from one search for the next -------------------------------------------------


def test_a_promise_to_one_pod_counts_for_its_twin():
    """The pod's own promise does not count for itself; both share what is kept."""
    big = {"cpu": "4"}
    scene = PluginScene(nodes=[make_node("n1"), make_pod("v", node="n1", requests=big)])
    first, second = (make_pod(name, priority=100, requests=big) for name in ("a", "b"))
    scene.nominate(first, "n1")
    assert scene.make_room(first).nominated_node == "n1"
    assert scene.make_room(second) is None
    assert scene.make_room(first).nominated_node == "n1"


def test_pods_with_other_labels_do_not_share_what_depends_on_labels():
    """Nodes have a strong pod each that does not want to be near one of the two."""
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

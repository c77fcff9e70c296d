"""Rules that differ between the schedulers of 1.19 and 1.36: each case shows both."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import OwnerReference, Service
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import release_of
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.testing.builders import make_budget, make_node, make_pod

BIG = {"cpu": "4"}
NEVER = {"preemptionPolicy": "Never"}
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
NO_VICTIMS = (
    f"{NO_ROOM} no new claims to deallocate, preemption: 0/1 nodes are available: "
    "1 No preemption victims found for incoming pod."
)


@pytest.fixture
def stage_of(stage):
    """Makes stages of a scheduler of this version."""

    def make(version, *objects, gates=None, **more):
        config = default_config(release_of(version, gates), {})
        return stage(
            *objects,
            **{"profiles": config.profiles, **more},
            backoff=config.backoff,
            version=config.version,
        )

    return make


def victim(name, priority=0, cpu="4", **more):
    return make_pod(name, node="n1", priority=priority, requests={"cpu": cpu}, **more)


def preemptor(name="p", priority=100, **more):
    return make_pod(name, priority=priority, requests=BIG, **more)


def kinds(commands):
    return [(command[0], command[1]) for command in commands]


# --- eligibility ------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "preempts_again"), [("1.19", False), ("1.36", True)])
def test_only_1_19_waits_for_terminating_pods_that_were_not_preempted(
    stage_of, version, preempts_again
):
    """1.19 waits for every terminating pod of lower priority, 1.36 for the preempted ones."""
    deleted_by_user, other = victim("u", cpu="2", terminating=True), victim("o", cpu="2")
    scene = stage_of(version, make_node("n1"), deleted_by_user, other, preemptor(nominated="n1"))
    commands = scene.steps()
    while scene.sent:
        commands += scene.done()
    assert (("delete", "o") in commands) is preempts_again


@pytest.mark.parametrize("version", ["1.19", "1.36"])
def test_preemption_policy_never_is_honored(stage_of, version):
    """The gate NonPreemptingPriority is on in both."""
    scene = stage_of(version, make_node("n1"), victim("v"), preemptor(spec=NEVER))
    scene.steps()
    assert "v" not in {command.target.name for command in scene.sent}


@pytest.mark.parametrize(
    ("version", "gates"), [("1.16", {}), ("1.19", {"NonPreemptingPriority": False})]
)
def test_without_the_gate_the_preemption_policy_is_ignored(stage_of, version, gates):
    """NonPreemptingPriority is off by default in 1.16, and may be disabled until 1.23."""
    objects = (make_node("n1"), victim("v"), preemptor(spec=NEVER))
    scene = stage_of(version, *objects, gates=gates)
    assert ("delete", "v") in scene.steps()


# --- carrying a preemption out ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "order"),
    [
        (
            "1.19",
            [("delete", "v"), ("event", "v"), ("event", "p"), ("patch", "p")],
        ),
        (
            "1.36",
            [("event", "p"), ("patch", "p"), ("patch", "v"), ("delete", "v"), ("event", "v")],
        ),
    ],
)
def test_deletion_comes_before_the_failure_is_recorded_in_1_19(stage_of, version, order):
    """1.36 records the failure first, and marks the victim with DisruptionTarget."""
    scene = stage_of(version, make_node("n1"), victim("v"), preemptor())
    commands = scene.step()
    while scene.sent:
        commands += scene.done()
    assert kinds(commands) == order
    marks = [command for command in commands if command[:2] == ("patch", "v")]
    assert bool(marks) is (version == "1.36")


@pytest.mark.parametrize(("version", "generation"), [("1.19", None), ("1.36", 3)])
def test_the_condition_names_the_generation_of_the_pod(stage_of, version, generation):
    """Recorded from 1.36: PodScheduled=False of a new pod has observedGeneration 1."""
    waiting = preemptor()
    metadata = structs.replace(waiting.metadata, generation=3)
    scene = stage_of(version, make_node("n1", cpu="1"), structs.replace(waiting, metadata=metadata))
    scene.step()
    ((condition,),) = (one.conditions for one in scene.sent)
    assert (condition.type, getattr(condition, "observed_generation", None)) == (
        ("PodScheduled", generation)
    )


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("1.19", "Preempted by default/p on node n1"),
        ("1.36", "Preempted by pod uid-p on node n1"),
    ],
)
def test_the_event_names_the_preemptor(stage_of, version, note):
    """By namespace and name in 1.19, by UID in 1.36."""
    scene = stage_of(version, make_node("n1"), victim("v"), preemptor())
    commands = scene.step()
    while scene.sent:
        commands += scene.done()
    assert ("event", "v", "Preempted", note) in commands


@pytest.mark.parametrize(("version", "cleared"), [("1.19", True), ("1.36", False)])
def test_lower_nominations_are_cleared_even_if_all_victims_are_terminating(
    stage_of, version, cleared
):
    """1.36 does nothing if every victim is terminating already."""
    leaving = victim("v", terminating=True)
    lower = preemptor("low", priority=50, nominated="n1")
    scene = stage_of(version, make_node("n1"), leaving, lower, preemptor())
    commands = scene.step()
    while scene.sent:
        commands += scene.done()
    assert (("patch", "low", {"nominatedNodeName": None}) in commands) is cleared


@pytest.mark.parametrize(("version", "nominated"), [("1.19", ""), ("1.36", "n1")])
def test_a_victim_that_cannot_be_deleted_leaves_no_nomination_in_1_19(stage_of, version, nominated):
    """1.36 nominates first, and tries the preemptor again at once."""
    scene = stage_of(version, make_node("n1"), victim("v"), preemptor())
    scene.step()
    while scene.sent:
        if scene.sent[0].target.name == "v":
            scene.refused(FailureReason.INTERNAL_ERROR)
        else:
            scene.done()
    assert scene.nominated("p") == nominated


class Hold:
    """A Permit plugin that delays pods of priority 0."""

    name = "Hold"

    def permit(self, state, pod, node):
        """Wait for ten minutes."""
        return Wait(seconds(600)) if pod.priority == 0 else None


@pytest.mark.parametrize(("version", "deleted"), [("1.19", True), ("1.36", False)])
def test_a_victim_that_waits_at_permit(stage_of, version, deleted):
    """1.19 deletes it like other victims; in 1.36 it returns to the queue."""
    config = default_config(release_of(version, None), {}).profiles[0]
    profile = replace(config, plugins=(*config.plugins, ("Hold", 0)))
    factories = {"Hold": lambda _handle, _args: Hold()}
    waiting = make_pod("w", requests=BIG)
    scene = stage_of(version, make_node("n1"), waiting, profiles=(profile,), out_of_tree=factories)
    scene.step()
    scene.put(preemptor())
    commands = scene.step()
    while scene.sent:
        commands += scene.done()
    assert (("delete", "w") in commands) is deleted
    assert ("event", "w", "Preempted") in [one[:3] for one in commands]


def test_a_second_cycle_waits_for_the_deletions_in_1_19(stage_of):
    """The loop of 1.19 is synchronous; 1.36 schedules the other pod at the same time."""
    small = make_pod("q", requests={"cpu": "1"})
    for version, is_due in (("1.19", False), ("1.36", True)):
        scene = stage_of(version, make_node("n1"), victim("v"), preemptor(), small)
        scene.step()
        if version == "1.36":
            scene.done("patch")
        assert scene.is_due() is is_due


def test_a_cycle_waits_for_the_nominations_to_be_cleared_in_1_19(stage_of):
    """Nominations of pods of lower priority on the node, after the deletions."""
    lower = preemptor("low", priority=50, nominated="n1")
    small = make_pod("q", requests={"cpu": "1"})
    scene = stage_of("1.19", make_node("n1"), victim("v"), lower, preemptor(), small)
    scene.step()
    while scene.sent[0].target.name != "low":
        scene.done()
        assert not scene.is_due()
    scene.done("patch")
    assert scene.is_due() or scene.sent


# --- choosing a node --------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "node"), [("1.19", "n1"), ("1.36", "n2")])
def test_1_19_takes_the_first_victim_for_the_most_important(stage_of, version, node):
    """1.19 lists victims that violate a budget first.

    n1 has victims of priority 1 (guarded) and 9, n2 of 5 (guarded) and 2.
    """
    guarded = {"labels": {"app": "guarded"}}
    pods = (
        make_pod("a", node="n1", priority=1, requests={"cpu": "2"}, **guarded),
        make_pod("b", node="n1", priority=9, requests={"cpu": "2"}),
        make_pod("c", node="n2", priority=5, requests={"cpu": "2"}, **guarded),
        make_pod("d", node="n2", priority=2, requests={"cpu": "2"}),
    )
    budget = make_budget("budget", {"app": "guarded"}, allowed=0)
    scene = stage_of(version, make_node("n1"), make_node("n2"), budget, *pods, preemptor())
    scene.step()
    scene.all_done()
    assert scene.nominated("p") == node


# --- after a failure --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.19", NO_ROOM),
        (
            "1.36",
            NO_VICTIMS,
        ),
    ],
)
def test_only_1_36_adds_the_post_filter_message_to_a_failure(stage_of, version, message):
    """1.19 has only DefaultPreemption, and does not report its reasons."""
    scene = stage_of(version, make_node("n1"), victim("v", priority=100), preemptor())
    assert ("event", "p", "FailedScheduling", message) in scene.step()


@pytest.mark.parametrize(("version", "kept"), [("1.19", "n1"), ("1.36", "")])
def test_a_search_without_candidates_keeps_the_nomination_in_1_19(stage_of, version, kept):
    """1.19 clears it only if preemption can help on no node."""
    objects = (make_node("n1"), victim("v", priority=100), preemptor(nominated="n1"))
    scene = stage_of(version, *objects)
    scene.step()
    scene.all_done()
    assert scene.nominated("p") == kept


@pytest.mark.parametrize(
    ("version", "place"), [("1.19", "unschedulable"), ("1.36", "error_backoff")]
)
def test_a_pod_in_a_cluster_without_nodes(stage_of, version, place):
    """No plugin has rejected it, so 1.36 retries it after each backoff."""
    scene = stage_of(version, preemptor())
    scene.step()
    scene.all_done()
    assert scene.place("p") == place


@pytest.mark.parametrize(("version", "flush_s"), [("1.19", 90), ("1.36", 330)])
def test_the_flush_of_unschedulable_pods(stage_of, version, flush_s):
    """After more than 60 s in 1.19, 300 s in 1.36, at the next half minute."""
    scene = stage_of(version, make_node("n1"), victim("v", priority=100), preemptor())
    scene.step()
    scene.all_done()
    assert scene.engine.next_deadline() == scene.now + flush_s * 10**9


@pytest.mark.parametrize(("version", "moved"), [("1.19", True), ("1.36", False)])
def test_any_node_change_moves_all_pods_in_1_19(stage_of, version, moved):
    """A changed label does not help a pod that lacks cpu, and 1.36 ignores it."""
    scene = stage_of(version, make_node("n1"), victim("v", priority=100), preemptor())
    scene.step()
    scene.all_done()
    scene.now += 5 * 10**9
    scene.put(make_node("n1", labels={"disk": "ssd"}))
    assert (scene.place("p") == "active") is moved


@pytest.mark.parametrize(("version", "place"), [("1.19", "active"), ("1.36", "unschedulable")])
def test_an_update_of_an_unschedulable_pod_makes_it_active_in_1_19(stage_of, version, place):
    """1.36 does not retry a pod that lacks cpu after a change of its labels."""
    scene = stage_of(version, make_node("n1"), victim("v", priority=100), preemptor())
    scene.step()
    scene.all_done()
    scene.put(preemptor(labels={"new": "label"}))
    assert scene.place("p") == place


@pytest.mark.parametrize(("version", "waits"), [("1.19", True), ("1.36", False)])
def test_an_idle_scheduler_waits_for_backoffs_in_1_19(stage_of, version, waits):
    """1.36 tries a pod in backoff if no other pod is active."""
    scene = stage_of(version, make_node("n1"), victim("v", priority=100), preemptor())
    scene.step()
    scene.all_done()
    scene.put(make_node("n2", cpu="8", unschedulable=True))
    assert scene.place("p") == "backoff"
    assert scene.is_due() is not waits
    if waits:
        scene.now += 10**9 - 1
        assert not scene.is_due()
        scene.now += 1
        assert scene.is_due()


NEAR_WEB = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "web"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


@pytest.mark.parametrize(("version", "place"), [("1.19", "active"), ("1.36", "unschedulable")])
def test_any_change_of_a_pod_that_attracts_others(stage_of, version, place):
    """An annotation suffices in 1.19; 1.36 compares labels and requests."""
    node = make_node("n1", labels={"kubernetes.io/hostname": "n1"})
    web = make_pod("web", node="n1", requests={"cpu": "2"}, labels={"app": "web"})
    near = make_pod("p", requests=BIG, spec={"affinity": NEAR_WEB})
    scene = stage_of(version, node, web, near)
    scene.step()
    scene.all_done()
    scene.now += 5 * 10**9
    noted = structs.replace(web.metadata, annotations={"a": "b"})
    scene.put(structs.replace(web, metadata=noted))
    assert scene.place("p") == place


@pytest.mark.parametrize(("version", "place"), [("1.19", "unschedulable"), ("1.36", "active")])
def test_the_deletion_of_a_nominated_pod(stage_of, version, place):
    """1.36 retries the pods for which the nomination has reserved the node."""
    nominated = preemptor("high", nominated="n1")
    low = preemptor("low", priority=50)
    scene = stage_of(version, make_node("n1"), victim("v", terminating=True), nominated, low)
    while scene.is_due():
        scene.step()
        scene.all_done()
    scene.now += 5 * 10**9
    scene.gone(nominated)
    assert scene.place("low") == place


@pytest.mark.parametrize(("version", "place"), [("1.19", "unschedulable"), ("1.36", "backoff")])
def test_a_refused_binding_and_an_unschedulable_pod(stage_of, version, place):
    """1.36 retries the unschedulable pod, because the resources are free."""
    scene = stage_of(version, make_node("n1"), preemptor("a"), preemptor("b"))
    scene.step()
    bind = scene.sent.pop()
    scene.step()
    scene.all_done()
    assert scene.place("b") == "unschedulable"
    scene.sent = [bind]
    scene.refused()
    assert scene.place("b") == place


NAMED = (
    "1 node(s) didn't match node selector, "
    "1 node(s) had taint {a: x}, that the pod didn't tolerate, "
    "2 node(s) had taint {b: }, that the pod didn't tolerate."
)
COUNTED = (
    "1 node(s) didn't match Pod's node affinity/selector, "
    "3 node(s) had untolerated taint(s). no new claims to deallocate"
)


@pytest.mark.parametrize(("version", "reasons"), [("1.19", NAMED), ("1.36", COUNTED)])
def test_reasons_of_taints_and_node_selectors(stage_of, version, reasons):
    """1.19 counts nodes with different taints separately."""
    labels = {"disk": "ssd"}
    nodes = (
        make_node("n1", labels=labels, taints=["a=x:NoSchedule"]),
        make_node("n2", labels=labels, taints=["b:NoSchedule"]),
        make_node("n3", labels=labels, taints=["b:NoExecute"]),
        make_node("n4"),
    )
    scene = stage_of(version, *nodes, make_pod("p", spec={"nodeSelector": labels}))
    event = next(command for command in scene.step() if command[0] == "event")
    assert event[3].startswith(f"0/4 nodes are available: {reasons}")


def test_the_scores_of_1_19(stage_of):
    """Its default weights, and the older balance of cpu and memory."""
    nodes = (make_node("n1", cpu="4", memory="4Gi"), make_node("n2", cpu="4", memory="64Gi"))
    pod = make_pod("p", requests={"cpu": "2", "memory": "2Gi"})
    for version, node in (("1.19", "n1"), ("1.36", "n2")):
        scene = stage_of(version, *nodes, pod)
        assert ("bind", "p", node) in scene.step(), version


# --- weights and plugins of the default profile ---------------------------------------------------


def bound_to(scene):
    """The node that the first scheduling cycle chooses."""
    return next(command[2] for command in scene.step() if command[0] == "bind")


@pytest.mark.parametrize(("version", "node"), [("1.19", "tainted"), ("1.36", "busy")])
def test_the_weight_of_taints(stage_of, version, node):
    """PreferNoSchedule has weight 1 in 1.19, like free resources, and weight 3 in 1.36."""
    nodes = (make_node("tainted", taints=["a:PreferNoSchedule"]), make_node("busy"))
    load = make_pod("load", node="busy", requests={"cpu": "3500m"})
    scene = stage_of(version, *nodes, load, make_pod("p", requests={"cpu": "100m"}))
    assert bound_to(scene) == node


@pytest.mark.parametrize(("version", "node"), [("1.19", "busy"), ("1.36", "avoiding")])
def test_nodes_with_the_annotation_prefer_avoid_pods(stage_of, version, node):
    """The annotation overrides all other scores in 1.19, and has no effect in 1.36."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs"}
    wish = {"preferAvoidPods": [{"podSignature": {"podController": owner}}]}
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    avoiding, busy = make_node("avoiding"), make_node("busy")
    avoiding.metadata.annotations[key] = msgspec.json.encode(wish).decode()
    load = make_pod("load", node="busy", requests={"cpu": "3", "memory": "12Gi"})
    pod = make_pod("p", requests={"cpu": "100m"})
    pod = structs.replace(
        pod,
        metadata=structs.replace(
            pod.metadata,
            owner_references=(decode_as(OwnerReference, {**owner, "controller": True}),),
        ),
    )
    scene = stage_of(version, avoiding, busy, load, pod)
    assert bound_to(scene) == node


@pytest.mark.parametrize(("version", "order"), [("1.19", ["a", "b"]), ("1.36", ["b", "a"])])
def test_the_order_of_victims(stage_of, version, order):
    """1.19 deletes those first whose budget is violated, 1.36 the most important first."""
    guarded = make_pod("a", node="n1", priority=1, requests={"cpu": "2"}, labels={"app": "guarded"})
    other = make_pod("b", node="n1", priority=9, requests={"cpu": "2"})
    budget = make_budget("budget", {"app": "guarded"}, allowed=0)
    scene = stage_of(version, make_node("n1"), budget, guarded, other, preemptor())
    commands = scene.step()
    while scene.sent:
        commands += scene.done()
    assert [command[1] for command in commands if command[0] == "delete"] == order


WEB = {"app": "web"}
HOSTNAME = "kubernetes.io/hostname"
FULL = make_pod("load", node="busy", requests={"cpu": "3800m"})
LABELLED = tuple(
    make_node(name, labels={HOSTNAME: name, "name": name}) for name in ("busy", "free")
)
PREFERS_NODE = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "preference": {
                    "matchExpressions": [{"key": "name", "operator": "In", "values": ["busy"]}]
                },
            }
        ]
    }
}
PREFERS_POD = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "labelSelector": {"matchLabels": WEB},
                    "topologyKey": HOSTNAME,
                },
            }
        ]
    }
}


def service():
    """A service of the pods labelled WEB."""
    meta = {"name": "web", "namespace": "default"}
    return decode_as(Service, {"metadata": meta, "spec": {"selector": WEB}})


@pytest.mark.parametrize("affinity", [PREFERS_NODE, PREFERS_POD], ids=["of nodes", "of pods"])
@pytest.mark.parametrize(("version", "node"), [("1.19", "free"), ("1.36", "busy")])
def test_the_weight_of_affinity(stage_of, version, node, affinity):
    """Preferred affinity has weight 1 in 1.19, like free resources, and weight 2 in 1.36."""
    friend = make_pod("friend", node="busy", requests={"cpu": "10m"}, labels=WEB)
    waiting = make_pod("p", requests={"cpu": "50m"}, spec={"affinity": affinity})
    assert bound_to(stage_of(version, *LABELLED, FULL, friend, waiting)) == node


@pytest.mark.parametrize(("version", "node"), [("1.19", "free"), ("1.36", "busy")])
def test_the_weight_of_default_spreading(stage_of, version, node):
    """SelectorSpread has weight 1 in 1.19, the default constraints of 1.36 have weight 2.

    The only other pod of the service is on the free node.
    """
    web = make_pod("web-0", node="free", requests={"cpu": "10m"}, labels=WEB)
    waiting = make_pod("p", requests={"cpu": "50m"}, labels=WEB)
    assert bound_to(stage_of(version, *LABELLED, service(), FULL, web, waiting)) == node


@pytest.mark.parametrize(("version", "node"), [("1.19", "busy"), ("1.36", "free")])
def test_spreading_over_nodes_without_a_hostname_label(stage_of, version, node):
    """SelectorSpread counts the pods of a service by node, whatever its labels."""
    nodes = (make_node("busy"), make_node("free"))
    load = make_pod("load", node="busy", requests={"cpu": "1"})
    web = make_pod("web-0", node="free", requests={"cpu": "10m"}, labels=WEB)
    waiting = make_pod("p", requests={"cpu": "50m"}, labels=WEB)
    assert bound_to(stage_of(version, *nodes, service(), load, web, waiting)) == node

"""Gangs in the default scheduler, with the feature gates of 1.36 enabled."""

from __future__ import annotations

import pytest
from msgspec import convert
from msgspec.structs import replace

from fairlead.api.codec import decode
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import release_of
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodPreempting
from fairlead.engine.core.status import error, unschedulable
from fairlead.testing.builders import make_budget, make_node, make_pod
from fairlead.testing.device_builders import make_device_class, make_resource_claim, make_slice

GANGS = {"GenericWorkload": True, "GangScheduling": True}
WHOLE = {**GANGS, "WorkloadAwarePreemption": True}
NO_ROOM = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 "
    "nodes are available: 1 No preemption victims found for incoming pod."
)
HELD = "pod group is unschedulable, one or more plugins asked to wait and no plugin rejected pod"


@pytest.fixture
def gang_stage(stage):
    """Makes stages whose scheduler has the feature `gates`."""

    def make(*objects, gates=GANGS, **more):
        config = default_config(release_of("1.36", gates), {})
        return stage(*objects, profiles=config.profiles, version=config.version, **more)

    return make


def pod_group(name="gang", minimum=3, **spec):
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    return decode(
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {"schedulingPolicy": policy, **spec},
        }
    )


def member(name, of="gang", cpu="1", **more):
    spec = {"schedulingGroup": {"podGroupName": of}} if of else {}
    return make_pod(name, requests={"cpu": cpu}, spec=spec, **more)


def gang(*names, **more):
    return [member(name, **more) for name in names]


def binds(commands):
    return [command[1:] for command in commands if command[0] == "bind"]


def run(stage):
    """Handle everything that is due now, and perform every command; return the commands."""
    commands = []
    while stage.is_due() or stage.sent:
        commands += stage.step() if stage.is_due() else stage.done()
    return commands


def test_gang_pods_share_a_claim(gang_stage):
    """The first pod allocates it; the others follow to its node in the same cycle."""
    claims = [{"name": "c", "resourceClaimName": "c"}]
    pods = [
        make_pod(name, spec={"schedulingGroup": {"podGroupName": "gang"}, "resourceClaims": claims})
        for name in ("a", "b", "c")
    ]
    devices = (make_device_class(), make_slice("m"), make_resource_claim("c"))
    stage = gang_stage(make_node("n"), make_node("m"), *devices, pod_group(), *pods)
    assert [node for *_, node in binds(run(stage))] == ["m", "m", "m"]


def test_three_gang_pods_on_a_node_for_two_bind_none(gang_stage):
    """Without gang scheduling, two of them would run."""
    stage = gang_stage(make_node("n", cpu="2"), pod_group(), *gang("a", "b", "c"))
    commands = run(stage)
    assert binds(commands) == []
    assert stage.on("n") == []
    notes = [c[3] for c in commands if c[0] == "event" and c[2] == "FailedScheduling"]
    assert notes == [
        f'{HELD} "a"',
        f'{HELD} "b"',
        NO_ROOM,
    ]
    group = next(c for c in commands if c[0] == "patch" and c[1] == "gang")
    assert group[3] == (
        "PodGroupScheduled", "False", "Unschedulable", "pod group is unschedulable"
    )  # fmt: skip


def test_without_the_gates_two_of_three_gang_pods_bind(gang_stage):
    stage = gang_stage(make_node("n", cpu="2"), pod_group(), *gang("a", "b", "c"), gates={})
    assert binds(run(stage)) == [("a", "n"), ("b", "n")]


def test_all_three_gang_pods_bind_if_all_fit(gang_stage):
    stage = gang_stage(make_node("n", cpu="3"), pod_group(), *gang("a", "b", "c"))
    commands = run(stage)
    assert sorted(binds(commands)) == [("a", "n"), ("b", "n"), ("c", "n")]
    group = next(c for c in commands if c[0] == "patch" and c[1] == "gang")
    assert group[3] == ("PodGroupScheduled", "True", "Scheduled", "")


def test_a_gang_that_did_not_fit_binds_when_a_node_is_added(gang_stage):
    stage = gang_stage(make_node("n", cpu="2"), pod_group(), *gang("a", "b", "c"))
    run(stage)
    stage.now += 20_000_000_000
    stage.put(make_node("m", cpu="1"))
    assert sorted(binds(run(stage))) == [("a", "n"), ("b", "n"), ("c", "m")]


def test_a_gang_waits_for_its_pods_and_for_its_pod_group(gang_stage):
    stage = gang_stage(make_node("n", cpu="3"), *gang("a", "b"))
    assert run(stage) == []
    stage.put(pod_group())
    assert run(stage) == []
    assert stage.scheduler.queue.counts()["gated"] == 2
    stage.put(member("c"))
    assert len(binds(run(stage))) == 3


def test_running_pods_count_towards_the_minimum(gang_stage):
    running = member("a", node="n")
    stage = gang_stage(make_node("n", cpu="3"), pod_group(), running, *gang("b", "c"))
    assert sorted(binds(run(stage))) == [("b", "n"), ("c", "n")]


def test_a_pod_without_a_group_does_not_wait_for_the_gang(gang_stage):
    """Two gangs do not wait for each other either."""
    objects = [
        make_node("n", cpu="4"),
        pod_group("one", 2),
        pod_group("two", 2),
        member("a1", of="one"),
        member("b1", of="two"),
        member("free", of=""),
    ]
    stage = gang_stage(*objects)
    assert binds(run(stage)) == [("free", "n")]
    stage.put(member("a2", of="one"))
    assert sorted(binds(run(stage))) == [("a1", "n"), ("a2", "n")]


def test_pods_beyond_the_minimum_bind_if_they_fit(gang_stage):
    stage = gang_stage(make_node("n", cpu="2"), pod_group(minimum=2), *gang("a", "b", "c"))
    assert sorted(binds(run(stage))) == [("a", "n"), ("b", "n")]


def test_the_pods_of_a_basic_group_bind_one_by_one(gang_stage):
    stage = gang_stage(make_node("n", cpu="2"), pod_group(minimum=0), *gang("a", "b", "c"))
    assert binds(run(stage)) == [("a", "n"), ("b", "n")]


def test_pod_groups_of_batch_schedulers_are_ignored(gang_stage):
    volcano = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    stage = gang_stage(make_node("n", cpu="3"), decode(volcano), *gang("a", "b", "c"))
    assert run(stage) == []


def test_the_pods_of_a_group_need_one_scheduler(stage):
    other = make_pod(
        "b",
        requests={"cpu": "1"},
        spec={"schedulingGroup": {"podGroupName": "gang"}, "schedulerName": "second"},
    )
    config = default_config(release_of("1.36", GANGS), {})
    profiles = (*config.profiles, replace(config.profiles[0], scheduler_name="second"))
    objects = [make_node("n", cpu="3"), pod_group(minimum=2), member("a"), other]
    stage = stage(*objects, profiles=profiles, version=config.version)
    (note,) = {c[3] for c in stage.step() if c[0] == "event"}
    assert note == (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "second" and "default-scheduler"'
    )


def test_a_terminating_pod_of_a_gang_is_left_out(gang_stage):
    leaving = member("c", terminating=True)
    stage = gang_stage(make_node("n", cpu="3"), pod_group(minimum=2), *gang("a", "b"), leaving)
    commands = run(stage)
    assert sorted(binds(commands)) == [("a", "n"), ("b", "n")]
    assert ("event", "c", "FailedScheduling", "skip schedule deleting pod: default/c") in commands


def test_a_group_of_terminating_pods_is_not_scheduled(gang_stage):
    stage = gang_stage(make_node("n", cpu="3"), pod_group(minimum=1), member("a", terminating=True))
    assert [c[2] for c in run(stage)] == ["FailedScheduling"]


def test_pods_of_higher_priority_are_scheduled_first(gang_stage):
    low, high = member("low", priority=1), member("high", priority=2)
    stage = gang_stage(make_node("n", cpu="1"), pod_group(minimum=1), low, high)
    assert binds(run(stage)) == [("high", "n")]


def test_pods_that_became_active_first_are_scheduled_first(gang_stage):
    """A pod that arrived earlier may have been gated longer."""
    gated = {"schedulingGates": [{"name": "g"}], "schedulingGroup": {"podGroupName": "gang"}}
    first = make_pod("gated", requests={"cpu": "1"}, spec=gated)
    stage = gang_stage(pod_group(minimum=1), first, make_node("n", cpu="0"))
    stage.now += 1
    stage.put(member("b"))
    run(stage)
    stage.now += seconds(60)
    stage.put(member("gated"))
    run(stage)
    stage.now += seconds(60)
    stage.put(make_node("n", cpu="1"))
    assert binds(run(stage)) == [("b", "n")]


def test_a_pod_group_that_is_deleted_during_the_wait_is_an_error(gang_stage):
    """Then the pods wait for the PodGroup again."""
    stage = gang_stage(make_node("n", cpu="2"), pod_group(minimum=2), *gang("a", "b"))
    stage.gone(pod_group(minimum=2))
    notes = {c[1]: c[3] for c in stage.step() if c[0] == "event"}
    missing = 'failed to get podGroup default/gang: podgroup.scheduling.k8s.io "gang" not found'
    assert notes == {
        "a": missing,
        "b": f"failed to schedule other pod from a pod group: {missing}",
    }
    assert run(stage) == []


class Refuses:
    """A Reserve plugin that refuses one pod."""

    name = "Refuses"

    def __init__(self, pod, status):
        self.pod, self.status = pod, status
        self.undone = []

    def reserve(self, _state, pod, _node):
        return self.status if pod.pod.metadata.name == self.pod else None

    def unreserve(self, _state, pod, _node):
        self.undone.append(pod.pod.metadata.name)


@pytest.mark.parametrize("minimum", [2, 3])
def test_a_pod_that_reserve_refuses_counts_as_not_placed(stage, minimum):
    plugin = Refuses("b", unschedulable("no"))
    config = default_config(release_of("1.36", GANGS), {})
    profile = replace(config.profiles[0], plugins=(*config.profiles[0].plugins, ("Refuses", 0)))
    found = stage(
        make_node("n", cpu="3"),
        pod_group(minimum=minimum),
        *gang("a", "b", "c"),
        profiles=(profile,),
        version=config.version,
        out_of_tree={"Refuses": lambda _handle, _args: plugin},
    )
    bound = sorted(pod for pod, _ in binds(run(found)))
    assert bound == (["a", "c"] if minimum == 2 else [])
    assert set(plugin.undone) == {"a", "b", "c"}


def condition(commands):
    """Return the conditions that are written to the status of the gang."""
    return [c[3] for c in commands if c[0] == "patch" and c[1] == "gang"]


def test_the_condition_of_a_gang_is_written_when_it_changes(gang_stage):
    """It is not written when a second cycle fails for the same reason."""
    stage = gang_stage(make_node("n", cpu="1"), pod_group(minimum=2), *gang("a", "b"))
    (written,) = condition(run(stage))
    fields = dict(zip(("type", "status", "reason", "message"), written, strict=True))
    known = pod_group(minimum=2)
    stage.put(replace(known, status=convert({"conditions": [fields]}, type(known.status))))
    stage.now += 20_000_000_000
    stage.put(make_node("m", cpu="500m"))
    commands = run(stage)
    assert [c[1] for c in commands if c[0] == "event"] != []
    assert condition(commands) == []


def test_a_gang_that_was_scheduled_once_keeps_its_condition(gang_stage):
    """A later member that does not fit does not change it."""
    known = pod_group(minimum=2)
    fields = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}
    known = replace(known, status=convert({"conditions": [fields]}, type(known.status)))
    stage = gang_stage(make_node("n", cpu="1"), known, *gang("a", "b"))
    commands = run(stage)
    assert [c[2] for c in commands if c[0] == "event"] == ["FailedScheduling"] * 2
    assert condition(commands) == []


# --- preemption ----------------------------------------------------------------------------


def test_without_the_gate_a_gang_preempts_pod_by_pod(gang_stage):
    low = [member(name, of="", node="n", priority=1) for name in ("v1", "v2", "v3")]
    high = gang("a", "b", priority=10)
    stage = gang_stage(make_node("n", cpu="3"), pod_group(minimum=2), *low, *high)
    commands = stage.step()
    assert {c[1] for c in commands if c[0] == "patch" and c[1].startswith("v")} == {"v2", "v3"}


def whole_victims(stage):
    return [
        sorted(victim.name for victim in record.victims)
        for record in stage.records.of(PodPreempting)
    ]


def test_a_gang_preempts_whole_gangs(gang_stage):
    """One victim would be enough, but the other pods of its gang are victims, too."""
    objects = [
        make_node("n1", cpu="1"),
        make_node("n2", cpu="1"),
        make_node("n3", cpu="1"),
        pod_group("low", 3, disruptionMode="PodGroup", priority=1),
        *(member(f"v{i}", of="low", node=f"n{i}", priority=1) for i in (1, 2, 3)),
        pod_group("high", 2, priority=10),
        *gang("a", "b", of="high", priority=10),
    ]
    stage = gang_stage(*objects, gates=WHOLE)
    commands = run(stage)
    assert whole_victims(stage) == [["v1", "v2", "v3"]]
    assert sorted(c[1] for c in commands if c[0] == "delete") == ["v1", "v2", "v3"]
    notes = [c[3] for c in commands if c[0] == "event" and c[2] == "Preempted"]
    assert notes == ["Preempted by podgroup uid-high on node cluster"] * 3
    assert binds(commands) == []


def test_single_pods_of_a_gang_with_disruption_mode_pod_are_preempted(gang_stage):
    objects = [
        *(make_node(f"n{i}", cpu="1") for i in (1, 2, 3)),
        pod_group("low", 3, disruptionMode="Pod", priority=1),
        *(member(f"v{i}", of="low", node=f"n{i}", priority=1) for i in (1, 2, 3)),
        pod_group("high", 2, priority=10),
        *gang("a", "b", of="high", priority=10),
    ]
    stage = gang_stage(*objects, gates=WHOLE)
    run(stage)
    assert [len(victims) for victims in whole_victims(stage)] == [2]


def test_a_gang_preempts_nothing_if_it_still_does_not_fit(gang_stage):
    objects = [
        make_node("n1", cpu="1"),
        pod_group("low", 1, disruptionMode="PodGroup", priority=1),
        member("v1", of="low", node="n1", priority=1),
        pod_group("high", 2, priority=10),
        *gang("a", "b", of="high", priority=10),
    ]
    stage = gang_stage(*objects, gates=WHOLE)
    commands = run(stage)
    assert whole_victims(stage) == []
    assert [c for c in commands if c[0] == "delete"] == []
    condition = next(c for c in commands if c[0] == "patch" and c[1] == "high")[3]
    assert condition[3] == "pod group is unschedulable, pod group is unschedulable"


def test_an_error_in_the_search_for_victims_is_an_error_of_the_group(stage):
    plugin = Refuses("b", error("broken"))
    config = default_config(release_of("1.36", WHOLE), {})
    profile = replace(config.profiles[0], plugins=(*config.profiles[0].plugins, ("Refuses", 0)))
    found = stage(
        make_node("n", cpu="3"),
        pod_group(minimum=3, priority=9),
        *(member(name, of="", node="n") for name in ("v1", "v2", "v3")),
        *gang("a", "b", "c", priority=9),
        profiles=(profile,),
        version=config.version,
        out_of_tree={"Refuses": lambda _handle, _args: plugin},
    )
    commands = found.step()
    text = "failed to schedule other pod from a pod group: broken"
    group = next(c for c in commands if c[0] == "patch" and c[1] == "gang")
    assert group[3] == ("PodGroupScheduled", "False", "SchedulerError", text)
    assert {c[3] for c in commands if c[0] == "event"} == {text}


def test_a_gang_binds_after_its_victims_were_deleted(gang_stage):
    victims = [member(f"v{i}", of="", node="n", priority=1) for i in (1, 2)]
    objects = [make_node("n", cpu="2"), *victims, pod_group("high", 2, priority=10)]
    stage = gang_stage(*objects, *gang("a", "b", of="high", priority=10), gates=WHOLE)
    assert binds(run(stage)) == []
    stage.gone(*victims)
    stage.now += 20_000_000_000
    assert sorted(binds(run(stage))) == [("a", "n"), ("b", "n")]


def test_the_priority_of_a_gang_counts_and_not_that_of_its_pods(gang_stage):
    """This holds for the preempting gang and for the preempted gang."""
    objects = [
        make_node("n", cpu="1"),
        pod_group("low", 1, disruptionMode="PodGroup", priority=10),
        member("v", of="low", node="n", priority=1),
        pod_group("high", 1, priority=5),
        member("a", of="high", priority=100),
    ]
    stage = gang_stage(*objects, gates=WHOLE)
    run(stage)
    assert whole_victims(stage) == []


def test_a_gang_that_waits_for_its_victims_does_not_preempt_again(gang_stage):
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = make_pod(
        "v", node="n", priority=1, requests={"cpu": "1"}, terminating=True,
        status={"conditions": [condition]},
    )  # fmt: skip
    waiting = member("a", of="high", priority=10, nominated="n")
    objects = [make_node("n", cpu="1"), leaving, pod_group("high", 1, priority=10), waiting]
    stage = gang_stage(*objects, gates=WHOLE)
    commands = run(stage)
    assert whole_victims(stage) == []
    condition = next(c for c in commands if c[0] == "patch" and c[1] == "high")[3]
    assert condition[3].endswith("not eligible due to a terminating pod on the nominated node.")


def test_nominations_without_terminating_victims_do_not_delay_preemption(gang_stage):
    """One member is nominated to a deleted node, the other to one without terminating pods."""
    waiting = [
        member("a", of="high", priority=10, nominated="gone"),
        member("b", of="high", priority=10, nominated="n"),
    ]
    low = [member(name, of="", node="n", priority=1) for name in ("v1", "v2")]
    objects = [make_node("n", cpu="2"), *low, pod_group("high", 2, priority=10), *waiting]
    stage = gang_stage(*objects, gates=WHOLE)
    run(stage)
    assert whole_victims(stage) == [["v1", "v2"]]


def test_larger_and_older_gangs_are_more_important(gang_stage):
    """With equal priority, the smaller gang is a victim; with equal size, the younger."""
    young, old = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"

    def victims_of(*gangs):
        objects = [make_node(name, cpu="2") for name in ("n1", "n2")]
        for number, (name, start, size) in enumerate(gangs, 1):
            objects.append(pod_group(name, 1, disruptionMode="PodGroup", priority=1))
            share = "2" if size == 1 else "1"
            objects += [
                member(f"{name}{i}", of=name, cpu=share, node=f"n{number}", priority=1,
                       status={"startTime": start})
                for i in range(size)
            ]  # fmt: skip
        high = [pod_group("high", 1, priority=10), member("a", of="high", cpu="2", priority=10)]
        stage = gang_stage(*objects, *high, gates=WHOLE)
        run(stage)
        return whole_victims(stage)

    assert victims_of(("large", young, 2), ("small", old, 1)) == [["small0"]]
    assert victims_of(("old", old, 1), ("young", young, 1)) == [["young0"]]


def test_a_gang_whose_pods_never_preempt_has_no_victims(gang_stage):
    never = make_pod(
        "a",
        priority=10,
        requests={"cpu": "1"},
        spec={"schedulingGroup": {"podGroupName": "high"}, "preemptionPolicy": "Never"},
    )
    objects = [make_node("n", cpu="1"), member("v", of="", node="n", priority=1)]
    stage = gang_stage(*objects, pod_group("high", 1, priority=10), never, gates=WHOLE)
    run(stage)
    assert whole_victims(stage) == []


def test_budgets_are_violated_only_as_a_last_resort(gang_stage):
    guarded = make_pod("v1", node="n1", priority=1, requests={"cpu": "1"}, labels={"app": "db"})
    objects = [
        make_node("n1", cpu="1"),
        make_node("n2", cpu="1"),
        make_budget("db", {"app": "db"}, allowed=0),
        guarded,
        member("v2", of="", node="n2", priority=2),
        pod_group("high", 1, priority=10),
        member("a", of="high", priority=10),
    ]
    stage = gang_stage(*objects, gates=WHOLE)
    run(stage)
    assert whole_victims(stage) == [["v2"]]


def test_a_search_for_victims_does_not_change_the_node_columns(gang_stage):
    victims = [member(f"v{i}", of="", node="n", priority=1) for i in (1, 2)]
    objects = [make_node("n", cpu="2"), *victims, pod_group("high", 2, priority=10)]
    stage = gang_stage(*objects, *gang("a", "b", of="high", priority=10), gates=WHOLE)
    stage.step()
    stage.cluster.table.validate()
    assert stage.on("n") == ["default/v1", "default/v2"]

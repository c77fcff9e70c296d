"""A simulation whose clock does not advance ends with an error that names the repeated events."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodEvicted, PodUnschedulable, SilentReporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if
from fairlead.whatif.run.endless_instant import (
    ATTEMPTS_MAX,
    ATTEMPTS_PER_OBJECT,
    EVICTIONS_MAX,
    EVICTIONS_PER_POD,
    PODS_MAX,
    AttemptLimit,
    EndlessInstant,
    EvictionLimit,
    livelock_error,
)
from fairlead.worlds.driver import LivelockError


def test_pods_that_run_for_no_time_are_refused_by_name(snapshot, make):
    web = make.workload("ReplicaSet", "web", replicas=2, cpu="10m")
    web["spec"]["template"]["metadata"]["annotations"] = {"fairlead.dev/run-duration": "0s"}
    with pytest.raises(InputError) as refused:
        what_if(snapshot(make.node("a"), web), ClusterChange(), Conditions(startup=0))
    words = str(refused.value)
    assert "rs/default/web: its pods are replaced without end: 1,005 were created and " in words
    assert " at 2026-01-01T00:00:00Z, the last was Pod default/web-" in words


@pytest.fixture
def ended(make):
    """Return a deleted pod of the ReplicaSet web that was created at second `created`."""

    def deleted(number, created=0):
        pod = make.pod(f"web-{number}", owner="web")
        pod["metadata"] |= {
            "uid": str(number),
            "creationTimestamp": f"1970-01-01T00:00:0{created}Z",
        }
        return ObjectDeleted(decode(pod))

    return deleted


@pytest.mark.parametrize(
    ("wanted", "allowed"), [(0, PODS_MAX), (5, PODS_MAX + 10), (None, PODS_MAX + 1000)]
)
def test_a_workload_may_lose_twice_its_pods_at_one_instant(ended, wanted, allowed):
    """A workload without a desired number of pods has no limit."""
    bound = EndlessInstant("s.yaml", lambda _: wanted)
    for number in range(allowed):
        bound.observe(ended(number), 0)
        bound.observe(ended(number), 0)  # the same pod
    if wanted is not None:
        with pytest.raises(InputError, match="rs/default/web: its pods are replaced without end"):
            bound.observe(ended(-1), 0)


def test_pods_of_earlier_instants_are_not_counted(ended):
    bound = EndlessInstant("s.yaml", lambda _: 0)
    for number in range(2 * PODS_MAX):
        bound.observe(ended(number), seconds(1))
    for second in range(3):
        for number in range(PODS_MAX):
            bound.observe(ended(number, second), seconds(second))


def test_a_clock_that_does_not_advance_is_an_error_that_names_the_cause(make):
    pod = ObjectChanged(decode(make.pod("web")))
    found = livelock_error("s.yaml", LivelockError(0, 5_000_001, (pod, None, pod)))
    assert str(found) == (
        "s.yaml: the simulation does not advance beyond 1970-01-01T00:00:00Z, even after 5,000,001 "
        "steps; the object that changed most often is Pod default/web"
    )


@pytest.fixture
def failed():
    """Return a failed attempt for the pod `name` at second `second`."""

    def unschedulable(name, second=0):
        return PodUnschedulable(
            pod=ObjectRef("Pod", "default", name, name),
            at=seconds(second),
            message="not today",
            plugins=("Refusing",),
            nominated_node=None,
            is_error=False,
            is_binding=True,
            started=seconds(second),
            attempt=1,
            profile="default-scheduler",
        )

    return unschedulable


def test_attempts_that_fail_without_end_name_the_pods_and_the_plugin(failed):
    limit = AttemptLimit(SilentReporter(), "s.yaml", lambda: 3)
    for _ in range(ATTEMPTS_MAX + 3 * ATTEMPTS_PER_OBJECT):
        limit.report(failed("a"))
        limit.report(failed("b"))
    limit.report(failed("once"))
    with pytest.raises(InputError) as refused:
        limit.report(failed("a"))
    assert str(refused.value) == (
        "s.yaml: Pod default/a, Pod default/b: scheduling fails without end at "
        "1970-01-01T00:00:00Z, 5,031 times for Pod default/a; rejected by Refusing: not today"
    )


def test_attempts_at_other_instants_are_not_counted(failed):
    limit = AttemptLimit(SilentReporter(), "s.yaml", lambda: 0)
    for second in range(3):
        for _ in range(ATTEMPTS_MAX):
            limit.report(failed("a", second))


@pytest.fixture
def evicted():
    """Return the eviction of a pod at second `at`."""
    ref = ObjectRef("Pod", "default", "web-1", "uid")
    return lambda at=0, why="taint k:NoExecute": PodEvicted(ref, "n", why, int(at * seconds(1)))


@pytest.mark.parametrize("pods", [0, 3])
def test_evictions_without_end_name_the_workload_and_the_reason(evicted, pods):
    """Each eviction is at another instant."""
    web = WorkloadRef("Deployment", "default", "web")
    limit = EvictionLimit(SilentReporter(), "s.yaml", lambda _: web, lambda _: pods)
    allowed = EVICTIONS_MAX + EVICTIONS_PER_POD * (pods + 1)
    for number in range(allowed):
        limit.report(evicted(number / 100))
        limit.report(evicted(number / 100, why="another"))
    with pytest.raises(InputError) as refused:
        limit.report(evicted(59))
    assert str(refused.value) == (
        "s.yaml: deploy/default/web: its pods are evicted and replaced without end: "
        f"{allowed + 1:,} evictions within a minute of virtual time, up to 1970-01-01T00:00:59Z: "
        "taint k:NoExecute"
    )


def test_the_pods_that_are_evicted_at_one_instant_count_as_pods(evicted):
    """A workload without a known number of pods may evict them all at once, and do so again."""
    web = WorkloadRef("Widget", "default", "web")
    limit = EvictionLimit(SilentReporter(), "s.yaml", lambda _: web, lambda _: 0)
    for second in range(4):
        for _ in range(EVICTIONS_MAX + 1):
            limit.report(evicted(second))


def test_evictions_of_other_minutes_and_of_unknown_pods_are_not_counted(evicted):
    web = WorkloadRef("Deployment", "default", "web")
    limit = EvictionLimit(SilentReporter(), "s.yaml", lambda _: web, lambda _: 0)
    unknown = EvictionLimit(SilentReporter(), "s.yaml", lambda _: None, lambda _: 0)
    for second in (0, 60, 120):
        for _ in range(EVICTIONS_MAX):
            limit.report(evicted(second))
            unknown.report(evicted())


def test_pods_that_a_tainted_node_evicts_at_once_do_not_slow_a_simulation(
    snapshot, make, monkeypatch
):
    """The template names the node, so the scheduler does not choose another one."""
    monkeypatch.setattr("fairlead.whatif.run.endless_instant.EVICTIONS_MAX", 4)
    web = make.workload("ReplicaSet", "web", replicas=1, cpu="10m", nodeName="a")
    change = ClusterChange(set=("node/a:spec.taints=[{key: k, effect: NoExecute}]",))
    with pytest.raises(InputError, match=r"rs/default/web: its pods are evicted .*: taint k:NoExe"):
        what_if(snapshot(make.node("a"), web), change)


def test_pods_of_an_unknown_owner_that_are_evicted_without_end_do_not_slow_a_simulation(
    snapshot, make, monkeypatch
):
    """A dump of nodes and pods lacks the owners, which replace their pods all the same."""
    monkeypatch.setattr("fairlead.whatif.run.endless_instant.EVICTIONS_MAX", 4)
    tolerated = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]
    pod = make.pod("web-1", node_name="a", cpu="10m", owner="web", tolerations=tolerated)
    change = ClusterChange(set=("node/a:spec.taints=[{key: k, effect: NoExecute}]",))
    with pytest.raises(InputError, match=r"rs/default/web: its pods are evicted .*: taint k:NoExe"):
        what_if(snapshot(make.node("a"), pod), change)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "Widget"])
def test_all_pods_of_an_unknown_owner_may_be_evicted_at_once(snapshot, make, monkeypatch, kind):
    monkeypatch.setattr("fairlead.whatif.run.endless_instant.EVICTIONS_MAX", 4)
    pods = [make.pod(f"web-{n}", node_name="a", cpu="10m", owner="web") for n in range(5)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = kind
    change = ClusterChange(set=("node/a:spec.taints=[{key: k, effect: NoExecute}]",))
    answer = what_if(snapshot(make.node("a"), make.node("b"), *pods), change)
    assert [end.node for end in answer.changed.pods.values()] == ["b"] * 5


def test_a_static_pod_that_is_preempted_again_and_again_does_not_stop_time(snapshot, make):
    """Its kubelet creates the mirror pod again, so the preemptor never fits."""
    static = make.pod("static", node_name="n", cpu="3")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "abc"}
    urgent = make.pod("urgent", cpu="2", priority=1000)
    cluster = snapshot(make.node("n", cpu="4"), static, urgent)
    answer = what_if(cluster, ClusterChange(), Conditions(horizon=seconds(60)))
    assert [one.key for one in answer.changed.pending] == ["default/urgent"]


def test_pods_that_a_plugin_rejects_after_their_node_was_chosen_do_not_stop_time(
    snapshot, make, tmp_path, monkeypatch
):
    """Each rejected pod wakes the other at once, because no other pod is active."""
    monkeypatch.setattr("fairlead.whatif.run.endless_instant.ATTEMPTS_MAX", 100)
    file = tmp_path / "refusing.py"
    file.write_text(
        "from fairlead import plugin\n"
        "class Refusing:\n"
        "    name = 'Refusing'\n"
        "    def pre_bind(self, *arguments):\n"
        "        return plugin.unschedulable('not today')\n"
    )
    pods = [make.pod("a", cpu="1"), make.pod("b", cpu="1")]
    conditions = Conditions(plugin=(f"{file}:Refusing",))
    with pytest.raises(InputError, match=r"rejected by Refusing: .* not today"):
        what_if(snapshot(make.node("n"), *pods), ClusterChange(), conditions)

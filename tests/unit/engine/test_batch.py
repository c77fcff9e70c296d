"""An engine with two schedulers, for single pods and for whole jobs, on one cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.batch.configuration_file import (
    BatchConfigurationError,
    read_configuration,
    shipped_configuration,
)
from fairlead.engine.batch.controller import Batch
from fairlead.engine.batch.info.job_table import Ownership
from fairlead.engine.batch.scheduler_name import SCHEDULER_NAMES
from fairlead.engine.compose import build_engine, build_scheduler_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.framework.profile import DEFAULT_SCHEDULER, Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_767_225_600)
VOLCANO = "scheduling.volcano.sh/v1beta1"


def node(name, cpu="4"):
    offered = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    status = {"allocatable": offered, "capacity": offered}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name, scheduler=DEFAULT_SCHEDULER, group="", cpu="1"):
    marks = {"scheduling.k8s.io/group-name": group} if group else {}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": marks},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def gang(name, members, scheduler="volcano", minimum=None):
    body = {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": members if minimum is None else minimum},
    }
    return [body, *(pod(f"{name}-{i}", scheduler, name) for i in range(members))]


def engine_of(batch=None):
    batch = batch or shipped_configuration("fairlead")
    return build_engine(EngineConfig(batch=batch, start=START), SilentReporter())


def world(*objects, batch=None, engine=None):
    made = SimulatedWorld(engine or engine_of(batch), start=START, seed=0)
    made.load(objects)
    return made


def placed(made):
    """Return the names of the pods that have a node."""
    pods = made.store.list(POD, "default")
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if "nodeName" in p["spec"]}


def used(made):
    """Return how many pods of one CPU each node has."""
    nodes = list(placed(made).values())
    return {name: nodes.count(name) for name in nodes}


@pytest.mark.parametrize("build", [build_engine, build_scheduler_engine])
def test_jobs_are_scheduled_as_a_whole_if_configured(build):
    engine = build(EngineConfig(batch=shipped_configuration("kube-batch")), SilentReporter())
    assert engine.find(Batch).next_deadline() is None
    with pytest.raises(LookupError):
        build(EngineConfig(), SilentReporter()).find(Batch)


@pytest.mark.parametrize("scheduler", SCHEDULER_NAMES)
def test_the_scheduler_name_of_a_pod_selects_the_scheduler(scheduler):
    made = world(node("n1"), *gang("g", 3, scheduler), pod("alone", scheduler))
    made.run(START + seconds(10))
    assert sorted(placed(made)) == ["alone", "g-0", "g-1", "g-2"]


def test_a_pod_with_an_unknown_scheduler_name_is_not_scheduled():
    made = world(node("n1"), pod("p", "yunikorn"))
    made.run(START + seconds(10))
    assert placed(made) == {}


def test_single_pods_and_jobs_share_nodes_without_overcommitment():
    singles = [pod(f"p{i}") for i in range(5)]
    made = world(node("n1"), node("n2"), *singles, *gang("a", 3), *gang("b", 3))
    made.run(START + seconds(10))
    assert used(made) == {"n1": 4, "n2": 4}
    assert [name for name in sorted(placed(made)) if name[0] in "ab"] == ["a-0", "a-1", "a-2"]


def test_a_pod_created_during_the_bind_of_a_gang_counts_the_gang():
    made = world(node("n1"), *gang("a", 3))
    made.run(START)
    made.at(START + seconds(1), lambda store, now: [store.create(pod(f"p{i}"), now) for i in "012"])
    made.run(START + seconds(10))
    assert used(made) == {"n1": 4}


def test_a_gang_uses_the_resources_of_deleted_single_pods():
    made = world(node("n1"), *(pod(f"p{i}") for i in range(4)), *gang("a", 4))
    made.run(START + seconds(5))
    assert sorted(placed(made)) == ["p0", "p1", "p2", "p3"]

    def leave(store, now):
        for i in range(4):
            store.delete(POD, "default", f"p{i}", now, Deletion(grace_period_s=0))

    made.at(START + seconds(6), leave)
    made.run(START + seconds(20))
    assert sorted(placed(made)) == ["a-0", "a-1", "a-2", "a-3"]


def test_batch_may_schedule_the_pods_of_a_profile():
    config = shipped_configuration("fairlead")
    names = Ownership((DEFAULT_SCHEDULER,))
    made = world(
        node("n1"),
        *gang("g", 5, DEFAULT_SCHEDULER),
        pod("alone"),
        batch=replace(config, ownership=names),
    )
    made.run(START + seconds(10))
    assert placed(made) == {"alone": "n1"}  # one by one, four of the gang would have been placed


def test_other_profiles_are_unchanged():
    both = SchedulerConfig((Profile(), Profile("volcano")))
    config = EngineConfig(scheduler=both, batch=shipped_configuration("fairlead"))
    engine = build_engine(config, SilentReporter())
    assert list(engine.find(Scheduler).profiles) == [DEFAULT_SCHEDULER]


def test_without_changes_nothing_is_done():
    engine = engine_of()
    made = world(node("n1"), *gang("a", 3), *gang("b", 3), engine=engine)
    made.run(START + seconds(5))
    due = engine.find(Batch).next_deadline()
    assert due == START + seconds(600)  # only the starvation bound of the gang that waits


def test_unknown_names_are_refused():
    config = EngineConfig(batch=read_configuration('actions: "alocate"'))
    with pytest.raises(BatchConfigurationError, match="no action 'alocate'"):
        build_engine(config, SilentReporter())


def test_groups_of_the_same_name_in_two_apis_are_different():
    old = {**gang("g", 0, minimum=9)[0], "apiVersion": "scheduling.incubator.k8s.io/v1alpha1"}
    made = world(node("n1"), old, *gang("g", 3))
    made.run(START + seconds(10))
    kinds = {kind.qualified: kind for kind in made.store.storage.kinds()}
    volcano = made.store.get(kinds["PodGroup.scheduling.volcano.sh"], "default", "g")
    incubator = made.store.get(kinds["PodGroup.scheduling.incubator.k8s.io"], "default", "g")
    assert volcano["status"]["running"] == 3
    assert "status" not in incubator


def test_a_group_counts_after_the_deletion_of_one_with_the_same_name():
    old = {**gang("g", 0, minimum=2)[0], "apiVersion": "scheduling.incubator.k8s.io/v1alpha1"}
    made = world(node("n1"), old, *gang("g", 3, minimum=9))
    made.run(START + seconds(5))
    assert placed(made) == {}
    kinds = {kind.qualified: kind for kind in made.store.storage.kinds()}
    volcano = kinds["PodGroup.scheduling.volcano.sh"]
    made.at(START + seconds(6), lambda store, now: store.delete(volcano, "default", "g", now))
    made.run(START + seconds(10))
    assert len(placed(made)) == 3

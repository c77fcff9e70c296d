"""Recorders make the same records of replicas loaded together and of pods loaded one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.objects import NodeCondition, OwnerReference, Pod
from fairlead.api.pods.original import REPLACES
from fairlead.api.pods.replicas import LoadedObjects, Replicas
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.run.recorders.job_recorder import JobRecorder
from fairlead.whatif.run.recorders.recorder import Recorder

NAMES = ("web-1", "web-2", "web-3", "web-4", "web-5")
OWNER = OwnerReference(
    api_version="apps/v1", kind="ReplicaSet", name="web", uid="1", controller=True
)


def pod(name, node, phase, created, common):
    """A pod whose uid depends on its node and its original, because neither changes."""
    replaces, is_owned, group, ends = common
    made = make_pod(
        name,
        uid=f"{name}-{node}-{replaces}",
        node=node,
        status={"phase": phase},
        labels={"pod-group.scheduling.sigs.k8s.io": group} if group else {},
        requests={"cpu": 1},
        terminating=ends,
    )
    meta = replace(
        made.metadata,
        annotations={REPLACES: replaces} if replaces else {},
        owner_references=(OWNER,) if is_owned else (),
        creation_timestamp=f"2026-01-01T00:00:0{created}Z",
    )
    return replace(made, metadata=meta)


nodes = st.sampled_from(("a", "a", "b", "absent", ""))
phases = st.sampled_from(("Running", "Running", "Pending", "Failed"))
parts = st.tuples(
    st.sampled_from(("", "", "", "web-1")),
    st.booleans(),
    st.sampled_from(("", "", "gang")),
    st.sampled_from((False, False, True)),
)


@st.composite
def loaded_pods(draw):
    """Pods with different names; most of them are replicas of the pod before them."""
    names = draw(st.permutations(NAMES))
    found = []
    while names and draw(st.booleans()):
        phase, common, count = draw(phases), draw(parts), draw(st.integers(1, 4))
        found += [
            pod(name, draw(nodes), phase, draw(st.integers(0, 1)), common) for name in names[:count]
        ]
        names = names[count:]
    return found


changed = st.builds(pod, st.sampled_from(NAMES), nodes, phases, st.just(0), parts)


def node(name, ready):
    made = make_node(name)
    conditions = (NodeCondition(type="Ready", status=ready),)
    return replace(made, status=replace(made.status, conditions=conditions))


some_nodes = st.builds(node, st.sampled_from("ab"), st.sampled_from(("True", "True", "Unknown")))
changes = st.one_of(changed, changed, some_nodes)
stimuli = st.lists(st.one_of(changes.map(ObjectChanged), changes.map(ObjectDeleted)), max_size=4)


def each_alone(objects):
    """A load in which no pods are together."""
    loaded = ObjectsLoaded(objects)
    alike = [Replicas((one,)) if isinstance(one, Pod) else one for one in objects]
    loaded.__dict__["grouped"] = alike
    return loaded


def recorded(loaded, then, *, keeps):
    recorder = Recorder(0)
    recorder.observe(loaded, 0)
    if keeps:
        recorder.keep_ends()
    for at, stimulus in enumerate(then):
        recorder.observe(stimulus, at)
    outage, existing = recorder.outage, list(recorder.existing_pods())
    some = sorted({workload_of(one) for one in existing})[::2]
    found, of_some = [], [one for one in existing if workload_of(one) in some]
    for (workload, uid, like, node), one in zip(recorder.pods_of(some), of_some, strict=True):
        assert (workload, uid) == (workload_of(one), one.metadata.uid)
        assert node == one.spec.node_name
        assert like.status.phase == one.status.phase
        found.append((workload, uid, one))
    wanted = dict.fromkeys(some, 3)
    with_uids = ((workload, uid, like) for workload, uid, like, _ in recorder.pods_of(some))
    readiness = list(recorder.workloads.readiness(with_uids, wanted, 0, 9))
    assert readiness == list(recorder.workloads.readiness(found, wanted, 0, 9))
    return (
        readiness,
        list(recorder.ends().items()),
        recorder.all_pods(),
        existing,
        list(recorder.counts.samples_since(0)),
        recorder.waits(0),
        [outage.pods_on(node) for node in ("a", "b", "absent")],
        [outage.pods_of(f"default/{name}") for name in NAMES],
        list(outage.affected.items()),
        outage.pod_samples,
        recorder.cluster_history(0),
    )


@settings(max_examples=300)
@given(st.lists(some_nodes, max_size=2), loaded_pods(), stimuli, st.booleans())
def test_replicas_are_recorded_as_if_every_pod_were_loaded_alone(first, pods, then, keeps):
    objects = [*{one.metadata.name: one for one in first}.values(), *pods]
    together = recorded(ObjectsLoaded(objects), then, keeps=keeps)
    assert together == recorded(each_alone(objects), then, keeps=keeps)


class UnreadReplicas(Replicas):
    """Replicas whose pods must not be made."""

    def __iter__(self):
        raise AssertionError("pods are made")


def test_the_capacity_is_recorded_without_making_the_pods():
    """Making the pods of a large dump would take seconds and a gigabyte."""
    loaded = LoadedObjects([make_node("a")], [UnreadReplicas([make_pod("p")])])
    recorder = JobRecorder(SilentReporter())
    recorder.capacity.observe(ObjectsLoaded(loaded), 0)
    assert [one.at for one in recorder.capacity.changes] == [0]

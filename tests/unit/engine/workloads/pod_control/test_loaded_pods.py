"""Loading the pods of a snapshot gives the same pod sets as observing them one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.codec import decode
from fairlead.api.objects import OwnerReference
from fairlead.api.pods.facts import MIRROR_ANNOTATION
from fairlead.api.pods.replicas import LoadedObjects, Replicas, neighbouring_replicas
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.environment import simulated_environment
from fairlead.engine.workloads.pod_control.controller_history import REVISION_LABEL
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.pod_control.unknown_owner import (
    DeletedOwnerRule,
    NoOpRule,
    UnknownOwnerRule,
)
from fairlead.testing.builders import make_node, make_pod

OWNERS = [
    (OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=name, controller=True),)
    for kind, name in (("ReplicaSet", "web"), ("StatefulSet", "db"), ("DaemonSet", "log"))
]
ANNOTATIONS: tuple[dict[str, str], ...] = ({}, {MIRROR_ANNOTATION: "x"})


def owned(name, phase, owners, annotations, *, ends):
    """A pod that shares the parts of its metadata with others."""
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    found = make_pod(name, node="n", terminating=ends, status={"phase": phase, "conditions": ready})
    meta = replace(found.metadata, owner_references=owners, annotations=annotations)
    return replace(found, metadata=meta)


pods = st.builds(
    owned,
    st.sampled_from(("p", "q", "r", "s")),
    st.sampled_from(("Running", "Running", "Failed", "Succeeded")),
    st.sampled_from(((), *OWNERS)),
    st.sampled_from(ANNOTATIONS),
    ends=st.booleans(),
)


def pod_sets():
    environment = simulated_environment()
    return PodSets(
        WorkloadsConfig(),
        events=environment.events,
        factory=environment.pod_factory,
        rule_for_unknown=environment.rule_for_unknown,
        follows_all=environment.follows_all_pods,
        adopts=environment.adopts,
    )


@given(st.lists(pods, max_size=8))
def test_loaded_pod_sets_equal_observed_pod_sets(found):
    at_once, one_by_one = pod_sets(), pod_sets()
    at_once.load_pods(neighbouring_replicas(found))
    for pod in found:
        one_by_one.load_pods([Replicas((pod,))])
    for each in (*at_once.sets.values(), *one_by_one.sets.values()):
        assert each.by_slot.keys() <= {""} | {pod.metadata.name for pod in found}
    assert at_once.sets == one_by_one.sets
    for key, pods_of in at_once.sets.items():
        plain = type(pods_of)(key=key, namespace=pods_of.namespace, owner=pods_of.owner)
        for pod in found:
            is_own = pod.metadata.owner_references and pod.metadata.owner_references[0].uid == key
            if is_own and not pod.metadata.annotations:
                plain.put(pod, at_once.rules[key].slot_of(pod))
        assert plain.by_slot == pods_of.by_slot
        assert pods_of == plain


# --- controllers -----------------------------------------------------------------------------

NODES = tuple(f"n{number}" for number in range(5))
KINDS = {"ReplicaSet": "web", "StatefulSet": "db", "DaemonSet": "log"}
NOW = seconds(1_800_000_000)


def owner(kind, **spec):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}
    meta = {"name": KINDS[kind], "namespace": "default", "uid": KINDS[kind], "generation": 1}
    body = {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec}
    return decode({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": body})


def copies(kind, revision, phase, numbers, *, ends):
    """Pods of an owner, which differ only in their names and nodes."""
    name = KINDS[kind]
    made = (
        make_pod(
            f"{name}-{number}",
            node=NODES[number % len(NODES)],
            labels={"app": "a", REVISION_LABEL: revision},
            terminating=ends,
            status={"phase": phase, "startTime": "2026-01-01T00:00:00Z"},
        )
        for number in sorted(numbers)
    )
    owners = (OwnerReference("apps/v1", kind, name, name, controller=True),)
    return [replace(one, metadata=replace(one.metadata, owner_references=owners)) for one in made]


groups = st.builds(
    copies,
    st.sampled_from(tuple(KINDS)),
    st.sampled_from(("1", "1", "2")),
    st.sampled_from(("Running", "Running", "Running", "Failed")),
    st.sets(st.integers(0, 6), min_size=1),
    ends=st.sampled_from((False, False, True)),
)
owners = st.tuples(
    st.builds(owner, st.just("ReplicaSet"), replicas=st.integers(0, 6)),
    st.builds(
        owner,
        st.just("StatefulSet"),
        replicas=st.integers(0, 6),
        podManagementPolicy=st.sampled_from(("OrderedReady", "Parallel")),
    ),
    st.builds(
        owner,
        st.just("DaemonSet"),
        updateStrategy=st.sampled_from(
            (
                {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
                {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                {"type": "OnDelete"},
            )
        ),
    ),
)
nodes = st.lists(
    st.builds(
        make_node, st.sampled_from(NODES), taints=st.sampled_from(((), (), ("x:NoExecute",)))
    ),
    unique_by=lambda one: one.metadata.name,
)
changes = st.lists(
    st.one_of(
        groups.map(lambda found: ObjectChanged(found[0])),
        groups.map(lambda found: ObjectDeleted(found[0])),
        nodes.filter(bool).map(lambda found: ObjectChanged(found[0])),
        owners.map(lambda found: ObjectChanged(found[2])),
    ),
    max_size=4,
)


def distinct(found):
    """The pods of `found`, at most one with each name."""
    return list({one.key: one for some in found for one in some}.values())


@given(owners, nodes, st.lists(groups, max_size=5).map(distinct), changes)
def test_controllers_decide_equally_about_pods_loaded_together_or_singly(
    workloads, there, found, script
):
    """This also holds after changes of pods, nodes and owners."""
    others = [*there, *workloads]
    commands = []
    for replicas in (neighbouring_replicas(found), [Replicas((pod,)) for pod in found]):
        controller = Workloads()
        stimuli = [ObjectsLoaded(LoadedObjects(others, replicas)), *script]
        commands.append([controller.handle(one, NOW + at) for at, one in enumerate(stimuli)])
    assert commands[0] == commands[1]


@given(owners, nodes, st.lists(groups, max_size=5).map(distinct))
def test_slots_of_replicas_equal_those_of_their_pods(workloads, there, found):
    """This holds for each kind of owner, known or unknown."""
    controller = Workloads()
    controller.handle(ObjectsLoaded(LoadedObjects([*there, *workloads], [])), NOW)
    unknown = (UnknownOwnerRule(kind) for kind in KINDS)
    rules = [*controller._pod_sets.rules.values(), *unknown, NoOpRule(), DeletedOwnerRule()]
    for replicas in neighbouring_replicas(found):
        for rule in rules:
            assert list(rule.slots_of(replicas)) == [rule.slot_of(pod) for pod in replicas]


def test_loaded_pods_are_not_built_while_nothing_has_to_be_done():
    """One pod of each owner is read for all of them."""
    made = []

    class Recorded(Replicas):
        def __getitem__(self, index):
            made.append(index)
            return super().__getitem__(index)

    there = [make_node(name) for name in NODES]
    workloads = [owner("ReplicaSet", replicas=5), owner("StatefulSet", replicas=5)]
    workloads.append(owner("DaemonSet"))
    found = [Recorded(copies(kind, "1", "Running", range(5), ends=False)) for kind in KINDS]
    controller = Workloads()
    loaded = ObjectsLoaded(LoadedObjects([*there, *workloads], found))
    assert not controller.handle(loaded, NOW)
    assert set(made) == {0}

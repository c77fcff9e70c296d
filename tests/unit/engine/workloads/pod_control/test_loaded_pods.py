"""Loading the pods of a snapshot leads to the same pod sets as observing them one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.objects import OwnerReference
from fairlead.api.pods.facts import MIRROR_ANNOTATION
from fairlead.api.pods.replicas import Replicas, neighbouring_replicas
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.environment import simulated_environment
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.testing.builders import make_pod

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
    )


@given(st.lists(pods, max_size=8))
def test_pods_are_loaded_as_they_are_observed(found):
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

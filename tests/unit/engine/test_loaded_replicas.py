"""Controllers decide about replicas that are loaded together as about single pods."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.codec import decode
from fairlead.api.objects import OwnerReference
from fairlead.api.pods.replicas import Replicas, neighbouring_replicas
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.interest import EVERYTHING
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.engine import Engine
from fairlead.testing.builders import make_budget, make_node, make_pod

START = seconds(1_767_225_600)
NAMES = tuple(f"web-{letter}" for letter in "abcdef")
OWNERS = {
    name: (OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=name, controller=True),)
    for name, kind in (("web", "ReplicaSet"), ("db", "StatefulSet"), ("log", "DaemonSet"))
}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "app"}]},
}


def workload(kind, name, **spec):
    selector = {"matchLabels": {"app": "web"}}
    return decode(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"selector": selector, "template": TEMPLATE, **spec},
        }
    )


def stage(phase, since):
    ready = "True" if phase == "Running" else "False"
    found = {"type": "Ready", "status": ready, "lastTransitionTime": f"2025-12-31T00:00:0{since}Z"}
    return {"phase": phase, "conditions": [found]}


EXTRAS = {
    "gpu": {"requests": {"example.com/gpu": 1}},
    "port": {"host_ports": (80,)},
    "affinity": {"spec": {"affinity": {"nodeAffinity": {}}}},
    "claim": {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}},
    "once": {"spec": {"restartPolicy": "Never"}},
    "class": {"priority": 5, "spec": {"priorityClassName": "gold"}},
    "claims": {"spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}},
}


def pod(name, node, phase, version, *, owner="web", app="web", kind="", ends=False):
    made = make_pod(
        name,
        node=node,
        labels={"app": app},
        terminating=ends,
        status=stage(phase, version),
        **EXTRAS.get(kind, {}),
    )
    meta = replace(
        made.metadata, owner_references=OWNERS.get(owner, ()), resource_version=str(version)
    )
    return replace(made, metadata=meta)


nodes = st.sampled_from(("a", "a", "b", "b", "absent", ""))
phases = st.sampled_from(("Running",) * 4 + ("Pending", "Failed", "Succeeded"))
parts = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(("web", "web", "web", "db", "log", "")),
        "app": st.sampled_from(("web", "web", "web", "b")),
        "kind": st.sampled_from(("",) * 6 + tuple(EXTRAS)),
        "ends": st.sampled_from((False, False, False, False, True)),
    }
)


@st.composite
def loaded_pods(draw):
    """Pods with different names; most of them are replicas of the pod before them."""
    names = draw(st.permutations(NAMES))
    found = []
    while names and draw(st.booleans()):
        phase, common = draw(phases), draw(parts)
        count = draw(st.integers(1, 4))
        found += [
            pod(name, draw(nodes), phase, draw(st.integers(0, 1)), **common)
            for name in names[:count]
        ]
        names = names[count:]
    return found


changed = st.builds(
    lambda name, node, phase, version, common: pod(name, node, phase, version, **common),
    st.sampled_from(NAMES),
    nodes,
    phases,
    st.integers(0, 1),
    parts,
)
OTHERS = (
    make_node("a"),
    make_node("b"),
    make_budget("p", {"app": "web"}, allowed=1),
    workload("ReplicaSet", "web", replicas=3),
    workload("StatefulSet", "db", replicas=1, serviceName="db"),
    workload("DaemonSet", "log"),
)
others = st.lists(st.sampled_from(range(len(OTHERS))), unique=True).map(
    lambda found: [OTHERS[number] for number in found]
)
stimuli = st.lists(st.one_of(changed.map(ObjectChanged), changed.map(ObjectDeleted)), max_size=4)


def each_alone(objects):
    """Return a load in which pods are not grouped as replicas."""
    loaded = ObjectsLoaded(objects)
    loaded.__dict__["grouped"] = [
        Replicas((one,)) if one.__class__.__name__ == "Pod" else one for one in objects
    ]
    return loaded


class ByStimulus:
    """A controller that receives changed pods only as stimuli."""

    def __init__(self, controller):
        self.issuer = controller.issuer
        self.interest = getattr(controller, "interest", EVERYTHING)
        self.handle = controller.handle
        self.next_deadline = controller.next_deadline
        self.handle_deadline = controller.handle_deadline


def decisions(loaded, then, *, by_stimulus=False):
    """Return the commands after the load, each stimulus of `then` and the next deadlines."""
    engine = build_engine(EngineConfig(start=START), SilentReporter())
    if by_stimulus:
        engine = Engine(engine.cluster, [ByStimulus(one) for one in engine.controllers])
    found = [engine.handle(loaded, START)]
    for stimulus in then:
        found.append(engine.handle(stimulus, START))
        for _ in range(3):
            due = engine.next_deadline()
            if due is not None:
                found.append(engine.handle_deadline(max(due, START)))
    engine.cluster.table.validate()
    return found


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=(HealthCheck.too_slow,))
@given(others, loaded_pods(), others, stimuli)
def test_controllers_decide_as_if_every_pod_were_loaded_alone(before, together, after, then):
    after = [one for one in after if one not in before]
    objects = [*before, *together, *after]
    assert decisions(ObjectsLoaded(objects), then) == decisions(each_alone(objects), then)


@settings(max_examples=150, suppress_health_check=(HealthCheck.too_slow,))
@given(others, loaded_pods(), stimuli)
def test_controllers_handle_a_changed_pod_as_they_handle_its_stimulus(before, together, then):
    loaded = ObjectsLoaded([*before, *together])
    assert decisions(loaded, then) == decisions(loaded, then, by_stimulus=True)


def without_own(one):
    """The parts of a pod in which its replicas are equal to it."""
    meta = replace(one.metadata, name="", uid="", resource_version="", creation_timestamp="")
    spec = replace(
        one.spec,
        node_name=str(bool(one.spec.node_name)),
        affinity=None,
        volumes=tuple(replace(volume, name="") for volume in one.spec.volumes),
    )
    conditions = tuple(replace(each, last_transition_time="") for each in one.status.conditions)
    start = str(bool(one.status.start_time))
    status = replace(one.status, conditions=conditions, pod_ip="", start_time=start)
    return replace(one, metadata=meta, spec=spec, status=status)


@given(loaded_pods())
def test_consecutive_pods_are_grouped_only_if_they_are_replicas(found):
    groups = neighbouring_replicas(found)
    assert [one for group in groups for one in group] == found
    for group in groups:
        assert all(without_own(one) == without_own(group[0]) for one in group)
    for one, other in pairwise(groups):
        assert without_own(one[0]) != without_own(other[0])

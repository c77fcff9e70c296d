"""Tests of the notes about changed and deleted objects that custom resources own."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

OWNER = {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus"}
CUSTOM = {**OWNER, "metadata": {"name": "k8s", "namespace": "default", "uid": "p"}}
SETTING = "spec.template.spec.containers[c].image=c:2"


def owned(found, name="k8s", **owner):
    """The object `found` with a controller, by default the custom resource `name`."""
    reference = {**OWNER, "name": name, "uid": "p", "controller": True, **owner}
    found["metadata"]["ownerReferences"] = [reference]
    return found


@pytest.fixture
def notes(snapshot, make):
    """Returns the notes about owners in the answer about a change of these objects."""

    def notes_of(objects, **change):
        answer = what_if(snapshot(make.node("a"), *objects), ClusterChange(**change))
        return [one for one in answer.changed.notes if " own" in one]

    return notes_of


@pytest.mark.parametrize(
    ("change", "effect"),
    [
        ({"set": (f"sts/web:{SETTING}",)}, "undo the change"),
        ({"set_resources": ("sts/web=cpu=2",)}, "undo the change"),
        ({"delete": ("sts/web",)}, "create it again"),
    ],
)
def test_the_owner_of_an_object_may_restore_it(notes, make, change, effect):
    found = notes([CUSTOM, owned(make.workload("StatefulSet", "web"))], **change)
    subject = "Prometheus default/k8s owns StatefulSet default/web"
    assert found == [f"{subject} and may {effect}; its controller is not simulated."]


def test_a_deleted_owner_restores_nothing(notes, make):
    web = owned(make.workload("StatefulSet", "web"))
    assert not notes([CUSTOM, web], delete=("prometheus/k8s", "sts/web"))


def test_built_in_owners_and_unchanged_objects_have_no_note(notes, make):
    web = owned(make.workload("StatefulSet", "web"), apiVersion="apps/v1", kind="Deployment")
    other = owned(make.workload("StatefulSet", "other"))
    assert not notes([CUSTOM, web, other], set=(f"sts/web:{SETTING}",))


def test_many_owned_objects_share_a_note(notes, make):
    names = [f"web-{number}" for number in range(6)]
    objects = [owned(make.workload("StatefulSet", name)) for name in names]
    found = notes([CUSTOM, *objects], set=[f"sts/{name}:{SETTING}" for name in names])
    assert len(found) == 4
    assert found[-1].startswith("Custom resources own 3 other changed or deleted objects, ")


def test_the_deployment_of_a_scaled_replica_set_sets_its_replicas_again(notes, make):
    owner = {"apiVersion": "apps/v1", "kind": "Deployment"}
    web = owned(make.workload("ReplicaSet", "web-1"), "web", **owner)
    note = "Deployment default/web owns ReplicaSet default/web-1 and sets its replicas again."
    assert note in notes([make.workload(), web], scale=("rs/web-1=3",))

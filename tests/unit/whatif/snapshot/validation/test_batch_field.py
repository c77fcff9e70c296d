"""Unknown fields of JobSets and of Volcano's kinds are found, also without their definitions."""

from __future__ import annotations

import json

import msgspec
import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.explain.target import new_pod_to_explain
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.new_pod import read_pod_file
from fairlead.whatif.question import what_if
from fairlead.whatif.scenario.timed_event import TimedEvent, steps_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.validation.unknown_field import unknown_field_notes, unknown_fields

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet")
VOLCANO_JOB = ("batch.volcano.sh/v1alpha1", "Job")
POD_GROUP = ("scheduling.volcano.sh/v1beta1", "PodGroup")


def custom(kind, spec):
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {"name": "train", "namespace": "default"},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def replicated(**fields):
    return {"name": "w", "template": {"spec": {"parallelism": 2, "template": TEMPLATE}}, **fields}


@pytest.mark.parametrize(
    ("kind", "spec", "found"),
    [
        (JOB_SET, {"suspended": True}, [("spec.suspended", "suspend")]),
        (
            JOB_SET,
            {"replicatedJobs": [replicated(), replicated(replica=2)]},
            [("spec.replicatedJobs[1].replica", "replicas")],
        ),
        (
            JOB_SET,
            {"replicatedJobs": [{"template": {"spec": {"paralellism": 2}}}]},
            [("spec.replicatedJobs[0].template.spec.paralellism", "parallelism")],
        ),
        (VOLCANO_JOB, {"tasks": [{"replica": 2}]}, [("spec.tasks[0].replica", "replicas")]),
        (
            VOLCANO_JOB,
            {"tasks": [{"template": {"spec": {"nodeSelectr": {}}}}]},
            [("spec.tasks[0].template.spec.nodeSelectr", "nodeSelector")],
        ),
        (VOLCANO_JOB, {"plugins": {"any": ["--x"]}, "zzz": 1}, [("spec.zzz", "")]),
        (POD_GROUP, {"minMembers": 2}, [("spec.minMembers", "minMember")]),
        (("scheduling.volcano.sh/v1beta1", "Queue"), {"weigth": 2}, [("spec.weigth", "weight")]),
        (
            ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
            {"minMembers": 2},
            [("spec.minMembers", "minMember")],
        ),
        # The definitions of kube-batch have no schemas.
        (("scheduling.incubator.k8s.io/v1alpha1", "PodGroup"), {"minMembers": 2}, []),
        # Another error names these values.
        (JOB_SET, None, []),
        (JOB_SET, {"replicatedJobs": [None, 3]}, []),
    ],
    ids=str,
)
def test_unknown_fields_of_batch_workloads_are_found(kind, spec, found):
    [one] = manifests([Document("f.yaml", custom(kind, spec))])
    assert unknown_fields(one) == found


def test_a_note_names_the_unknown_fields_of_a_hand_written_dump():
    [one] = manifests([Document("f.yaml", custom(VOLCANO_JOB, {"tasks": [{"replica": 2}]}))])
    [note] = unknown_field_notes([one])
    assert note == (
        "An unknown field has no effect: spec.tasks[0].replica of Job.batch.volcano.sh "
        "default/train (did you mean replicas?)."
    )


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (
            custom(JOB_SET, {"replicatedJob": [replicated()]}),
            "spec.replicatedJob: unknown field; did you mean replicatedJobs?",
        ),
        (
            custom(JOB_SET, {"replicatedJobs": [replicated(replica=2)]}),
            "spec.replicatedJobs[0].replica: unknown field; did you mean replicas?",
        ),
        (
            custom(VOLCANO_JOB, {"task": [{"template": TEMPLATE}]}),
            "spec.task: unknown field; did you mean tasks?",
        ),
    ],
    ids=["a required field", "an optional field", "tasks"],
)
def test_an_applied_workload_with_an_unknown_field_is_refused(
    make, snapshot, tmp_path, value, line
):
    with pytest.raises(InputError) as refused:
        what_if(snapshot(make.node("a")), ClusterChange(apply=(value,)))
    assert str(refused.value).endswith(f" default/train: {line}")
    file = tmp_path / "job.json"
    file.write_text(str(value).replace("'", '"'))
    with pytest.raises(InputError) as refused:
        read_pod_file(str(file), "").refuse_malformed(Inventory([]))
    assert str(refused.value).endswith(f" default/train: {line}")


@pytest.fixture
def definition():
    """The definition of a later version of PodGroup, with the field `later`."""
    properties = {"minMember": {"type": "integer"}, "later": {"type": "string"}}
    spec = {"type": "object", "properties": properties}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.scheduling.volcano.sh", "uid": "1"},
        "spec": {
            "group": "scheduling.volcano.sh",
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"},
            "versions": [version],
        },
    }


@pytest.fixture
def later():
    """A PodGroup of the later version."""
    group = custom(POD_GROUP, {"minMember": 1, "later": "x"})
    del group["status"]
    return group


def test_a_field_that_the_definition_in_the_dump_has_is_not_refused(
    make, snapshot, definition, later
):
    group = later
    what_if(snapshot(make.node("a"), definition), ClusterChange(apply=(group,)))
    group["spec"]["minMembers"] = 2
    with pytest.raises(InputError, match=r"spec\.minMembers: unknown field"):
        what_if(snapshot(make.node("a"), definition), ClusterChange(apply=(group,)))


def test_a_definition_that_is_applied_too_decides_which_fields_exist(
    make, snapshot, definition, later
):
    what_if(snapshot(make.node("a")), ClusterChange(apply=(definition, later)))


def test_explain_and_scenarios_accept_the_fields_of_a_definition_in_the_dump(
    make, snapshot, definition, later, tmp_path
):
    pod = make.pod("new", cpu="1")
    file = tmp_path / "group.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [later, pod]}))
    read = snapshot(make.node("a"), definition)
    assert new_pod_to_explain(read, [str(file)], "")
    event = msgspec.convert({"at": "1m", "create": later}, TimedEvent)
    assert steps_of("s.yaml", tmp_path, [event], read.inventory(), 0)


def test_a_hand_written_dump_with_a_definition_gets_no_note(definition, later):
    found = manifests([Document("f.yaml", one) for one in (definition, later)])
    assert list(unknown_field_notes(found)) == []
    assert len(list(unknown_field_notes(found[1:]))) == 1

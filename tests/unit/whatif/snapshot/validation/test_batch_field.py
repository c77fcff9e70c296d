"""Unknown fields of JobSets and of Volcano's kinds are found, also without their definitions."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.new_pod import read_pod_file
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.manifest import manifests
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
        read_pod_file(str(file), "")
    assert str(refused.value).endswith(f" default/train: {line}")


def test_a_field_that_the_definition_in_the_dump_has_is_not_refused(make, snapshot):
    """Given the definition of a later version, a field that only this version has is accepted."""
    spec = {"type": "object", "properties": {"minMember": {"type": "integer"}, "later": {}}}
    spec["properties"]["later"] = {"type": "string"}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    definition = {
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
    group = custom(POD_GROUP, {"minMember": 1, "later": "x"})
    del group["status"]
    what_if(snapshot(make.node("a"), definition), ClusterChange(apply=(group,)))
    group["spec"]["minMembers"] = 2
    with pytest.raises(InputError, match=r"spec\.minMembers: unknown field"):
        what_if(snapshot(make.node("a"), definition), ClusterChange(apply=(group,)))

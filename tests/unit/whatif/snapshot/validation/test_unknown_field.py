"""Unknown fields of objects: found at any depth, and only for kinds with a schema."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.validation.unknown_field import (
    refuse_malformed_fields,
    unknown_field_notes,
    unknown_fields,
)


def read(*values):
    return manifests([Document("f.yaml", value) for value in values])


def test_all_unknown_fields_are_found_with_the_nearest_names(make):
    web = make.workload()
    web["spec"]["replcas"] = 3
    web["spec"]["template"]["spec"]["containers"][0]["Image"] = "a"
    web["spec"]["template"]["spec"]["zzz"] = {"name": "inner fields are not listed"}
    [one] = read(web)
    assert sorted(unknown_fields(one)) == [
        ("spec.replcas", "replicas"),
        ("spec.template.spec.containers[0].Image", "image"),
        ("spec.template.spec.zzz", ""),
    ]


def test_keys_of_maps_and_custom_resources_have_no_unknown_fields(make):
    pod = make.pod("p")
    pod["metadata"]["labels"] = {"nam": "p"}
    pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    other = {
        "apiVersion": "example.com/v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "a"},
        "specc": {},
    }
    former = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "a"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
    }
    assert [unknown_fields(one) for one in read(pod, other, former)] == [[], [], []]


def test_the_first_unknown_field_is_refused(make):
    pod = make.pod("p") | {"stats": {}, "zzz": 1}
    with pytest.raises(InputError) as refused:
        refuse_malformed_fields(read(make.pod("q"), pod))
    line = "f.yaml: Pod default/p: stats: unknown field; did you mean status?"
    assert str(refused.value) == line


def test_a_wrong_type_that_the_replaced_object_has_too_is_not_refused(make):
    pod = make.pod("p")
    pod["spec"]["dnsPolicy"] = 5
    [old] = read(pod)
    [new] = read(pod | {"metadata": {**pod["metadata"], "labels": {"a": "b"}}})
    refuse_malformed_fields([new], before=old)
    with pytest.raises(InputError, match=r"Pod default/p: spec\.dnsPolicy: json: cannot unmarsh"):
        refuse_malformed_fields([new])


def misspelled(make, name):
    pod = make.pod(name)
    pod["spec"]["nodeNam"] = "a"
    return pod


def test_a_note_names_the_unknown_fields_of_hand_written_objects(make):
    [note] = unknown_field_notes(read(misspelled(make, "p"), make.pod("q")))
    assert note == (
        "An unknown field has no effect: spec.nodeNam of Pod default/p (did you mean nodeName?)."
    )


def test_many_unknown_fields_are_counted(make):
    pods = [misspelled(make, f"p{number}") for number in range(5)]
    [note] = unknown_field_notes(read(*pods))
    assert note.startswith("Unknown fields have no effect: spec.nodeNam of Pod default/p0 (did you")
    assert note.endswith("Pod default/p2 (did you mean nodeName?) and 2 more.")


def test_dumped_objects_are_not_checked_for_unknown_fields(make, monkeypatch):
    pod = misspelled(make, "p")
    pod["metadata"]["uid"] = "1"
    monkeypatch.delattr("fairlead.apiserver.schema.unknown_field.read")
    assert list(unknown_field_notes(read(pod))) == []


def test_an_answer_names_the_unknown_fields_of_the_snapshot(make, snapshot):
    answer = what_if(snapshot(make.node("a"), misspelled(make, "p")), ClusterChange(drain=("a",)))
    notes = whatif_result(answer)["notes"]
    assert any(one.startswith("An unknown field has no effect: spec.nodeNam") for one in notes)

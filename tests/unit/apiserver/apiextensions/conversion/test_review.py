"""The checks of a conversion webhook's answer."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.apiextensions.conversion.review import (
    checked,
    conversion_review,
    converted_objects,
)

OBJECT = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {
        "name": "w",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"a": "b"},
    },
}
WANTED = "example.com/v2"
CONVERTED = {**OBJECT, "apiVersion": WANTED}
REVIEW = conversion_review([OBJECT], WANTED, ["v1"])
UID = REVIEW["request"]["uid"]
SUCCESS = {"status": "Success"}


def test_the_review_contains_the_objects_and_the_wanted_version():
    assert REVIEW["apiVersion"] == "apiextensions.k8s.io/v1"
    assert REVIEW["request"] == {"uid": UID, "desiredAPIVersion": WANTED, "objects": [OBJECT]}


@pytest.mark.parametrize(
    ("versions", "chosen"), [(["v1beta1", "v1"], "v1beta1"), (["v9", "v1"], "v1")]
)
def test_the_review_has_the_first_known_version(versions, chosen):
    review = conversion_review([OBJECT], WANTED, versions)
    assert review["apiVersion"] == f"apiextensions.k8s.io/{chosen}"


def test_unknown_review_versions_are_an_error():
    with pytest.raises(ValueError, match="no supported conversion review versions"):
        conversion_review([OBJECT], WANTED, ["v9"])


def answer(review=REVIEW, **changes):
    response = {"uid": UID, "result": SUCCESS, "convertedObjects": [CONVERTED]}
    made = {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
    return json.dumps({**made, **changes}).encode()


def test_the_objects_of_a_valid_answer_are_returned():
    assert converted_objects(answer(), REVIEW) == [CONVERTED]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"apiVersion": "apiextensions.k8s.io/v2"}, "expected webhook response of"),
        ({"kind": "Review"}, "got apiextensions.k8s.io/v1, Kind=Review"),
        ({"response": None}, "no response provided"),
        ({"response": {"uid": "x", "result": SUCCESS}}, f'expected response.uid="{UID}", got "x"'),
        (
            {"response": {"uid": UID, "result": {"status": "Failure", "message": "no way"}}},
            "no way",
        ),
        ({"response": {"uid": UID}}, "response.result.status was '', not 'Success'"),
        (
            {"response": {"uid": UID, "result": SUCCESS, "convertedObjects": {}}},
            "convertedObjects is not a list",
        ),
    ],
)
def test_a_wrong_answer_is_an_error(changes, problem):
    with pytest.raises(ValueError, match=problem):
        converted_objects(answer(**changes), REVIEW)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7"])
def test_an_answer_that_is_no_object_is_an_error(body):
    with pytest.raises(ValueError, match="json parse error"):
        converted_objects(body, REVIEW)


def test_v1beta1_does_not_check_uid_and_type():
    review = conversion_review([OBJECT], WANTED, ["v1beta1"])
    response = {"result": SUCCESS, "convertedObjects": [CONVERTED]}
    text = json.dumps({"response": response}).encode()
    assert converted_objects(text, review) == [CONVERTED]


# --- objects -------------------------------------------------------------------------------------


def with_metadata(**meta):
    return {**CONVERTED, "metadata": {**CONVERTED["metadata"], **meta}}


@pytest.mark.parametrize(
    ("converted", "problem"),
    [
        ("x", "it is no JSON object"),
        ({**CONVERTED, "apiVersion": "example.com/v3"}, "expected example.com/v2, received"),
        ({**CONVERTED, "kind": "Gadget"}, "expected Widget, received Gadget"),
        (with_metadata(name="x"), "must have the same name: w != x"),
        (with_metadata(namespace=""), "must have the same namespace: n != "),
        (with_metadata(uid="x"), "must have the same UID: u != x"),
        ({"apiVersion": WANTED, "kind": "Widget"}, "missing metadata in converted object"),
        ({**CONVERTED, "metadata": []}, "invalid metadata of type"),
        (with_metadata(labels=["a"]), "invalid metadata.labels of type"),
        (with_metadata(annotations={"a": 1}), r"metadata.annotations\[a\] must be a string"),
        (with_metadata(labels={"a": "b c"}), "a valid label must be"),
    ],
)
def test_a_wrong_object_is_an_error(converted, problem):
    with pytest.raises(ValueError, match=problem):
        checked(OBJECT, converted, WANTED)


def test_only_labels_and_annotations_of_the_metadata_may_change():
    converted = with_metadata(
        resourceVersion="1", finalizers=["f"], labels={"c": "d"}, annotations={"x": "y"}
    )
    found = checked(OBJECT, converted, WANTED)["metadata"]
    kept = {key: OBJECT["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    assert found == {**kept, "labels": {"c": "d"}, "annotations": {"x": "y"}}


def test_labels_that_the_webhook_omits_are_removed():
    assert "labels" not in checked(OBJECT, with_metadata(labels=None), WANTED)["metadata"]

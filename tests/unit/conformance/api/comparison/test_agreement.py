"""Which parts of a recorded answer must agree, and which are random."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.comparison.agreement import Agreement
from fairlead.conformance.api.placeholder import PlaceholderValues

ABOUT = "failed to create typed patch object (/a; v1, Kind=ConfigMap): "
NOPE = ".metadata.nope: field not declared in schema"
BOGUS = ".bogus: field not declared in schema"
BOTH = f"errors:\n  {NOPE}\n  {BOGUS}"


def refusal(message):
    return {"kind": "Status", "status": "Failure", "message": message}


@pytest.mark.parametrize(
    ("recorded", "found", "agree"),
    [
        (ABOUT + BOTH, ABOUT + BOGUS, True),
        (ABOUT + BOGUS, ABOUT + BOTH, True),
        (ABOUT + BOGUS, ABOUT + NOPE, False),
        (ABOUT + BOGUS, "something else", False),
    ],
)
def test_the_order_of_unknown_fields_is_random(recorded, found, agree):
    agreement = Agreement(PlaceholderValues())
    assert (agreement.mismatch(refusal(recorded), refusal(found)) is None) == agree


@pytest.mark.parametrize(
    ("found", "agree"),
    [("Created pod: d-two22", True), ("Created pod: d-three", False), ("Deleted pod: x", False)],
)
def test_the_pod_that_a_table_cell_names_is_random(found, agree):
    """It must be a pod that the case has created; its name does not matter."""
    agreement = Agreement(PlaceholderValues())
    for number, name in enumerate(("d-one11", "d-two22"), 1):
        assert agreement.mismatch(f"d-<gen:{number}>", name) is None
    problem = agreement.mismatch("Created pod: d-<gen:1>", found, "list.rows[0].cells[6]")
    assert (problem is None) == agree
    assert agreement.mismatch("d-<gen:1>", "d-two22", "metadata.name") is not None


@pytest.mark.parametrize(
    ("found", "agree"),
    [("pods d-7f9-bcdfg", True), ("pods d-7f9-bcdf!", False), ("pods e-7f9-bcdfg", False)],
)
def test_the_generated_name_of_a_refused_pod_is_random(found, agree):
    """Messages contain the name as it was recorded."""
    problem = Agreement(PlaceholderValues()).mismatch("pods d-<hash:1>-k8np9", found, "x.message")
    assert (problem is None) == agree


@pytest.mark.parametrize(
    ("held", "shown", "agree"),
    [
        (("own",), ("own",), True),
        (("own", "other"), ("own",), False),
        (("own",), ("own", "more"), False),
        (("own",), (), False),
    ],
)
def test_objects_of_cases_that_were_not_replayed_are_not_expected_in_lists(held, shown, agree):
    """Objects of replayed cases must be listed, and no other objects."""
    agreement = Agreement(PlaceholderValues(), holds=held.__contains__)
    found = {"items": [{"metadata": {"name": name}} for name in shown]}
    problem = agreement.mismatch({"$names": ["other", "own"]}, found)
    assert (problem is None) == agree


@pytest.mark.parametrize(
    ("path", "recorded", "found", "agree"),
    [
        ("stdout.metadata.labels.pod-template-hash", "86b6459d6c", "tvjfz98v7l", True),
        ("stdout.metadata.labels.pod-template-hash", "86b6459d6c", "no hash", False),
        ("stdout.metadata.labels.app", "86b6459d6c", "tvjfz98v7l", False),
        ("stdout.metadata.resourceVersion", "5673", "12", True),
        ("stdout.metadata.resourceVersion", "5673", "", False),
        ("body.metadata.resourceVersion", "5673", "12", False),
    ],
)
def test_generated_values_agree_if_they_are_of_the_same_kind(path, recorded, found, agree):
    """A hash agrees with any hash, and a version with any version."""
    assert (Agreement(PlaceholderValues()).mismatch(recorded, found, path) is None) == agree

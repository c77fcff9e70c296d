"""What of a recorded answer counts, and what is chance."""

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
def test_upstream_comes_to_unknown_fields_by_chance(recorded, found, agree):
    agreement = Agreement(PlaceholderValues())
    assert (agreement.mismatch(refusal(recorded), refusal(found)) is None) == agree


@pytest.mark.parametrize(
    ("found", "agree"),
    [("Created pod: d-two22", True), ("Created pod: d-three", False), ("Deleted pod: x", False)],
)
def test_which_pod_a_cell_names_first_is_chance(found, agree):
    """Of those that the case has made, under any name."""
    agreement = Agreement(PlaceholderValues())
    for number, name in enumerate(("d-one11", "d-two22"), 1):
        assert agreement.mismatch(f"d-<gen:{number}>", name) is None
    told = agreement.mismatch("Created pod: d-<gen:1>", found, "list.rows[0].cells[6]")
    assert (told is None) == agree
    assert agreement.mismatch("d-<gen:1>", "d-two22", "metadata.name") is not None


@pytest.mark.parametrize(
    ("found", "agree"),
    [("pods d-7f9-bcdfg", True), ("pods d-7f9-bcdf!", False), ("pods e-7f9-bcdfg", False)],
)
def test_how_a_pod_would_have_been_called_is_chance(found, agree):
    """Its name stands in texts as it was recorded."""
    told = Agreement(PlaceholderValues()).mismatch("pods d-<hash:1>-k8np9", found, "x.message")
    assert (told is None) == agree


@pytest.mark.parametrize(
    ("held", "shown", "agree"),
    [
        (("own",), ("own",), True),
        (("own", "other"), ("own",), False),
        (("own",), ("own", "more"), False),
        (("own",), (), False),
    ],
)
def test_what_cases_at_hand_have_not_made_cannot_be_listed(held, shown, agree):
    """What they have made must be listed, and nothing else."""
    agreement = Agreement(PlaceholderValues(), holds=held.__contains__)
    found = {"items": [{"metadata": {"name": name}} for name in shown]}
    told = agreement.mismatch({"$names": ["other", "own"]}, found)
    assert (told is None) == agree


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
def test_values_that_were_printed_as_they_were_are_of_one_sort(path, recorded, found, agree):
    """A hash for a hash, a version for a version."""
    assert (Agreement(PlaceholderValues()).mismatch(recorded, found, path) is None) == agree

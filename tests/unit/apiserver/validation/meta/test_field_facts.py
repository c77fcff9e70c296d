"""Validation of single fields by table entries."""

from __future__ import annotations

import pytest

from fairlead.api.facts import FieldFacts
from fairlead.apiserver.validation.meta.field_facts import check_field, check_fields


def problems(value, **facts):
    return [
        cause.message for cause in check_field("f", FieldFacts(**{"keywords": {}, **facts}), value)
    ]


BETWEEN = {"minimum": 1, "maximum": 3}


@pytest.mark.parametrize(
    ("value", "facts", "expected"),
    [
        (None, {"required": ""}, ["Required value"]),
        ([], {"required": "name one"}, ["Required value: name one"]),
        (None, {"keywords": {"enum": ("A",)}}, []),
        ("", {"keywords": {"enum": ("A",)}}, []),
        (
            "",
            {"keywords": {"enum": ("A",)}, "is_listed": True},
            ['Unsupported value: "": supported values: "A"'],
        ),
        (
            "",
            {"keywords": {"enum": ("A",)}, "checks_empty": True},
            ['Unsupported value: "": supported values: "A"'],
        ),
        (
            "B",
            {"keywords": {"enum": ("A", "C")}},
            ['Unsupported value: "B": supported values: "A", "C"'],
        ),
        (0, {"keywords": {"minimum": 1}}, ["Invalid value: 0: must be greater than or equal to 1"]),
        (4, {"keywords": BETWEEN}, ["Invalid value: 4: must be between 1 and 3, inclusive"]),
        (
            None,
            {"keywords": BETWEEN, "is_zero": True},
            ["Invalid value: 0: must be between 1 and 3, inclusive"],
        ),
        (0, {"keywords": BETWEEN, "words": "must be small"}, ["Invalid value: 0: must be small"]),
        ("abc", {"keywords": {"maxLength": 2}}, ["Too long: may not be more than 2 bytes"]),
        ([1, 2], {"keywords": {"maxItems": 1}}, ["Too many: 2: must have at most 1 items"]),
        ("a/b/c", {"format": "path-segment"}, ["Invalid value: \"a/b/c\": may not contain '/'"]),
    ],
)
def test_a_value_is_validated_against_the_facts_of_its_field(value, facts, expected):
    assert problems(value, **facts) == expected


def test_fields_are_checked_in_the_order_in_which_they_are_named():
    spec = {"minReadySeconds": -1, "revisionHistoryLimit": -1}
    names = ("revisionHistoryLimit", "minReadySeconds")
    causes = check_fields("spec", "apps.v1.DeploymentSpec", spec, *names)
    assert [cause.field for cause in causes] == [f"spec.{name}" for name in names]


def test_a_field_without_facts_cannot_be_checked():
    with pytest.raises(KeyError):
        list(check_fields("spec", "apps.v1.DeploymentSpec", {}, "nothing"))

"""Conversion of the numbers in a patch result to the types of their fields."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.from_unstructured import restored
from fairlead.apiserver.schema.model import schema_of


@pytest.mark.parametrize(
    ("sent", "held"),
    [(3, 3), (3.0, 3), (1 << 32, 0), ((1 << 32) + 5, 5), (-(1 << 31) - 1, (1 << 31) - 1)],
)
def test_numbers_are_converted_to_int32(sent, held):
    deployment = schema_of("apps/v1", "Deployment")
    assert restored(deployment, {"spec": {"replicas": sent}}) == {"spec": {"replicas": held}}


@pytest.mark.parametrize("sent", [1.5, True, "3", None, 1 << 70])
def test_values_that_cannot_be_converted_are_kept(sent):
    pod = {"spec": {"containers": [{"ports": [{"containerPort": sent}]}]}}
    assert restored(schema_of("v1", "Pod"), pod) == pod


def test_fields_without_an_integer_type_are_kept():
    pod = {"metadata": {"labels": {"a": 1.0}}, "spec": {"zork": [1.0], "priority": 1.0}}
    made = restored(schema_of("v1", "Pod"), pod)
    assert made == {**pod, "spec": {"zork": [1.0], "priority": 1}}
    assert isinstance(made["spec"]["priority"], int)
    assert isinstance(made["metadata"]["labels"]["a"], float)

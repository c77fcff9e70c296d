"""Validation errors of new objects, equal to those of kube-apiserver 1.36.2.

Each line of the file has an object that was sent to kube-apiserver, and its refusal (null if it was
stored). The objects contain only fields that Fairlead reads.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.validation.validator import validated_stored

FILE = Path(__file__).with_name("recorded_validation.jsonl.gz")
CASES = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


def validated_new(kind, obj):
    """Return `obj` with its defaults, or raise the refusal of it as a new object."""
    obj = API_SERVER.default(kind, API_SERVER.decode(kind, obj))
    API_SERVER.validator.validate(kind, API_SERVER.rules(kind), obj)
    return obj


def loaded(kind, obj):
    """Return `obj` as an object of a snapshot."""
    return validated_stored(kind, API_SERVER.rules(kind), obj)


def said(act, obj):
    try:
        act(kind_of(obj), obj)
    except ApiError as refusal:
        return refusal.message
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_new_object_is_accepted_or_refused_as_upstream_does(case):
    assert said(validated_new, case["body"]) == case["refusal"]


def test_accepted_and_refused_objects_are_recorded():
    refused = sum(case["refusal"] is not None for case in CASES)
    assert refused > 100
    assert len(CASES) - refused > 100


def test_objects_that_can_be_created_can_be_loaded():
    accepted = [case["body"] for case in CASES if case["refusal"] is None]
    assert [said(loaded, obj) for obj in accepted] == [None] * len(accepted)

"""Requests of claims that cannot be satisfied, with upstream's messages."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import DeviceClass, ResourceClaim
from fairlead.engine.plugins.dynamic_resources.device_request import (
    AllocationError,
    refusal_of,
    resolve_claim,
)

EXACT = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


def claim_of(*requests, constraints=()):
    metadata = {"name": "c", "namespace": "default", "uid": "u"}
    devices = {"requests": list(requests), "constraints": list(constraints)}
    return decode_as(ResourceClaim, {"metadata": metadata, "spec": {"devices": devices}})


def request(**more):
    return {"name": "r", "exactly": {**EXACT, **more}}


def classes(**selectors):
    """Classes by name, with their selectors."""
    made = {
        name: decode_as(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": given}})
        for name, given in selectors.items()
    }
    return made.get


@pytest.mark.parametrize(
    ("one", "text"),
    [
        ({"name": "r"}, "resource claim default/c, request r: unknown request type"),
        (request(deviceClassName=""), "request r: unsupported request type"),
        (request(deviceClassName="tpu"), "request r: device class tpu does not exist"),
        (
            {"name": "r", "firstAvailable": [{**EXACT, "name": "s"}, {"name": "t"}]},
            "request r/t: unsupported request type",
        ),
        (request(), None),
    ],
)
def test_an_invalid_request_is_rejected_before_nodes_are_filtered(one, text):
    refusal = refusal_of(claim_of(one), classes(gpu=[]))
    assert (refusal.message if refusal else None) == text


@pytest.mark.parametrize(
    ("one", "constraints", "text"),
    [
        (
            request(deviceClassName="tpu"),
            (),
            "claim default/c, request r: could not retrieve device class tpu",
        ),
        (
            request(allocationMode="Some"),
            (),
            "claim default/c, request r: unsupported count mode Some",
        ),
        (
            request(selectors=[{"cel": {"expression": "true"}}, {}]),
            (),
            (
                "claim default/c, request r, selector #1: CEL expression empty"
                " (unsupported selector type?)"
            ),
        ),
        (
            request(),
            ({"requests": ["r"], "matchAttribute": "a/b"}, {"requests": ["r"]}),
            "claim default/c, constraint #1: empty constraint (unsupported constraint type?)",
        ),
    ],
)
def test_the_error_of_an_invalid_claim_names_the_request(one, constraints, text):
    with pytest.raises(AllocationError) as refused:
        resolve_claim(claim_of(one, constraints=constraints), classes(gpu=[]))
    assert str(refused.value) == text


def test_the_selectors_of_the_class_come_before_those_of_the_request():
    of_class = classes(gpu=[{"cel": {"expression": "1 == 1"}}])
    own = [{"cel": {"expression": "2 == 2"}}, {"cel": {"expression": "3 == 3"}}]
    [[resolved]] = resolve_claim(claim_of(request(selectors=own)), of_class).requests
    assert [one.expression for one in resolved.selectors] == ["1 == 1", "2 == 2", "3 == 3"]

"""Objects with invalid quantities are not decoded."""

from __future__ import annotations

import json

import pytest

from fairlead.api.codec import VIEWS
from fairlead.api.quantity import NO_QUANTITY
from fairlead.api.quantity_check import quantity_check
from fairlead.client.api_resource import ApiResource
from fairlead.client.cache.object_decoder import ObjectDecoder, UndecodableObject

POD, NODE = ("v1", "Pod"), ("v1", "Node")
SLICE, CLAIM = ("resource.k8s.io/v1", "ResourceSlice"), ("resource.k8s.io/v1", "ResourceClaim")
ROOM = ("storage.k8s.io/v1", "CSIStorageCapacity")
GROUP = ("scheduling.volcano.sh/v1beta1", "PodGroup")
QUEUE = ("scheduling.volcano.sh/v1beta1", "Queue")

# A field by kind; a number is the index in a list.
FIELDS = [
    (POD, "spec.containers.1.resources.requests.cpu"),
    (POD, "spec.containers.0.resources.limits.cpu"),
    (POD, "spec.initContainers.0.resources.requests.cpu"),
    (POD, "spec.resources.requests.cpu"),
    (POD, "spec.overhead.cpu"),
    (POD, "status.containerStatuses.0.allocatedResources.cpu"),
    (POD, "status.containerStatuses.0.resources.requests.cpu"),
    (POD, "status.allocatedResources.cpu"),
    (NODE, "status.allocatable.memory"),
    (NODE, "status.capacity.memory"),
    (("v1", "PersistentVolume"), "spec.capacity.storage"),
    (("v1", "PersistentVolumeClaim"), "spec.resources.requests.storage"),
    (ROOM, "capacity"),
    (ROOM, "maximumVolumeSize"),
    (SLICE, "spec.devices.0.capacity.memory.value"),
    (SLICE, "spec.devices.0.capacity.memory.requestPolicy.default"),
    (SLICE, "spec.devices.0.capacity.memory.requestPolicy.validValues.0"),
    (SLICE, "spec.devices.0.capacity.memory.requestPolicy.validRange.step"),
    (SLICE, "spec.devices.0.consumesCounters.0.counters.memory.value"),
    (SLICE, "spec.sharedCounters.0.counters.memory.value"),
    (CLAIM, "spec.devices.requests.0.exactly.capacity.requests.memory"),
    (CLAIM, "status.allocation.devices.results.0.consumedCapacity.memory"),
    (GROUP, "spec.minResources.cpu"),
    (QUEUE, "spec.capability.cpu"),
]
KEYS = ("cpu", "memory", "storage")


def with_field(path, value):
    """Return an object with `value` at `path`; earlier items of a list are valid copies."""
    right, wrong = "1", value
    for step in reversed(path.split(".")):
        if step.isdigit():
            right = wrong = [right] * int(step) + [wrong]
        else:
            right, wrong = {step: right}, {step: wrong}
    return wrong


def shown(path):
    """Return `path` as it is written in messages."""
    found, in_map = "", ""
    for step in path.split("."):
        is_key = step.isdigit() or (step in KEYS and in_map not in ("", "spec"))
        found += f"[{step}]" if is_key else f".{step}"
        in_map = step
    return found.removeprefix(".")


def decoded(kind, obj):
    """Return the object decoded from a list; it must equal the object of a watch event."""
    decoder = ObjectDecoder(ApiResource(*kind, kind[1].lower(), is_namespaced=True))
    obj = {"metadata": {"name": "a", "namespace": "d"}, **obj}
    page = decoder.page(json.dumps({"items": [obj]}).encode())
    found = [*page.objects, *page.undecodable][0]
    assert len(page.objects) + len(page.undecodable) == 1
    assert decoder.event(json.dumps({"type": "ADDED", "object": obj}).encode()) == ("ADDED", found)
    return found


@pytest.mark.parametrize(("kind", "path"), FIELDS)
def test_the_field_of_an_invalid_quantity_is_named(kind, path):
    found = decoded(kind, with_field(path, "x"))
    assert found == UndecodableObject("d/a", f"{shown(path)}: 'x': {NO_QUANTITY}")


@pytest.mark.parametrize(("kind", "path"), FIELDS)
def test_an_object_with_valid_quantities_is_decoded(kind, path):
    for text in ("100m", "1e3", 5, 0.5, "0"):
        assert decoded(kind, with_field(path, text)).metadata.name == "a"


@pytest.mark.parametrize("text", ["", " ", "1 core", "five", "1Kb", "1e9999", "9" * 400])
def test_invalid_quantities_are_refused(text):
    assert isinstance(decoded(POD, with_field("spec.overhead.cpu", text)), UndecodableObject)
    assert isinstance(decoded(ROOM, {"capacity": text}), UndecodableObject)


def test_an_object_with_nulls_is_checked():
    spec = {"containers": None, "overhead": {"cpu": "x"}}
    assert isinstance(decoded(POD, {"spec": spec}), UndecodableObject)
    assert decoded(POD, {"spec": {"containers": None, "overhead": None}}).spec.overhead == {}


def test_kinds_without_quantities_are_not_checked():
    assert quantity_check(VIEWS["v1", "Service"]) is None
    assert quantity_check(VIEWS["apps/v1", "Deployment"]) is None


def test_the_other_objects_of_a_page_are_kept():
    decoder = ObjectDecoder(ApiResource("v1", "Node", "nodes", is_namespaced=False))
    nodes = [
        {"metadata": {"name": f"n{at}"}, "status": {"allocatable": {"cpu": text}}}
        for at, text in enumerate(["1", "x", "2"])
    ]
    page = decoder.page(json.dumps({"items": nodes}).encode())
    assert [one.metadata.name for one in page.objects] == ["n0", "n2"]
    assert [one.key for one in page.undecodable] == ["n1"]

"""Objects of resource.k8s.io in older versions, converted to v1."""

from __future__ import annotations

import pytest

from fairlead.apiserver.conversion.device import new_device_object

EXACT = {"deviceClassName": "gpu", "count": 2, "tolerations": [{"operator": "Exists"}]}
EITHER = {"name": "b", "firstAvailable": [{"name": "c", "deviceClassName": "gpu"}]}
BASIC = {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "1Gi"}}}


def of(version, kind, spec):
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "spec": spec}


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_the_fields_of_a_request_move_to_exactly(kind):
    def spec(*requests):
        own = {"devices": {"requests": list(requests), "constraints": []}}
        return {"spec": own} if kind == "ResourceClaimTemplate" else own

    old = of("v1beta1", kind, spec({"name": "a", **EXACT}, EITHER))
    assert new_device_object(old) == of("v1", kind, spec({"name": "a", "exactly": EXACT}, EITHER))


def test_the_fields_of_a_device_leave_basic():
    old = of("v1beta1", "ResourceSlice", {"devices": [{"name": "gpu-0", "basic": BASIC}]})
    new = of("v1", "ResourceSlice", {"devices": [{"name": "gpu-0", **BASIC}]})
    assert new_device_object(old) == new


@pytest.mark.parametrize(
    ("version", "kind", "converted"),
    [
        ("v1beta2", "ResourceClaim", "v1"),
        ("v1beta1", "DeviceClass", "v1"),
        ("v1beta2", "DeviceTaintRule", "v1beta2"),
        ("v1alpha3", "ResourceClaim", "v1alpha3"),
        ("v1", "ResourceClaim", "v1"),
    ],
)
def test_other_objects_keep_their_form(version, kind, converted):
    spec = {"devices": {"requests": [{"name": "a", "exactly": EXACT}]}}
    assert new_device_object(of(version, kind, spec)) == of(converted, kind, spec)


@pytest.mark.parametrize("spec", [None, {"devices": None}, {"devices": ["x"]}, {"devices": {}}])
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceSlice"])
def test_malformed_parts_are_not_changed(kind, spec):
    assert new_device_object(of("v1beta1", kind, spec)) == of("v1", kind, spec)

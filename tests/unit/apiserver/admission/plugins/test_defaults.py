"""The default IngressClass, and the expansion of PersistentVolumeClaims."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.plugins.default_ingress_class import (
    IS_DEFAULT,
    DefaultIngressClass,
)
from fairlead.apiserver.admission.plugins.persistent_volume_claim_resize import (
    PersistentVolumeClaimResize,
)


def ingress_class(obj, name, created, default="true"):
    """Return an IngressClass; `default` is the value of its default annotation."""
    meta = {"creationTimestamp": created, "annotations": {IS_DEFAULT: default}}
    return obj("IngressClass", name, "", "networking.k8s.io/v1", metadata=meta)


def test_an_ingress_gets_the_newest_default_class(gate, obj):
    """Among equally new classes, the first name is chosen. An Ingress with a class keeps it."""
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    found = gate(DefaultIngressClass()).has(
        ingress_class(obj, "a", early),
        ingress_class(obj, "c", late),
        ingress_class(obj, "b", late),
        ingress_class(obj, "aa", late, "no"),
    )
    bare = obj("Ingress", version="networking.k8s.io/v1", spec={})
    assert found.admits(bare)["spec"] == {"ingressClassName": "b"}
    named = {**bare, "spec": {"ingressClassName": "x"}}
    assert found.admits(named) == named


def claim(obj, size, phase="Bound", name="fast"):
    """Return a PersistentVolumeClaim of the class `name`."""
    spec = {"storageClassName": name, "resources": {"requests": {"storage": size}}}
    return obj("PersistentVolumeClaim", spec=spec, status={"phase": phase})


@pytest.mark.parametrize(
    ("phase", "name", "why"),
    [
        ("Pending", "fast", "Only bound persistent volume claims can be expanded"),
        ("Bound", "fixed", "only dynamically provisioned pvc can be resized and the storageclass"),
        ("Bound", "none", "only dynamically provisioned pvc can be resized and the storageclass"),
    ],
)
def test_a_claim_that_cannot_be_expanded_is_refused(gate, obj, phase, name, why):
    """The claim is not bound, or its class does not allow expansion."""
    found = gate(PersistentVolumeClaimResize()).has(
        obj("StorageClass", "fixed", "", "storage.k8s.io/v1")
    )
    old, new = claim(obj, "1Gi", phase, name), claim(obj, "2Gi", phase, name)
    assert why in found.refusal(new, Operation.UPDATE, old=old)
    assert found.admits(old, Operation.UPDATE, old=new) == old


def test_a_claim_is_expanded_if_its_class_allows_expansion(gate, obj):
    """The class has allowVolumeExpansion."""
    fast = obj("StorageClass", "fast", "", "storage.k8s.io/v1", allowVolumeExpansion=True)
    new = claim(obj, "2Gi")
    admitted = (
        gate(PersistentVolumeClaimResize())
        .has(fast)
        .admits(new, Operation.UPDATE, old=claim(obj, "1Gi"))
    )
    assert admitted == new

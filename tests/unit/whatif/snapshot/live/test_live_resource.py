"""Which objects of a resource are read."""

from __future__ import annotations

import pytest

from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "is_read"),
    [
        ("configmaps", "kube-system", "cluster-autoscaler-status", True),
        ("configmaps", "kube-system", "coredns", False),
        ("configmaps", "shop", "cluster-autoscaler-status", False),
        ("leases.coordination.k8s.io", "kube-node-lease", "n", True),
        ("leases.coordination.k8s.io", "kube-system", "kube-scheduler", False),
        ("services", "shop", "web", True),
        ("nodes", None, "n", True),
    ],
)
def test_of_some_resources_only_some_objects_are_read(resource, namespace, name, is_read):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    [found] = (one for one in LIVE_RESOURCES if one.kind.resource == resource)
    assert found.includes({"metadata": metadata}) == is_read

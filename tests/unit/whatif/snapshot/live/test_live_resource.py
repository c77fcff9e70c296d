"""Which objects of a resource are read."""

from __future__ import annotations

import pytest

from fairlead.whatif.change import job_set, volcano_job
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


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        (job_set.GROUP, job_set.KIND),
        (volcano_job.GROUP, "Job"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("cluster.x-k8s.io", "MachineDeployment"),
        ("cluster.x-k8s.io", "MachineSet"),
        ("karpenter.k8s.aws", "EC2NodeClass"),
    ],
)
def test_kinds_that_answers_read_from_a_dump_are_read_from_a_cluster_too(group, kind):
    assert (group, kind) in {(one.kind.group, one.kind.kind) for one in LIVE_RESOURCES}

"""Which objects of a resource are read."""

from __future__ import annotations

import pytest
import yaml

from fairlead.whatif.change import job_set, volcano_job
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES, rbac_manifest


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


def test_only_the_definitions_of_custom_resources_that_are_read_are_read():
    """A cluster can have thousands of others."""
    definitions = [one for one in LIVE_RESOURCES if one.kind.kind == "CustomResourceDefinition"]
    names = {one.name for one in definitions}
    assert {"jobsets.jobset.x-k8s.io", "jobs.batch.volcano.sh", "nodepools.karpenter.sh"} <= names
    assert "" not in names
    assert names == {one.kind.resource for one in LIVE_RESOURCES if one.kind.is_custom}
    assert all(one.query == {"fieldSelector": f"metadata.name={one.name}"} for one in definitions)


def test_one_rule_of_the_role_names_all_objects_of_a_kind():
    rules = [rule for role in yaml.safe_load_all(rbac_manifest()) for rule in role["rules"]]
    named = {
        rule["resources"][0]: rule["resourceNames"] for rule in rules if "resourceNames" in rule
    }
    assert named.keys() == {"configmaps", "customresourcedefinitions"}
    assert named["configmaps"] == ["cluster-autoscaler-status"]
    assert "jobsets.jobset.x-k8s.io" in named["customresourcedefinitions"]
    assert sum("customresourcedefinitions" in rule["resources"] for rule in rules) == 1

"""Which objects of a resource are read."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest
import yaml

import fairlead
from fairlead import whatif
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


def compared_texts():
    """Yield each text with which the code for answers compares the kind of an object."""
    for path in Path(whatif.__path__[0]).rglob("*.py"):
        source = path.read_text()
        if ".kind.kind" in source:
            parts = path.relative_to(Path(fairlead.__path__[0]).parent).with_suffix("").parts
            known = vars(import_module(".".join(parts)))
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Compare) and ".kind.kind" in ast.unparse(node):
                    for side in (node.left, *node.comparators):
                        yield from texts(side, known)


def texts(side, known):
    """Yield the texts in `side` of a comparison; `known` are the names in its module."""
    match side:
        case ast.Tuple() | ast.Set() | ast.List():
            for one in side.elts:
                yield from texts(one, known)
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name() | ast.Attribute():
            first, *others = ast.unparse(side).split(".")
            value = known.get(first)
            for name in others:
                value = getattr(value, name, None)
            found = [value] if isinstance(value, str) else value
            if isinstance(found, list | tuple | set | frozenset | dict):
                yield from (one for one in found if isinstance(one, str))


def test_kinds_that_answers_read_from_a_dump_are_read_from_a_cluster_too():
    """All but Stages of KWOK, which simulates the nodes of a cluster."""
    compared = set(compared_texts())
    assert {"JobSet", "batch.volcano.sh", "EC2NodeClass", "MachineDeployment"} <= compared
    kinds = [one.kind for one in LIVE_RESOURCES]
    read = {one.kind for one in kinds} | {one.group for one in kinds}
    assert compared - read == {"Stage"}


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

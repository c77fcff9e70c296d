"""Keys that Fairlead reads are kept, and so are the values that decisions depend on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import fairlead
from fairlead.api.well_known_label import _VIRTUAL
from fairlead.engine.autoscaling.cluster_autoscaler.nodegroupset.similarity import _PROVIDER_LABELS
from fairlead.engine.plugins.volume_lookup.in_tree_volume import IN_TREE_KINDS
from fairlead.whatif.configuration.autoscaling.karpenter.provider_label import FACT_LABELS
from fairlead.whatif.configuration.autoscaling.open_cost_price import _SPOT_LABELS
from fairlead.whatif.snapshot.anonymization.anonymizer import anonymised
from fairlead.whatif.snapshot.anonymization.published_label import is_kept_value, is_published
from fairlead.whatif.snapshot.node_pool import POOL_LABELS

SOURCE = Path(fairlead.__file__).parent
KEY = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]+/(?!v[0-9])[A-Za-z0-9._-]*")
# Resources, an API group, and annotations of applied manifests, which are not in a snapshot.
NOT_IN_OBJECTS = {
    "habana.ai/gaudi",
    "microsoft.com/directx",
    "argoproj.io/",
    "helm.sh/hook",
    "argocd.argoproj.io/hook",
}


def keys_in_source():
    """Return the texts in the source that have the form of a label key with a domain."""
    files = [file for name in ("api", "engine", "whatif") for file in (SOURCE / name).rglob("*.py")]
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return {one for one in texts if isinstance(one, str) and KEY.fullmatch(one)}


@pytest.mark.long
def test_every_key_that_fairlead_reads_is_published():
    found = keys_in_source()
    assert {"topology.gke.io/zone", "alpha.eksctl.io/nodegroup-name"} <= found
    providers = (
        *POOL_LABELS,
        *_VIRTUAL,
        *(key for keys in _PROVIDER_LABELS.values() for key in keys),
    )
    unknown = {key for key in found.union(providers) if not is_published(key)}
    assert unknown == NOT_IN_OBJECTS


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((kind.zone_key, "eu-1a") for kind in IN_TREE_KINDS.values() if kind.zone_key),
        *((f"{prefix}family", "m5") for prefix in FACT_LABELS),
        *_SPOT_LABELS,
        *((key, value) for key, (value, _) in _VIRTUAL.items()),
        ("cluster-autoscaler.kubernetes.io/pod-scale-up-delay", "1h30m"),
        ("karpenter.sh/do-not-disrupt", "30m"),
        ("karpenter.sh/nodeclaim-termination-timestamp", "2026-11-20T05:00:00Z"),
        ("storage.alpha.kubernetes.io/migrated-plugins", "kubernetes.io/aws-ebs,kubernetes.io/rbd"),
    ],
)
def test_values_that_decisions_depend_on_are_kept(key, value):
    assert is_kept_value(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("karpenter.k8s.aws/instance-profile-name", "acme_15263850463527461230"),
        ("fairlead.dev/replaces", "web-7d9f-abcde"),
        ("resourceNameSuffix", "12345678"),
        ("scheduling.x-k8s.io/pod-group", "2026"),
    ],
)
def test_values_of_published_keys_that_are_names_are_not_kept(key, value):
    assert is_published(key)
    assert not is_kept_value(key, value)


def node(labels, taints=()):
    meta = {"name": "alice", "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": list(taints)}}


def test_a_node_that_cluster_autoscaler_removes_keeps_its_taint():
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1767225600", "effect": "NoSchedule"}
    (found,) = anonymised([node({}, [taint])]).objects
    assert found["spec"]["taints"] == [taint]


def test_labels_of_unknown_drivers_still_contain_the_zone():
    """The zone of new nodes is changed in these labels, too."""
    zone, other = "topology.kubernetes.io/zone", "topology.acme.com/zone"
    nodes = [node({zone: "eu-1a", other: "eu-1a"}), node({zone: "eu-1b", other: "acme"})]
    (first, second) = (one["metadata"]["labels"] for one in anonymised(nodes).objects)
    (key,) = first.keys() - {zone}
    assert key.endswith("/zone")
    assert first[key] == "eu-1a"
    assert "acme" not in str((first, second))


def test_lists_of_names_refer_to_the_same_objects():
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
    meta = {"name": "p", "annotations": {key: "scratch,logs"}}
    volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "logs", "emptyDir": {}}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"volumes": volumes}}
    (found,) = anonymised([pod]).objects
    names = [one["name"] for one in found["spec"]["volumes"]]
    assert found["metadata"]["annotations"] == {key: ",".join(names)}
    assert not {"scratch", "logs"} & set(names)

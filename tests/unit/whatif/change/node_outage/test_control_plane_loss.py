"""The note about failures that a real control plane does not survive."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.whatif.change.node_outage.control_plane_loss import control_plane_notes
from fairlead.whatif.change.node_outage.outage import Outage
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest_reader import manifests

PLANE = {"node-role.kubernetes.io/control-plane": ""}
ETCD = {"node-role.kubernetes.io/etcd": "true"}


def node(name: str, labels: dict[str, str], ready: str = "True") -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def etcd(where: str) -> Any:
    """The static pod of kubeadm."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"etcd-{where}",
            "namespace": "kube-system",
            "labels": {"component": "etcd", "tier": "control-plane"},
            "annotations": {"kubernetes.io/config.mirror": "1"},
        },
        "spec": {"nodeName": where, "containers": [{"name": "etcd", "image": "etcd"}]},
    }


def notes(objects: list[Any], *failed: str, how: str = "stopped") -> list[str]:
    inventory = Inventory(manifests(Document("dump", one) for one in objects))
    outage = Outage(source="--fail-node", what="", nodes=failed, behaviour=how)
    return list(control_plane_notes([outage], inventory))


PLANES = [node(name, PLANE) for name in ("p1", "p2", "p3")]
WORKER = node("w", {})
WITH_PODS = [*PLANES, WORKER, *map(etcd, ("p1", "p2", "p3"))]
WITH_LABELS = [*(node(name, {**PLANE, **ETCD}) for name in ("p1", "p2", "p3")), WORKER]


@pytest.mark.parametrize("objects", [WITH_PODS, WITH_LABELS], ids=["static pods", "labels"])
def test_etcd_loses_its_majority(objects: list[Any]) -> None:
    """With three members, one may fail, and two may not."""
    assert not notes(objects, "p1", "w")
    (note,) = notes(objects, "p1", "p3")
    assert note.startswith("2 of 3 nodes with etcd fail (p1, p3), so etcd has no majority. Until")


def test_a_member_is_already_down() -> None:
    """A member that is not Ready in the dump counts, but only if another member fails."""
    objects = [node("p1", {**PLANE, **ETCD}, ready="Unknown"), *WITH_LABELS[1:]]
    assert notes(objects, "p2")[0].startswith("2 of 3 nodes with etcd fail (p1, p2)")
    assert not notes(objects, "w")


def test_the_only_control_plane_node_fails() -> None:
    """The note of a cluster with one control plane node needs no majority."""
    (note,) = notes([PLANES[0], WORKER, etcd("p1")], "p1")
    assert note.startswith("The only control plane node fails (p1). Until it is back, a real")


def test_the_dump_does_not_show_where_etcd_runs() -> None:
    """Talos runs etcd without a pod, so the control plane nodes count."""
    (note,) = notes([*PLANES, WORKER], "p1", "p2")
    assert "2 of 3 control plane nodes fail (p1, p2), so etcd has no majority if it runs" in note


def test_the_control_plane_survives() -> None:
    """Nodes without a control plane and pauses of kubelets are not noted."""
    assert not notes([node("w", {}), node("v", {})], "w", "v")
    assert not notes(WITH_PODS, "p1", "p2", how="paused")

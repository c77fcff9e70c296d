"""What goes with an object that is deleted."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange, script_of_change
from fairlead.whatif.input.error import InputError

SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def deleted(cluster, text="ns/shop"):
    steps = script_of_change(ClusterChange(delete=(text,)), cluster).steps
    return [f"{one.target.kind}/{one.target.name}" for step in steps for one in step.commands]


def test_what_a_namespace_holds_is_left_to_the_engine(snapshot, make):
    workload = make.workload("ReplicaSet", "web", "shop")
    pods = [make.pod("solo", "shop"), make.pod("web-1", "shop", owner="web"), make.pod("other")]
    cluster = snapshot(make.node("n"), SHOP, workload, *pods)
    assert deleted(cluster) == ["Namespace/shop"]


def test_somebody_unknown_would_make_its_pods_anew(snapshot, make):
    cluster = snapshot(make.node("n"), SHOP, make.pod("web-1", "shop", owner="web"))
    with pytest.raises(InputError, match="Pod shop/web-1: its ReplicaSet web is not in the snap"):
        deleted(cluster)

"""The autoscaling workloads at a small size: pods are placed, nodes are added and removed."""

from __future__ import annotations

from fairlead.bench.autoscaler_workloads import AUTOSCALING_WORKLOADS, provisioning, scale_up


def test_the_autoscaling_workloads_have_their_names():
    assert list(AUTOSCALING_WORKLOADS) == [
        "ClusterAutoscaler/ScaleUp/20Groups_5000Pods",
        "Karpenter/Provisioning/400Types_1000Pods",
        "Karpenter/Provisioning/400Types_5000Pods",
        "ClusterAutoscaler/Day/100Nodes_2000Pods",
        "ClusterAutoscaler/LoadCurve/100Nodes_2000Pods",
        "ClusterAutoscaler/Day/1000Nodes_20000Pods",
        "ClusterAutoscaler/LoadCurve/1000Nodes_20000Pods",
        "Karpenter/Day/100Nodes_2000Pods",
        "Karpenter/LoadCurve/100Nodes_2000Pods",
        "Karpenter/Day/1000Nodes_20000Pods",
        "Karpenter/LoadCurve/1000Nodes_20000Pods",
    ]


def test_decisions_place_the_pods():
    assert scale_up(1_000)() == 1_000
    assert provisioning(60, 20)() == 60

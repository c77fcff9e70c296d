"""The status ConfigMap: when it is written, and how it shows a node group in backoff."""

from __future__ import annotations

import yaml

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.registry import (
    ClusterStateRegistry,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.status_config_map import (
    StatusConfigMap,
)
from fairlead.engine.autoscaling.cluster_autoscaler.event import EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.core.command import CreateObject, PatchObject
from fairlead.engine.core.instant import seconds


def status():
    """The ConfigMap of an empty group, and its registry."""
    options = AutoscalingOptions()
    provider = SimulatedProvider([NodeGroupSpec(id="a", minimum=0, maximum=3)], seed=0, start=0)
    registry = ClusterStateRegistry(provider, options, EventLog([], "kube-system", "s"))
    registry.update_nodes([], frozenset("a"), seconds(10))
    return StatusConfigMap(provider, registry, "kube-system", "s"), registry


def text(command):
    content = command.manifest if isinstance(command, CreateObject) else command.patch
    return yaml.safe_load(content["data"]["status"])


def test_the_config_map_is_created_and_patched_if_more_than_the_probe_time_differs():
    one, _ = status()
    [created] = one.update_commands({}, seconds(10))
    assert isinstance(created, CreateObject)
    assert text(created)["time"] == "1970-01-01 00:00:10 +0000 UTC"
    assert one.update_commands({}, seconds(20)) == []
    [patched] = one.update_commands({"a": ["n"]}, seconds(30))
    assert isinstance(patched, PatchObject)
    assert text(patched)["nodeGroups"][0]["scaleDown"] == {
        "status": "CandidatesPresent",
        "candidates": 1,
        "lastProbeTime": "1970-01-01T00:00:30Z",
        "lastTransitionTime": "1970-01-01T00:00:30Z",
    }
    assert text(patched)["clusterWide"]["health"]["lastTransitionTime"] == "1970-01-01T00:00:10Z"


def test_a_group_in_backoff_shows_the_providers_error():
    one, registry = status()
    registry.register_failed_scale_up("a", seconds(10), "STOCKOUT", "insufficient capacity")
    [created] = one.update_commands({}, seconds(10))
    scale_up = text(created)["nodeGroups"][0]["scaleUp"]
    assert scale_up["status"] == "Backoff"
    assert scale_up["backoffInfo"] == {
        "errorCode": "STOCKOUT",
        "errorMessage": "insufficient capacity",
    }


def test_the_config_map_is_created_again_after_a_user_deleted_it():
    one, _ = status()
    one.update_commands({}, seconds(10))
    one.forget_written(exists=False)
    [created] = one.update_commands({}, seconds(20))
    assert isinstance(created, CreateObject)

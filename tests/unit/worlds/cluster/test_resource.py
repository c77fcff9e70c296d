"""The resources that `fairlead run` reads, and the RBAC rules that it needs for them."""

from __future__ import annotations

import pytest

from fairlead.engine.configuration.release import release_of
from fairlead.worlds.cluster.rbac import cluster_rules
from fairlead.worlds.cluster.resource import (
    SCHEDULER,
    TAINT_EVICTION,
    gated_resources,
    watched_resources,
)

POD_GROUPS = ("podgroups.scheduling.k8s.io",)


@pytest.mark.parametrize(
    ("gates", "resources"),
    [
        ({}, ()),
        ({"GenericWorkload": True}, POD_GROUPS),
        ({"DRADeviceTaintRules": True}, ("devicetaintrules.resource.k8s.io",)),
    ],
)
def test_feature_gates_add_resources(gates, resources):
    assert gated_resources(release_of("", gates).scheduler) == resources


def test_only_the_scheduler_reads_pod_groups():
    assert "PodGroup" in {one.kind for one in watched_resources((SCHEDULER,), POD_GROUPS)}
    assert "PodGroup" not in {one.kind for one in watched_resources((SCHEDULER,))}
    assert "PodGroup" not in {one.kind for one in watched_resources((TAINT_EVICTION,), POD_GROUPS)}


def test_the_scheduler_writes_the_status_of_pod_groups():
    def verbs(gated):
        rules = cluster_rules((SCHEDULER,), gated=gated)
        return {
            rule["resources"][0]: rule["verbs"]
            for rule in rules
            if rule["apiGroups"] == ["scheduling.k8s.io"]
        }

    assert verbs(()) == {}
    assert verbs(POD_GROUPS) == {
        "podgroups": ["list", "watch", "get"],
        "podgroups/status": ["patch"],
    }


def test_the_scheduler_may_write_claims_as_1_36_requires():
    """The API server checks resourceclaims/binding for writes of allocation and reservedFor."""
    rules = cluster_rules((SCHEDULER,))
    verbs = {rule["resources"][0]: rule["verbs"] for rule in rules}
    assert verbs["resourceclaims/status"] == verbs["resourceclaims/binding"] == ["patch"]

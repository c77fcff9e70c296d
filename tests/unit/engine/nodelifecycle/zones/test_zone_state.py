"""The states of zones of nodes, and their eviction rates."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Node, ObjectMeta
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36
from fairlead.engine.nodelifecycle.zones.zone_state import (
    ZoneCount,
    ZoneState,
    eviction_rate,
    zone_key,
    zone_state,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
CONFIG = NodeLifecycleConfig()


@pytest.mark.parametrize(
    ("labels", "profile", "key"),
    [
        pytest.param({}, V1_36, "", id="nowhere"),
        pytest.param({ZONE: "a"}, V1_36, ":\x00:a", id="zone only"),
        pytest.param({REGION: "r", ZONE: "a"}, V1_36, "r:\x00:a", id="region and zone"),
        pytest.param({ZONE: "a", BETA_ZONE: "b"}, V1_36, ":\x00:b", id="beta wins"),
        pytest.param({ZONE: "a", BETA_ZONE: ""}, V1_36, "", id="beta wins though empty"),
        pytest.param({REGION: "r", BETA_ZONE: "b"}, V1_36, "r:\x00:b", id="mixed"),
        pytest.param({ZONE: "a"}, V1_16, "", id="1.16 knows beta only"),
        pytest.param({BETA_REGION: "r", BETA_ZONE: "b"}, V1_16, "r:\x00:b", id="1.16"),
        pytest.param({REGION: "r", BETA_ZONE: "b"}, V1_16, ":\x00:b", id="1.16, mixed"),
    ],
)
def test_the_key_of_the_zone_of_a_node(labels, profile, key):
    node = Node(metadata=ObjectMeta(labels=labels))
    assert zone_key(node, NodeLifecycleConfig(profile=profile)) == key


@pytest.mark.parametrize(
    ("size", "unready", "state"),
    [
        (1, 0, ZoneState.NORMAL),
        (1, 1, ZoneState.FULL_DISRUPTION),
        (3, 2, ZoneState.NORMAL),  # up to two nodes are no disruption
        (3, 3, ZoneState.FULL_DISRUPTION),
        (4, 3, ZoneState.PARTIAL_DISRUPTION),
        (20, 10, ZoneState.NORMAL),
        (20, 11, ZoneState.PARTIAL_DISRUPTION),  # 0.55 is reached exactly, in float32
        (100, 54, ZoneState.NORMAL),
        (100, 55, ZoneState.PARTIAL_DISRUPTION),
        (100, 100, ZoneState.FULL_DISRUPTION),
    ],
)
def test_the_state_of_a_zone_by_its_ready_and_unready_nodes(size, unready, state):
    assert zone_state(ZoneCount(size, unready), CONFIG) is state


@pytest.mark.parametrize(
    ("state", "size", "rate"),
    [
        (ZoneState.NORMAL, 10, 0.1),
        (ZoneState.FULL_DISRUPTION, 10, 0.1),  # a single dark zone is emptied as usual
        (ZoneState.PARTIAL_DISRUPTION, 50, 0.0),
        (ZoneState.PARTIAL_DISRUPTION, 51, 0.01),
    ],
)
def test_the_eviction_rate_by_zone_state_and_size(state, size, rate):
    assert eviction_rate(state, ZoneCount(size, 0), CONFIG) == rate

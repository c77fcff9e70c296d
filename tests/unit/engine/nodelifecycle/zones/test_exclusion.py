"""Nodes that are excluded from the disruption state of their zone."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Node, ObjectMeta
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36
from fairlead.engine.nodelifecycle.zones.zone_states import EXCLUDE_DISRUPTION, is_excluded


@pytest.mark.parametrize(
    ("name", "labels", "in_1_36", "in_1_16"),
    [
        ("worker", {}, False, False),
        ("worker", {EXCLUDE_DISRUPTION: ""}, True, False),  # alpha and off in 1.16
        ("master", {}, False, True),
        ("the-master", {}, False, True),
        ("the-master-abc", {}, False, True),
        ("master-0", {}, False, False),  # exactly three characters
        ("master-abcd", {}, False, False),
        ("mastery", {}, False, False),
        ("n", {"node-role.kubernetes.io/master": ""}, False, False),  # never by the label
    ],
)
def test_which_nodes_are_excluded(name, labels, in_1_36, in_1_16):
    node = Node(metadata=ObjectMeta(name=name, labels=labels))
    assert is_excluded(node, V1_36) is in_1_36
    assert is_excluded(node, V1_16) is in_1_16

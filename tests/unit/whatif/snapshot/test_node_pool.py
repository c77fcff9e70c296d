"""A new node of a pool has the taints of the pool, but not those of one node's condition."""

from __future__ import annotations

import pytest

from fairlead.whatif.snapshot.node_pool import is_lasting_taint


@pytest.mark.parametrize(
    ("key", "is_lasting"),
    [
        ("dedicated", True),
        ("node-role.kubernetes.io/control-plane", True),
        pytest.param("node.kubernetes.io/os", True, id="GKE's taint of Windows nodes"),
        ("node.kubernetes.io/unschedulable", False),
        ("node.kubernetes.io/unreachable", False),
        ("node.kubernetes.io/out-of-service", False),
        ("node.cloudprovider.kubernetes.io/uninitialized", False),
        ("ToBeDeletedByClusterAutoscaler", False),
        ("karpenter.sh/disrupted", False),
    ],
)
def test_new_nodes_do_not_have_the_condition_taints_of_the_original_node(key, is_lasting):
    assert is_lasting_taint(key) is is_lasting

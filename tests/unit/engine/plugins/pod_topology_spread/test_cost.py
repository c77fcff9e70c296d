"""PodTopologySpread: the cost of many constraints, and of nodes whose taints change."""

from __future__ import annotations

import pytest

from fairlead.engine.plugins.pod_topology_spread.constraint import Constraint
from fairlead.engine.plugins.pod_topology_spread.spread_counts import SpreadCounts


class CountedTable:
    """A table of nodes that counts how often a label is read."""

    def __init__(self, table):
        self.table = table
        self.lookups = 0

    def label_column(self, key):
        self.lookups += 1
        return self.table.label_column(key)

    def __getattr__(self, name):
        return getattr(self.table, name)


def test_keys_that_no_node_has_are_not_looked_up_for_each_other(scene):
    scene.node("a", "z1")
    table = CountedTable(scene.table)
    many = [Constraint(max_skew=1, topology_key=f"k{at}", selector=None) for at in range(50)]
    SpreadCounts(table, scene.incoming(), many, requires_all_keys=True).refresh()
    assert table.lookups == 100


TAINT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("honors_taints", "is_counted_again"),
    [
        pytest.param(False, False, id="a constraint that ignores taints"),
        pytest.param(True, True, id="a constraint that honors taints"),
    ],
)
def test_a_changed_taint_costs_only_constraints_that_honor_taints(
    scene, honors_taints, is_counted_again
):
    """Given counts of two nodes, when one is tainted, then it stops counting if taints are honored.

    The domains are not listed again for the other constraints.
    """
    scene.node("a", "z1")
    scene.node("b", "z2")
    zone = Constraint(
        max_skew=1,
        topology_key="topology.kubernetes.io/zone",
        selector=None,
        honors_taints=honors_taints,
    )
    table = CountedTable(scene.table)
    counts = SpreadCounts(table, scene.incoming(), [zone], requires_all_keys=True).refresh()
    before = table.lookups
    scene.node("b", "z2", taints=[TAINT])
    counts.refresh()
    assert (table.lookups > before) == is_counted_again
    assert len(counts.constraints[0].present) == (1 if honors_taints else 2)
    scene.node("c", "z3")
    assert len(counts.refresh().constraints[0].present) == (2 if honors_taints else 3)

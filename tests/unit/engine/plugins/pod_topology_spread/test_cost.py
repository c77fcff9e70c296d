"""PodTopologySpread: the cost of pods with an unrealistic number of constraints."""

from __future__ import annotations

from fairlead.engine.plugins.pod_topology_spread.constraint import Constraint
from fairlead.engine.plugins.pod_topology_spread.spread_counts import SpreadCounts


class CountedTable:
    """A table of nodes that counts how often it is asked for a label."""

    def __init__(self, table):
        self.table = table
        self.asked = 0

    def label_column(self, key):
        self.asked += 1
        return self.table.label_column(key)

    def __getattr__(self, name):
        return getattr(self.table, name)


def test_keys_that_no_node_has_are_not_looked_up_for_each_other(scene):
    scene.node("a", "z1")
    table = CountedTable(scene.table)
    many = [Constraint(max_skew=1, topology_key=f"k{at}", selector=None) for at in range(50)]
    SpreadCounts(table, scene.incoming(), many, requires_all_keys=True).refresh()
    assert table.asked == 100

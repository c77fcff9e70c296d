"""CountsCache: which live counts are kept."""

from __future__ import annotations

import pytest

from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.topology_counts import CountsCache


class Entry:
    """An entry that records that it was dropped."""

    dropped = False

    def drop(self, pod_index):
        self.dropped = True


@pytest.fixture
def cache():
    """A cache with room for three entries."""
    table = NodeTable()
    return CountsCache(table, rows_max=3 * table.capacity)


def test_the_least_recently_used_counts_are_dropped_first(cache):
    """A lookup counts as use."""
    entries = {key: cache.put(key, Entry()) for key in "abc"}
    assert cache.get("a") is entries["a"]
    cache.put("d", Entry())
    assert [entries[key].dropped for key in "abc"] == [False, True, False]
    assert cache.get("b") is None


def test_a_replaced_or_removed_entry_is_dropped(cache):
    """Otherwise the pod_index would update it for ever."""
    old, new = cache.put("a", Entry()), Entry()
    assert cache.put("a", new) is new
    assert old.dropped
    cache.remove("a")
    cache.remove("a")
    assert new.dropped

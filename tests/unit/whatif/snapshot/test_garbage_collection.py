"""Processes with many runs free the reference cycles of earlier runs."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment_run import ExperimentRun
from fairlead.whatif.snapshot import garbage_collection
from fairlead.whatif.snapshot.garbage_collection import collect_if_grown
from fairlead.whatif.snapshot.snapshot import read_snapshot


class Cycle:
    def __init__(self):
        self.itself = self


def cycle():
    """Return a weak reference to an unreachable cycle that automatic collections do not free."""
    found = weakref.ref(Cycle())
    gc.freeze()
    gc.unfreeze()
    assert found() is not None
    return found


@pytest.fixture
def use(monkeypatch, unfrozen):
    """The memory use after the last collection, which the test may set."""
    found = garbage_collection._MemoryUse()
    monkeypatch.setattr(garbage_collection, "_use_after_collection", found)
    return found


def test_cycles_are_freed_if_memory_has_grown_by_half(use):
    lost, use.blocks = cycle(), sys.getallocatedblocks() // 2
    collect_if_grown()
    assert lost() is None


def test_cycles_are_kept_if_memory_has_not_grown(use):
    lost, use.blocks = cycle(), sys.getallocatedblocks()
    collect_if_grown()
    assert lost() is not None


def test_the_first_call_frees_nothing(use):
    lost = cycle()
    collect_if_grown()
    assert lost() is not None
    assert use.blocks


def test_nothing_is_freed_while_the_collector_is_disabled(use):
    lost, use.blocks = cycle(), 1
    gc.disable()
    try:
        collect_if_grown()
    finally:
        gc.enable()
    assert lost() is not None


def test_a_what_if_frees_the_runs_of_earlier_what_ifs(use):
    snapshot = read_snapshot("examples/store/store.yaml")
    change = ClusterChange(drain=("worker-03",))
    for _ in range(2):
        use.blocks = 1
        what_if(snapshot, change)
    runs = [one for one in gc.get_objects() if isinstance(one, ExperimentRun)]
    assert len(runs) <= 1

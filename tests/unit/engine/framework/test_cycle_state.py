"""CycleState: the data of plugins within a cycle, and the copies for dry runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fairlead.engine.framework.cycle_state import CycleState


@dataclass
class Counts:
    """Data that changes with added and removed pods, and so is cloned."""

    seen: list = field(default_factory=list)

    def clone(self):
        return Counts(list(self.seen))


@dataclass
class Facts:
    """Data that never changes within the cycle, and so is shared."""

    name: str


def test_values_are_stored_by_their_class():
    """Each plugin has its own class."""
    state = CycleState()
    state.write(Facts("a"))
    state.write(Facts("b"))
    assert state.read(Facts) == state.find(Facts) == Facts("b")
    assert state.find(Counts) is None
    with pytest.raises(KeyError):
        state.read(Counts)


def test_changes_of_a_copy_do_not_affect_the_original():
    """Values that can be cloned are cloned; skips are copied."""
    state = CycleState()
    state.write(Counts([1]))
    state.write(Facts("a"))
    state.skipped_filters["A"] = None
    copy = state.clone()
    copy.read(Counts).seen.append(2)
    copy.skipped_filters["B"] = None
    copy.skipped_scores["C"] = None
    assert state.read(Counts).seen == [1]
    assert copy.read(Facts) is state.read(Facts)
    assert (list(state.skipped_filters), list(state.skipped_scores)) == (["A"], [])

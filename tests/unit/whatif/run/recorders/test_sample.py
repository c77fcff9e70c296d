"""Samples from an instant on."""

from __future__ import annotations

from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.run.recorders.sample import samples_since


def allocation(queue, at, cpu):
    return QueueAllocation(queue, 1, {}, {"cpu": cpu}, {}, 0.0, at)


def test_earlier_samples_become_the_state_at_the_instant():
    """Of each key, the last earlier sample still holds at the instant; later samples stay."""
    samples = [
        allocation("a", 1, 1),
        allocation("b", 2, 2),
        allocation("a", 3, 3),
        allocation("b", 5, 4),
        allocation("a", 6, 5),
    ]
    found = list(samples_since(samples, 5, lambda one: one.queue))
    assert [(one.queue, one.at, one.allocated["cpu"]) for one in found] == [
        ("a", 5, 3),
        ("b", 5, 2),
        ("b", 5, 4),
        ("a", 6, 5),
    ]

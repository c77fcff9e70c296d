"""The amounts that a queue deserves and borrows."""

from __future__ import annotations

from fairlead.engine.batch.queue_usage import QueueUsage
from fairlead.whatif.outcome.deserved_amount import borrowed_amounts


def test_borrowed_amounts_are_rounded_like_deserved_amounts():
    """16 - 14.4 is 1.5999999999999996, and a share of a third of a core has no exact value."""
    usage = QueueUsage(
        name="a",
        weight=1,
        deserved={"nvidia.com/gpu": 14.4, "cpu": 1000 / 3, "memory": 10.0},
        allocated={"nvidia.com/gpu": 16, "cpu": 333, "memory": 9},
        request={},
        share=1.1,
        is_overused=False,
    )
    assert borrowed_amounts(usage) == {"nvidia.com/gpu": 1.6}

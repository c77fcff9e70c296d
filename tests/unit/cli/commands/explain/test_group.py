"""The table about the queue in the explanation of a PodGroup."""

from __future__ import annotations

import pytest
from rich.console import Console

from fairlead.cli.commands.explain.group import _print_queue
from fairlead.engine.batch.queue_usage import QueueUsage


@pytest.mark.parametrize(
    ("allocated", "is_overused", "words"),
    [
        ({"cpu": 1000, "nvidia.com/gpu": 8}, False, "no (above its share of gpu)"),
        ({"cpu": 1000, "nvidia.com/gpu": 4}, False, "no"),
        ({"cpu": 2000, "nvidia.com/gpu": 8}, True, "yes"),
    ],
)
def test_a_queue_above_its_share_of_some_resources_only_is_not_overused(
    allocated, is_overused, words
):
    """kube-batch and Volcano call a queue overused if it has its share of every resource."""
    usage = QueueUsage(
        name="a",
        weight=1,
        deserved={"cpu": 2000, "nvidia.com/gpu": 4},
        allocated=allocated,
        request=allocated,
        share=allocated["nvidia.com/gpu"] / 4,
        is_overused=is_overused,
    )
    console = Console(width=120)
    with console.capture() as printed:
        _print_queue(console, usage)
    assert printed.get().rstrip().endswith(f"  {words}")

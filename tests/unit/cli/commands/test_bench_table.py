"""The table of `fairlead bench`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairlead.cli.commands.bench import print_results

NAME = "SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods"


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (80, ["workload", "pods/s", "upstream", "times"]),
        (
            140,
            [
                *("workload", "pods/s", "seconds", "CPU", "s", "first", "ms", "p99", "ms"),
                *("peak", "MiB", "growth", "upstream", "times"),
            ],
        ),
    ],
)
def test_the_names_of_workloads_are_whole_and_columns_that_do_not_fit_are_left_out(width, headings):
    """A column without values, such as the virtual time of a simulated day, is left out too."""
    result = {
        "workload": NAME, "pods_per_second": 1234.5, "seconds": 1.25, "cpu_seconds": 1.0,
        "first_cycle_ms": 12.3, "p99_cycle_ms": 1.5, "peak_mib": 512, "growth_mib": None,
        "upstream_threshold": 90, "virtual_seconds_per_second": None,
    }  # fmt: skip
    text = io.StringIO()
    print_results(Console(file=text, width=width), [result, {**result, "growth_mib": 12}])
    head, *rows = [line for line in text.getvalue().splitlines()[1:] if line]
    assert head.split() == headings
    assert all(line.startswith(f"{NAME} ") for line in rows)
    assert max(len(line) for line in [head, *rows]) <= width

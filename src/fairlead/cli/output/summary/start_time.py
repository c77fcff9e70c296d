"""Prints the estimated start times of waiting pods, workloads and gangs."""

from __future__ import annotations

from typing import Final

from fairlead.api.text.count import counted
from fairlead.cli.output.console.fitted_table import TableColumn
from fairlead.cli.output.console.screen import Rank, Section, table_section
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.start_time import StartTimes

ROWS_MAX: Final = 10


def start_time_section(start_times: StartTimes) -> Section:
    """Return the section with percentiles of the start times of pods, workloads and gangs."""
    columns = (
        TableColumn(f"START TIMES ({len(start_times.rows):,})", is_name=True),
        TableColumn("PODS", rank=2, is_number=True),
        TableColumn("10%", is_number=True),
        TableColumn("MEDIAN", is_number=True),
        TableColumn("90%", is_number=True),
        TableColumn("STARTS IN", rank=1),
    )
    unknown = f"> {for_readers(start_times.look_ahead)}"

    def text(duration: DurationNs | None) -> str:
        return unknown if duration is None else for_readers(duration)

    rows = [
        (
            one.subject,
            f"{one.pods:,}",
            text(one.p10),
            text(one.p50),
            text(one.p90),
            f"{one.started:,}/{start_times.draws:,} simulations",
        )
        for one in start_times.rows
    ]
    what = counted(len(rows), "start time")
    return table_section(what, columns, rows, Rank.PROBLEMS, most=ROWS_MAX)

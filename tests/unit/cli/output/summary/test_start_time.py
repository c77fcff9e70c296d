"""The section of an answer with estimated start times."""

from __future__ import annotations

import pytest

from fairlead.cli.output.summary.start_time import start_time_section
from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.start_time import StartTimeRow, StartTimes


@pytest.mark.parametrize(("count", "title"), [(1, "1 start time"), (2, "2 start times")])
def test_the_line_about_omitted_sections_counts_start_times(count, title):
    row = StartTimeRow(subject="a", kind="pod", pods=1, started=0, p10=None, p50=None, p90=None)
    found = StartTimes(
        draws=20, running=1, known=1, stated=0, look_ahead=seconds(60), rows=(row,) * count
    )
    assert start_time_section(found).title == title

"""Shows a long table as a short one, whose rows stand for several rows of the long table."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.whatif.result.tabular_answer import ResultTable


def grouped_if_long(groups: ResultTable, each: ResultTable) -> tuple[ResultTable, ...]:
    """Return the tables in which an answer shows the rows of the table `each`.

    If a terminal would not show all these rows, the table `groups` comes first, and only `-o
    details` prints the table `each`. Otherwise, the result is only the table `each`. Both tables
    are part of the JSON if the answer's facts include the rows of `groups`.
    """
    if len(each.rows) <= each.shown:
        return (each,)
    return groups, replace(each, shown=0)

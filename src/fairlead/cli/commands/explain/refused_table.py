"""Prints the table of infeasible nodes: a row for each node or, for many nodes, for each reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from fairlead.cli.output.console.terminal import print_table

NAMES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class RefusedNode:
    """An infeasible node; `why` are the table cells with the reason.

    `remedy` is a change that would make the pod fit on the node. It is "" if no such change is
    known, and None if the table has no column for remedies. Smaller changes have a smaller `rank`.
    """

    node: str
    why: tuple[str, ...]
    remedy: str | None = None
    rank: int = 0


def print_refused(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[RefusedNode],
    rows_max: int | None,
) -> None:
    """Print a row for each node or, for more than `rows_max` nodes, a row for each reason.

    If `rows_max` is None, there is always a row for each node. `columns` contains a heading for
    each cell of `RefusedNode.why` and, if the nodes have remedies, a heading for the remedies. This
    function adds the heading `node` or, if there is a row for each reason, the headings `nodes` (a
    number) and `which` (names).
    """
    if rows_max is None or len(rows) <= rows_max:
        cells = [(row.node, *row.why, *_cells_of(row.remedy)) for row in rows]
        print_table(console, title, ("node", *columns), cells)
        return
    alike: dict[tuple[str, ...], list[RefusedNode]] = defaultdict(list)
    for row in rows:
        alike[row.why].append(row)
    groups = sorted(alike.items(), key=lambda group: (-len(group[1]), group[0]))
    cells = [
        (f"{len(group):,}", *why, *_cells_of(_common_remedy(group)), _names(group))
        for why, group in groups
    ]
    print_table(console, title, ("nodes", *columns, "which"), cells, numbers=("nodes",))


def _cells_of(remedy: str | None) -> tuple[str, ...]:
    return () if remedy is None else (remedy,)


def _common_remedy(group: Sequence[RefusedNode]) -> str | None:
    """Return the remedy for `group`, the nodes with the same reason.

    If the remedies of the nodes differ, return the one that is the smallest change, preceded by the
    name of its node. If no node has a remedy, return "" or None, as in `RefusedNode.remedy`.
    """
    if len({row.remedy for row in group}) == 1:
        return group[0].remedy
    row = min((row for row in group if row.remedy), key=lambda row: row.rank)
    return f"{row.node}: {row.remedy}"


def _names(group: Sequence[RefusedNode]) -> str:
    shown = ", ".join(row.node for row in group[:NAMES_MAX])
    rest = len(group) - NAMES_MAX
    return f"{shown} and {rest:,} more" if rest > 0 else shown

"""The table of nodes that are refused: one row each, or one row for all that are refused alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from fairlead.cli.terminal import print_table

NAMES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Refused:
    """A node, the cells that say why, and what would make it fit ("" where nobody knows).

    `remedy` is None where the table has no column for it.
    """

    node: str
    why: tuple[str, ...]
    remedy: str | None = None


def print_refused(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Refused],
    rows_max: int | None,
) -> None:
    """Every row, or where there are more than `rows_max` one row per reason, most nodes first.

    `columns` are what stands above the reason and, where there are any, the remedies.
    """
    if rows_max is None or len(rows) <= rows_max:
        cells = [(row.node, *row.why, *_cells_of(row.remedy)) for row in rows]
        print_table(console, title, ("node", *columns), cells)
        return
    alike: dict[tuple[str, ...], list[Refused]] = defaultdict(list)
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


def _common_remedy(group: Sequence[Refused]) -> str | None:
    """What would help all of them; else what would help the first one that can be helped."""
    if len({row.remedy for row in group}) == 1:
        return group[0].remedy
    row = next(row for row in group if row.remedy)
    return f"{row.node}: {row.remedy}"


def _names(group: Sequence[Refused]) -> str:
    shown = ", ".join(row.node for row in group[:NAMES_MAX])
    rest = len(group) - NAMES_MAX
    return f"{shown} and {rest:,} more" if rest > 0 else shown

"""Prints infeasible nodes: a table with a row for each node, or an item for each reason.

Items are printed if there are many nodes, or if the rows are too long for the console. An item:

    9 nodes: ip-10-0-28-148.eu-central-1.compute.internal and 8 more
      refused by: NodeResourcesFit
      because: Insufficient cpu
"""

from __future__ import annotations

import io
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.terminal import print_line, print_table
from fairlead.whatif.input.error import one_line

NAMES_MAX: Final = 3
_LINES_MAX: Final = 2  # lines of a row of a table, on average
_HEAD_LINES: Final = 4  # an empty line, the title, and headings in two lines
_INDENT: Final = "  "


@dataclass(frozen=True, slots=True)
class RefusedNode:
    """An infeasible node; `why` are the table cells with the reason.

    `remedy` is a change that would make the pod fit on the node. `remedy` is "" if no such change
    is known, and None if the table has no column for remedies. Smaller changes have a smaller
    `rank`.
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
) -> bool:
    """Print a row for each node, or an item for each reason; return whether nodes are left out.

    Items are printed in three cases: there are more than `rows_max` nodes, all nodes have the same
    reason and remedy, or the rows are too long for the console. An item names at most NAMES_MAX
    nodes. If `rows_max` is None, each node has its own row or item. `columns` contains a heading
    for each cell of `RefusedNode.why` and, if the nodes have remedies, a heading for the remedies.
    """
    if not rows:
        return False
    cells = [(row.node, *row.why, *_cells_of(row.remedy)) for row in rows]
    is_same = len({row[1:] for row in cells}) == 1 < len(cells)
    if rows_max is None or (len(rows) <= rows_max and not is_same):
        table = _table_lines(console, title, ("node", *columns), cells)
        if len(table) <= _LINES_MAX * len(rows) + _HEAD_LINES:
            print_table(console, title, ("node", *columns), cells)
            return False
    alike: dict[tuple[str, ...], list[RefusedNode]] = defaultdict(list)
    for row in rows:
        alike[(row.node,) if rows_max is None else row.why].append(row)
    groups = sorted(alike.values(), key=lambda group: (-len(group), group[0].why, group[0].node))
    console.print()
    print_line(console, title, "bold")
    for group in groups:
        _print_group(console, columns, group)
    return any(len(group) > NAMES_MAX for group in groups)


def _table_lines(
    console: Console, title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> list[str]:
    """Return the lines that the table takes on `console`."""
    text = io.StringIO()
    print_table(Console(file=text, width=console.width), title, columns, cells)
    return text.getvalue().splitlines()


def _print_group(console: Console, columns: Sequence[str], group: Sequence[RefusedNode]) -> None:
    """Print the names of the nodes in `group`, and below them their common reason."""
    count = "" if len(group) == 1 else f"{len(group):,} nodes: "
    names = listed([row.node for row in group], NAMES_MAX)
    _print_indented(console, f"{count}{names}", "")
    texts = (*group[0].why, *_cells_of(_common_remedy(group)))
    for heading, text in zip(columns, texts, strict=True):
        if text:
            _print_indented(console, f"{heading}: {text}", _INDENT)


def _print_indented(console: Console, text: str, indent: str) -> None:
    """Print `text` with `indent`; further lines are indented more, and names are not broken."""
    lines = textwrap.wrap(
        one_line(text, None), console.width,
        initial_indent=indent, subsequent_indent=f"{indent}{_INDENT}",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    for line in lines:
        console.print(Text(line), soft_wrap=True)


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

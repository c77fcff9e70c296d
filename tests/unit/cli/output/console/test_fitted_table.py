"""Tables that fit the width of the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn


def printed(table, width, *, is_terminal=False):
    out = io.StringIO()
    table.print(Console(file=out, width=width, force_terminal=is_terminal, no_color=True))
    return [re.sub(r"\x1b\[\d*m", "", line) for line in out.getvalue().splitlines()[1:]]


def test_the_lines_of_a_command_end_in_a_backslash():
    rows = [
        ("a", "kubectl -n shop scale deployment web --replicas 2"),
        ("b", "the pods of the workload have no labels that select them"),
    ]
    columns = (TableColumn("NODE", is_name=True), TableColumn("CHANGE"))
    assert printed(FittedTable(columns, rows), 36) == [
        "NODE  CHANGE",
        "a     kubectl -n shop scale \\",
        "      deployment web --replicas 2",
        "b     the pods of the workload have",
        "      no labels that select them",
    ]


@pytest.mark.parametrize(
    ("is_terminal", "name"),
    [(True, "worker-…-east-1a"), (False, "worker-node-17-of-pool-east-1a")],
)
def test_names_are_shortened_only_on_a_terminal(is_terminal, name):
    """`fairlead snapshot --reveal` finds a pseudonym in a file only if it is complete."""
    columns = tuple(TableColumn(heading, is_name=True) for heading in ("FROM", "TO"))
    rows = [("worker-node-17-of-pool-east-1a",) * 2]
    [_, line] = printed(FittedTable(columns, rows), 34, is_terminal=is_terminal)
    assert line.split() == [name, name]


def test_text_beside_complete_names_is_printed_below_them():
    columns = (TableColumn("POD", is_name=True), TableColumn("WHY"))
    rows = [("a-name-that-takes-all-of-the-line", "one two three four five six seven eight nine")]
    assert printed(FittedTable(columns, rows), 34) == [
        "POD",
        "    WHY",
        "a-name-that-takes-all-of-the-line",
        "    one two three four five six",
        "    seven eight nine",
    ]

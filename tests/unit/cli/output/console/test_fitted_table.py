"""Tables that fit the width of the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn


def printed(table, width):
    out = io.StringIO()
    table.print(Console(file=out, width=width))
    return out.getvalue().splitlines()[1:]


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

"""Prints an answer in tables: as text for one screen, as JSON, or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec
from rich.console import Console

from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.terminal import print_line, stdout_console
from fairlead.cli.output.result_file import print_bytes
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import one_line
from fairlead.whatif.result.table import cell_text
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)

MARKDOWN_ROWS_MAX: Final = 100  # a comment has a limit of 65,536 characters
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def print_tabular(answer: TabularAnswer, output: Literal["text", "json", "markdown"]) -> None:
    """Print `answer` to standard output in the format `output`."""
    match output:
        case "json":
            encoded = msgspec.json.encode(answer.to_json())
            print_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
        case "markdown":
            print_bytes(("\n".join(_markdown(answer)) + "\n").encode())
        case _:
            _print_text(answer, stdout_console())


def _print_text(answer: TabularAnswer, console: Console) -> None:
    console.print(one_line(answer.verdict, 2_000), style="bold")
    for finding in answer.findings:
        console.print(one_line(finding, 2_000))
    for table in answer.tables:
        _print_table(table, console)
    if answer.notes:
        console.print()
    for note in answer.notes:
        console.print(f"Note: {one_line(note, 1_000)}", style="dim")


def _print_table(table: ResultTable, console: Console) -> None:
    if not table.rows or not table.shown:
        return
    console.print()
    print_line(console, f"{table.title[0].upper()}{table.title[1:]}:", "bold")
    columns = [
        TableColumn(
            one.heading.upper(),
            rank=one.rank,
            is_number=one.form in (NUMBER, SECONDS),
            is_name=one.form == NAME,
        )
        for one in table.columns
    ]
    rows = [[_cell(row.get(one.key), one) for one in table.columns] for row in table.rows]
    FittedTable(columns, rows[: table.shown]).print(console)
    if len(rows) > table.shown:
        more = f"... and {len(rows) - table.shown:,} more (-o json lists all)"
        print_line(console, more, "dim")


def _cell(value: Any, column: ResultColumn) -> str:
    if column.form == SECONDS and isinstance(value, int | float):
        return for_readers(seconds(value))
    return cell_text(value)


def _markdown(answer: TabularAnswer) -> Iterator[str]:
    yield f"### {_escaped(answer.verdict)}"
    yield ""
    yield from (f"- {_escaped(finding)}" for finding in answer.findings)
    for table in answer.tables:
        if table.rows:
            yield ""
            yield f"<details><summary>{_escaped(table.title)} ({len(table.rows):,})</summary>"
            yield ""
            yield from _markdown_table(table)
            yield ""
            yield "</details>"
    if answer.notes:
        yield ""
    yield from (f"- {_escaped(note)}" for note in answer.notes)


def _markdown_table(table: ResultTable) -> Iterator[str]:
    yield f"| {' | '.join(one.heading for one in table.columns)} |"
    yield f"|{' --- |' * len(table.columns)}"
    for row in table.rows[:MARKDOWN_ROWS_MAX]:
        cells = (_escaped(_cell(row.get(one.key), one)) for one in table.columns)
        yield f"| {' | '.join(cells)} |"
    if len(table.rows) > MARKDOWN_ROWS_MAX:
        yield ""
        yield f"... and {len(table.rows) - MARKDOWN_ROWS_MAX:,} more"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))

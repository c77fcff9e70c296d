"""Prints an answer that consists of tables: as text for one screen, as JSON, or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec
from rich.console import Console

from fairlead.api.text.count import counted
from fairlead.cli.output.console.fitted_table import TableColumn
from fairlead.cli.output.console.screen import (
    DETAILS,
    Rank,
    Section,
    print_screen,
    rows_of,
    table_section,
)
from fairlead.cli.output.console.step import print_step
from fairlead.cli.output.console.terminal import print_line, stdout_console
from fairlead.cli.output.markdown_limit import within_limit
from fairlead.cli.output.result_file import print_bytes
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import one_line
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.result.table import cell_text
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)

_ROWS_MIN: Final = 4
_WORDS_MAX: Final = 4  # number of different steps that the line about long commands names
_CODE_MAX: Final = 1200  # characters; on a terminal of 120 columns, these are ten lines
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def print_tabular(
    answer: TabularAnswer, output: Literal["text", "details", "json", "markdown"]
) -> None:
    """Print `answer` to standard output in the format `output`.

    The format `text` fits one screen, and the format `details` has all rows.
    """
    match output:
        case "json":
            encoded = msgspec.json.encode(answer.to_json())
            print_bytes(msgspec.json.format(encoded, indent=2) + b"\n")
        case "markdown":
            print_bytes(_markdown(answer).encode())
        case _:
            sections = _sections(answer)
            print_screen(stdout_console(), sections, has_details=output == "details")


def _sections(answer: TabularAnswer) -> Iterator[Section]:
    """Yield the sections in the order of output: the head, the tables and the notes.

    If there are not enough lines for all tables, earlier tables get lines first.
    """

    def show_head(console: Console, count: int) -> None:
        del count
        console.print(one_line(answer.verdict, None), style="bold")
        for finding in answer.findings:
            console.print(one_line(finding, None))

    def show_notes(console: Console, count: int) -> None:
        console.print()
        shown = rows_of(answer.notes, count)
        for note in shown:
            console.print(f"Note: {one_line(note, None)}", style="dim")
        if rest := len(answer.notes) - len(shown):
            print_line(console, f"... and {rest:,} more notes", "dim")

    notes = len(answer.notes)
    yield Section("", 1, show_head, Rank.HEAD)
    yield _steps(answer.steps or ())
    for table in answer.tables:
        yield _section(table)
    # The first note can concern the whole answer: that an autoscaler would add nodes, for example.
    yield Section("notes", notes, show_notes, Rank.PROBLEMS, most=notes, is_urgent=True)


def _steps(steps: Sequence[NextStep]) -> Section:
    """Return the section of the next steps.

    If an answer is limited to one screen, either all commands are shown or none. Running only some
    of them can do harm. Commands with more than _CODE_MAX characters in total would leave no room
    for the tables. In their place, one line says what the commands do, and which option prints
    them.
    """
    is_long = sum(len(one.code) for one in steps) > _CODE_MAX

    def show(console: Console, count: int) -> None:
        console.print()
        if is_long and count == 1:
            words = list(dict.fromkeys(one.words for one in steps))
            more = f"; and {len(words) - _WORDS_MAX:,} more" if len(words) > _WORDS_MAX else ""
            what = f"{'; '.join(words[:_WORDS_MAX])}{more}"
            commands = "the command" if len(steps) == 1 else f"the {len(steps):,} commands"
            print_line(console, f"Next: {what}. {DETAILS} prints {commands}.")
            return
        for one in steps[:count]:
            print_step(console, one)
        if (rest := len(steps) - count) > 0:
            print_line(console, f"... and {counted(rest, 'more step')}", "dim")

    title = f"the commands ({len(steps)})"
    # If the commands are long, the first row is the line about them.
    rows = len(steps) + is_long
    shown = 1 if is_long else rows
    return Section(title, rows, show, Rank.NEXT_STEPS, shown, shown, is_urgent=True)


def _rank(table: ResultTable) -> Rank:
    if table.has_remedies:
        return Rank.NEXT_STEPS
    return Rank.VERDICTS if table.shown else Rank.CAUSES


def _section(table: ResultTable) -> Section:
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
    what = f"{table.title} ({len(rows):,})"
    inner = table_section(what, columns, rows, _rank(table))

    def show(console: Console, count: int) -> None:
        console.print()
        print_line(console, f"{_heading(table)}:", "bold")
        inner.show(console, count)

    # `shown` is 0 for a table that is printed only with -o details.
    least, most = (min(_ROWS_MIN, table.shown), table.shown) if table.shown else (0, 0)
    return Section(what, len(rows), show, inner.rank, least, most, left_out=inner.left_out)


def _cell(value: Any, column: ResultColumn) -> str:
    if column.form == SECONDS and isinstance(value, int | float):
        return for_readers(seconds(value))
    return cell_text(value)


def _markdown(answer: TabularAnswer) -> str:
    def tables(rows_max: int) -> Iterator[str]:
        return _markdown_tables(answer, rows_max)

    notes = [f"- {_escaped(note)}" for note in answer.notes]
    return within_limit(list(_markdown_head(answer)), tables, ["", *notes] if notes else [])


def _markdown_head(answer: TabularAnswer) -> Iterator[str]:
    yield f"### {_escaped(answer.verdict)}"
    yield ""
    yield from (f"- {_escaped(finding)}" for finding in answer.findings)
    if answer.steps:
        yield ""
        yield "Next:"
        yield ""
    for step in answer.steps or ():
        code = one_line(step.code, None).replace("`", "'")
        yield f"- {_escaped(step.clause)}: `{code}`"


def _markdown_tables(answer: TabularAnswer, rows_max: int) -> Iterator[str]:
    """Yield the lines of the tables: the first one, and all others in closed <details>."""
    tables = [table for table in answer.tables if table.rows]
    for table in tables[:1]:
        yield ""
        yield from _markdown_table(table, rows_max)
    for table in tables[1:]:
        yield ""
        yield f"<details><summary>{_escaped(_heading(table))} ({len(table.rows):,})</summary>"
        yield ""
        yield from _markdown_table(table, rows_max)
        yield ""
        yield "</details>"


def _heading(table: ResultTable) -> str:
    return f"{table.title[0].upper()}{table.title[1:]}"


def _markdown_table(table: ResultTable, rows_max: int) -> Iterator[str]:
    yield f"| {' | '.join(one.heading for one in table.columns)} |"
    yield f"|{' --- |' * len(table.columns)}"
    for row in table.rows[:rows_max]:
        cells = (_escaped(one_line(_cell(row.get(one.key), one))) for one in table.columns)
        yield f"| {' | '.join(cells)} |"
    if len(table.rows) > rows_max:
        yield ""
        yield f"... and {len(table.rows) - rows_max:,} more"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text, None))

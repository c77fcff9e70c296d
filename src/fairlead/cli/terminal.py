"""Plain text on a terminal: lines and tables in which nothing that users' files say is markup."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairlead.whatif.input_error import one_line

WIDTH_WITHOUT_TERMINAL: Final = 120


class _PatientConsole(Console):
    """A console whose reader may leave (`| head`): the rest is for nobody, the work goes on."""

    def on_broken_pipe(self) -> None:
        """Go on in silence; rich would end the process."""
        self.quiet = True
        nobody_reads_stdout()


def nobody_reads_stdout() -> None:
    """Let what is still to be written go nowhere, so that the interpreter does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def stdout_console() -> Console:
    """Stdout; wide enough for tables where it is no terminal."""
    console = _PatientConsole(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = WIDTH_WITHOUT_TERMINAL
    return console


def stderr_console() -> Console:
    """Stderr, likewise."""
    console = Console(stderr=True, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = WIDTH_WITHOUT_TERMINAL
    return console


def print_line(console: Console, text: str, style: str = "") -> None:
    """One line."""
    console.print(Text(one_line(text), style=style))


def print_table(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[str] = (),
    rows_max: int | None = None,
) -> None:
    """The first rows under `title`, and how many more there are; nothing at all for no rows.

    `numbers` are the columns that stand right-aligned.
    """
    if not rows:
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows[:rows_max]:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console.print()
    console.print(table)
    if rows_max is not None and len(rows) > rows_max:
        print_line(console, f"... and {len(rows) - rows_max:,} more", style="dim")

"""Plain lines and tables on a terminal; text from users' files is never interpreted as markup."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fairlead.cli.output.console.progress_bar import is_terminal
from fairlead.cli.output.result_file import discard_stdout
from fairlead.whatif.input.error import one_line
from fairlead.whatif.input.mapped_file import require_unchanged_files

WIDTH_WITHOUT_TERMINAL: Final = 120
_BULLET: Final = "- "
GAP: Final = 2  # spaces between the columns of a table
_WIDTH_MAX: Final = 10_000  # rich fills lines with spaces, which takes memory


class _Trimmed:
    """A renderable without the spaces at the ends of its lines.

    rich pads the cells of tables, and keeps the space at which it breaks a line.
    """

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the trimmed lines as segments; a last line without a line break is not trimmed."""
        rendered = console.render(self._renderable, options)
        for line, has_end in Segment.split_lines_terminator(rendered):
            if has_end:
                yield from _trimmed(line)
                yield Segment.line()
            else:
                yield from line


def _trimmed(line: list[Segment]) -> list[Segment]:
    """Return `line` without the spaces at its end; control codes are kept."""
    kept: list[Segment] = []
    is_end = True
    for segment in reversed(line):
        text = segment.text
        if is_end and not segment.control:
            text = text.rstrip(" ")
            is_end = not text
        if text:
            kept.append(Segment(text, segment.style, segment.control))
    return kept[::-1]


class _TrimmingHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Trimmed(one) for one in renderables]


class _PipeConsole(Console):
    """A console that ignores a closed stdout (`| head`), so that the command still completes."""

    def on_broken_pipe(self) -> None:
        """Discard further output. Without this method, rich would exit the process."""
        self.quiet = True
        discard_stdout()


def stdout_console() -> Console:
    """Return a console for stdout, without spaces at the ends of lines.

    If stdout is not a terminal, the width is the value of COLUMNS. If there is no valid width, the
    console is wide enough for tables. Raises InputError if the command's input file has been
    changed since it was read (`mapped_file`).
    """
    require_unchanged_files()
    console = _console(_PipeConsole, sys.stdout)
    console.push_render_hook(_TrimmingHook())
    is_set = console.is_terminal or os.environ.get("COLUMNS")
    if not is_set or not 1 <= console.width <= _WIDTH_MAX:
        console.width = WIDTH_WITHOUT_TERMINAL
    return console


def stderr_console() -> Console:
    """Return a console for stderr, wide enough for tables if stderr is not a terminal."""
    console = _console(Console, sys.stderr)
    if not console.is_terminal:
        console.width = WIDTH_WITHOUT_TERMINAL
    return console


def _console(kind: type[Console], stream: TextIO) -> Console:
    """Return a console of the class `kind` for stdout or stderr (`stream`).

    FORCE_COLOR adds colours, but does not make a pipe a terminal: names are not shortened, rows are
    not limited by the height of a screen, and a status line is not shown.
    """
    make = partial(kind, stderr=stream is sys.stderr, highlight=False, emoji=False, markup=False)
    console = make()
    if console.is_terminal and not is_terminal(stream):
        color_system: Any = console.color_system  # rich's type for it is private
        console = make(force_terminal=False, color_system=color_system)
    return console


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print `text` as a line of its own, which is wrapped if it is too long for the console.

    Line breaks and control characters in `text` are replaced by spaces.
    """
    console.print(Text(one_line(text, None), style=style))


def print_item(console: Console, text: str) -> None:
    """Print `text` as an item of a list; the item's further lines are indented."""
    lines = Text(one_line(text, None)).wrap(console, max(console.width - len(_BULLET), 1))
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text(_BULLET if number == 0 else " " * len(_BULLET)).append_text(line))


def print_facts(
    console: Console, facts: Sequence[str], style: str = "", separator: str = " · "
) -> None:
    """Print `facts` in as few lines as possible; lines end between two facts.

    Only a fact that is too long for a line is wrapped.
    """
    lines: list[str] = []
    for fact in (one_line(one, None) for one in facts):
        if lines and cell_len(lines[-1] + separator + fact) <= console.width:
            lines[-1] += separator + fact
        else:
            lines.append(separator.lstrip() + fact if lines else fact)
    for line in lines:
        console.print(Text(line, style=style))


def table_width(columns: Sequence[str], cells: Sequence[int]) -> int:
    """Return the width of a table with the headings `columns`.

    `cells` has the width of the widest cell of each column, without the heading.
    """
    widths = (max(cell_len(column), width) for column, width in zip(columns, cells, strict=True))
    return sum(widths) + GAP * (len(columns) - 1)


def _longest_word(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def print_table(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[str] = (),
    rows_max: int | None = None,
) -> None:
    """Print the first `rows_max` rows under `title`, and the number of further rows.

    If `rows_max` is None, all rows are printed. If there are no rows, nothing is printed. `numbers`
    are the headings of right-aligned columns. If the table is too wide, headings are wrapped before
    cells, and cells of the first column, which are names, are wrapped last.
    """
    if not rows:
        return
    shown = [[one_line(cell) for cell in row] for row in rows[:rows_max]]
    cells = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    is_wide = table_width(columns, cells) > console.width
    words = [_longest_word(texts) for texts in zip(columns, *shown, strict=True)]
    has_room = cells[0] + sum(words[1:]) + GAP * (len(words) - 1) <= console.width
    table = Table(box=None, pad_edge=False)
    for column, width in zip(columns, cells, strict=True):
        is_number = column in numbers
        least = max(width, *map(cell_len, column.split() or [column]))
        table.add_column(
            column,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=has_room and column == columns[0],
            max_width=least if is_wide and not is_number else None,
        )
    for row in shown:
        table.add_row(*map(Text, row))
    console.print()
    print_line(console, title, "bold")
    console.print(table)
    if rows_max is not None and len(rows) > rows_max:
        print_line(console, f"... and {len(rows) - rows_max:,} more", style="dim")

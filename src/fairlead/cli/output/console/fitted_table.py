"""FittedTable: a table that fits the width of the terminal without wrapping names.

If the rows are too wide, the least important columns are dropped first. Then headings are wrapped,
and names are shortened in the middle, where they differ least. Text in the last column is wrapped,
or printed below its row if the column is too narrow.

Output that is not a terminal has complete names, because programs read it. For example, `fairlead
snapshot --reveal` replaces only complete pseudonyms.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fairlead.cli.output.console.shell_command import command_lines
from fairlead.cli.output.console.terminal import GAP
from fairlead.whatif.input.error import one_line

NAME_MIN: Final = 16  # A column of names is not made narrower than this.
WORDS_MIN: Final = 24  # A last column of text needs no more than this; longer text is wrapped.
WORDS_LEAST: Final = 10  # No line of text is narrower, even if the table is then too wide.
NARROW: Final = 40  # Text in a column that is not wider than this is hard to read in many lines.
NARROW_LINES_MAX: Final = 3
_INDENT: Final = 4  # of text below its row
_ELLIPSIS: Final = "…"
_COMMANDS: Final = ("kubectl ", "fairlead ")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column and its heading.

    If a table is too wide, columns with the highest `rank` are dropped first. Columns with rank 0
    are always kept. If `is_number` is set, the cells are aligned to the right. If `is_name` is set,
    the cells may be shortened on a terminal.
    """

    heading: str
    rank: int = 0
    is_number: bool = False
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table of columns and rows.

    `styles` contains the style of each row in rich's syntax. Rows without a style are plain. The
    first column is always printed. Any other column is not printed if all its cells are empty.
    """

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str]]
    styles: Sequence[str] = field(default=())

    def print(self, console: Console) -> None:
        """Print the headings and rows; print nothing if there are no rows."""
        if not self.rows:
            return
        console.print(Text(""))
        for line, style in self._lines(console.width, shortens=console.is_terminal):
            console.print(
                Text(line.rstrip(), style=style), no_wrap=True, overflow="ignore", crop=False
            )

    def left_out(self, width: int) -> list[str]:
        """Return the headings of the columns that do not fit into `width` characters."""
        cells = [[one_line(cell) for cell in row] for row in self.rows]
        filled = self._filled_columns(cells)
        shown = self._fit_columns(filled, cells, width)
        return [self.columns[n].heading for n in filled if n not in shown]

    def _filled_columns(self, cells: Sequence[Sequence[str]]) -> list[int]:
        """Return the indices of the columns with text, and of the first column."""
        return [n for n in range(len(self.columns)) if n == 0 or any(row[n] for row in cells)]

    def height(self, console: Console) -> int:
        """Return the number of lines that `print` prints."""
        if not self.rows:
            return 0
        return 1 + sum(1 for _ in self._lines(console.width, shortens=console.is_terminal))

    def _lines(self, width: int, *, shortens: bool) -> Iterator[tuple[str, str]]:
        """Yield (line, style) for each line of a table that fits in `width` characters.

        If `shortens` is not set, names are complete, and lines may exceed `width`.
        """
        cells = [[one_line(cell) for cell in row] for row in self.rows]
        shown = self._fit_columns(self._filled_columns(cells), cells, width)
        widths = self._fit_names(shown, cells, width, shortens=shortens)
        below = self._text_below(shown, cells, widths)
        if below is not None:
            shown = shown[:-1]
            widths = self._fit_names(shown, cells, width, shortens=shortens)
        for text in self._headings(shown, widths):
            yield text, "bold"
        if below is not None:
            yield " " * _INDENT + self.columns[below].heading, "bold"
        for number, row in enumerate(cells):
            style = self.styles[number] if number < len(self.styles) else ""
            for text in self._row(shown, [row[n] for n in shown], widths):
                yield text, style
            if below is not None:
                for text in _wrapped(row[below], max(width - _INDENT, WORDS_LEAST)):
                    yield " " * _INDENT + text, style

    def _text_below(
        self, shown: Sequence[int], cells: Sequence[Sequence[str]], widths: Sequence[int]
    ) -> int | None:
        """Return the index of the last column if its text is printed below each row, else None."""
        if len(shown) == 1 or not self._has_words(shown) or widths[-1] > NARROW:
            return None
        lines = max(len(_wrapped(row[shown[-1]], widths[-1])) for row in cells)
        return shown[-1] if lines > NARROW_LINES_MAX else None

    def _fit_columns(
        self, shown: list[int], cells: Sequence[Sequence[str]], width: int
    ) -> list[int]:
        """Return the indices of the columns to print: those in `shown` that fit into `width`."""
        while True:
            droppable = [n for n in shown if self.columns[n].rank]
            if not droppable or sum(self._widths(shown, cells)) + GAP * (len(shown) - 1) <= width:
                return shown
            worst = max(droppable, key=lambda n: self.columns[n].rank)
            shown = [n for n in shown if n != worst]

    def _widths(
        self,
        shown: Sequence[int],
        cells: Sequence[Sequence[str]],
        *,
        wraps_headings: bool = False,
    ) -> list[int]:
        """Return the width that each of the columns `shown` needs.

        If the last column contains sentences, the column needs at most WORDS_MIN, because sentences
        can be wrapped. If `wraps_headings` is set, a heading needs only the width of its longest
        word.
        """
        headings = [self.columns[n].heading for n in shown]
        words = [text.split() if wraps_headings else [text] for text in headings]
        widths = [
            max(*map(cell_len, parts or [""]), *(cell_len(row[n]) for row in cells))
            for n, parts in zip(shown, words, strict=True)
        ]
        if self._has_words(shown):
            widths[-1] = min(widths[-1], WORDS_MIN)
        return widths

    def _has_words(self, shown: Sequence[int]) -> bool:
        last = self.columns[shown[-1]]
        return not last.is_name and not last.is_number

    def _fit_names(
        self, shown: Sequence[int], cells: Sequence[Sequence[str]], width: int, *, shortens: bool
    ) -> list[int]:
        widths = self._widths(shown, cells)
        excess = sum(widths) + GAP * (len(shown) - 1) - width
        for at, narrow in enumerate(self._widths(shown, cells, wraps_headings=True)):
            saved = min(max(excess, 0), widths[at] - narrow)
            widths[at] -= saved
            excess -= saved
        while shortens and excess > 0:
            names = [
                at for at, n in enumerate(shown)
                if self.columns[n].is_name and widths[at] > NAME_MIN
            ]  # fmt: skip
            if not names:
                break
            widest = max(names, key=widths.__getitem__)
            widths[widest] -= 1
            excess -= 1
        if self._has_words(shown):
            # On a terminal that is too narrow for the other columns, the text gets what is left.
            widths[-1] = max(widths[-1] - excess, min(widths[-1], WORDS_LEAST))
        return widths

    def _headings(self, shown: Sequence[int], widths: Sequence[int]) -> Iterator[str]:
        """Yield the lines of the headings, which are aligned at the bottom."""
        wrapped = [
            _wrapped(self.columns[n].heading, width) for n, width in zip(shown, widths, strict=True)
        ]
        height = max(map(len, wrapped))
        columns = [[""] * (height - len(lines)) + lines for lines in wrapped]
        for line in zip(*columns, strict=True):
            parts = [
                text.rjust(width) if self.columns[n].is_number else text.ljust(width)
                for n, width, text in zip(shown, widths, line, strict=True)
            ]
            yield (" " * GAP).join(parts)

    def _row(
        self, shown: Sequence[int], cells: Sequence[str], widths: Sequence[int]
    ) -> Iterator[str]:
        """Yield the lines of one row; only text in the last column takes several lines."""
        words = self._has_words(shown)
        last = _wrapped(cells[-1], widths[-1]) if words else []
        first = [*cells[:-1], last[0] if last else ""] if words else list(cells)
        parts = []
        for at, (n, cell) in enumerate(zip(shown, first, strict=True)):
            fitted = cell if words and at == len(shown) - 1 else elided(cell, widths[at])
            space = " " * (widths[at] - cell_len(fitted))
            parts.append(space + fitted if self.columns[n].is_number else fitted + space)
        yield (" " * GAP).join(parts)
        indent = sum(widths[:-1]) + GAP * (len(shown) - 1)
        for line in last[1:]:
            yield " " * indent + line


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of `text`, broken at spaces; a word that is too long is broken as well.

    A shell command is broken so that it can be copied into a shell (`command_lines`).
    """
    if text.startswith(_COMMANDS):
        return command_lines(text, width)
    return textwrap.wrap(text, width, break_on_hyphens=False)


def elided(text: str, width: int) -> str:
    """Return `text`; if it is wider than `width`, an ellipsis replaces its middle.

    Example: if `width` is 16, deploy/payments/checkout-api becomes deploy/…kout-api.
    """
    if cell_len(text) <= width:
        return text
    kept = max(width - 1, 2)
    head = kept // 2
    return f"{text[:head]}{_ELLIPSIS}{text[len(text) - (kept - head) :]}"

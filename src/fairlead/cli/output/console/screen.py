"""Screen: prints an answer as sections of text that share the lines of one screen.

Sections get rows in these steps. Within a step, sections with lower ranks come first. From step 2
on, a section gets only rows that fit on the screen.

1. Each section with rank 0 gets all its rows.
2. Each section with Rank.NEXT_STEPS gets one row.
3. Each urgent section with a rank of at most Rank.PROBLEMS gets its minimum number of rows.
4. Each section with Rank.NEXT_STEPS gets its minimum number of rows.
5. Each other section with a rank of at most Rank.PROBLEMS gets one row.
6. Each section with a rank of at most Rank.ADVICE gets its minimum number of rows, urgent sections
   first.
7. Each section gets more rows, up to its maximum number.

If rows are left out, the last lines of the screen name the option that prints everything. The last
lines also name the sections that got no row, as many as fit, in the order of their ranks. Sections
are printed in the order of the answer, regardless of their rank.

    head      rank 0   7 lines   7 printed
    workloads rank 2  104 rows  14 printed: all lines that the other sections do not need
    pods      rank 6  976 rows   0 printed: "Not shown: 976 pods evicted or moved. ..."
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.terminal import print_line

Row = TypeVar("Row")

LINES_MAX: Final = 40  # Lines of a screen if output is not a terminal.
_LINES_MIN: Final = 22  # On a terminal of 24 lines, the command and the next prompt take two lines.
_LAST_LINES: Final = 2  # Lines at the end that name what is not shown.
DETAILS: Final = "-o details"  # The option of a command that prints all rows.


class Rank(IntEnum):
    """The order in which sections get lines of the screen; lower ranks get lines first."""

    HEAD = 0
    NEXT_STEPS = 1  # an answer about a problem must at least say what to do next
    VERDICTS = 2  # verdicts for each workload, node pool and budget
    PROBLEMS = 3
    CAUSES = 4
    ADVICE = 5
    MOVES = 6
    PROGRESS = 7
    EXPLANATIONS = 8


def _nothing(count: int, width: int) -> Sequence[str]:
    """Return (): the section has no table, or no column that may be left out."""
    del count, width
    return ()


@dataclass(frozen=True, slots=True)
class Section:
    """A section of an answer.

    Sections of lower `rank` get lines first. If `is_urgent` is set, the section gets its first rows
    earlier (see the module's docstring). A section with rank 0 prints all its rows. Any other
    section prints between `least` and `most` rows. If `least` rows do not fit, a section with a
    rank of at most Rank.ADVICE prints fewer rows, and a section with a greater rank prints none.
    """

    title: str  # the section's name in the line about omitted sections, such as `976 pods moved`
    rows: int  # the number of rows
    show: Callable[[Console, int], None]  # `show(console, n)` prints the first n rows
    rank: int
    least: int = 1
    most: int = 6
    # Whether a section with a rank of at most Rank.ADVICE gets its `least` rows before the other
    # sections get more than one.
    is_urgent: bool = False
    # `left_out(n, width)` returns the headings of the columns that do not fit into `width`
    # characters if the section prints n rows.
    left_out: Callable[[int, int], Sequence[str]] = _nothing


def print_screen(
    console: Console, sections: Iterable[Section], *, has_details: bool, has_head: bool = False
) -> None:
    """Print `sections` on one screen, or every row of every section if `has_details` is set.

    If `has_head` is set, the screen already shows the sections of Rank.HEAD.

    If rows are left out, a line at the end names the option DETAILS. Every command that calls this
    function must therefore have that option. The line also names columns that do not fit. A screen
    has two lines fewer than the terminal, but at least _LINES_MIN. If the output is not a terminal,
    a screen has LINES_MAX lines.
    """
    filled = [one for one in sections if one.rows]
    if has_details:
        for one in filled:
            if not (has_head and one.rank == Rank.HEAD):
                one.show(console, one.rows)
        _print_last(console, _narrow_words(filled, [one.rows for one in filled], console.width))
        return
    rows = _share(filled, console, _lines(console) - _LAST_LINES)
    for one, shown in zip(filled, rows, strict=True):
        if shown and not (has_head and one.rank == Rank.HEAD):
            one.show(console, shown)
    narrow = _narrow_words(filled, rows, console.width)
    by_rank = sorted(zip(filled, rows, strict=True), key=lambda pair: pair[0].rank)
    left_out = [one.title for one, shown in by_rank if not shown]
    is_cut = any(one.rows > shown + 1 for one, shown in zip(filled, rows, strict=True))
    text = narrow
    if left_out:
        text = _not_shown(left_out, narrow, console.width)
    elif is_cut:
        text = f"{DETAILS} prints all rows. {narrow}".strip()
    _print_last(console, text)


def _print_last(console: Console, text: str) -> None:
    if text:
        console.print(Text(text, style="dim"), soft_wrap=False)


def _narrow_words(sections: Sequence[Section], rows: Sequence[int], width: int) -> str:
    """Return a sentence about the columns that do not fit into `width` characters; "" if all fit.

    `rows` is the number of printed rows of each section.
    """
    pairs = zip(sections, rows, strict=True)
    found = (one.left_out(count, width) for one, count in pairs if count)
    names = list(dict.fromkeys(name for headings in found for name in headings))
    if not names:
        return ""
    return f"No room for {'column' if len(names) == 1 else 'columns'} {listed(names)}."


def _not_shown(titles: Sequence[str], narrow: str, width: int) -> str:
    """Return the text about the sections `titles`, of which no row is printed.

    The text names as many titles as fit in `_LAST_LINES` lines, but at least one. The sentence
    `narrow` follows.
    """
    for most in range(len(titles), 0, -1):
        others = len(titles) - most
        more = f" and {counted(others, 'other section')}" if others else ""
        text = f"Not shown: {', '.join(titles[:most])}{more}. {DETAILS} prints all rows. {narrow}"
        if not narrow:
            text = f"Not shown: {', '.join(titles[:most])}{more}. {DETAILS} prints everything."
        if len(textwrap.wrap(text, width, break_on_hyphens=False)) <= _LAST_LINES:
            break
    return text


def table_section(
    title: str,
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[str]],
    rank: int,
    *,
    least: int = 1,
    most: int = 6,
    is_urgent: bool = False,
) -> Section:
    """Return a section that prints a table, and below it the number of rows that are left out.

    `title`, `rank`, `least`, `most` and `is_urgent` have the same meaning as in Section.
    """

    def show(console: Console, count: int) -> None:
        shown = rows_of(rows, count)
        FittedTable(columns, shown).print(console)
        if rest := len(rows) - len(shown):
            print_line(console, f"... and {rest:,} more", "dim")

    def left_out(count: int, width: int) -> Sequence[str]:
        return FittedTable(columns, rows_of(rows, count)).left_out(width)

    return Section(title, len(rows), show, rank, least, most, is_urgent, left_out)


def rows_of(rows: Sequence[Row], count: int) -> Sequence[Row]:
    """Return the first `count` rows; if there are `count` + 1 rows, return all of them.

    A line that says "1 more" would take as much space as the last row.
    """
    return rows if len(rows) <= count + 1 else rows[:count]


def _lines(console: Console) -> int:
    # A pipe has no height, although a parent process may have set LINES (readline does).
    if console.is_terminal:
        return max(console.height - 2, _LINES_MIN)
    return LINES_MAX


def _share(sections: Sequence[Section], console: Console, lines: int) -> list[int]:
    """Return how many rows each section prints, so that all fit in `lines` lines of `console`."""
    rows = [0] * len(sections)
    heights = [0] * len(sections)

    def grow(at: int, count: int) -> bool:
        """Give `count` rows to section number `at`; return False if they do not fit on the screen.

        Sections of rank 0 get their rows even if they do not fit.
        """
        section = sections[at]
        height = _height(section, count, console)
        if section.rank and sum(heights) - heights[at] + height > lines:
            return False
        rows[at], heights[at] = count, height
        return True

    for at, least in _minimums(sections):
        count = least
        while count > rows[at] and not grow(at, count):
            count -= 1
    for at in _by_rank(sections):
        section = sections[at]
        most = min(section.most, section.rows)
        while rows[at] < most and grow(at, max(rows[at] + 1, min(section.least, section.rows))):
            pass
    return rows


def _by_rank(sections: Sequence[Section]) -> list[int]:
    return sorted(range(len(sections)), key=lambda at: sections[at].rank)


def _minimums(sections: Sequence[Section]) -> Iterator[tuple[int, int]]:
    """Yield (index of a section, its rows) for steps 1 to 6 of the module docstring, in order."""
    ordered = _by_rank(sections)
    least = [min(one.least if one.rank else one.rows, one.rows) for one in sections]
    needed = [at for at in ordered if sections[at].rank <= Rank.PROBLEMS]
    steps = [at for at in ordered if sections[at].rank == Rank.NEXT_STEPS]
    urgent = [at for at in needed if sections[at].is_urgent]
    yield from ((at, least[at]) for at in needed if not sections[at].rank)
    yield from ((at, 1) for at in steps)
    yield from ((at, least[at]) for at in (*urgent, *steps))
    yield from ((at, min(least[at], 1)) for at in needed)
    advice = [at for at in ordered if sections[at].rank <= Rank.ADVICE]
    yield from ((at, least[at]) for at in sorted(advice, key=lambda at: not sections[at].is_urgent))


def _height(section: Section, rows: int, console: Console) -> int:
    """Return how many lines `section` takes on `console`; terminals wrap long lines."""
    text = io.StringIO()
    width, is_terminal = console.width, console.is_terminal
    section.show(
        Console(file=text, width=width, force_terminal=is_terminal, color_system=None), rows
    )
    lines = text.getvalue().splitlines()
    if not is_terminal:
        return len(lines)
    return sum(max(math.ceil(cell_len(line.rstrip()) / width), 1) for line in lines)

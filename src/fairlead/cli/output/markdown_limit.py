"""Keeps an answer in Markdown within the length of a comment on GitHub.

If an answer is too long, each table gets fewer rows. If that is not enough, the last notes are left
out too. The head is the part before the tables; if it is longer than a quarter of the limit, the
last lines of the head are left out. A line is never cut, because half a command or half a sentence
is of no use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

CHARACTERS_MAX: Final = 65_000
"""The highest number of characters of an answer.

A comment on GitHub has at most 65,536 characters, and the GitHub Action adds a marker.
"""

# The limits for the rows of a table, tried in this order until the answer fits.
_ROWS_MAX: Final = (100, 30, 10, 3)
_HEAD_MAX: Final = CHARACTERS_MAX // 4
# The number of characters that are reserved for the notes if there is no room for all notes.
_NOTES_MIN: Final = CHARACTERS_MAX // 2
_REST: Final = 100  # more characters than the line about the omitted rows has


def within_limit(
    head: Sequence[str], tables: Callable[[int], Iterable[str]], notes: Sequence[str]
) -> str:
    """Return the lines of an answer as one text of at most CHARACTERS_MAX characters.

    `tables(rows_max)` returns the lines of the tables, each table with at most `rows_max` rows. The
    result exceeds the limit only if the tables are too long even without rows.
    """
    head, all_notes = _cut(head, _HEAD_MAX, "lines"), _length(notes)
    some_notes = min(all_notes, _NOTES_MIN)
    variants = [*((one, all_notes) for one in _ROWS_MAX), *((one, some_notes) for one in _ROWS_MAX)]
    for rows_max, reserved in variants:
        shown = list(tables(rows_max))
        if _length(head) + _length(shown) + reserved <= CHARACTERS_MAX:
            break
    else:
        shown = list(tables(0))
    room = CHARACTERS_MAX - _length(head) - _length(shown)
    return "\n".join([*head, *shown, *_cut(notes, room, "notes")]) + "\n"


def _cut(lines: Sequence[str], room: int, what: str) -> Sequence[str]:
    """Return as many of `lines` as fit into `room` characters.

    If some lines do not fit, the last line of the result states their number: `... and 3 more
    notes`. `what` is the last word of this line.
    """
    if _length(lines) <= room:
        return lines
    kept, room = list[str](), room - _REST
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return [*kept, "", f"... and {len(lines) - len(kept):,} more {what}"]


def _length(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)

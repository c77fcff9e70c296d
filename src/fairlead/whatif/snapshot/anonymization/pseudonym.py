"""Replaces names with pseudonyms that have the same structure and sort order, reversibly.

A name is split into segments at `-`, `.` and `/`. For example, a snapshot with three names:

    shop/web-6f7c    eu/web-0    web        ->        q2/x3-00    e1/x3-0    x3

Each segment is replaced by a code and a number, for example `shop` by the code `q` and the number
2. The numbers count the segments of the snapshot in their sort order: `6f7c` is 0, `eu` 1, `shop` 2
and `web` 3. All numbers have the same width. A segment has the same replacement in every name. The
ordinal of a StatefulSet's pod, such as the 0 in `eu/web-0`, is kept.

The pseudonyms sort in the same order as the original names. Digits sort before letters, so the code
is the digit 0 for a segment that begins with a digit, and letters otherwise.

The segments of Kubernetes' own names (KEPT) are not replaced. If a segment sorts between two
segments of KEPT, its code also sorts between them. For example, `shop` sorts between `public` and
`system`, and so does its code `q`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

# The segments in the names of Kubernetes' own namespaces and priority classes.
KEPT: Final = (
    "cluster",
    "critical",
    "default",
    "kube",
    "lease",
    "node",
    "public",
    "system",
)
# The code with which a pseudonym begins. With it, a pseudonym sorts among the names in KEPT as its
# original does: "a" before "cluster", "cm" between "cluster" and "critical", and so on.
_CODES: Final = ("a", "cm", "cs", "e", "kv", "m", "o", "q", "x")
_DIGIT, _UPPER = "0", "A"
_SEPARATOR: Final = re.compile(r"([-./])")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]*")
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Times and decimal fractions, whose digits could be mistaken for pseudonyms. A pseudonym of digits
# is a 0 (_DIGIT) and further digits. The integer part of a fraction never has this form.
_NUMBER: Final = (
    r"(?<![A-Za-z0-9./-])(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9:.T]*|(?:0|[1-9][0-9]*)\.[0-9]+"
    r"|[0-9]+(?::[0-9]{2})+)"
)
_ORDINAL: Final = re.compile(r"(?P<name>.+)-(?P<ordinal>[0-9]+)")


def _token(repetition: str) -> re.Pattern[str]:
    """Return a pattern for numbers and pseudonyms.

    `repetition` states how many digits the number in a pseudonym has, such as `{3}` or `+`. If a
    pseudonym is found, group 1 of the match is its number.
    """
    codes = "|".join(sorted({*_CODES, _DIGIT, _UPPER}, key=len, reverse=True))
    return re.compile(rf"{_NUMBER}|(?<![A-Za-z0-9])(?:{codes})([0-9]{repetition})(?![A-Za-z0-9])")


_ANY_TOKEN: Final = _token("+")


class SegmentCollector:
    """Collects the segments of names; `replace` returns each name unchanged."""

    def __init__(self) -> None:
        self.segments: set[str] = set()

    def replace(self, name: str) -> str:
        """Collect the segments of `name`, and return `name` unchanged."""
        self.segments.update(part for part in _split(name) if part not in KEPT)
        return name


class Pseudonyms:
    """Replaces each segment of a name by a pseudonym: a code and the number of the segment."""

    def __init__(self, segments: Iterable[str]) -> None:
        """`segments` are all segments of the names that `replace` will get."""
        self.segments = sorted(segments)
        self.width = len(str(len(self.segments)))
        self._token_of = {
            segment: f"{_code(segment)}{number:0{self.width}}"
            for number, segment in enumerate(self.segments)
        }
        self._token = _token(f"{{{self.width}}}")

    def replace(self, name: str) -> str:
        """Return the pseudonym of `name`. Raises KeyError for an unknown segment."""
        if not name:
            return name
        parts = _split(name)
        if len(parts) == 1:
            return self._of(parts[0])
        separators = iter(_SEPARATOR.findall(name))
        return "".join(self._of(part) + next(separators, "") for part in parts)

    def reveal(self, text: str) -> str:
        """Return `text` with the original segment in place of each pseudonym."""
        return self._token.sub(lambda found: self._original(found) or found[0], text)

    def recognizes(self, text: str) -> bool:
        """Return whether `text` contains more pseudonyms of this snapshot than unknown pseudonyms.

        A text about another snapshot contains mainly unknown pseudonyms.
        """
        known, unknown = self._pseudonyms_in(text)
        return len(known) > len(unknown)

    @staticmethod
    def has_none(text: str) -> bool:
        """Return whether `text` contains nothing that looks like a pseudonym of any snapshot."""
        return not any(found[1] for found in _ANY_TOKEN.finditer(text))

    def unknown_in(self, text: str) -> list[str]:
        """Return the pseudonyms in `text` that are not of this snapshot, sorted.

        Pseudonyms whose numbers have another width than in this snapshot are not found.
        """
        return sorted(self._pseudonyms_in(text)[1])

    def _pseudonyms_in(self, text: str) -> tuple[set[str], set[str]]:
        """Return (pseudonyms of this snapshot, unknown pseudonyms) in `text`."""
        known: set[str] = set()
        unknown: set[str] = set()
        for found in self._token.finditer(text):
            if found[1] is None:
                continue
            (known if self._original(found) else unknown).add(found[0])
        return known, unknown

    def _original(self, found: re.Match[str]) -> str:
        """Return the segment that the token `found` replaces; "" if it is not a known pseudonym."""
        if found[1] is None:  # a time or a fraction
            return ""
        number = int(found[1])
        segment = self.segments[number] if number < len(self.segments) else ""
        return segment if segment and self._token_of[segment] == found[0] else ""

    def as_json(self) -> dict[str, Any]:
        """Return the content of the key file."""
        return {"apiVersion": KEY_VERSION, "kind": KEY_KIND, "segments": self.segments}

    def _of(self, segment: str) -> str:
        return segment if segment in KEPT or not segment else self._token_of[segment]


KEY_VERSION: Final = "fairlead.dev/v1"
KEY_KIND: Final = "PseudonymKey"


def ordinal_of(name: str, owner: str) -> str:
    """Return the ordinal in `name`, the name of a pod of the StatefulSet `owner`.

    Returns "" if `name` is not `owner` followed by `-` and an ordinal.
    """
    found = _ORDINAL.fullmatch(name)
    return found["ordinal"] if found is not None and found["name"] == owner else ""


def _split(name: str) -> list[str]:
    """Return the segments of `name`; a uid, or a text that is not a name, is one segment."""
    if _UID.fullmatch(name) or not _NAME.fullmatch(name):
        return [name]
    return _SEPARATOR.split(name)[::2]


def _code(segment: str) -> str:
    """Return the code of `segment`: the first part of its replacement in a pseudonym.

    The code is `0` if `segment` begins with a digit, and `A` if it begins with another character
    that sorts before `a`. In all other cases, the code consists of letters that show where
    `segment` sorts among the segments of KEPT.
    """
    first = segment[:1]
    if first.isascii() and first.isdigit():
        return _DIGIT
    if first < "a":
        return _UPPER
    return _CODES[bisect_right(KEPT, segment)]

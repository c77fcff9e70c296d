"""Regular expressions and their matches.

upstream: apiserver/pkg/cel/library/regex.go, Go's regexp/syntax/parse.go
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.api.text.text_cache import text_cache
from fairlead.cel.cost.runtime_cost import CostTracker
from fairlead.cel.function import Function, member, search

_MESSAGES: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
_PATTERNS_CACHED_MAX: Final = 256
_CACHED_CHARACTERS_MAX: Final = 1_000
_REPEATED: Final = re.compile(r"\{(\d+)?,?(\d+)?\}")
_STATES_MAX: Final = 400_000  # the memory limit of RE2 allows no more states
_STATES_A_STEP: Final = 10
_COMPILED_STEPS: Final = 5  # steps of work to compile each state of a pattern
_FOUND_STEPS: Final = 150  # steps of work for each match that `findAll` returns


def compiled(tracker: CostTracker, text: str, pattern: str) -> Any:
    """Compile `pattern`, which will be matched against `text`.

    Raises ValueError for an invalid pattern.

    In the worst case, a match tries each state of the pattern at each character of the text.
    Upstream's cost assumes one state for every four characters of the pattern. This number is too
    low if the pattern repeats parts, as in `a{9}`. For such patterns, and for texts of more than
    1,000 characters, this function adds the work of the match to `tracker`. Raises CostLimitError
    if the work exceeds WORK_MAX.
    """
    states, made = _read(pattern)
    if states > len(pattern) + 1 or len(text) > 1_000:
        tracker.add_work((len(text) // _STATES_A_STEP + _COMPILED_STEPS) * states)
    if isinstance(made, str):
        raise ValueError(made)  # noqa: TRY004 - what is wrong with the pattern
    return made


@text_cache(maxsize=_PATTERNS_CACHED_MAX, characters_max=_CACHED_CHARACTERS_MAX)
def _read(pattern: str) -> tuple[int, Any]:
    """Return (largest possible number of the pattern's states, compiled pattern).

    If `pattern` is invalid, return (0, Go's error message) instead.
    """
    try:
        return _states_of(pattern), compiled_pattern(pattern)
    except ValueError as cause:
        return 0, pattern_problem(str(cause))


def pattern_problem(message: str) -> str:
    """Return Go's message for an invalid pattern, translated from RE2's message."""
    what, _, where = message.partition(": ")
    return f"error parsing regexp: {_MESSAGES.get(what, what)}: `{where}`"


def _states_of(pattern: str) -> int:
    """Return the largest possible number of states: the pattern's length times its repetitions.

    For example, `{9}` anywhere in the pattern multiplies the number by nine.
    """
    times = 1
    for low, high in _REPEATED.findall(pattern):
        times *= max(int((high or low or "1")[:6]), 1)
    return min(len(pattern) * min(times, 1_000) + 1, _STATES_MAX)


def is_found(tracker: CostTracker, text: str, pattern: str) -> bool:
    """Return whether `text` contains a match of `pattern`."""
    return compiled(tracker, text, pattern).search(text) is not None


def _first_found(tracker: CostTracker, text: str, pattern: str) -> str:
    matched = _legal(tracker, text, pattern).search(text)
    return str(matched[0]) if matched else ""


def _all_found(tracker: CostTracker, text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return the matches in `text`, at most `limit` of them unless `limit` is negative."""
    found = []
    matches = _legal(tracker, text, pattern).finditer(text)
    for one in islice(matches, limit if limit >= 0 else None):
        tracker.add_work(_FOUND_STEPS)
        found.append(one[0])
    return found


def _legal(tracker: CostTracker, text: str, pattern: str) -> Any:
    try:
        return compiled(tracker, text, pattern)
    except ValueError as cause:
        raise ValueError(f"Illegal regex: {cause}") from None


FUNCTIONS: Final[tuple[Function, ...]] = (
    member("find", (str, str), _first_found, search, is_metered=True),
    member("findAll", (str, str), _all_found, search, is_metered=True),
    member("findAll", (str, str, int), _all_found, search, is_metered=True),
)

"""Regular expressions from users, matched by RE2.

RE2 needs time linear in the length of the text for every pattern; Python's `re` needs a minute for
`(a+)+$` and thirty letters. Upstream uses the same syntax, so both accept the same patterns.

upstream: Go's regexp, which has RE2's syntax
"""

from __future__ import annotations

from typing import Any, Final

import re2

_QUIET: Final = re2.Options()
_QUIET.log_errors = False


def compiled_pattern(expression: str) -> Any:
    """Return a pattern with the `search` and `finditer` of `re`. Raises ValueError if invalid.

    Its `programsize` is its number of states. RE2 may try each state at each letter, so a pattern
    with thousands of states is slow.
    """
    try:
        return re2.compile(expression, _QUIET)
    except re2.error as cause:
        raise ValueError(_text(cause)) from None


def _text(cause: Exception) -> str:
    said = cause.args[0] if cause.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)

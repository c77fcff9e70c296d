"""PageSequence: detects a list that has no end, because the server repeats its pages."""

from __future__ import annotations

from typing import Final

# How many empty pages in a row a list may have; a list with more counts as endless. A page may be
# empty because all of its objects have been filtered out.
EMPTY_PAGES_MAX: Final = 100


class PageSequence:
    """The pages of one list so far; `add` detects a list without end.

    client-go has no such check, and would request pages forever.
    """

    def __init__(self) -> None:
        self._tokens: set[str] = set()
        self._empty_pages = 0  # in a row

    def add(self, token: str, *, is_empty: bool) -> str:
        """Record a page with the continue token `token`.

        Returns why the list has no end; "" if no reason is known.

        The last page has the token "".
        """
        if not token:
            return ""
        self._empty_pages = self._empty_pages + 1 if is_empty else 0
        if self._empty_pages > EMPTY_PAGES_MAX:
            return "the server repeats empty pages"
        if token in self._tokens:
            return "the server repeats a continue token"
        self._tokens.add(token)
        return ""

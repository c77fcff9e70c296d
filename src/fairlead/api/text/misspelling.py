"""is_misspelling: whether a label key or value may be a typing error for another one."""

from __future__ import annotations

import re
from typing import Final

# Separators that people confuse or leave out. Between digits they matter: 1.2 is not 12.
_SEPARATOR: Final = re.compile(r"(?<!\d)[-_./]|[-_./](?!\d)")
_LONG_WORD: Final = 4  # letters
_WORD: Final = 3  # letters


def is_misspelling(given: str, known: str) -> bool:
    """Return whether `given` may be a typing error for `known`.

    The result is True if the texts differ only in upper and lower case and in separators, or by one
    typing error within a word. A word is a sequence of letters, and a typing error is one of these:

    - one letter is added or missing, and it equals the letter before it (`eu-1aa`)
    - one letter is added or missing; it is not the first letter of its word, and the word has at
      least three other letters
    - two adjacent letters are swapped, in a word of at least three letters
    - one letter is wrong; it is not the first letter of its word, and the word has at least four
      letters

    Digits are never taken for typing errors. Therefore names that differ on purpose do not count:
    `pool-1` and `pool-2`, `eu-1a` and `eu-1b`, `large` and `xlarge`, `cpu` and `gpu`.
    """
    a, b = given.lower(), known.lower()
    if _SEPARATOR.sub("", a) == _SEPARATOR.sub("", b):
        return given != known
    if abs(len(a) - len(b)) > 1:
        return False
    if len(a) > len(b):
        return _is_one_letter_more(a, b)
    if len(a) < len(b):
        return _is_one_letter_more(b, a)
    return _is_other_letter_or_swap(a, b)


def _is_one_letter_more(longer: str, shorter: str) -> bool:
    at = _first_difference(longer, shorter)
    if longer[at + 1 :] != shorter[at:] or not longer[at].isalpha():
        return False
    start, end = _word_at(longer, at)
    if at > start:
        return longer[at] == longer[at - 1] or end - start - 1 >= _WORD
    return False


def _is_other_letter_or_swap(a: str, b: str) -> bool:
    at = _first_difference(a, b)
    if not (a[at].isalpha() and b[at].isalpha()):
        return False
    start, end = _word_at(b, at)
    if a[at + 1 :] == b[at + 1 :]:
        return at > start and end - start >= _LONG_WORD
    is_swap = a[at : at + 2] == b[at : at + 2][::-1] and a[at + 2 :] == b[at + 2 :]
    return is_swap and at + 1 < end and end - start >= _WORD


def _first_difference(a: str, b: str) -> int:
    """Return the index of the first character that differs, or else the shorter text's length."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(a), len(b)))


def _word_at(text: str, at: int) -> tuple[int, int]:
    """Return the start and the end of the word of `text` to which the letter at `at` belongs."""
    start, end = at, at + 1
    while start > 0 and text[start - 1].isalpha():
        start -= 1
    while end < len(text) and text[end].isalpha():
        end += 1
    return start, end

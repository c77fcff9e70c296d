"""InputError: invalid user input, reported in one line.

The line reads `FILE: OBJECT: path.of.field: problem`; parts that do not apply are omitted.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from fairlead.api.codec import DecodeError

LINE_CHARACTERS_MAX: Final = 500
_NAMED_MAX: Final = 20
_COMPARED_MAX: Final = 500
_NOT_FOR_A_LINE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+"  # also bidirectional marks
)


class InputError(ValueError):
    """Invalid input; `str()` returns exactly one line for the user.

    `source` is the file as the user named it, "stdin", a command-line option, or the class or
    function that a script called. `object_name` is an object in the file ("Pod store/web-1").
    `field` is a path such as `spec.priority`.
    """

    def __init__(
        self, source: str, problem: str, *, object_name: str = "", field: str = ""
    ) -> None:
        parts = (part for part in (source, object_name, field, problem) if part)
        super().__init__(one_line(": ".join(parts)))
        self.source = source
        self.object_name = object_name
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[Callable[[], InputError], tuple[()]]:
        """Let `pickle` send the error from a forked process."""
        parts = {"object_name": self.object_name, "field": self.field}
        return partial(type(self), self.source, self.problem, **parts), ()

    @classmethod
    def of_decode(cls, source: str, cause: DecodeError) -> InputError:
        """Return the error for an object that has a field of the wrong type."""
        object_name = f"{cause.kind} {cause.name}"
        return cls(source, cause.problem, object_name=object_name, field=cause.field)


@contextmanager
def named_by(source: str, field: str) -> Iterator[None]:
    """Add `source` and `field` to the errors of the `with` block.

    The field `field` of the file `source` contains the name of the file that the block reads.
    Errors about `source` itself or about a command-line option stay as they are.

    Example: `loads.csv: line 2: ...` becomes `day.yaml: load: loads.csv: line 2: ...`.
    """
    try:
        yield
    except InputError as cause:
        if cause.source == source or cause.source.startswith("--"):
            raise
        raise InputError(source, str(cause), field=field) from None


def one_line(text: str, characters_max: int | None = LINE_CHARACTERS_MAX) -> str:
    """Return `text` without line breaks and control characters.

    If `characters_max` is not None, a text with more characters is shortened to this number. The
    end of the text is kept, because the API server states the reason of an error after the invalid
    value.
    """
    line = _NOT_FOR_A_LINE.sub(" ", text).strip()
    if characters_max is None or len(line) <= characters_max:
        return line
    tail = characters_max // 4
    return f"{line[: characters_max - tail - 5]} ... {line[-tail:]}"


def known_names(given: str, known: Iterable[str]) -> str:
    """Return a hint about the unknown name `given`: the most similar name, and the known names.

    If there are many names and one of them is similar, the hint contains only the similar name.
    """
    names = sorted(known)
    nearest = nearest_names(given, names, 1)
    hint = f"did you mean {nearest[0]}?" if nearest else ""
    if len(names) <= _NAMED_MAX:
        return f"{hint} known: {', '.join(names)}".strip()
    return hint or f"known: {', '.join(names[:_NAMED_MAX])}, ..."


def nearest_names(given: str, known: Iterable[str], count: int) -> list[str]:
    """Return up to `count` of the names `known` that are similar to `given`, most similar first.

    A comparison takes up to 50 microseconds. If there are very many names, only the names whose
    beginning or end is most similar to `given` are compared.
    """
    names = sorted(known)
    if len(names) > 2 * _COMPARED_MAX:
        by_end = sorted(names, key=_reversed)
        alike = _around(names, given, str) + _around(by_end, given, _reversed)
        names = list(dict.fromkeys(alike))
    return difflib.get_close_matches(given, names, n=count)


def _around(names: list[str], given: str, key: Callable[[str], str]) -> list[str]:
    """Return the _COMPARED_MAX names around the place of `given` in `names`, sorted by `key`."""
    at = bisect_left(names, key(given), key=key)
    return names[max(at - _COMPARED_MAX // 2, 0) : at + _COMPARED_MAX // 2]


def _reversed(name: str) -> str:
    return name[::-1]

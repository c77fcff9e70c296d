"""Sources of uids and generated names, which are random and so are provided by the world."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from fairlead.apiserver.kind import Kind

# upstream: apiserver/pkg/storage/names/generate.go, apimachinery/pkg/util/rand/rand.go. No
# vowels and no similar characters, so that no word is generated.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
GENERATED_NAME_MAX: Final = 63
ATTEMPTS_MAX: Final = 8


class IdSource(Protocol):
    """A source of ids that never returns the same one twice."""

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """The uid of a new object of that name."""
        ...

    def new_suffix(self) -> str:
        """`SUFFIX_LENGTH` characters of `SUFFIX_ALPHABET` for a generated name."""
        ...


def generated_name(prefix: str, suffix: str) -> str:
    """The name for `generateName: prefix`."""
    return prefix[: GENERATED_NAME_MAX - SUFFIX_LENGTH] + suffix


class ReplayedIds:
    """Replays the ids of a source when a request is handled again."""

    def __init__(self, source: IdSource) -> None:
        """Nothing is recorded before `begin`."""
        self._source = source
        self._left: list[str] = []
        self._drawn: list[str] | None = None

    def begin(self, drawn: tuple[str, ...]) -> None:
        """Start to handle a request that was given the ids `drawn` before."""
        self._left = list(reversed(drawn))
        self._drawn = []

    def end(self) -> tuple[str, ...]:
        """Stop recording; return all ids the request was given so far."""
        drawn, self._drawn, self._left = tuple(self._drawn or ()), None, []
        return drawn

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """See IdSource."""
        return self._next(partial(self._source.new_uid, kind, namespace, name))

    def new_suffix(self) -> str:
        """See IdSource."""
        return self._next(self._source.new_suffix)

    def _next(self, draw: Callable[[], str]) -> str:
        found = self._left.pop() if self._left else draw()
        if self._drawn is not None:
            self._drawn.append(found)
        return found

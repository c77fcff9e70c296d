"""IdSource: a source of uids and name suffixes for new objects.

These strings may be random. The registry is pure, so it does not make random strings itself.
Instead, a store is given an IdSource.
"""

from __future__ import annotations

from typing import Final, Protocol

from fairlead.apiserver.kind import Kind

# upstream: apiserver/pkg/storage/names/generate.go, apimachinery/pkg/util/rand/rand.go. Without
# vowels and the digits 0, 1 and 3, which look like letters, a suffix is hardly ever a word.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
GENERATED_NAME_MAX: Final = 63
ATTEMPTS_MAX: Final = 8


class IdSource(Protocol):
    """A source of uids and name suffixes, which never returns the same uid twice."""

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """Return the uid of a new object with this kind, namespace and name."""
        ...

    def new_suffix(self) -> str:
        """Return `SUFFIX_LENGTH` characters of `SUFFIX_ALPHABET` for a generated name."""
        ...


def generated_name(prefix: str, suffix: str) -> str:
    """Return `prefix`, a generateName, followed by `suffix`. A long prefix is shortened."""
    return prefix[: GENERATED_NAME_MAX - SUFFIX_LENGTH] + suffix

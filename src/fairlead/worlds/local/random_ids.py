"""RandomIds: random uids and name suffixes."""

from __future__ import annotations

from secrets import token_bytes, token_urlsafe  # noqa: TID251 - nothing is replayed here
from typing import Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.id_source import SUFFIX_ALPHABET, SUFFIX_LENGTH

TOKEN_BYTES: Final = 32
UID_BYTES: Final = 16
BYTES_AT_ONCE: Final = 4_096
_VARIANTS: Final = "89ab"  # the first two bits of the fourth group are 10
# Larger bytes are rejected, so that every letter is equally likely.
_UNBIASED_END: Final = 256 - 256 % len(SUFFIX_ALPHABET)


def new_token() -> str:
    """Return a random bearer token."""
    return token_urlsafe(TOKEN_BYTES)


class RandomIds:
    """Creates random ids, for worlds that are never replayed.

    Random bytes are read in large blocks, because each system call takes time.
    """

    def __init__(self) -> None:
        self._left = b""

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """Return a random uid (RFC 4122, version 4)."""
        digits = self._bytes(UID_BYTES).hex()
        variant = _VARIANTS[int(digits[16], 16) & 3]
        return (
            f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
        )

    def new_suffix(self) -> str:
        """Return a random suffix for a generated name."""
        letters = ""
        while len(letters) < SUFFIX_LENGTH:
            (number,) = self._bytes(1)
            if number < _UNBIASED_END:
                letters += SUFFIX_ALPHABET[number % len(SUFFIX_ALPHABET)]
        return letters

    def _bytes(self, count: int) -> bytes:
        if len(self._left) < count:
            self._left = token_bytes(BYTES_AT_ONCE)
        given, self._left = self._left[:count], self._left[count:]
        return given

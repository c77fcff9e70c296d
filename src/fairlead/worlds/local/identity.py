"""RandomIds: uids and suffixes that were never given before, by chance."""

from __future__ import annotations

import uuid
from secrets import choice, token_urlsafe  # noqa: TID251 - nothing is replayed here

from fairlead.apiserver.identity import SUFFIX_ALPHABET, SUFFIX_LENGTH
from fairlead.apiserver.kind import Kind

TOKEN_BYTES = 32


def new_token() -> str:
    """A secret by which somebody is known."""
    return token_urlsafe(TOKEN_BYTES)


class RandomIds:
    """The source of ids of a world in which nothing is replayed."""

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """A random uid (RFC 4122, version 4)."""
        return str(uuid.uuid4())  # noqa: TID251 - likewise

    def new_suffix(self) -> str:
        """A random suffix for a generated name."""
        return "".join(choice(SUFFIX_ALPHABET) for _ in range(SUFFIX_LENGTH))

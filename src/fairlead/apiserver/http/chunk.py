"""Pieces: long answers leave one after the other, so that a client who does not read is noticed.

A socket says that it is full only when it is asked to take more. What TLS has taken at once, of
whatever length, stays in memory unnoticed for as long as the client likes; of pieces, no more than
a megabyte does before the connection is told to wait (`PunctualProtocol` has the rest).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

CHUNK_BYTES_MAX: Final = 256 << 10


def chunks_of(parts: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """The bytes of `parts` in order, so many at most at a time; nothing is copied."""
    for part in parts:
        if len(part) <= CHUNK_BYTES_MAX:
            yield part
            continue
        whole = memoryview(part)
        for at in range(0, len(part), CHUNK_BYTES_MAX):
            yield whole[at : at + CHUNK_BYTES_MAX]

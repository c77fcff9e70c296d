"""Splits long responses into chunks, so that a client that does not read is detected.

The event loop can pause only between writes, so a single long write could stay in the TLS buffer
indefinitely. With a split response, writing pauses after a few chunks if the client does not read.
`TimeoutHttpProtocol` then starts its timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

# The size of a TLS record. Larger chunks save no CPU time. A client that does not read keeps
# several chunks in memory until it is disconnected.
CHUNK_BYTES_MAX: Final = 16 << 10


def chunks_of(
    parts: Iterable[bytes], bytes_max: int = CHUNK_BYTES_MAX
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of `parts` in order, at most `bytes_max` at a time, without copying."""
    for part in parts:
        if len(part) <= bytes_max:
            yield part
            continue
        whole = memoryview(part)
        for at in range(0, len(part), bytes_max):
            yield whole[at : at + bytes_max]

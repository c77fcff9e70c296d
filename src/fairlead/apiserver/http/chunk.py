"""Splits long responses into chunks, to detect clients that do not read.

asyncio can pause the writer of a response only between two writes, so the bytes of a single long
write could stay in the TLS buffer indefinitely. If the response is split and the client does not
read, asyncio pauses the writer after a few chunks, and `TimeoutHttpProtocol` starts its timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

# Each chunk takes a system call, so larger chunks save CPU time if many watches are busy. A client
# that does not read keeps several chunks in memory until it is disconnected.
CHUNK_BYTES_MAX: Final = 32 << 10


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

"""SeededIds: reproducible ids. With the same seed, the n-th id is the same in every run.

A simulation may load objects that an earlier simulation with the same seed wrote. The uids of these
objects are from the same sequence. `skip` ensures that no new object gets one of these uids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.id_source import SUFFIX_ALPHABET, SUFFIX_LENGTH
from fairlead.engine.core.tie_break import BLOCK, splitmix64, splitmix64_block

_MASK_64 = (1 << 64) - 1


class SeededIds:
    """A source of ids for a store; the ids have the form of random ones (RFC 4122, version 4)."""

    def __init__(self, seed: int) -> None:
        """Start the sequence for `seed`; equal seeds give equal sequences."""
        self._numbers = _numbers(seed)
        self._taken: set[str] = set()

    def skip(self, uids: Iterable[str]) -> None:
        """Exclude `uids`, which loaded objects have, from the results of `new_uid`."""
        self._taken.update(uids)

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """Return the next free uid of the sequence; the arguments are ignored."""
        while (uid := self._next_uid()) in self._taken:
            pass
        return uid

    def _next_uid(self) -> str:
        high, low = next(self._numbers), next(self._numbers)
        high = high & ~0xF000 | 0x4000  # version 4
        low = low & (_MASK_64 >> 2) | 1 << 63  # variant 1
        digits = f"{high:016x}{low:016x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def new_suffix(self) -> str:
        """Return the next suffix for a name that the server generates."""
        number = next(self._numbers)
        letters = []
        for _ in range(SUFFIX_LENGTH):
            number, letter = divmod(number, len(SUFFIX_ALPHABET))
            letters.append(SUFFIX_ALPHABET[letter])
        return "".join(letters)


def _numbers(seed: int) -> Iterator[int]:
    # A different sequence from that of the tie-break, which uses the seed itself.
    start = splitmix64(~seed & _MASK_64) + 1
    while True:
        yield from splitmix64_block(start)
        start += BLOCK

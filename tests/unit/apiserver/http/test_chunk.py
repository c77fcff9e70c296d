"""Long responses are sent in chunks."""

from __future__ import annotations

from fairlead.apiserver.http.chunk import CHUNK_BYTES_MAX, chunks_of


def test_short_parts_are_kept_and_long_parts_are_split():
    parts = (b"a", b"", b"b" * CHUNK_BYTES_MAX, b"c" * (2 * CHUNK_BYTES_MAX + 1))
    found = list(chunks_of(parts))
    assert [len(piece) for piece in found] == [1, 0, *[CHUNK_BYTES_MAX] * 3, 1]
    assert b"".join(found) == b"".join(parts)
    assert found[2] is parts[2]

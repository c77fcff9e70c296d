"""Unpacks compressed dumps, recognized by their content: gzip, tar, and gzip-compressed tar."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from fairlead.whatif.input.content import BYTES_MAX, HOW_TO_RAISE
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import Bytes

if TYPE_CHECKING:
    from tarfile import TarFile, TarInfo

PACKED_SUFFIXES: Final = (".gz", ".tar", ".tgz")
TEXT_SUFFIXES: Final = (".yaml", ".yml", ".json")
# A tar file of many empty files compresses a thousandfold, but each file takes memory.
MEMBERS_MAX: Final = 100_000
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_PIECE_BYTES: Final = 1 << 16
_BLOCK_BYTES: Final = 512  # upstream: Go's archive/tar/format.go: blockSize
_TAR: Final = slice(257, 262), b"ustar"


def unpacked(source: str, data: Bytes, bytes_max: int = BYTES_MAX) -> Iterator[tuple[str, Bytes]]:
    """Yield (name for messages, content) of each file in `data`; `data` can also be a plain file.

    `source` is the name of `data`. From an archive, only files that end in .yaml, .yml or .json are
    used, in order of their names. These files may be compressed, too (.json.gz).

    Raises InputError, also if the files have more than `bytes_max` bytes in total.
    """
    if data[:2] == _GZIP:
        data = _decompressed(source, data, bytes_max, bytes_max)
    if data[_TAR[0]] == _TAR[1]:
        yield from _members(source, data, bytes_max)
    else:
        yield source, data


def unpacked_file(source: str, data: Bytes, bytes_max: int = BYTES_MAX) -> tuple[str, bytes]:
    """Return (name for messages, content) of the only file in `data`, as `unpacked` yields it.

    Raises InputError if `data` is an archive with several files.
    """
    found = list(unpacked(source, data, bytes_max))
    if len(found) != 1:
        raise InputError(source, f"contains {len(found)} files; expected one")
    name, content = found[0]
    return name, bytes(content)


def _decompressed(source: str, data: Bytes, room: int, bytes_max: int) -> bytes:
    """Return the content of all gzip members in `data`.

    Raises InputError, also if the content has more than `room` bytes. `room` is the unused part of
    the limit `bytes_max`.

    Each member has its own decompressor. At the end of its member, a decompressor copies all
    unused input. So `data` is passed in pieces: at most one piece is copied, not all members that
    follow.
    """
    content = io.BytesIO()  # `getvalue` does not copy the bytes, unlike a join of parts
    at, size = 0, _PIECE_BYTES
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        while at < len(data):
            if stream.eof:
                stream, size = zlib.decompressobj(_GZIP_WINDOW), _PIECE_BYTES
            piece = data[at : at + size]
            room -= content.write(stream.decompress(piece, room + 1))
            if room < 0:
                raise _too_large(source, bytes_max)
            at += len(piece) - len(stream.unused_data)
            size *= 2  # so that a large member is decompressed in few steps
            while stream.eof and at < len(data) and not data[at]:
                at += 1  # padding that some tools append
    except zlib.error as cause:
        raise InputError(source, f"is not a valid gzip file: {cause}") from None
    if not stream.eof:
        raise InputError(source, "is cut short: the gzip data has no end")
    return content.getvalue()


def _members(source: str, data: Bytes, bytes_max: int) -> Iterator[tuple[str, Bytes]]:
    """Yield (name for messages, content) of each .yaml, .yml or .json file in the tar file `data`.

    Each of these files may be compressed by gzip (`.yaml.gz`). Raises InputError.
    """
    import tarfile  # noqa: PLC0415 - most dumps are not archives

    found, room = False, bytes_max
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = list(islice(archive, MEMBERS_MAX + 1))
            if len(members) > MEMBERS_MAX:
                raise InputError(source, f"has more than {MEMBERS_MAX:,} files")
            # tarfile also stops at a header that is malformed or cut short.
            if _block_at(data, archive.offset) != bytes(_BLOCK_BYTES):
                raise InputError(source, "is damaged or cut short: the tar data has no end")
            # A sparse file can have more bytes than the archive.
            if sum(member.size for member in members) > bytes_max:
                raise _too_large(source, bytes_max)
            for member in sorted(members, key=lambda one: one.name):
                name = PurePosixPath(member.name.removesuffix(".gz"))
                if name.suffix in TEXT_SUFFIXES and not member.isdir():
                    found = True
                    content = _content(source, archive, member, room, bytes_max)
                    room -= len(content)
                    yield f"{source}: {member.name}", content
    except (tarfile.TarError, ValueError, OverflowError) as cause:  # caused by malformed headers
        if isinstance(cause, InputError):
            raise
        raise InputError(source, f"is not a valid tar file: {cause}") from None
    if not found:
        raise InputError(source, f"is an archive without a {', '.join(TEXT_SUFFIXES)} file")


def _content(source: str, archive: TarFile, member: TarInfo, room: int, bytes_max: int) -> bytes:
    """Return the content of `member`, or of the file that it links to.

    Raises InputError, also if the content has more than `room` bytes (see `_decompressed`).
    """
    try:
        content = archive.extractfile(member)
    except KeyError:  # upstream: tarfile.py: TarFile._find_link_target
        problem = (
            f"{member.name} is a link to {member.linkname}, which the archive does not contain"
        )
        raise InputError(source, problem) from None
    except RecursionError:
        raise InputError(
            source, f"{member.name} is a link in a cycle or long chain of links"
        ) from None
    if content is None:
        raise InputError(source, f"{member.name} is not a file")
    data = content.read()
    if data[:2] == _GZIP:
        return _decompressed(f"{source}: {member.name}", data, room, bytes_max)
    if len(data) > room:  # Many links to one member expand beyond the size of the archive.
        raise _too_large(source, bytes_max)
    return data


def _block_at(data: Bytes, offset: int) -> Bytes:
    """Return the block of the tar file `data` at `offset`; b"" if `offset` is negative.

    A malformed size in a header can make the offset negative.
    """
    return data[offset : offset + _BLOCK_BYTES] if offset >= 0 else b""


def _too_large(source: str, bytes_max: int) -> InputError:
    return InputError(source, f"expands to more than {bytes_max:,} bytes; {HOW_TO_RAISE}")

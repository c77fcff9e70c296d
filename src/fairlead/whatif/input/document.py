"""Reads users' files as JSON values.

A path is a file, a directory, or `-` for standard input. A directory stands for every .yaml, .yml,
.json, .gz, .tar and .tgz file below it, sorted. A file can be compressed with gzip, or be a tar
archive of such files. Text is UTF-8, or UTF-16 with a byte order mark. If the file name or the
first character suggests JSON, the text is parsed as JSON first, which is faster. A file can contain
several JSON objects if each begins on its own line. `jq -c '.items[]'` and repeated `kubectl get -o
json >> FILE` write such files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.text.nesting import is_too_deep
from fairlead.whatif.input.archive import PACKED_SUFFIXES, TEXT_SUFFIXES, unpacked
from fairlead.whatif.input.content import (
    BYTES_MAX,
    OnRead,
    content_of,
    content_of_stream,
    read_silently,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import Bytes, Listing, split, value_ranges
from fairlead.whatif.input.pod_columns import ColumnError, encode_list, texts_of
from fairlead.whatif.input.repeated_key import CHARACTERS_MAX, require_distinct_keys

STDIN: Final = "stdin"
# upstream: kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go: Run (prints logs between the lists)
_LOGS: Final = b"==== START logs for container"
_WITHOUT_LOGS: Final = (
    "; kubectl cluster-info dump prints logs, too: use its option --output-directory DIR, and read "
    "DIR"
)
_TEMPLATE: Final = "; if it is a template of a Helm chart, use the output of helm template instead"
_TABLE: Final = "is a table of kubectl; add -o yaml to the kubectl command"
_HEADER_MAX: Final = 1_000  # characters of the header of a table
_JSON_NAMES: Final = (".json", ".json.gz")
_EDITOR_LOCK: Final = ".#"  # Emacs marks a file that is edited with a link to no file.
_TEXT: Final = re.compile(rb"\S")
_EMPTY: Final = "is empty"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class _EmptyFileError(InputError):
    """A file that is empty, or has only comments or empty documents."""


class Document(Struct, frozen=True):
    """One value of one file."""

    source: str  # the file as the user named it
    value: Any
    # If set, the items of the value as texts. Then `value` has an empty list of items.
    listing: Listing | None = None
    text: Bytes = b""  # the content of the file; empty if the reader has not kept it
    place: str = ""  # "document N" if the file contains several documents, otherwise ""

    def parsed(self) -> Iterator[Document]:
        """Yield the documents in the content of the file, with decoded items. Raises InputError.

        If `text` is empty, the items of `listing` are decoded instead.
        """
        text = bytes(self.text)
        if not text and self.listing is not None:
            text = encode_list(map(bytes, texts_of(self.listing.items)), self.value["metadata"])
        return _parse(self.source, text, json_by_name=True)


def read(path: str, stdin: BinaryIO | None = None) -> list[Document]:
    """Return the non-empty documents at `path`.

    `stdin` replaces the process's standard input. If `path` stands for several files, files without
    an object are skipped, as kubectl does. Raises InputError, also if no file has an object.
    """
    if path == "-":
        data = content_of_stream(STDIN, stdin or sys.stdin.buffer)
        return [
            replace(document, text=content)
            for source, content in unpacked(STDIN, data)
            for document in _parse(source, bytes(content), json_by_name=False)
        ]
    contents = (
        (source, data)
        for file in _files(path)
        for source, data in unpacked(str(file), content_of(file))
    )
    found: list[Document] = []
    empty: list[_EmptyFileError] = []
    for source, data in contents:
        try:
            parsed = list(_parse(source, bytes(data), json_by_name=source.endswith(_JSON_NAMES)))
        except _EmptyFileError as cause:
            empty.append(cause)
        else:
            found += (replace(document, text=data) for document in parsed)
    if empty and not found:
        raise empty[0]
    return found


def _accept_silently(_source: str) -> None:
    """Do nothing."""


def read_listings(
    path: str,
    stdin: BinaryIO | None = None,
    bytes_max: int = BYTES_MAX,
    on_read: OnRead = read_silently,
    on_empty: Callable[[str], None] = _accept_silently,
    *,
    is_copied: bool = False,
) -> list[Document]:
    """Return the documents at `path`, without decoding the items of JSON listings.

    `stdin` replaces the process's standard input, `bytes_max` limits the size of a file, and
    `on_read` gets the progress of reading. `is_copied` is explained at `content_of`. If `path`
    stands for several files, files without an object are skipped, as kubectl does. `on_empty` gets
    the name of each empty file: `kubectl get KIND > FILE` leaves an empty file if the cluster lacks
    the kind. Raises InputError, also if no file has an object.
    """
    found: list[Document] = []
    skipped: list[_EmptyFileError] = []
    for name, packed in _contents(path, stdin, bytes_max, on_read, is_copied=is_copied):
        for source, data in unpacked(name, packed, bytes_max):
            by_name = path != "-" and source.endswith(_JSON_NAMES)
            try:
                found += _split(source, data, json_by_name=by_name)
            except _EmptyFileError as cause:
                skipped.append(cause)
    if skipped and not found:
        raise skipped[0]
    for one in skipped:
        if one.problem == _EMPTY:
            on_empty(one.source)
    return found


def _contents(
    path: str, stdin: BinaryIO | None, bytes_max: int, on_read: OnRead, *, is_copied: bool
) -> Iterator[tuple[str, Bytes]]:
    """Yield (name for messages, content) of each file at `path`. Raises InputError."""
    if path == "-":
        stream = stdin or sys.stdin.buffer
        yield STDIN, content_of_stream(STDIN, stream, bytes_max, on_read)
        return
    for file in _files(path):
        yield str(file), content_of(file, bytes_max, on_read, is_copied=is_copied)


def parse_listings(source: str, data: Bytes, bytes_max: int = BYTES_MAX) -> list[Document]:
    """Return the documents in `data`, without decoding the items of JSON listings.

    `source` names `data` in error messages. Raises InputError.
    """
    return [
        document
        for name, content in unpacked(source, data, bytes_max)
        for document in _split(name, content, json_by_name=False)
    ]


def _split(source: str, data: Bytes, *, json_by_name: bool) -> Iterator[Document]:
    if _TEXT.search(data) is None:
        raise _EmptyFileError(source, _EMPTY)
    try:
        listing = split(data)
    except ColumnError as cause:
        raise InputError(source, cause.problem, field=cause.field) from None
    if listing is not None and len(data) <= CHARACTERS_MAX:
        require_distinct_keys(source, bytes(data).decode())
    if listing is None and not json_by_name:
        listing = _yaml_listing(source, data)
    if listing is not None:
        yield Document(source, listing.head, listing, data)
    else:
        for document in _parse(source, bytes(data), json_by_name=json_by_name):
            yield _with_listing(document)


def _yaml_listing(source: str, data: Bytes) -> Listing | None:
    """Return the listing in `data` if it has the layout of kubectl's YAML, otherwise None."""
    # Imported only for files that are not JSON.
    from fairlead.api.text.yaml_listing import split_listing  # noqa: PLC0415

    text = decode_text(source, bytes(data))
    found = None if text.lstrip().startswith(("{", "[")) else split_listing(text)
    # kubectl writes the kind after the items, so a file that is cut off has none.
    if found is None or not str(found[0].get("kind", "")).endswith("List"):
        return None
    return Listing(found[0], [*map(msgspec.Raw, found[1])])


def _with_listing(document: Document) -> Document:
    """Return `document`; if its value is a List, replace the decoded items by their texts.

    The texts need less memory than the decoded items.
    """
    match document.value:
        case {"kind": str(kind), "items": list(items)} if kind.endswith("List"):
            try:
                texts = [msgspec.Raw(msgspec.json.encode(item)) for item in items]
            except (OverflowError, RecursionError):
                return document  # the error is reported when the objects are read
            head = {**document.value, "items": []}
            return Document(document.source, head, Listing(head, texts))
    return document


def read_one(path: str, expected: str = "") -> Document:
    """Return the only document in the file `path`; `expected` names its kind in error messages.

    Raises InputError.
    """
    if _is_folder(Path(path)):
        raise InputError(path, "is a directory; expected a file")
    found = read(path)
    if len(found) != 1:
        problem = f"contains {len(found)} documents; expected one {expected}".rstrip()
        raise InputError(path, problem)
    return found[0]


def _files(path: str) -> Iterable[Path]:
    root = Path(path)
    if not _is_folder(root):
        return [root]
    suffixes = {*TEXT_SUFFIXES, *PACKED_SUFFIXES}
    # A link to a missing file and a folder without permission are errors: without their objects,
    # the answer would be wrong.
    files = sorted(
        file
        for folder, _, names in os.walk(root, onerror=_refuse_folder)
        for name in names
        if (file := Path(folder, name)).suffix in suffixes and not name.startswith(_EDITOR_LOCK)
    )
    if not files:
        raise InputError(path, f"is a directory without a {', '.join(TEXT_SUFFIXES)} file")
    return files


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # The name is too long; reading the file reports it.
        return False


def _refuse_folder(cause: OSError) -> NoReturn:
    raise InputError(str(cause.filename), f"cannot be read: {cause.strerror}") from None


def read_bytes(path: Path) -> bytes:
    """Return the content of `path`. Raises InputError."""
    return bytes(content_of(path, is_copied=True))


def _parse(source: str, data: bytes, *, json_by_name: bool) -> Iterator[Document]:
    text = decode_text(source, data)
    if _is_table(text):
        raise InputError(source, _TABLE)
    values = _json(source, text, is_json=json_by_name) or _yaml(source, text)
    found = [value for value in values if value is not None]
    if not found:
        raise _EmptyFileError(source, "contains only comments or empty documents")
    for number, value in enumerate(found, 1):
        yield Document(source, value, place=f"document {number}" if len(found) > 1 else "")


def _is_table(text: str) -> bool:
    """Return whether the first line of `text` is the header of a table of kubectl.

    As YAML, a document with this first line would be text or invalid.
    """
    header = text[:_HEADER_MAX].strip().partition("\n")[0].rstrip()
    has_columns = " " in header or header == "NAME"
    return header[:1].isalpha() and header.isupper() and ":" not in header and has_columns


def decode_text(source: str, data: bytes) -> str:
    """Return `data`, the content of the file `source`, as text.

    Raises InputError if `data` is empty or is not text.
    """
    if not data.strip():
        raise _EmptyFileError(source, _EMPTY)
    encoding = "utf-16" if data.startswith(_UTF16_MARKS) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as cause:
        problem = f"is not text: byte {cause.start} is not {encoding.removesuffix('-sig').upper()}"
        raise InputError(source, problem) from None
    if "\0" in text:
        raise InputError(source, f"is not text: character {text.index(chr(0))} is NUL")
    return text


def _json(source: str, text: str, *, is_json: bool) -> list[Any] | None:
    """Return the JSON values of `text`; None if `text` must be parsed as YAML.

    If `is_json` is set, the result is never None, and invalid JSON raises InputError. Otherwise,
    invalid JSON raises InputError only if the invalid value begins with `{"`. Other invalid JSON
    may be YAML.
    """
    if not is_json and not text.lstrip().startswith(("{", "[")):
        return None
    found: list[Any] = []
    data = text.encode()
    parts = [data[start:end].strip() for start, end in value_ranges(data)]
    for number, part in enumerate(parts, 1):
        subject = f"document {number} " if len(parts) > 1 else ""
        try:
            value = msgspec.json.decode(part)
        except RecursionError:
            raise InputError(source, f"{subject}is nested too deeply") from None
        except msgspec.DecodeError as cause:
            if is_json or part.startswith(b'{"'):
                hint = _WITHOUT_LOGS if _LOGS in part else ""
                raise InputError(source, f"{subject}is not JSON: {cause}{hint}") from None
            return None  # a YAML flow mapping has the same first character
        # The decoder's own limit depends on the version of Python: 1,000 or 10,000 levels.
        if is_too_deep(value):
            raise InputError(source, f"{subject}is nested too deeply")
        require_distinct_keys(source, part.decode())
        found.append(value)
    return found


def _yaml(source: str, text: str) -> Iterator[Any]:
    # Imported only for YAML that does not have kubectl's layout.
    from fairlead.api.text import yaml_documents  # noqa: PLC0415

    try:
        yield from yaml_documents.documents(text)
    except yaml_documents.YamlError as cause:
        hint = _TEMPLATE if "{{" in text else ""
        raise InputError(source, f"is not YAML: {cause}{hint}") from None

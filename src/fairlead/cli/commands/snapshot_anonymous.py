"""Writes snapshot files, anonymises them with a key, and restores original names in texts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.cli import exit_code
from fairlead.cli.output.atomic_file import AtomicFile
from fairlead.cli.output.console.progress_bar import ProgressBar
from fairlead.cli.output.result_file import print_empty_files, print_notice
from fairlead.whatif.input.content import BYTES_MAX
from fairlead.whatif.input.document import decode_text, read_bytes, read_one
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.pod_columns import encode_columns, encode_list, in_listing_order
from fairlead.whatif.snapshot.anonymization.anonymizer import PUBLISHED, anonymised
from fairlead.whatif.snapshot.anonymization.kept_name import kept_names
from fairlead.whatif.snapshot.anonymization.pseudonym import KEY_KIND, KEY_VERSION, Pseudonyms
from fairlead.whatif.snapshot.live.live_snapshot import LiveObjects
from fairlead.whatif.snapshot.snapshot import (
    Snapshot,
    copied_annotations,
    read_dump,
    snapshot_annotations,
)

_UNKNOWN_SHOWN: Final = 3


def rewrite(
    file: Path,
    source: str | None,
    anonymise: Path | None,
    reveal: Path | None,
    *,
    as_list: bool,
    max_input: int | None = None,
) -> int:
    """Write the content of `source` to `file`, with pseudonyms or original names if asked.

    `anonymise` and `reveal` are paths of key files, or None. If `reveal` is None, `source` is a
    snapshot. If `anonymise` is set, the names in the snapshot are replaced by pseudonyms. If
    `reveal` is set, `source` is any text file, and the pseudonyms in this file are replaced by the
    original names. Returns the exit code. Raises InputError.
    """
    if reveal is not None:
        if source is None or anonymise is not None:
            raise InputError("--reveal", "needs --from, and neither a cluster nor --anonymise")
        reveal_text(file, source, reveal)
        return exit_code.SUCCESS
    assert source is not None  # Without --reveal, this function is called only if --from is given.
    if anonymise is not None:
        write_anonymised(file, anonymise, source=source, as_list=as_list, max_input=max_input)
    else:
        with ProgressBar() as progress:
            snapshot = _read(source, max_input, progress)
            progress.begin("writing", 0)
            texts = [manifest.text for manifest in snapshot.manifests]
            metadata = {"annotations": copied_annotations(snapshot)}
            write_texts(file, texts, metadata, as_list=as_list)
        print_notice(f"snapshot: {file} ({len(texts):,} objects of {source})")
        print_empty_files(snapshot.empty_files)
    return exit_code.SUCCESS


def write_texts(
    file: Path, texts: Sequence[bytes], metadata: Mapping[str, Any], *, as_list: bool
) -> None:
    """Write a snapshot file that contains the metadata `metadata` and the JSON objects `texts`.

    If `as_list` is set, the file is a List in the form that kubectl prints.
    """
    with AtomicFile(file) as written:
        written.write(_encoded(texts, metadata, as_list=as_list))


def _encoded(texts: Sequence[bytes], metadata: Mapping[str, Any], *, as_list: bool) -> bytes:
    encode = encode_list if as_list else encode_columns
    return encode(in_listing_order(texts), metadata)


def write_anonymised(
    file: Path,
    key_file: Path,
    *,
    source: str = "",
    live: LiveObjects | None = None,
    as_list: bool = False,
    max_input: int | None = None,
) -> None:
    """Write an anonymised snapshot to `file` and the key of its pseudonyms to `key_file`.

    The snapshot contains the objects in `live`, or if `live` is None, the objects in the dump
    `source`. The key file must not exist yet. Raises InputError.
    """
    with ProgressBar() as progress:
        objects, annotations = _objects(source, live, max_input, progress)
        progress.begin("anonymising", 0)
        found = anonymised(objects)
        progress.begin("writing", 0)
        texts = [msgspec.json.encode(one) for one in found.objects]
        with AtomicFile(file) as written:
            written.write(_encoded(texts, {"annotations": annotations}, as_list=as_list))
            written.flush()
            # If the snapshot cannot be written, no key is written. If the key cannot be written,
            # the `with` block discards the snapshot.
            _write_key(key_file, found.pseudonyms)
    print_notice(f"snapshot: {file} ({len(found.objects):,} objects; key: {key_file})")
    print_notice(PUBLISHED)
    for noun, names in kept_names(found.objects).items():
        print_notice(f"kept {noun}: {', '.join(names)}")
    for kind, count in sorted(found.dropped.items()):
        print_notice(f"dropped {count:,} objects of kind {kind}")


def _objects(
    source: str, live: LiveObjects | None, max_input: int | None, progress: ProgressBar
) -> tuple[list[dict[str, Any]], Mapping[str, str]]:
    """Return (objects, annotations of the snapshot).

    The objects are those of `live`, or those of the dump `source` if `live` is None.
    """
    if live is not None:
        items = msgspec.json.decode(live.encoded())["items"]
        return items, snapshot_annotations(live.taken_at, live.unreadable_resources())
    snapshot = _read(source, max_input, progress)
    print_empty_files(snapshot.empty_files)
    for manifest in snapshot.manifests:
        manifest.require_right_types()
    objects = [manifest.value for manifest in snapshot.manifests]
    return objects, copied_annotations(snapshot)


def _read(source: str, max_input: int | None, progress: ProgressBar) -> Snapshot:
    progress.begin("reading", 0)
    return read_dump(source, None, max_input or BYTES_MAX, progress.read)


def _write_key(path: Path, pseudonyms: Pseudonyms) -> None:
    """Write the key of the pseudonyms to a new file that only its owner can read.

    If the key cannot be written, no file remains. Raises InputError if the file cannot be created,
    and OSError if it cannot be written.
    """
    encoded = msgspec.json.encode(pseudonyms.as_json())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError("--anonymise", problem, object_name=str(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(encoded)
    except BaseException as cause:  # An incomplete key would prevent a second attempt.
        path.unlink(missing_ok=True)
        if isinstance(cause, OSError):
            raise OSError(cause.errno, cause.strerror, str(path)) from None
        raise


def reveal_text(file: Path, source: str, key_file: Path) -> None:
    """Write the text of the file `source` to `file`, with original names in place of pseudonyms.

    The original names are in `key_file`. Raises InputError.
    """
    match read_one(str(key_file)).value:
        case {"apiVersion": str(version), "kind": str(kind), "segments": list(segments)} if (
            version,
            kind,
        ) == (KEY_VERSION, KEY_KIND) and all(isinstance(one, str) for one in segments):
            pseudonyms = Pseudonyms(segments)
        case _:
            raise InputError(str(key_file), "is not a key that --anonymise wrote")
    text = decode_text(source, read_bytes(Path(source)))
    if pseudonyms.has_none(text):
        print_notice(f"{source}: contains no pseudonyms, so {file} is an equal copy")
    elif not pseudonyms.recognizes(text):
        unknown = pseudonyms.unknown_in(text)
        shown = f"; not in it: {', '.join(unknown[:_UNKNOWN_SHOWN])}" if unknown else ""
        other = "which may be the key of another dump"
        problem = f"has few or no pseudonyms of {key_file}, {other}{shown}"
        raise InputError(source, problem)
    with AtomicFile(file) as written:
        written.write(pseudonyms.reveal(text).encode())

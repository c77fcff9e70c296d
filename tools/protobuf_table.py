r"""Make the table of field numbers that Fairlead ships, from a Kubernetes program.

    python tools/protobuf_table.py KUBECTL src/fairlead/apiserver/schema/data/1.36.json.gz \
        src/fairlead/apiserver/protobuf/data

Kubernetes' programs carry the descriptors of the messages they speak, each compressed. Those of
the types in the schema tables are kept, as numbers and names of fields alone: what the fields are
is in the schemas. Run it with the newest kubectl at hand (1.33 or newer). What no kubectl speaks,
and what is newer, stands in `protobuf_fields.txt` beside this script.

upstream: staging/src/k8s.io/api/*/*/generated.proto
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlead.apiserver.protobuf.wire import WireError, fields

Json = dict[str, Any]

GZIP_MAGIC = re.compile(rb"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff")
DESCRIPTOR_BYTES_MAX = 3_000_000
MESSAGE_TYPE = 11  # upstream: google/protobuf/descriptor.proto:FieldDescriptorProto.Type

# Versions that a program of 1.33 does not know yet, and those in which their types were born.
BORN_AS = {
    "resource.v1": "resource.v1beta2",
    "storage.v1": "storage.v1beta1",
    "admissionregistration.v1": "admissionregistration.v1alpha1",
}

Message = dict[int, tuple[str, str]]


def main(program: Path, schemas: Path, target: Path) -> None:
    """Write the table of one program, for the types in one schema table."""
    messages = all_messages(program)
    table = {}
    for definition, row in json.loads(gzip.decompress(schemas.read_bytes()))["definitions"].items():
        message = message_named(definition, messages)
        if message is not None and "f" in row:
            named = {field.lower(): field for field in row["f"]}
            table[definition] = numbers(named, message, messages)
    add_facts(table, Path(__file__).with_name("protobuf_fields.txt").read_text())
    text = json.dumps(table, separators=(",", ":"))
    (target / "numbers.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def all_messages(program: Path) -> dict[str, Message]:
    """The messages that a program knows, by full name."""
    messages: dict[str, Message] = {}
    for descriptor in descriptors(program.read_bytes()):
        messages.update(messages_of(descriptor))
    return messages


def add_facts(table: Json, facts: str) -> None:
    """Complete `table` by lines such as `MESSAGE FIELD=NUMBER ...`, under `[package]`."""
    package = ""
    for line in facts.splitlines():
        words = line.split()
        if line.startswith("["):
            package = line.strip("[]")
        elif words and words[0] != "#":
            message = table.setdefault(f"{package}.{words[0]}", {})
            for word in words[1:]:
                field, _, number = word.partition("=")
                message[number] = field


def descriptors(program: bytes) -> Iterator[bytes]:
    """Every compressed file descriptor in a program: they begin with their name."""
    for found in GZIP_MAGIC.finditer(program):
        stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            content = stream.decompress(program[found.start() :][:DESCRIPTOR_BYTES_MAX])
        except zlib.error:
            continue
        if stream.eof and content[:1] == b"\n":
            yield content


def messages_of(descriptor: bytes) -> Iterator[tuple[str, Message]]:
    """Messages by full name: field number -> name and, of messages, type."""
    try:
        parts = list(fields(descriptor))
    except WireError:
        return
    package = next((value.decode() for number, value in parts if number == 2), "")
    for number, value in parts:
        if number == 4:
            yield from message_of(package, value)


def message_of(prefix: str, descriptor: bytes) -> Iterator[tuple[str, Message]]:
    """One message and those inside it."""
    parts = list(fields(descriptor))
    name = next(value.decode() for number, value in parts if number == 1)
    message: Message = {}
    for number, value in parts:
        if number == 2:
            row = dict(fields(value))
            type_name = row.get(6, b"").decode().lstrip(".") if row.get(5) == MESSAGE_TYPE else ""
            message[row[3]] = (row[1].decode(), type_name)
        elif number == 3:
            yield from message_of(f"{prefix}.{name}", value)
    yield f"{prefix}.{name}", message


def message_named(definition: str, messages: dict[str, Message]) -> Message | None:
    """The message of a schema's definition."""
    name = definition.replace("io.k8s.", "k8s.io.", 1)
    if name in messages:
        return messages[name]
    for version, older in BORN_AS.items():
        born = name.replace(f".{version}.", f".{older}.")
        if born != name and born in messages:
            return messages[born]
    return None


def numbers(named: dict[str, str], message: Message, messages: dict[str, Message]) -> Json:
    """Number -> field; a message that JSON does not nest is a table of its own.

    `named` has the fields by their names in lower case: some differ from JSON's in that alone.
    """
    table: Json = {}
    for number, (name, type_name) in sorted(message.items()):
        if name.lower() in named:
            table[str(number)] = named[name.lower()]
        elif type_name in messages:
            table[str(number)] = numbers(named, messages[type_name], messages)
    return table


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))

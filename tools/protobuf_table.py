r"""Make the table of field numbers that Fairlead ships, from Kubernetes' published messages.

    python tools/protobuf_table.py SOURCES src/fairlead/apiserver/schema/data/1.36.json.gz \
        src/fairlead/apiserver/protobuf/data

SOURCES is a directory with upstream's `generated.proto` files of one version, at any depth: those
of k8s.io/api, apimachinery and metrics, which their Go packages carry. The messages of the types in
the schema tables are kept, as numbers and names of fields alone: what the fields are is in the
schemas. Messages of other modules stand in `protobuf_fields.txt` beside this script.

upstream: staging/src/k8s.io/api/*/*/generated.proto
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from fairlead.api.json import Json

PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (?:\w+ )?(map<[^>]*>|[\w.]+) (\w+) = (\d+)[;\s]", re.MULTILINE)

# Field number -> name and, of messages, type; in the order in which they are declared.
Message = dict[int, tuple[str, str]]


def main(sources: Path, schemas: Path, target: Path) -> None:
    """Write the table of one version, for the types in one schema table."""
    messages = all_messages(sources)
    table = {}
    for definition, row in json.loads(gzip.decompress(schemas.read_bytes()))["definitions"].items():
        message = message_named(definition, messages)
        if message is not None and "f" in row:
            named = {field.lower(): field for field in row["f"]}
            table[definition] = numbers(named, message, messages)
    add_facts(table, Path(__file__).with_name("protobuf_fields.txt").read_text())
    text = json.dumps(table, separators=(",", ":"))
    (target / "numbers.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def all_messages(sources: Path) -> dict[str, Message]:
    """The messages of every `generated.proto` in a directory, by full name."""
    messages: dict[str, Message] = {}
    for path in sorted(sources.rglob("generated.proto")):
        messages.update(messages_of(path.read_text()))
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


def messages_of(text: str) -> Iterator[tuple[str, Message]]:
    """The messages of one file by full name; none lies in another."""
    package = PACKAGE.findall(text)[0]
    for name, body in MESSAGE.findall(text):
        yield (
            f"{package}.{name}",
            {
                int(number): (field, full_name(type_name, package))
                for type_name, field, number in FIELD.findall(body)
            },
        )


def full_name(type_name: str, package: str) -> str:
    """Names of other packages begin with a dot, those of scalars are of no message."""
    return type_name[1:] if type_name.startswith(".") else f"{package}.{type_name}"


def message_named(definition: str, messages: dict[str, Message]) -> Message | None:
    """The message of a schema's definition."""
    return messages.get(definition.replace("io.k8s.", "k8s.io.", 1))


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

r"""Writes the table of protobuf field numbers, from Kubernetes' published messages.

    python tools/protobuf_table.py SOURCES src/fairlead/apiserver/schema/data/1.36.json.gz \
        src/fairlead/apiserver/protobuf/data

SOURCES is a directory with upstream's `generated.proto` files of one version, at any depth. These
files are in the Go modules k8s.io/api, k8s.io/apimachinery and k8s.io/metrics. For each type in the
schema tables, the table contains the numbers and names of its fields. The schemas contain the types
of the fields. `protobuf_fields.txt` beside this script contains the fields of messages of other
modules.

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

# {field number: (name, full name of the type)}, in the order of declaration.
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
    """Return the messages of every `generated.proto` below `sources`, by full name."""
    messages: dict[str, Message] = {}
    for path in sorted(sources.rglob("generated.proto")):
        messages.update(messages_of(path.read_text()))
    return messages


def add_facts(table: Json, facts: str) -> None:
    """Add the fields in the text `facts` to `table`.

    `facts` has lines such as `MESSAGE FIELD=NUMBER ...` below a line `[package]`.
    """
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
    """Yield (full name, message) for each message of the file `text`; messages are not nested."""
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
    """Return the full name of a type to which a message of `package` refers.

    `type_name` begins with a dot if the type is in another package. For a scalar type, there is no
    message with the returned name.
    """
    return type_name[1:] if type_name.startswith(".") else f"{package}.{type_name}"


def message_named(definition: str, messages: dict[str, Message]) -> Message | None:
    """Return the message of the schema `definition`; None if there is none."""
    return messages.get(definition.replace("io.k8s.", "k8s.io.", 1))


def numbers(named: dict[str, str], message: Message, messages: dict[str, Message]) -> Json:
    """Return {field number: name of the field in JSON} for `message`.

    The fields of some messages are not nested in JSON. The value for such a message is a table of
    its fields instead of a name. `named` maps names in lower case to names in JSON. Some names in
    messages differ in case from the names in JSON.
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

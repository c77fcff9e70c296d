"""Writes the schema tables of the API server, from Kubernetes' published JSON schemas.

    python tools/schema_table.py _definitions.json 1.36 SOURCES src/fairlead/apiserver/schema/data

The first argument is the file of definitions of one Kubernetes version, and the second is this
version. The package kubernetes-validate contains the file
(`vX.Y.0-local-strict/_definitions.json`). The third argument is a directory with the protobuf
messages of that version (see protobuf_table.py). go_order.py derives the order of fields from them.
The tool writes two files in the directory of the last argument. The server needs
`<version>.json.gz` for every write. Only `kubectl explain` reads `<version>-words.json.gz`, which
contains the descriptions.

Types that a document in `schema/data/openapi` describes are left out.

Two other places contain facts that the published schemas lack. `go_types.py` beside this script
lists pointer fields in upstream's types, and the fields that are encoded even if they are empty.
`api/data/facts` contains hand-written rows with the values, defaults and bounds of fields (see
`api/facts.py`).
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

from go_order import Messages, in_order
from go_types import (
    DROPPED,
    EMITTED,
    HELD_BY_VALUE,
    KEPT,
    KEY_DEFAULTS,
    PLAIN_NUMBERS,
    POINTERS,
)
from protobuf_table import all_messages

from fairlead.api.json import Json
from fairlead.apiserver.schema.openapi_types import (
    SPECIAL,
    descriptions,
    documented_types,
    merge_facts,
    type_of,
)

NOT_SERVED = re.compile(r"\.v\d+(alpha|beta)\d+\.")


def main(source: Path, version: str, sources: Path, target: Path) -> None:
    """Write both files of one version."""
    messages, documented = all_messages(sources), documented_types().definitions
    definitions = json.loads(source.read_text())["$defs"]
    served = {
        name: body
        for name, body in definitions.items()
        if not NOT_SERVED.search(name) and name not in SPECIAL and name not in documented
    }
    table = {
        "version": version,
        "definitions": {
            name: definition(name, body, messages) for name, body in sorted(served.items())
        },
        "kinds": kinds(served),
    }
    words = {
        name: descriptions(body)
        for name, body in sorted(definitions.items())
        if name not in documented
    }
    written(target / f"{version}.json.gz", table)
    written(target / f"{version}-words.json.gz", words)


def written(path: Path, content: Json) -> None:
    """Write `content` as compressed JSON without a time stamp; equal content gives equal bytes."""
    text = json.dumps(content, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def kinds(definitions: Json) -> dict[str, str]:
    """Return the names of definitions, keyed by kind (`apps/v1/Deployment`)."""
    named = {}
    for name, body in sorted(definitions.items()):
        for gvk in body.get("x-kubernetes-group-version-kind", ()):
            group = f"{gvk['group']}/" if gvk["group"] else ""
            named[f"{group}{gvk['version']}/{gvk['kind']}"] = name
    return named


def definition(name: str, body: Json, messages: Messages) -> Json:
    """Return the row of the definition `name` with the schema `body`.

    The row contains the fields in the order of declaration ("f") or the type ("t"). It also
    contains whether server-side apply treats the type as atomic ("a"), and the defaults of list
    keys ("d").
    """
    short = ".".join(name.split(".")[-2:])
    full = ".".join(name.split(".")[-3:])
    required = set(body.get("required", ()))
    top = "x-kubernetes-group-version-kind" in body
    row: Json = {}
    if "properties" in body:
        fields = body["properties"]
        row["f"] = {
            field: described_field(full, field, fields[field], needed=field in required, top=top)
            for field in in_order(name, fields, messages)
        }
    elif "additionalProperties" in body:
        row["t"] = type_of(body)
    if body.get("x-kubernetes-map-type") == "atomic":
        row["a"] = True
    if short in KEY_DEFAULTS:
        row["d"] = KEY_DEFAULTS[short]
    return row


def described_field(full: str, field: str, schema: Json, *, needed: bool, top: bool) -> Json:
    """Return the row of a field: its type, the encoding of its zero value, and its merge rules.

    `full` is the name of the owner (group, version and type). `needed` means that the field is
    required, and `top` that the owner is the type of complete objects.
    """
    kind = type_of(schema)
    row: Json = {"t": kind}
    zero = zero_of(f"{full}.{field}", kind, needed=needed, top=top)
    if zero:
        row["z"] = zero
    if needed:
        row["r"] = True
    return row | merge_facts(schema)


def zero_of(path: str, kind: Any, *, needed: bool, top: bool) -> str:
    """Return the encoding of a field's zero value, as in `schema.model.Zero`.

    The result is "keep" (written if the client sent it), "emit" (always written), "null" (written
    as null) or "" (omitted). `path` is `group.version.Type.field`; `kind` is the field's type.
    """
    group_path, path = path, path.partition(".")[2]
    field = path.rpartition(".")[2]
    for zero, paths in (("emit", EMITTED), ("null", POINTERS), ("", DROPPED), ("keep", KEPT)):
        if path in paths or group_path in paths:
            return zero
    if top and field in ("apiVersion", "kind"):
        return "keep"
    if isinstance(kind, str) and kind.startswith("#"):
        by_value = path in HELD_BY_VALUE or needed or (top and field in TOP_BY_VALUE)
        return "emit" if by_value else "keep"
    if needed:
        return "emit"
    if kind in ("int32", "int64", "number", "boolean"):
        return "" if path in PLAIN_NUMBERS or field == "observedGeneration" else "keep"
    if kind in ("quantity", "intstr", "time", "microtime", "any"):
        return "keep"
    return "keep" if isinstance(kind, str) and kind.startswith(HELD_BY_POINTER) else ""


# Types of arbitrary values in the schemas of custom resources: false and 0 are not omitted.
HELD_BY_POINTER = "any#io.k8s.apiextensions-apiserver."
TOP_BY_VALUE = ("metadata", "spec", "status")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))

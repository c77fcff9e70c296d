"""Generated inputs of the parsers: texts, JSON values and objects, most of them almost valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from fairlead.apiserver.schema.model import Schema, Type

# Pieces that are difficult for parsers, and pieces that lead them into deeper branches.
PIECES: Final = (
    "", " ", "\n", "\t", "\0", "a", "A", "é", "\u0661", "\u00b2", "\U0001f600", "\ufffd", "-", "--",
    "_", ".", "..", "/", "//", "~", "~0", "~1", ":", ";", ",", "=", "==", "!=", "!", "<", ">", "(",
    ")", "[", "]", "{", "}", "[0]", "[*]", "*", "&", "|", "%", "100%", "$", "@", "#", "'", '"',
    "\\", "\\u0000", "\\ud800", "0", "1", "-1", "+1", "007", "1.5", ".5", "5.", "1e3", "1e-3",
    "1e999", "0x1F", "9" * 19, "9" * 25, "9" * 5_000, "Inf", "NaN", "nan", "null", "true",
    "yes", "None",
    "n", "u", "m", "k", "Ki", "Mi", "E", "Ei", "h", "ms", "1h30m", "in", "notin", "exists", " in ",
    "metadata", "metadata.name", "spec", "name", "namespace", "labels", "kubernetes.io/", "self",
    "oldSelf", "f:", "k:", "v:", "i:", 'k:{"name":"a"}', "$patch", "$retainKeys", "*/5", "1-5", "@",
    "mon", "@every ", "@daily", "2026-01-01", "T00:00:00", "Z", "+23:59", "0001-01-01T00:00:00Z",
    "10.0.0.1", "::1", "/24", "application/json", "application/yaml", ";as=Table", ";v=v1",
    ";g=meta.k8s.io", ";q=0.5", "*/*", "api", "apis", "v1", "apps", "pods", "namespaces", "default",
    "watch", "status", "x" * 300,
)  # fmt: skip

KEYS: Final = (
    "apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "spec",
    "status", "data", "finalizers", "managedFields", "fieldsV1", "containers", "template", "a", "",
    "$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers",
    "f:metadata", 'k:{"name":"a"}', "v:1", "i:0", ".", "op", "path", "from", "value",
)  # fmt: skip


# The lines of the corpus of all parsers.
RECORDED: Final = tuple(
    json.loads(line)[0]
    for path in sorted((Path(__file__).parent / "corpus").glob("*.jsonl"))
    for line in path.read_text().splitlines()
)


def texts() -> st.SearchStrategy[str]:
    """Strategy for texts of meaningful pieces, of any characters, of both, and of the corpus."""
    piece = st.sampled_from(PIECES) | st.text(max_size=4)
    made = st.lists(piece, max_size=8).map("".join)
    recorded = st.sampled_from(RECORDED)
    return (made | recorded | st.tuples(recorded, piece).map("".join)).map(_sendable)


def _sendable(text: str) -> str:
    """Return `text` without surrogates, because text from a socket is decoded from UTF-8."""
    return text.encode(errors="replace").decode()


def scalars() -> st.SearchStrategy[Any]:
    """Strategy for values that contain no other values."""
    numbers = st.integers() | st.sampled_from((0, -1, 2**31, 2**63, 2**64, 10**400, 1e308, -0.0))
    return st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | texts()


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Strategy for JSON values, whose members mostly have meaningful names."""
    keys = st.sampled_from(KEYS) | texts()
    return st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=max_leaves,
    )


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    """Strategy for JSON texts, some with lost, repeated or exchanged bytes."""
    text = json.dumps(draw(json_values()), ensure_ascii=draw(st.booleans())).encode()
    return draw(damaged(text))


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Strategy for `content`, unchanged or with a few cuts, repetitions and other bytes."""
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(content)))
        end = min(len(content), at + draw(st.integers(0, 8)))
        match draw(st.sampled_from(("cut", "double", "strange", "many"))):
            case "cut":
                content = content[:at] + content[end:]
            case "double":
                content = content[:end] + content[at:]
            case "strange":
                content = content[:at] + draw(st.binary(max_size=4)) + content[end:]
            case _:
                content = content[:at] + content[at:end] * 300 + content[end:]
    return content


_LIKELY: Final[dict[Type, tuple[Any, ...]]] = {
    Type.STRING: ("", "a", "a/b", "Always", "None", "10.0.0.1", "TCP", "In", "a.b.c", "{}"),
    Type.INT32: (0, 1, -1, 80, 70_000, 2**31 - 1),
    Type.INT64: (0, 1, -1, 2**40, 2**63 - 1, -(2**63)),
    Type.BOOLEAN: (False, True),
    Type.QUANTITY: ("1", "1Gi", "-1", 1, "1e1000", "1n", "9" * 30),
    Type.INT_OR_STRING: (0, "10%", "http", -1, "9" * 30 + "%"),
    Type.TIME: ("2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
    Type.MICRO_TIME: ("2026-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000+23:59"),
    Type.BYTES: ("dg==", "", "?"),
    Type.NUMBER: (1.5, 1e308),
}
_NAMES: Final = ("a", "cpu", "a/b", "x y", "kubernetes.io/os", "")


@st.composite
def of_type(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:
    """Strategy for values that mostly have the type in `schema`, and are rarely deep."""
    if draw(st.integers(0, 24)) == 0:
        return draw(json_values(4))
    inner = 0 if depth > 9 else 2 if depth > 4 else 4
    match schema.type:
        case Type.OBJECT:
            names = sorted(schema.fields)
            if not names:
                return {}
            chosen = draw(st.lists(st.sampled_from(names), max_size=inner, unique=True))
            return {n: draw(of_type(schema.fields[n].schema, depth + 1)) for n in chosen}
        case Type.LIST if schema.items is not None:
            return [draw(of_type(schema.items, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
        case Type.MAP if schema.items is not None:
            keys = draw(st.lists(st.sampled_from(_NAMES), max_size=2, unique=True))
            return {key: draw(of_type(schema.items, depth + 1)) for key in keys}
        case Type.ANY:
            return draw(json_values(6))
    return draw(st.sampled_from(_LIKELY[schema.type]) | texts())

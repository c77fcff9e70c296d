"""Encoding: each version of an object becomes JSON text once, for whoever asks.

The text without its kind and apiVersion is kept beside the object; what stands in front differs:
a GET and a watch say what the object is, the items of a list do not need to.

    {"kind":"Pod","apiVersion":"v1", + "metadata":{...},"spec":{...}}       an object
    { + "metadata":{...},"spec":{...}}                                      an item
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.conversion import is_converted, shown
from fairlead.apiserver.storage.storage import ChangeType, Kept, Storage, StorageChange, value_of

Key = tuple[str, str]

# So many of each kind are kept; beyond that, making a text anew costs less than keeping it.
KINDS_MAX: Final = 1_024
TEXTS_MAX: Final = 20_000

_ENCODER: Final = msgspec.json.Encoder()
encode: Final[Callable[[Any], bytes]] = _ENCODER.encode


class EncodedObjects:
    """The text of every stored object that anybody has asked for, in its newest version."""

    def __init__(self, storage: Storage) -> None:
        """Keep the texts of what is in `storage`."""
        self._storage = storage
        self._texts: dict[str, dict[Key, tuple[Json, bytes]]] = {}
        storage.subscribe(self._forget)

    def item(self, kind: Kind, obj: Kept) -> bytes:
        """`obj` as an item of a list; a custom resource says even there what it is."""
        if kind.is_custom:
            return self.whole(kind, obj)
        return b"{" + self._rest(kind, obj)

    def whole(self, kind: Kind, obj: Kept) -> bytes:
        """`obj` with its kind and apiVersion."""
        return preamble(kind) + self._rest(kind, obj)

    def _rest(self, kind: Kind, obj: Kept) -> bytes:
        if is_converted(kind):
            return rest_of(shown(kind, value_of(obj)))
        if isinstance(obj, bytes):
            return rest_of_text(kind, obj)
        meta = obj["metadata"]
        texts = self._texts.setdefault(kind.resource, {})
        key = (meta.get("namespace", ""), meta["name"])
        known = texts.get(key)
        if known is not None and known[0] is obj:
            return known[1]
        # What is no longer stored, or never was, nobody would forget.
        if self._storage.find_kept(kind, *key) is not obj:
            return rest_of(self._storage.arranged(kind, obj))
        text = rest_of(obj)
        if len(texts) >= TEXTS_MAX:
            texts.clear()
        texts[key] = (obj, text)
        return text

    def _forget(self, change: StorageChange) -> None:
        if change.type is ChangeType.DELETED:
            meta = change.object["metadata"]
            texts = self._texts.get(change.kind.resource, {})
            texts.pop((meta.get("namespace", ""), meta["name"]), None)


def preamble(kind: Kind) -> bytes:
    """How the text of an object of `kind` begins."""
    first, by_name = _beginnings(kind.kind, kind.api_version)
    return by_name if kind.is_custom else first


def rest_of_text(kind: Kind, text: bytes) -> bytes:
    """Likewise of an object that is a text; most say at once what they are."""
    for beginning in _beginnings(kind.kind, kind.api_version):
        if text.startswith(beginning):
            return text[len(beginning) :]
    return rest_of(value_of(text))


# Not by kind: each change of a definition makes another one, which knows all of its type.
@lru_cache(maxsize=KINDS_MAX)
def _beginnings(kind: str, api_version: str) -> tuple[bytes, bytes]:
    """In either order; the first is how it is written here."""
    name, version = kind.encode(), api_version.encode()
    return (
        b'{"kind":"%s","apiVersion":"%s",' % (name, version),
        b'{"apiVersion":"%s","kind":"%s",' % (version, name),
    )


def rest_of(obj: Json) -> bytes:
    """The text of `obj` after its kind and apiVersion."""
    return encode({key: obj[key] for key in obj if key not in ("kind", "apiVersion")})[1:]

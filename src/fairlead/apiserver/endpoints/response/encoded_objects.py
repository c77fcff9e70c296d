"""EncodedObjects: encodes each version of an object as JSON once, for all requests.

The cached text lacks kind and apiVersion, because items of lists do not state them:

    {"kind":"Pod","apiVersion":"v1", + "metadata":{...},"spec":{...}}       an object
    { + "metadata":{...},"spec":{...}}                                      an item
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.conversion.kind_conversion import is_converted, shown
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.storage.storage import ChangeType, Kept, Storage, StorageChange, value_of

Key = tuple[str, str]

KINDS_MAX: Final = 1_024
# Texts cached per kind. Beyond that, encoding again costs less than the memory.
TEXTS_MAX: Final = 20_000


class EncodedObjects:
    """Cache of the JSON text of the newest version of objects that were requested."""

    def __init__(self, storage: Storage) -> None:
        """Cache objects of `storage`, and forget those that it removes."""
        self._storage = storage
        self._texts: dict[str, dict[Key, tuple[Json, bytes]]] = {}
        storage.subscribe(self._forget)

    def item(self, kind: Kind, obj: Kept) -> bytes:
        """`obj` as an item of a list; only custom resources have kind and apiVersion there."""
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
        # Only the stored version is cached: no event would ever evict any other one.
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
    """The kind and apiVersion that the text of an object begins with."""
    first, by_name = _beginnings(kind.kind, kind.api_version)
    return by_name if kind.is_custom else first


def rest_of_text(kind: Kind, text: bytes) -> bytes:
    """The text of an encoded object after its kind and apiVersion."""
    for beginning in _beginnings(kind.kind, kind.api_version):
        if text.startswith(beginning):
            return text[len(beginning) :]
    return rest_of(value_of(text))


# The keys are texts, since a Kind of a custom resource holds its whole schema.
@lru_cache(maxsize=KINDS_MAX)
def _beginnings(kind: str, api_version: str) -> tuple[bytes, bytes]:
    """The type fields in either order; the first is the order in which this server encodes."""
    name, version = kind.encode(), api_version.encode()
    return (
        b'{"kind":"%s","apiVersion":"%s",' % (name, version),
        b'{"apiVersion":"%s","kind":"%s",' % (version, name),
    )


def rest_of(obj: Json) -> bytes:
    """The text of `obj` after its kind and apiVersion."""
    return encode({key: obj[key] for key in obj if key not in ("kind", "apiVersion")})[1:]

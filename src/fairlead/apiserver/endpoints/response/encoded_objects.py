"""EncodedObjects: the JSON text of objects in responses and watch events.

A single object in a response, and an item in a list of custom resources, has the same text as in
storage. An item in a list of built-in objects has neither kind nor apiVersion:

    {"kind":"Pod","apiVersion":"v1", + "metadata":{...},"spec":{...}}       an object
    {                                + "metadata":{...},"spec":{...}}       an item of a list
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.conversion.kind_conversion import is_converted, shown
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.storage.storage import Storage, StoredObject, value_of

KINDS_MAX: Final = 1_024


class EncodedObjects:
    """Encodes objects as JSON, or reuses the text that storage already has."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def item(self, kind: Kind, obj: StoredObject) -> bytes:
        """Return the text of `obj` as an item of a list."""
        if kind.is_custom:
            return self.whole(kind, obj)
        return b"{" + self._rest(kind, obj)

    def whole(self, kind: Kind, obj: StoredObject) -> bytes:
        """Return the text of `obj` with its kind and apiVersion."""
        start = preamble(kind)
        text = self._text(kind, obj)
        if text is not None and text.startswith(start):
            return text
        return start + self._rest(kind, obj)

    def _rest(self, kind: Kind, obj: StoredObject) -> bytes:
        """Return the part of the text of `obj` that follows its kind and apiVersion."""
        text = self._text(kind, obj)
        if text is not None:
            return rest_of_text(kind, text)
        made = value_of(obj)
        if is_converted(kind) and not kind.is_custom:
            return rest_of(shown(kind, made))
        return rest_of(self._storage.arranged(kind, shown(kind, made), None))

    def _text(self, kind: Kind, obj: StoredObject) -> bytes | None:
        """Return the stored JSON text of `obj`.

        Return None if objects of `kind` are stored in an apiVersion other than `kind.api_version`.
        Also return None if `obj` is not the Python object that storage contains.
        """
        if is_converted(kind):
            return None
        return obj if isinstance(obj, bytes) else self._storage.stored_text(kind, obj)


def preamble(kind: Kind) -> bytes:
    """Return the beginning of the text of an object: its kind and apiVersion."""
    first, by_name = _beginnings(kind.kind, kind.api_version)
    return by_name if kind.is_custom else first


def rest_of_text(kind: Kind, text: bytes) -> bytes:
    """Return the part of an encoded object's text that follows its kind and apiVersion."""
    for beginning in _beginnings(kind.kind, kind.api_version):
        if text.startswith(beginning):
            return text[len(beginning) :]
    return rest_of(value_of(text))


# The keys are strings, because a Kind of a custom resource contains its whole schema.
@lru_cache(maxsize=KINDS_MAX)
def _beginnings(kind: str, api_version: str) -> tuple[bytes, bytes]:
    """Return both possible beginnings of an object's text: (kind first, apiVersion first)."""
    name, version = kind.encode(), api_version.encode()
    return (
        b'{"kind":"%s","apiVersion":"%s",' % (name, version),
        b'{"apiVersion":"%s","kind":"%s",' % (version, name),
    )


def rest_of(obj: Json) -> bytes:
    """Return the part of the JSON text of `obj` that follows its kind and apiVersion."""
    return encode({key: obj[key] for key in obj if key not in ("kind", "apiVersion")})[1:]

"""Checks that a stored text is the expected object, without decoding it into values.

A file may be damaged or written by another program.
"""

from __future__ import annotations

from typing import Final

import msgspec


class _Meta(msgspec.Struct):
    """The metadata fields that all code relies on."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's names
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[msgspec.Raw] | None = None  # noqa: N815
    managedFields: list[msgspec.Raw] | None = None  # noqa: N815


class _Shape(msgspec.Struct):
    """The fields of an object that all code relies on."""

    apiVersion: str  # noqa: N815
    kind: str
    metadata: _Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_shape_of: Final = msgspec.json.Decoder(type=_Shape).decode


def require_stored_object(key: tuple[str, str, str], blob: bytes, *, is_built_in: bool) -> None:
    """Check that a text is the object with `key`: resource, namespace and name.

    Raises ValueError that names it.
    """
    place = "/".join(filter(None, key))
    try:
        found = _shape_of(blob)
    except msgspec.DecodeError as cause:
        raise ValueError(f"{place}: {cause}") from None
    if (found.metadata.namespace, found.metadata.name) != key[1:]:
        raise ValueError(f"{place}: is another object")
    for part, text in (("spec", found.spec), ("status", found.status)) if is_built_in else ():
        if bytes(text)[:1] not in (b"{", b"n"):  # an object, or null
            raise ValueError(f"{place}: {part}: is no object")

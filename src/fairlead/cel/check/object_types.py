"""The object types of mutations: `Object` and its fields, and operations of JSON patches.

    Object{spec: Object.spec{replicas: 3}}
    JSONPatch{op: "remove", path: "/spec"}

upstream: apiserver/pkg/cel/mutation/{typeresolver,jsonpatch}.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.cel.check.types import DYN, STRING, CelType

_OPERATION: Final = {
    **dict.fromkeys(("op", "from", "path"), STRING),
    "value": DYN,
}


class _AnyFields(dict[str, CelType]):
    """The fields of a type that accepts every field name, with fields of any type."""

    def __contains__(self, name: object) -> bool:
        """Return True: every name is a field."""
        return True

    def get(self, name: str, otherwise: object = None) -> CelType:
        """Return the type of any field: dyn."""
        del name, otherwise
        return DYN


class ObjectTypes(dict[str, Mapping[str, CelType]]):
    """Types with fields, including the types of mutations: `Object`, `Object.spec`, `JSONPatch`."""

    def __contains__(self, name: object) -> bool:
        """Return whether a type has this name."""
        return self.get(str(name)) is not None

    def get(self, name: str, otherwise: object = None) -> Mapping[str, CelType] | None:  # type: ignore[override]
        """Return the fields of a type."""
        del otherwise
        if name == "Object" or name.startswith("Object."):
            return _AnyFields()
        return _OPERATION if name == "JSONPatch" else super().get(name)

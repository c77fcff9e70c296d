"""The object types of mutations: `Object` with its fields, and JSON patch operations.

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
    """The fields of a type that accepts every field name; every field has the type dyn."""

    def __contains__(self, name: object) -> bool:
        """Return True, because the type has every field."""
        return True

    def get(self, name: str, otherwise: object = None) -> CelType:
        """Return dyn, the type of every field."""
        del name, otherwise
        return DYN


class ObjectTypes(dict[str, Mapping[str, CelType]]):
    """Maps each type name to the fields of that type.

    `JSONPatch`, `Object` and each name that begins with `Object.` are built in.
    """

    def __contains__(self, name: object) -> bool:
        """Return whether there is a type called `name`."""
        return self.get(str(name)) is not None

    def get(self, name: str, otherwise: object = None) -> Mapping[str, CelType] | None:  # type: ignore[override]
        """Return the fields of the type `name`, or None if there is no such type.

        `otherwise` exists only because `Mapping.get` has a second parameter, and has no effect.
        """
        del otherwise
        if name == "Object" or name.startswith("Object."):
            return _AnyFields()
        return _OPERATION if name == "JSONPatch" else super().get(name)

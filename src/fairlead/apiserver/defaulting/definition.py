"""Defaults of CustomResourceDefinitions.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced


class _Form(msgspec.Struct, frozen=True, rename="camel"):
    """The base class of the types in this module: immutable, with camelCase names in JSON."""


class DefinitionNames(_Form, frozen=True):
    """spec.names of a CustomResourceDefinition."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()


class _Version(_Form, frozen=True):
    """An item of spec.versions of a CustomResourceDefinition."""

    name: str = ""
    served: bool = False
    storage: bool = False
    schema: dict[str, dict[str, Any]] = {}
    subresources: dict[str, dict[str, Any]] = {}


class _Spec(_Form, frozen=True):
    group: str = ""
    scope: str = ""
    names: DefinitionNames = DefinitionNames()
    versions: tuple[_Version, ...] = ()
    conversion: dict[str, Any] = {}


class _Definition(_Form, frozen=True):
    spec: _Spec = _Spec()


def with_definition_defaults(definition: Json) -> Json:
    """Return a CustomResourceDefinition with the defaults of its names and its conversion.

    Raises DecodeError if a field has the wrong type.
    """
    decode_as(_Definition, definition)
    return {**definition, "spec": _definition_spec(definition.get("spec") or {})}


def _definition_spec(spec: Json) -> Json:
    names = spec.get("names") or {}
    kind = names.get("kind", "")
    if kind:
        names = filled(names, {"singular": kind.lower(), "listKind": f"{kind}List"})
    conversion = filled(spec.get("conversion") or {}, {"strategy": "None"})
    return replaced(replaced(spec, "names", names), "conversion", conversion)


DEFINITION_RULES: Final[Mapping[str, Rule]] = {"v1.CustomResourceDefinitionSpec": _definition_spec}

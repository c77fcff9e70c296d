"""Defaults of CustomResourceDefinitions.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.fill import Rule, filled, replaced


def with_definition_defaults(definition: Json) -> Json:
    """Return a CustomResourceDefinition with the defaults of its names and its conversion."""
    return {**definition, "spec": _definition_spec(definition.get("spec") or {})}


def _definition_spec(spec: Json) -> Json:
    names = spec.get("names") or {}
    kind = names.get("kind", "")
    if kind:
        names = filled(names, {"singular": kind.lower(), "listKind": f"{kind}List"})
    conversion = filled(spec.get("conversion") or {}, {"strategy": "None"})
    return replaced(replaced(spec, "names", names), "conversion", conversion)


DEFINITION_RULES: Final[Mapping[str, Rule]] = {"v1.CustomResourceDefinitionSpec": _definition_spec}

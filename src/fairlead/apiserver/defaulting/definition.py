"""Defaults of CustomResourceDefinitions.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go
"""

from __future__ import annotations

from fairlead.api.json import Json


def with_definition_defaults(definition: Json) -> Json:
    """`definition` with default names and conversion."""
    spec = definition.get("spec") or {}
    names = dict(spec.get("names") or {})
    kind = str(names.get("kind", ""))
    if kind:
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**definition, "spec": {**spec, "names": names, "conversion": conversion}}

"""Validation of API objects embedded in custom resources: type and metadata.

upstream: apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.schema.structural import Structural
from fairlead.apiserver.apiextensions.schema.value_validation import member_path
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import invalid, required
from fairlead.apiserver.validation.meta.format import dns_1035_problems, path_segment_problems
from fairlead.apiserver.validation.meta.object_meta import check_labels


def embedded_object_causes(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    """The errors of all embedded objects in `value`, which is at `path`."""
    if isinstance(value, dict):
        if schema.is_embedded:
            yield from _object_causes(value, path)
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                yield from embedded_object_causes(inner, value[key], member_path(schema, path, key))
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from embedded_object_causes(schema.items, item, f"{path}[{index}]")


def _object_causes(value: Json, path: str) -> Iterator[Cause]:
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield required(f"{path}.{key}")
        elif not isinstance(value[key], str):
            yield invalid(f"{path}.{key}", value[key], "must be a string")
        elif not value[key]:
            yield invalid(f"{path}.{key}", "", "must not be empty")
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    problems = dns_1035_problems(kind.lower()) if isinstance(kind, str) and kind else ()
    if problems:
        problem = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield invalid(f"{path}.kind", kind, problem)
    meta = value.get("metadata")
    if isinstance(meta, dict):
        yield from _metadata_causes(meta, f"{path}.metadata")


def _metadata_causes(meta: Json, path: str) -> Iterator[Cause]:
    name = meta.get("name")
    for problem in path_segment_problems(name) if isinstance(name, str) and name else ():
        yield invalid(f"{path}.name", name, problem)
    labels = meta.get("labels")
    if isinstance(labels, dict):
        texts = {key: text for key, text in labels.items() if isinstance(text, str)}
        yield from check_labels(f"{path}.labels", texts)

"""CustomScales: the scales of custom resources.

A CustomResourceDefinition states which fields of its objects contain the number of replicas and the
selector of the pods. Autoscalers read these fields and write the number of replicas. Disruption
budgets read the number of replicas. A definition is found by group and kind. The first version in
the definition that is served and has a scale is used for all versions of the custom resource.

upstream: apiextensions-apiserver/pkg/registry/customresource/etcd.go:scaleFromCustomResource,
pkg/controller/podautoscaler/horizontal.go:scaleForResourceMappings
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Unstructured
from fairlead.api.selector import SelectorError, parse_selector
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import annotated_load
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import (
    NoScaleError,
    Scale,
    ScaleError,
)

DEFINITION: Final = "CustomResourceDefinition"

_GroupKind = tuple[str, str]


class CustomScales(Struct):
    """All CustomResourceDefinitions by group and kind, and their custom resources."""

    _definitions: dict[_GroupKind, Json] = field(default_factory=dict)
    _resources: dict[tuple[_GroupKind, str, str], Unstructured] = field(default_factory=dict)

    def observe(self, one: ApiObject) -> bool:
        """Store a CustomResourceDefinition, or a custom resource whose definition is stored.

        Returns True if a custom resource was stored. All other objects are ignored.
        """
        if not isinstance(one, Unstructured):
            return False
        if one.kind == DEFINITION:
            self._definitions[_defined(one)] = one.spec
            return False
        if _group_kind(one) not in self._definitions:
            return False
        self._resources[_group_kind(one), one.metadata.namespace, one.metadata.name] = one
        return True

    def forget(self, one: ApiObject) -> bool:
        """Remove a CustomResourceDefinition or a custom resource.

        Returns True if `one` is a custom resource that was stored.
        """
        if not isinstance(one, Unstructured):
            return False
        if one.kind == DEFINITION:
            self._definitions.pop(_defined(one), None)
        key = _group_kind(one), one.metadata.namespace, one.metadata.name
        return self._resources.pop(key, None) is not None

    def find(self, group: str, kind: str, namespace: str, name: str) -> Scale | None:
        """Return the scale of a custom resource; None if no definition has this group and kind.

        Raises ScaleError if the custom resource has no scale, does not exist, or lacks the number
        of replicas.
        """
        definition = self._definitions.get((group, kind))
        if definition is None:
            return None
        resource = f"{definition['names']['plural']}.{group}"
        paths = next(_scales(definition), None)
        if paths is None:
            raise NoScaleError(resource)
        found = self._resources.get(((group, kind), namespace, name))
        if found is None:
            raise ScaleError(f'{resource} "{name}" not found')
        return _scale(found, group, paths)


def _defined(definition: Unstructured) -> _GroupKind:
    return definition.spec["group"], definition.spec["names"]["kind"]


def _group_kind(one: Unstructured) -> _GroupKind:
    return one.api_version.rpartition("/")[0], one.kind


def _scales(definition: Json) -> Iterator[Json]:
    for version in definition["versions"]:
        scale = (version.get("subresources") or {}).get("scale")
        if version.get("served") and scale is not None:
            yield scale


def _scale(one: Unstructured, group: str, paths: Json) -> Scale:
    obj = {"spec": one.spec, "status": one.status}
    path = tuple(paths["specReplicasPath"].strip(".").split("."))
    replicas = _at(obj, path)
    if replicas is None:
        missing = f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'
        raise ScaleError(f"Internal error occurred: {missing}")
    text = _at(obj, tuple(paths.get("labelSelectorPath", "").strip(".").split("."))) or ""
    try:
        selector = parse_selector(text)
    except SelectorError as problem:  # only from a snapshot: the API server refuses such a text
        raise ScaleError(str(problem)) from problem
    meta = one.metadata
    ref = ObjectRef(f"{one.kind}.{group}", meta.namespace, meta.name, meta.uid)
    return Scale(ref, replicas, selector, annotated_load(meta.annotations), path)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value

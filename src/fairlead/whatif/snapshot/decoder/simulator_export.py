"""Exports of kube-scheduler-simulator: a map without a kind, with a list for each resource.

    {"pods": [...], "nodes": [...], "pvs": [...], ..., "schedulerConfig": {...}}

The simulator's scheduler records the selected node, and the results of all attempts, in annotations
of each pod.

upstream: kube-scheduler-simulator simulator/snapshot/snapshot.go: ResourcesForSnap,
simulator/scheduler/plugin/annotation/annotation.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from fairlead.api.json import Json

_LISTS: Final = {
    "namespaces": ("v1", "Namespace"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
}
_PREFIXES: Final = ("kube-scheduler-simulator.sigs.k8s.io/", "scheduler-simulator/")


def is_simulator_export(value: Any) -> bool:
    """Return whether `value` is an export: it has no kind, but lists of pods and nodes."""
    return isinstance(value, dict) and "kind" not in value and {"pods", "nodes"} <= value.keys()


def exported_objects(export: Json) -> Iterator[Any]:
    """Yield the objects in `export`, with apiVersion and kind added; null means an empty list."""
    for name, (api_version, kind) in _LISTS.items():
        items = export.get(name) or []
        for item in items if isinstance(items, list) else [items]:
            typed = {"apiVersion": api_version, "kind": kind}
            yield {**item, **typed} if isinstance(item, dict) else item


def selected_node(annotations: Mapping[str, str]) -> str:
    """Return the node that the simulator's scheduler selected for a pod, or "".

    The node is the node of the last attempt in the annotation `result-history`. If this attempt has
    no node, or the annotation is missing, the node is in the annotation `selected-node`.
    """
    for prefix in _PREFIXES:
        key = f"{prefix}selected-node"
        try:
            history = msgspec.json.decode(annotations.get(f"{prefix}result-history", "[]"))
        except (msgspec.DecodeError, RecursionError):
            history = []
        attempts = history if isinstance(history, list) else []
        for attempt in (annotations, *attempts[-1:])[::-1]:
            if isinstance(attempt, dict) and attempt.get(key):
                return str(attempt[key])
    return ""

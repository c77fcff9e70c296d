"""Warnings about overlapping paths of the files in a volume.

upstream: pkg/api/pod/warnings.go:warningsForOverlappingVirtualPaths
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.warning.comparison_budget import ComparisonBudget

Warnings = Iterator[str]

# Volume sources with files: field, name in warnings, and the field with the source's name.
_SOURCES: Final = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("downwardAPI", "DownwardAPI", ""),
)


def path_warnings(volumes: list[Json]) -> Warnings:
    """Warns about paths of a volume that are equal or nested."""
    budget = ComparisonBudget()
    for volume in volumes:
        name = volume.get("name", "")
        for key, sort, named in _SOURCES:
            items = (volume.get(key) or {}).get("items")
            if items:
                who = f' "{volume[key].get(named, "")}"' if named else ""
                source_name = f'volume "{name}" ({sort}{who})'
                yield from _overlaps(_paths(items), source_name, budget)
        if volume.get("projected") is not None:
            yield from _projected(name, volume["projected"].get("sources") or [], budget)


def _projected(volume: str, sources: list[Json], budget: ComparisonBudget) -> Warnings:
    paths: list[str] = []
    source_name, before = "", dict[str, None]()
    for source in sources:
        if not any(value is not None for value in source.values()):
            yield f'volume "{volume}" (Projected) has no sources provided'
            continue
        # A source without files reuses the previous source's paths, as in upstream.
        paths, source_name = _projection(volume, source) or (paths, source_name)
        if not paths or not budget.left:
            continue
        yield from _overlaps(paths, source_name, budget)
        own = dict.fromkeys(paths)
        yield from _overlaps(sorted([*own, *before]), source_name, budget)
        before |= own


def _projection(volume: str, source: Json) -> tuple[list[str], str] | None:
    for key, sort, named in _SOURCES:
        found = source.get(key)
        if found is not None and found.get("items"):
            who = f' "{found.get("name", "")}"' if named else ""
            return _paths(found["items"]), f'volume "{volume}" (Projected {sort}{who})'
    if source.get("serviceAccountToken") is not None:
        path = source["serviceAccountToken"].get("path", "")
        return [path], f'volume "{volume}" (Projected ServiceAccountToken)'
    bundle = source.get("clusterTrustBundle")
    if bundle is not None:
        who = bundle.get("name") or bundle.get("signerName") or ""
        source_name = f'volume "{volume}" (Projected ClusterTrustBundle "{who}")'
        return [bundle.get("path", "")], source_name
    return None


def _paths(items: list[Json]) -> list[str]:
    return [item.get("path", "") for item in items]


def _overlaps(paths: list[str], source_name: str, budget: ComparisonBudget) -> Warnings:
    paths = [path.rstrip("/") for path in paths]
    if _are_apart(paths):
        return
    seen: dict[str, None] = {}
    for path in paths:
        if not budget.spend(len(seen)):
            return
        other = next((one for one in seen if _is_overlap(one, path)), None)
        if other is not None:
            yield f'{source_name}: overlapping paths: "{path}" with "{other}"'
        seen[path] = None


def _are_apart(paths: list[str]) -> bool:
    """Whether no path is a prefix of another; in sorted order, two such would be neighbours."""
    ordered = sorted(filter(None, paths))
    return not any(map(str.startswith, ordered[1:], ordered))


def _is_overlap(one: str, other: str) -> bool:
    if not one or not other:
        return False
    return f"{one}/".startswith(other) or f"{other}/".startswith(one)

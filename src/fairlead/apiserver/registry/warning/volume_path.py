"""Files in a volume that stand in each other's way.

upstream: pkg/api/pod/warnings.go:warningsForOverlappingVirtualPaths
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.warning.comparison_budget import Patience

Warnings = Iterator[str]

# Sources of files, what they are called, and where their name stands.
_SOURCES: Final = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("downwardAPI", "DownwardAPI", ""),
)


def path_warnings(volumes: list[Json]) -> Warnings:
    """Of each volume, paths that are there twice, or within one another."""
    patience = Patience()
    for volume in volumes:
        name = volume.get("name", "")
        for key, sort, named in _SOURCES:
            items = (volume.get(key) or {}).get("items")
            if items:
                who = f' "{volume[key].get(named, "")}"' if named else ""
                told = f'volume "{name}" ({sort}{who})'
                yield from _overlaps(_paths(items), told, patience)
        if volume.get("projected") is not None:
            yield from _projected(name, volume["projected"].get("sources") or [], patience)


def _projected(volume: str, sources: list[Json], patience: Patience) -> Warnings:
    paths: list[str] = []
    told, before = "", dict[str, None]()
    for source in sources:
        if not any(value is not None for value in source.values()):
            yield f'volume "{volume}" (Projected) has no sources provided'
            continue
        # A source without files of its own is taken for the one before it, upstream too.
        paths, told = _projection(volume, source) or (paths, told)
        if not paths or not patience.left:
            continue
        yield from _overlaps(paths, told, patience)
        own = dict.fromkeys(paths)
        yield from _overlaps(sorted([*own, *before]), told, patience)
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
        told = f'volume "{volume}" (Projected ClusterTrustBundle "{who}")'
        return [bundle.get("path", "")], told
    return None


def _paths(items: list[Json]) -> list[str]:
    return [item.get("path", "") for item in items]


def _overlaps(paths: list[str], told: str, patience: Patience) -> Warnings:
    paths = [path.rstrip("/") for path in paths]
    if _are_apart(paths):
        return
    seen: dict[str, None] = {}
    for path in paths:
        if not patience.spend(len(seen)):
            return
        other = next((one for one in seen if _is_overlap(one, path)), None)
        if other is not None:
            yield f'{told}: overlapping paths: "{path}" with "{other}"'
        seen[path] = None


def _are_apart(paths: list[str]) -> bool:
    """Whether no path begins with another: in their order such two would be neighbours."""
    ordered = sorted(filter(None, paths))
    return not any(map(str.startswith, ordered[1:], ordered))


def _is_overlap(one: str, other: str) -> bool:
    if not one or not other:
        return False
    return f"{one}/".startswith(other) or f"{other}/".startswith(one)

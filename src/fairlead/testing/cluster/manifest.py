"""Converts what a test passes as objects: one, several, YAML text, or a YAML file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from fairlead.api.json import Json

Manifests = Mapping[str, Any] | Iterable[Mapping[str, Any]] | str | Path


def manifests_of(given: Manifests) -> list[Json]:
    """The objects; Lists are expanded. Raises TypeError for anything else."""
    if isinstance(given, Path):
        return manifests_of(given.read_text())
    if isinstance(given, str):
        return manifests_of([one for one in yaml.safe_load_all(given) if one is not None])
    if isinstance(given, Mapping):
        return _unpacked(given)
    return [manifest for one in given for manifest in _unpacked(one)]


def _unpacked(given: object) -> list[Json]:
    if isinstance(given, str):
        raise TypeError(f"a manifest is a mapping; is {given!r} meant as a Path?")
    if not isinstance(given, Mapping):
        raise TypeError(f"a manifest is a mapping, not {type(given).__name__}")
    if "items" in given and str(given.get("kind", "")).endswith("List"):
        return [dict(item) for item in given["items"]]
    return [dict(given)]

"""Detects kinds that do not exist in a group of Kubernetes' own API, such as misspelled kinds."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import Final

from fairlead.apiserver.kind import KINDS, Kind

_CUTOFF: Final = 0.8


def is_served(kind: Kind) -> bool:
    """Return whether Kubernetes serves `kind` by default, or `kind` may be a custom resource."""
    names = _names().get(kind.group)
    return names is None or names.get(kind.kind.lower()) == kind.kind


def is_custom(api_version: str) -> bool:
    """Return whether `api_version` is in a group that Kubernetes does not serve by default."""
    return api_version.rpartition("/")[0] not in _names()


def nearest_kind(kind: Kind) -> str:
    """Return the name of the most similar kind in the group of `kind`; "" if none is similar."""
    names = _names().get(kind.group, {})
    near = get_close_matches(kind.kind.lower(), names, 1, cutoff=_CUTOFF)
    return names[near[0]] if near else ""


@cache
def _names() -> dict[str, dict[str, str]]:
    """Return the names of the built-in kinds, keyed by API group, then by the lower-case name."""
    found: dict[str, dict[str, str]] = {}
    for one in KINDS:
        if not one.is_custom:
            found.setdefault(one.group, {})[one.kind.lower()] = one.kind
    return found

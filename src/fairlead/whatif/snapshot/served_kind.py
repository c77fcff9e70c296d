"""Detects kinds that do not exist in their API group of Kubernetes, such as misspelled kinds."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import Final

from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.kind import KINDS, Kind

_CUTOFF: Final = 0.8


def is_served(kind: Kind) -> bool:
    """Return whether `kind` is a built-in kind, or is in a group that has no built-in kinds."""
    names = _names().get(kind.group)
    return names is None or names.get(kind.kind.lower()) == kind.kind


def is_custom(api_version: str) -> bool:
    """Return whether `api_version` is in a group that Kubernetes does not serve by default."""
    return api_version.rpartition("/")[0] not in _names()


@text_cache(256)
def full_kind(kind: str, api_version: str) -> str:
    """Return `kind`, with its group if it is a custom resource with the name of a built-in kind.

    The kind Job of batch.volcano.sh/v1alpha1 becomes `Job.batch.volcano.sh`.
    """
    is_like_built_in = any(kind.lower() in kinds for kinds in _names().values())
    if not is_like_built_in or "/" not in api_version or not is_custom(api_version):
        return kind
    return f"{kind}.{api_version.rpartition('/')[0]}"


def nearest_kind(kind: Kind) -> str:
    """Return the name of the most similar kind in the group of `kind`; "" if no kind is similar."""
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

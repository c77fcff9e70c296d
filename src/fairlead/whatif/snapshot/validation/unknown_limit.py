"""Unknown scopes of ResourceQuotas and unknown types of limits, for example of a newer release.

An unknown scope matches no object, and limits of an unknown type apply to nothing. So a quota or
limit that the user relies on may have no effect in an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.apiserver.admission.quota.usage import scope_requirements
from fairlead.apiserver.kind import LIMIT_RANGE, RESOURCE_QUOTA
from fairlead.apiserver.validation.core.limit_form import (
    check_limit_range_form,
    check_quota_form,
)
from fairlead.apiserver.validation.core.limit_range import TYPES
from fairlead.apiserver.validation.core.resource_quota import SCOPES
from fairlead.whatif.snapshot.manifest import Manifest


def unknown_limit_notes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each unknown scope of ResourceQuotas and each unknown type of limits.

    A type with a slash belongs to another controller, so it gets no note.
    """
    scopes: dict[str, set[str]] = {}  # by scope, titles of quotas
    types: dict[str, set[str]] = {}  # by type, titles of LimitRanges
    for one in manifests:
        if one.kind is RESOURCE_QUOTA:
            for name in _scopes(one):
                if name not in SCOPES:
                    scopes.setdefault(name, set()).add(one.title)
        elif one.kind is LIMIT_RANGE:
            for name in _types(one):
                if name not in TYPES and "/" not in name:
                    types.setdefault(name, set()).add(one.title)
    for name, titles in sorted(scopes.items()):
        has = "has" if len(titles) == 1 else "have"
        yield f'The quota scope "{name}" is unknown, so {_listed(titles)} {has} no effect.'
    for name, titles in sorted(types.items()):
        where = _listed(titles)
        yield f'The limit type "{name}" is unknown, so its limits in {where} have no effect.'


def _scopes(quota: Manifest) -> Iterator[str]:
    """Yield the names of the quota's scopes; nothing if loading will refuse the quota."""
    value = quota.value
    if not any(check_quota_form(value)):
        for requirement in scope_requirements(value.get("spec") or {}):
            yield requirement.get("scopeName", "")


def _types(limit_range: Manifest) -> Iterator[str]:
    """Yield the types of the limits; nothing if loading will refuse the LimitRange."""
    value = limit_range.value
    if not any(check_limit_range_form(value)):
        for item in (value.get("spec") or {}).get("limits") or ():
            yield item.get("type", "")


def _listed(titles: Iterable[str]) -> str:
    first, *others = sorted(titles)
    return f"{first} and {len(others):,} more" if others else first

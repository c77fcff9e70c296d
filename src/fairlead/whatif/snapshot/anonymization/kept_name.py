"""Finds the names that anonymisation keeps although an organisation may have chosen them.

The names are in fields such as `driver` and `schedulerName`. Fairlead needs these names to
recognize the kinds, drivers and schedulers of many projects. But such a field can also contain the
name of in-house software. So users get a list of the kept names to check.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.json import Json

# The fields that contain a kept name, with the noun under which it is listed.
_FIELDS: Final = {
    "apiVersion": "API groups",
    "apiGroup": "API groups",
    "schedulerName": "schedulers",
    "controllerName": "controllers",
    "provisioner": "drivers",
    "driver": "drivers",
    "attacher": "drivers",
}
_GROUPS: Final = ("apiVersion", "apiGroup")
_RESOURCES: Final = "resources"
_RESOURCE_MAPS: Final = frozenset(("requests", "limits", "allocatable", "capacity", "hard"))
_OWN: Final = ("kubernetes.io", "k8s.io")  # the domains of Kubernetes and its projects
_DEFAULT_SCHEDULER: Final = "default-scheduler"


def kept_names(objects: Iterable[Json]) -> dict[str, list[str]]:
    """Return {noun: names in anonymised `objects`}, without the names that Kubernetes defines.

    A noun, such as "drivers", says what the names stand for. Nouns and names are sorted.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for one in objects:
        _collect("", one, found)
    return {noun: sorted(found[noun]) for noun in sorted(found) if found[noun]}


def _collect(field: str, value: Any, found: Mapping[str, set[str]]) -> None:
    if isinstance(value, list):
        for one in value:
            _collect(field, one, found)
    elif isinstance(value, dict):
        if field in _RESOURCE_MAPS:
            found[_RESOURCES].update(name for name in value if "/" in name and not _is_own(name))
        for name, one in value.items():
            _collect(name, one, found)
    elif isinstance(value, str) and field in _FIELDS:
        name = value.rpartition("/")[0] if field == "apiVersion" else value
        is_built_in = field in _GROUPS and "." not in name  # such as apps
        if name and name != _DEFAULT_SCHEDULER and not is_built_in and not _is_own(name):
            found[_FIELDS[field]].add(name)


def _is_own(name: str) -> bool:
    domain = name.partition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _OWN)

"""Rules: what one allows, and whether some rules cover another.

upstream: pkg/apis/rbac/v1/evaluation_helpers.go,
component-helpers/auth/rbac/validation/{policy_comparator,rulebindings}.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes

ALL: Final = "*"


def allows(rule: Json, asked: AuthorizationAttributes) -> bool:
    """Whether `rule` lets somebody do what is asked."""
    verbs = _listed(rule, "verbs")
    if asked.verb not in verbs and ALL not in verbs:
        return False
    if not asked.is_resource:
        return any(_is_path_in(asked.path, url) for url in _listed(rule, "nonResourceURLs"))
    return (
        _has(_listed(rule, "apiGroups"), asked.group)
        and _has_resource(_listed(rule, "resources"), asked.resource, asked.subresource)
        and _has_name(_listed(rule, "resourceNames"), asked.name)
    )


def uncovered(owned: Sequence[Json], wanted: Iterable[Json]) -> list[Json]:
    """What of `wanted` no rule of `owned` grants, as rules of one thing each."""
    return [part for rule in wanted for part in _parts(rule) if not _is_covered(part, owned)]


def compact(rules: Iterable[Json]) -> list[Json]:
    """Rules about the same thing as one, with the verbs of all."""
    # upstream: validation/policy_compact.go:CompactRules
    merged: dict[tuple[Any, ...], Json] = {}
    for rule in rules:
        key = tuple(tuple(_listed(rule, name)) for name in _ABOUT)
        if key in merged:
            verbs = merged[key]["verbs"]
            merged[key] = {**rule, "verbs": list(dict.fromkeys((*verbs, *rule["verbs"])))}
        else:
            merged[key] = rule
    return list(merged.values())


def described(rule: Json) -> str:
    """`{APIGroups:["apps"], Resources:["*"], Verbs:["get"]}`, as refusals show it."""
    # upstream: rbac/v1/evaluation_helpers.go:CompactString
    shown = [f"{go}:{_quoted(rule[name])}" for name, go in _SHOWN.items() if rule.get(name)]
    return f"{{{', '.join(shown)}}}"


_ABOUT: Final = ("apiGroups", "resources", "resourceNames", "nonResourceURLs")
_SHOWN: Final = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def _listed(rule: Json, name: str) -> Sequence[str]:
    """A member of a rule; what is null is nothing."""
    found: Sequence[str] = rule.get(name) or ()
    return found


def _quoted(names: Sequence[str]) -> str:
    listed = '" "'.join(names)
    return f'["{listed}"]'


def _has(names: Sequence[str], name: str) -> bool:
    return name in names or ALL in names


def _has_resource(resources: Sequence[str], resource: str, subresource: str) -> bool:
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def _has_name(names: Sequence[str], name: str) -> bool:
    return not names or name in names


def _is_path_in(path: str, url: str) -> bool:
    return url in (ALL, path) or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


# --- cover ---------------------------------------------------------------------------------


def _parts(rule: Json) -> Iterator[Json]:
    for verb in _listed(rule, "verbs"):
        for url in _listed(rule, "nonResourceURLs"):
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        for group, resource in product(_listed(rule, "apiGroups"), _listed(rule, "resources")):
            part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            for name in _listed(rule, "resourceNames"):
                yield {**part, "resourceNames": [name]}
            if not rule.get("resourceNames"):
                yield part


def _is_covered(part: Json, owned: Sequence[Json]) -> bool:
    return any(_covers(rule, part) for rule in owned)


def _covers(rule: Json, part: Json) -> bool:
    if not _has(_listed(rule, "verbs"), part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        return _covers_url(_listed(rule, "nonResourceURLs"), part["nonResourceURLs"][0])
    names = _listed(rule, "resourceNames")
    named = not names or (bool(part.get("resourceNames")) and part["resourceNames"][0] in names)
    resource, _, subresource = part["resources"][0].partition("/")
    return (
        named
        and _has(_listed(rule, "apiGroups"), part["apiGroups"][0])
        and _has_resource(_listed(rule, "resources"), resource, subresource)
    )


def _covers_url(urls: Sequence[str], wanted: str) -> bool:
    return any(
        url == wanted or (url.endswith(ALL) and wanted.startswith(url.rstrip(ALL))) for url in urls
    )

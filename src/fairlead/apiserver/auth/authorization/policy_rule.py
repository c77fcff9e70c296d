"""RBAC policy rules: whether a rule allows a request, and whether rules cover another rule.

upstream: pkg/apis/rbac/v1/evaluation_helpers.go,
component-helpers/auth/rbac/validation/policy_comparator.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes

ALL: Final = "*"


def allows(rule: Json, attributes: AuthorizationAttributes) -> bool:
    """Return whether `rule` allows the request that `attributes` describe."""
    verbs = _values(rule, "verbs")
    if attributes.verb not in verbs and ALL not in verbs:
        return False
    if not attributes.is_resource:
        return any(_is_path_in(attributes.path, url) for url in _values(rule, "nonResourceURLs"))
    return (
        _contains(_values(rule, "apiGroups"), attributes.group)
        and _contains_resource(
            _values(rule, "resources"), attributes.resource, attributes.subresource
        )
        and _contains_name(_values(rule, "resourceNames"), attributes.name)
    )


def uncovered_rules(rules_owned: Sequence[Json], rules_wanted: Iterable[Json]) -> list[Json]:
    """Return the permissions in `rules_wanted` that `rules_owned` do not cover.

    Each permission is a rule with one verb and one resource or path.
    """
    return [
        part
        for rule in rules_wanted
        for part in _breakdown(rule)
        if not _is_covered(part, rules_owned)
    ]


def compact_rules(rules: Iterable[Json]) -> list[Json]:
    """Return `rules` in compact form.

    Rules that differ only in their verbs become one rule with all these verbs.
    """
    # upstream: pkg/registry/rbac/validation/policy_compact.go:CompactRules
    merged: dict[tuple[Any, ...], Json] = {}
    for rule in rules:
        key = tuple(tuple(_values(rule, name)) for name in _KEY_FIELDS)
        if key in merged:
            verbs = merged[key]["verbs"]
            merged[key] = {**rule, "verbs": list(dict.fromkeys((*verbs, *rule["verbs"])))}
        else:
            merged[key] = rule
    return list(merged.values())


def rule_text(rule: Json) -> str:
    """Return the text of `rule` in error messages.

    Example: `{APIGroups:["apps"], Resources:["*"], Verbs:["get"]}`.
    """
    # upstream: rbac/v1/evaluation_helpers.go:CompactString
    fields = [f"{go}:{_quoted(rule[name])}" for name, go in _GO_NAMES.items() if rule.get(name)]
    return f"{{{', '.join(fields)}}}"


_KEY_FIELDS: Final = ("apiGroups", "resources", "resourceNames", "nonResourceURLs")
_GO_NAMES: Final = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def _values(rule: Json, name: str) -> Sequence[str]:
    """Return the list in the field `name` of a rule; () if it is null or missing."""
    found: Sequence[str] = rule.get(name) or ()
    return found


def _quoted(names: Sequence[str]) -> str:
    joined = '" "'.join(names)
    return f'["{joined}"]'


def _contains(names: Sequence[str], name: str) -> bool:
    return name in names or ALL in names


def _contains_resource(resources: Sequence[str], resource: str, subresource: str) -> bool:
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def _contains_name(names: Sequence[str], name: str) -> bool:
    return not names or name in names


def _is_path_in(path: str, url: str) -> bool:
    return url in (ALL, path) or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


# --- cover ---------------------------------------------------------------------------------


def _breakdown(rule: Json) -> Iterator[Json]:
    for verb in _values(rule, "verbs"):
        for url in _values(rule, "nonResourceURLs"):
            yield {"nonResourceURLs": [url], "verbs": [verb]}
        for group, resource in product(_values(rule, "apiGroups"), _values(rule, "resources")):
            part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            for name in _values(rule, "resourceNames"):
                yield {**part, "resourceNames": [name]}
            if not rule.get("resourceNames"):
                yield part


def _is_covered(part: Json, rules_owned: Sequence[Json]) -> bool:
    return any(_covers(rule, part) for rule in rules_owned)


def _covers(rule: Json, part: Json) -> bool:
    if not _contains(_values(rule, "verbs"), part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        return _covers_url(_values(rule, "nonResourceURLs"), part["nonResourceURLs"][0])
    names = _values(rule, "resourceNames")
    has_name = not names or (bool(part.get("resourceNames")) and part["resourceNames"][0] in names)
    resource, _, subresource = part["resources"][0].partition("/")
    return (
        has_name
        and _contains(_values(rule, "apiGroups"), part["apiGroups"][0])
        and _contains_resource(_values(rule, "resources"), resource, subresource)
    )


def _covers_url(urls: Sequence[str], url_wanted: str) -> bool:
    return any(
        url == url_wanted or (url.endswith(ALL) and url_wanted.startswith(url.rstrip(ALL)))
        for url in urls
    )

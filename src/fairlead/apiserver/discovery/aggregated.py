"""Aggregated discovery: APIGroupDiscoveryList of apidiscovery.k8s.io/v2.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/aggregated/handler.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind, Subresource
from fairlead.apiserver.registry.served_kinds import ServedKinds

API_VERSION: Final = "apidiscovery.k8s.io/v2"
LIST: Final = "APIGroupDiscoveryList"
MEDIA_TYPE_PARAMETERS: Final = f"g=apidiscovery.k8s.io;v=v2;as={LIST}"


def api_group_discovery_list(registry: ServedKinds, *, is_core: bool) -> Json:
    """The document at `/api` (the core group, `is_core`) or `/apis` (all others)."""
    groups = [group for group in registry.groups() if is_core != bool(group)]
    return {
        "kind": LIST,
        "apiVersion": API_VERSION,
        "metadata": {},
        "items": [_group(registry, group) for group in groups],
    }


def _group(registry: ServedKinds, group: str) -> Json:
    versions = [
        {
            "version": version,
            "resources": [_resource(kind) for kind in registry.kinds(group, version)],
            "freshness": "Current",
        }
        for version in registry.versions(group)
    ]
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _resource(kind: Kind) -> Json:
    row: Json = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, "", "", kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if kind.subresources:
        row["subresources"] = [_subresource(kind, part) for part in kind.subresources]
    return row


def _subresource(kind: Kind, part: Subresource) -> Json:
    return {
        "subresource": part.name,
        "responseKind": _response_kind(kind, part.group, part.version, part.kind),
        "verbs": list(part.verbs),
    }


def _response_kind(kind: Kind, group: str, version: str, name: str) -> Json:
    """Built-in kinds omit group and version, which the document states; custom resources do not."""
    if kind.is_custom and not group:
        group, version = kind.group, kind.version
    return {"group": group, "version": version, "kind": name}

"""Legacy discovery: APIVersions, APIGroupList, APIGroup and APIResourceList.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/discovery/*.go
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds

# Kinds that upstream still stores in an older version. storageVersionHash is the hash of a text
# that contains the stored version.
_HASHED_VERSIONS: Final = {
    "CustomResourceDefinition": "v1beta1",
    "MutatingAdmissionPolicy": "v1beta1",
    "MutatingAdmissionPolicyBinding": "v1beta1",
}


def api_versions(server_address: str) -> Json:
    """Return the document at `/api`: the versions of the core group.

    `server_address` is the host and port of the server.
    """
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def api_group_list(registry: ServedKinds) -> Json:
    """Return the document at `/apis`: all groups except the core group, in order of preference."""
    groups = [_group(registry, group) for group in registry.groups() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(registry: ServedKinds, group: str) -> Json | None:
    """Return the document at `/apis/<group>`; None if the group is not served."""
    if not group or not registry.versions(group):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}


def api_resource_list(registry: ServedKinds, group: str, version: str) -> Json | None:
    """Return the APIResourceList at `/apis/<group>/<version>` or `/api/v1`.

    Return None if the server serves no kinds of this version.
    """
    kinds = registry.kinds(group, version)
    if not kinds:
        return None
    # As in upstream, the list of the core group has no apiVersion.
    head: Json = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
    resources = [resource for kind in kinds for resource in _resources(kind)]
    return {**head, "groupVersion": kinds[0].api_version, "resources": resources}


def _group(registry: ServedKinds, group: str) -> Json:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in registry.versions(group)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(kind: Kind) -> Iterator[Json]:
    """Yield the resource of a kind, then its subresources."""
    row: Json = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if "watch" in kind.verbs:
        row["storageVersionHash"] = _storage_version_hash(kind)
    yield row
    for part in kind.subresources:
        foreign = {"group": part.group, "version": part.version} if part.group else {}
        yield {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **foreign,
            "kind": part.kind,
            "verbs": list(part.verbs),
        }


def _storage_version_hash(kind: Kind) -> str:
    # upstream: apiserver/pkg/endpoints/discovery/storageversionhash.go:StorageVersionHash
    group, _, version = kind.stored_as.rpartition("/")
    if not kind.is_custom:
        version = _HASHED_VERSIONS.get(kind.kind, version)
    digest = hashlib.sha256(f"{group}/{version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()

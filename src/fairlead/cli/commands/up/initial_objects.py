"""Makes the initial objects of a `fairlead up` cluster from a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import LEASE, NAMESPACE
from fairlead.apiserver.registry.dumped_object import DumpedObject
from fairlead.cli.output.result_file import print_notice
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import Snapshot

# The new cluster's components create such objects themselves. Those in the snapshot belong to
# components of the other cluster.
_WRITTEN_ANEW: Final = (
    LEASE.resource,
    "events",
    "events.events.k8s.io",
    "apiservices.apiregistration.k8s.io",
    "certificatesigningrequests.certificates.k8s.io",
)


def objects_of_cluster(snapshot: Snapshot) -> list[Json | DumpedObject]:
    """Return the objects of `snapshot`, made complete so that controllers accept them.

    Leases, Events, APIServices and CertificateSigningRequests are left out. Missing namespaces are
    added. If an owner of an object is not in the result, the reference to this owner is removed,
    because otherwise the garbage collector could delete the object. A line on stderr states how
    many objects lost an owner reference.
    """
    kept = [one for one in snapshot.manifests if one.kind.resource not in _WRITTEN_ANEW]
    uids = {uid for one in kept if (uid := _uid(one))}
    objects: list[Json | DumpedObject] = []
    orphans = 0
    for manifest in kept:
        owners = _owners(manifest)
        present = [owner for owner in owners if owner in uids]
        orphans += len(present) < len(owners)
        objects.append(manifest.content if present == owners else _with_owners(manifest, present))
    if orphans:
        have = "object has an owner" if orphans == 1 else "objects have owners"
        problem = f"{have} outside of the dump; the references are removed"
        print_notice(f"{snapshot.source}: {orphans:,} {problem}")
    return [*_missing_namespaces(kept), *objects]


def _uid(manifest: Manifest) -> str:
    if manifest.view is not None:
        return manifest.view.metadata.uid
    return str((manifest.value.get("metadata") or {}).get("uid") or "")


def _owners(manifest: Manifest) -> list[str]:
    """Return the uids of the owners of the object."""
    if manifest.view is not None:
        return [owner.uid for owner in manifest.view.metadata.owner_references]
    owners = (manifest.value.get("metadata") or {}).get("ownerReferences") or ()
    return [str(owner.get("uid")) for owner in owners]


def _with_owners(manifest: Manifest, uids: list[str]) -> Json:
    """Return the object in `manifest`, with only those owner references whose uid is in `uids`."""
    value = manifest.value
    owners = [one for one in value["metadata"]["ownerReferences"] if one.get("uid") in uids]
    return {**value, "metadata": {**value["metadata"], "ownerReferences": owners}}


def _missing_namespaces(manifests: list[Manifest]) -> Iterator[Json]:
    """Yield a Namespace for each namespace that contains objects but is not in `manifests`."""
    known = {one.ref.name for one in manifests if one.kind is NAMESPACE}
    used = {one.ref.namespace for one in manifests if one.kind.namespaced}
    for name in sorted(used - known):
        yield {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}

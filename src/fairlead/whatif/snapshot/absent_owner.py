"""Custom resources that a dump lacks, although pods name them as their controllers.

The dump of a typical kubectl command has no custom resources. The kind, name and uid of a custom
resource are also in the owner references of its pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.pods.facts import controller_of
from fairlead.apiserver.kind import POD, find_kind, kind_of
from fairlead.apiserver.validation.meta.format import path_segment_problems
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.served_kind import is_custom
from fairlead.whatif.snapshot.snapshot import Snapshot


def with_absent_owners(snapshot: Snapshot, target: str) -> Snapshot:
    """Return `snapshot` with an object added for each missing custom resource that controls pods.

    Return `snapshot` itself if no such resource is missing, or if `target` (`KIND/NAME`) names a
    built-in kind. The added objects have only metadata. A reference whose owner cannot exist, for
    example because the name is missing, is left out. Raises InputError for a pod that is not valid.
    """
    named = find_kind(target.partition("/")[0])
    if named is not None and not named.is_custom:
        return snapshot
    known, added = snapshot.inventory(), {}
    for owner in _custom_owners(snapshot):
        meta, kind = owner["metadata"], kind_of(owner)
        if known.get(kind, meta["namespace"], meta["name"]) is None:
            added[kind.resource, meta["namespace"], meta["name"]] = owner
    objects = [one for owner in added.values() for one in _manifest(snapshot.source, owner)]
    if not objects:
        return snapshot
    return replace(snapshot, manifests=Manifests((*entries_of(snapshot.manifests), *objects)))


def _manifest(source: str, owner: Json) -> list[Manifest]:
    """Return a list with the object `owner`, or [] if `owner` is not valid.

    `owner` was made from an owner reference. The name in the reference may be invalid.
    """
    if path_segment_problems(owner["metadata"]["name"]):
        return []
    try:
        return manifests([Document(source, owner)])
    except InputError:  # It would name an object that is not in the dump.
        return []


def _custom_owners(snapshot: Snapshot) -> Iterator[Json]:
    """Yield the custom resource of each pod or set of replicas that a custom resource controls.

    The object contains only what the owner reference states, so it has no spec.
    """
    for entry in entries_of(snapshot.manifests):
        if entry.kind is not POD:
            continue
        pod = entry.replicas[0] if isinstance(entry, ReplicaManifests) else entry.pod
        owner = controller_of(pod.metadata)
        if owner is not None and is_custom(owner.api_version):
            meta = {"name": owner.name, "namespace": pod.metadata.namespace, "uid": owner.uid}
            yield {"apiVersion": owner.api_version, "kind": owner.kind, "metadata": meta}

"""Samples: the objects of a cluster with one pod of each set of replicas.

Checks and notes whose result does not depend on the number of replicas read only the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fairlead.api.codec import DecodeError, View, decode_as
from fairlead.api.objects import Pod
from fairlead.apiserver.kind import POD, Kind
from fairlead.whatif.snapshot.manifest import (
    Manifest,
    Manifests,
    ReplicaManifests,
    entries_of,
    without_replicas,
)


def samples(manifests: Iterable[Manifest]) -> Sequence[Manifest]:
    """Return `manifests` in order, without the pods that are replicas of an earlier pod.

    `DumpedTemplate` lists the fields in which replicas differ.
    """
    if isinstance(manifests, Manifests):
        return manifests.samples
    return without_replicas(manifests)


def matching_pods(
    manifests: Iterable[Manifest], matches: Callable[[Pod], bool]
) -> Iterator[Manifest]:
    """Yield the pods in `manifests` for which `matches` returns True, in order.

    Of neighbouring replicas, only the first is passed to `matches`. The result of `matches` applies
    to all replicas. So this result must not depend on the fields in which replicas differ. Raises
    InputError for a pod that is not valid.
    """
    for entry in entries_of(manifests):
        sample = entry.sample if isinstance(entry, ReplicaManifests) else entry
        if sample.kind is POD and matches(sample.pod):
            yield from entry if isinstance(entry, ReplicaManifests) else (entry,)


def valid_views(view: type[View], kind: Kind, manifests: Iterable[Manifest]) -> Iterator[View]:
    """Yield a view of the type `view` for each valid object of `kind` in `manifests`."""
    return filter(None, (valid_view(view, kind, one) for one in manifests))


def valid_view(view: type[View], kind: Kind, manifest: Manifest) -> View | None:
    """Return the view of an object; None if the object is invalid, or is not of the kind `kind`.

    Invalid objects are reported when they are loaded.
    """
    if manifest.kind is not kind:
        return None
    known = manifest.view
    if isinstance(known, view):
        return known
    try:
        return decode_as(view, manifest.value)
    except DecodeError:
        return None

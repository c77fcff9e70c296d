"""Samples: the objects of a cluster with one pod of each set of replicas.

Checks and notes whose result does not depend on the number of replicas read only the samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fairlead.api.objects import Pod
from fairlead.apiserver.kind import POD
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
    to all of them. So this result must not depend on the fields in which replicas differ. Raises
    InputError for a pod that is not valid.
    """
    for entry in entries_of(manifests):
        sample = entry.sample if isinstance(entry, ReplicaManifests) else entry
        if sample.kind is POD and matches(sample.pod):
            yield from entry if isinstance(entry, ReplicaManifests) else (entry,)

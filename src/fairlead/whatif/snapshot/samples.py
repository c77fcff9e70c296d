"""Samples: the objects of a cluster with one pod of each set of replicas.

Checks and notes whose result does not depend on the number of replicas read only the samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.whatif.snapshot.manifest import Manifest, Manifests, without_replicas


def samples(manifests: Iterable[Manifest]) -> Sequence[Manifest]:
    """Return `manifests` in order, without the pods that are replicas of an earlier pod.

    `Manifest.is_replica_of` states in which fields such pods differ.
    """
    if isinstance(manifests, Manifests):
        return manifests.samples
    return without_replicas(manifests)

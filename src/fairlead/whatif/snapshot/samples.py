"""Samples: objects with one pod of each set of replicas, if more replicas would add nothing."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.whatif.snapshot.manifest import Manifest


def samples(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return `manifests` in order, without the pods that are replicas of an earlier pod.

    `Manifest.is_replica_of` states in which fields such pods differ.
    """
    found: list[Manifest] = []
    known: set[int] = set()  # ids of templates
    for manifest in manifests:
        content = manifest.content
        template = None if isinstance(content, dict) else content.template
        if template is not None and template.makes_replicas:
            if id(template) in known:
                continue
            known.add(id(template))
        found.append(manifest)
    return found

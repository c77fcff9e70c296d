"""A note about pending pods whose claims name a StorageClass that does not exist.

The scheduler says only that such a pod has unbound immediate claims. Often the cluster has the
class, and the dump lacks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.objects import PersistentVolumeClaim, Pod
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from fairlead.apiserver.registry.store import Store

_NAMED_MAX: Final = 3


def missing_class_notes(store: Store, pending: Iterable[Pod]) -> Iterator[str]:
    """Yield a note if claims of `pending` pods name StorageClasses that are not in `store`."""
    claims: dict[str, list[str]] = {}
    for pod in pending:
        namespace = pod.metadata.namespace
        for name in all_claims(pod):
            found = store.find(PERSISTENT_VOLUME_CLAIM, namespace, name)
            if found is None:
                continue
            spec = decode_as(PersistentVolumeClaim, found).spec
            wanted = "" if spec.volume_name else spec.storage_class_name
            if wanted and store.find(STORAGE_CLASS, "", wanted) is None:
                claims.setdefault(wanted, []).append(f"{namespace}/{name}")
    if claims:
        classes = "; ".join(
            f"{name} (for {listed(sorted(set(found)), _NAMED_MAX)})"
            for name, found in sorted(claims.items())
        )
        yield (
            f"Pods wait for claims of a StorageClass that does not exist: {classes}. If the "
            "cluster has the class, add storageclasses to the dump."
        )

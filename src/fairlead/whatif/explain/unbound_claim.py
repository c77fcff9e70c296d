"""Explains why a pod's PersistentVolumeClaims, which must be bound before scheduling, are unbound.

The scheduler says only that the pod has unbound immediate claims, and names no claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.objects import PersistentVolumeClaim, Pod, StorageClass
from fairlead.api.pods.volumes import all_claims
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from fairlead.engine.plugins.volume_binding.find_volumes import NO_PROVISIONER
from fairlead.whatif.snapshot.inventory import Inventory

_DELAYED: Final = "WaitForFirstConsumer"


def unbound_claims(pod: Pod, inventory: Inventory) -> Iterator[str]:
    """Yield a sentence for each unbound claim that must be bound before `pod` is scheduled.

    If the dump has no StorageClasses, the claims with a class are included: the scheduler then
    takes them for claims that must be bound first.
    """
    # upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go: GetPodVolumeClaims
    namespace = pod.metadata.namespace
    for name in all_claims(pod):
        found = inventory.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if found is None:
            continue
        spec = decode_as(PersistentVolumeClaim, found.value).spec
        if not spec.volume_name and (why := _why_unbound(spec.storage_class_name, inventory)):
            yield f"PersistentVolumeClaim {namespace}/{name} is not bound: {why}."


def unbound_claims_of(pods: Iterable[Pod], inventory: Inventory, most: int = 1) -> list[str]:
    """Return sentences about at most `most` claims of `pods`, and about the number of the others.

    `unbound_claims` determines the claims.
    """
    found = (why for pod in pods for why in unbound_claims(pod, inventory))
    distinct = list(dict.fromkeys(found))
    rest = len(distinct) - most
    claims = "claim is" if rest == 1 else "claims are"
    return [*distinct[:most], *([f"{rest:,} more {claims} not bound."] if rest > 0 else [])]


def _why_unbound(name: str | None, inventory: Inventory) -> str:
    if not name:
        return "it has no StorageClass, and no PersistentVolume is bound to it"
    if not inventory.of_kind(STORAGE_CLASS):
        return (
            f"it needs StorageClass {name}; the dump has no StorageClasses, so it is unknown "
            "whether this class binds the claim only when the pod has a node"
        )
    found = inventory.get(STORAGE_CLASS, "", name)
    if found is None:
        return f"StorageClass {name} does not exist"
    storage_class = decode_as(StorageClass, found.value)
    if storage_class.volume_binding_mode == _DELAYED:
        return ""
    if storage_class.provisioner in NO_PROVISIONER:
        return f"no PersistentVolume is bound to it, and StorageClass {name} has no provisioner"
    return f"it waits for the provisioner {storage_class.provisioner} of StorageClass {name}"

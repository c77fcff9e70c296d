"""Explains why a pod's PersistentVolumeClaims are unbound.

The scheduler says only that the pod has unbound immediate claims, and names no claim. A claim with
the mode WaitForFirstConsumer is bound when its pod has a node. So such a claim is explained only if
its provisioner has not created the volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.codec import decode_as
from fairlead.api.objects import PersistentVolumeClaim, Pod, StorageClass
from fairlead.api.pods.volumes import all_claims
from fairlead.apiserver.kind import PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from fairlead.engine.core.instant import Instant
from fairlead.engine.plugins.volume_binding.find_volumes import NO_PROVISIONER
from fairlead.engine.plugins.volume_lookup.volume_lookup import WAIT_FOR_FIRST_CONSUMER
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.volumes.binding_step import lacks_provisioner
from fairlead.whatif.snapshot.inventory import Inventory


def unbound_claims(pod: Pod, inventory: Inventory, now: Instant) -> Iterator[str]:
    """Yield a sentence for each unbound claim that keeps `pod` pending at `now`, the dump's time.

    If the dump has no StorageClasses, claims with a class are included: without the class, the
    scheduler assumes that these claims must be bound first.
    """
    # upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go: GetPodVolumeClaims
    namespace = pod.metadata.namespace
    for name in all_claims(pod):
        found = inventory.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
        if found is None:
            continue
        claim = decode_as(PersistentVolumeClaim, found.value)
        if not claim.spec.volume_name and (why := _why_unbound(claim, inventory, now)):
            yield f"PersistentVolumeClaim {namespace}/{name} is not bound: {why}."


def unbound_claims_of(
    pods: Iterable[Pod], inventory: Inventory, now: Instant, most: int = 1
) -> list[str]:
    """Return a sentence for each unbound claim of `pods`, at most `most` sentences.

    If there are more unbound claims, another sentence states how many. `unbound_claims` determines
    the claims and the sentences.
    """
    found = (why for pod in pods for why in unbound_claims(pod, inventory, now))
    distinct = list(dict.fromkeys(found))
    rest = len(distinct) - most
    claims = "claim is" if rest == 1 else "claims are"
    return [*distinct[:most], *([f"{rest:,} more {claims} not bound."] if rest > 0 else [])]


def users_of_claim(pods: Iterable[Pod], namespace: str, name: str) -> Iterator[Pod]:
    """Yield those of `pods` that use the claim `name` in `namespace`."""
    return (one for one in pods if one.metadata.namespace == namespace and name in all_claims(one))


def _why_unbound(claim: PersistentVolumeClaim, inventory: Inventory, now: Instant) -> str:
    name = claim.spec.storage_class_name
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
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        node = claim.metadata.annotations.get(SELECTED_NODE)
        if node is None:
            return ""
        pods = (one.pod for one in inventory.of_kind(POD))
        users = users_of_claim(pods, claim.metadata.namespace, claim.metadata.name)
        if not lacks_provisioner(claim, storage_class, users, now):
            return ""
        return f"it waits for the provisioner {storage_class.provisioner} on node {node}"
    if storage_class.provisioner in NO_PROVISIONER:
        return f"no PersistentVolume is bound to it, and StorageClass {name} has no provisioner"
    return f"it waits for the provisioner {storage_class.provisioner} of StorageClass {name}"

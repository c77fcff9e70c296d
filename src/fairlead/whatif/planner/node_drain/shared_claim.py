"""SharedClaims: finds pods that share a volume or devices that only one node can use at a time.

If such pods are evicted one after another, the replacement of the first pod waits until all other
pods that share the claim have left the node. Until then, the volume stays attached to the node, or
the ResourceClaim stays allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fairlead.api.objects import Pod, ResourceClaim
from fairlead.engine.kubelet.volume_attachment import SingleNodeVolumes
from fairlead.engine.state.cluster import Cluster


class SharedClaims(Struct, frozen=True):
    """The PersistentVolumeClaims and ResourceClaims that pods of `cluster` share."""

    cluster: Cluster

    def users(self, pods: Iterable[Pod]) -> dict[str, list[Pod]]:
        """Return {claim: pods that use it} for each claim that several of `pods` use.

        A claim is named by its kind and key. Claims that several nodes can use at the same
        time are left out.
        """
        found: dict[str, list[Pod]] = {}
        for pod in pods:
            for claim in dict.fromkeys(self._claims(pod)):
                found.setdefault(claim, []).append(pod)
        return {claim: users for claim, users in found.items() if len(users) > 1}

    def shared_with(self, pod: Pod, others: Iterable[Pod]) -> str:
        """Return a claim that `pod` and one of `others` use; "" if there is no such claim.

        Claims that several nodes can use at the same time are left out.
        """
        own = list(self._claims(pod))
        used = {claim for other in others for claim in self._claims(other)} if own else ()
        return next((claim for claim in own if claim in used), "")

    def _claims(self, pod: Pod) -> Iterator[str]:
        if pod.spec.volumes:
            for key in SingleNodeVolumes(self.cluster).claims_of(pod):
                yield f"PersistentVolumeClaim {key}"
        for key in named_devices(pod):
            # A claim stays allocated while a pod uses it.
            # upstream: pkg/controller/resourceclaim/controller.go: syncClaim
            claim = self.cluster.related.get(ResourceClaim, key)
            allocation = None if claim is None else claim.status.allocation
            if allocation is not None and allocation.node_selector is not None:
                yield f"ResourceClaim {key}"


def named_devices(pod: Pod) -> set[str]:
    """Return the keys of the ResourceClaims that `pod` names, and that other pods can name, too."""
    namespace = pod.metadata.namespace
    names = {one.resource_claim_name for one in pod.spec.resource_claims}
    return {f"{namespace}/{name}" for name in names if name}

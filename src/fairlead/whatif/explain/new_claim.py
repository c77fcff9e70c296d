"""Creates the ResourceClaims of pods that do not exist yet, as kube-controller-manager does.

upstream: pkg/controller/resourceclaim/controller.go: handleClaim
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.codec import decode_as
from fairlead.api.objects import ResourceClaimTemplate
from fairlead.apiserver.kind import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.devices.resource_claims import claim_manifest
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest


def with_new_claims(pods: Iterable[Manifest], inventory: Inventory) -> Iterator[Manifest]:
    """Yield each of the new `pods`, and a claim for each ResourceClaimTemplate that it names.

    The status of a pod names its claims. If `inventory` lacks a template, its claim is left out:
    the pod then waits for the claim, as in a cluster.
    """
    for one in pods:
        pod, made = one.pod, list[Manifest]()
        meta = {**one.value["metadata"]}
        meta.setdefault("uid", f"new-{one.ref.namespace}-{one.ref.name}")
        statuses = []
        for wanted in pod.spec.resource_claims:
            template = wanted.resource_claim_template_name
            found = inventory.get(RESOURCE_CLAIM_TEMPLATE, one.ref.namespace, template)
            if not template or found is None:
                continue
            claim = claim_manifest(pod, wanted, decode_as(ResourceClaimTemplate, found.value))
            name = f"{one.ref.name}-{wanted.name}"
            [owner] = claim["metadata"]["ownerReferences"]
            claim["metadata"] |= {"name": name, "ownerReferences": [{**owner, "uid": meta["uid"]}]}
            ref = ObjectRef(RESOURCE_CLAIM.kind, one.ref.namespace, name)
            made.append(Manifest(one.source, RESOURCE_CLAIM, ref, claim))
            statuses.append({"name": wanted.name, "resourceClaimName": name})
        if not made:
            yield one
            continue
        status = {**(one.value.get("status") or {}), "resourceClaimStatuses": statuses}
        yield Manifest(
            one.source, one.kind, one.ref, {**one.value, "metadata": meta, "status": status}
        )
        yield from made

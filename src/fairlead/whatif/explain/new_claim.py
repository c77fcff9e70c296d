"""Creates the ResourceClaims of pods that do not exist yet, as kube-controller-manager does.

upstream: pkg/controller/resourceclaim/controller.go: handleClaim
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, count

from fairlead.api.codec import decode_as
from fairlead.api.objects import ResourceClaimTemplate
from fairlead.apiserver.kind import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.devices.resource_claims import claim_manifest
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest


def with_new_claims(pods: Iterable[Manifest], inventory: Inventory) -> Iterator[Manifest]:
    """Yield each of the new `pods`, and a claim for each ResourceClaimTemplate that the pod names.

    The status of a pod names its claims. If `inventory` lacks a template, its claim is left out:
    the pod then waits for the claim, as in a cluster.
    """
    used = {one.ref.key for one in inventory.of_kind(RESOURCE_CLAIM)}
    for one in pods:
        uid = one.value["metadata"].get("uid") or f"new-{one.ref.namespace}-{one.ref.name}"
        claims = dict(_claims_of(one, uid, inventory, used))
        if not claims:
            yield one
            continue
        names = [
            {"name": wanted, "resourceClaimName": claim.ref.name}
            for wanted, claim in claims.items()
        ]
        status = {**(one.value.get("status") or {}), "resourceClaimStatuses": names}
        value = {**one.value, "metadata": {**one.value["metadata"], "uid": uid}, "status": status}
        yield Manifest(one.source, one.kind, one.ref, value)
        yield from claims.values()


def _claims_of(
    new: Manifest, uid: str, inventory: Inventory, used: set[str]
) -> Iterator[tuple[str, Manifest]]:
    """Yield (name in the pod, new claim) for each template of `inventory` that the pod `new` names.

    `uid` is the uid of the pod. `used` are the keys of all claims; the keys of the new claims are
    added.
    """
    pod = new.pod
    for wanted in pod.spec.resource_claims:
        name = wanted.resource_claim_template_name
        template = inventory.get(RESOURCE_CLAIM_TEMPLATE, pod.metadata.namespace, name)
        if not name or template is None:
            continue
        claim = claim_manifest(pod, wanted, decode_as(ResourceClaimTemplate, template.value))
        ref = _unused(f"{pod.metadata.name}-{wanted.name}", pod.metadata.namespace, used)
        [owner] = claim["metadata"]["ownerReferences"]
        claim["metadata"] |= {"name": ref.name, "ownerReferences": [{**owner, "uid": uid}]}
        yield wanted.name, Manifest(new.source, RESOURCE_CLAIM, ref, claim)


def _unused(name: str, namespace: str, used: set[str]) -> ObjectRef:
    """Return the reference of a claim `name`, and add the reference to `used`.

    If the name is used, the reference has the name with a number. An API server appends random
    letters instead.
    """
    numbered = chain([name], (f"{name}-{number}" for number in count(2)))
    refs = (ObjectRef(RESOURCE_CLAIM.kind, namespace, one) for one in numbered)
    ref = next(one for one in refs if one.key not in used)
    used.add(ref.key)
    return ref

"""Creates claims: of ephemeral volumes, of StatefulSets, and claims that a dump lacks.

A dump of nodes and pods has no claims, although its pods reference some. Each of these is created,
bound to a volume that every node can reach. If the dump has any claims, missing claims are not
created.

upstream: pkg/controller/volume/ephemeral/controller.go: handleVolume;
pkg/controller/statefulset/stateful_pod_control.go: createPersistentVolumeClaims
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StatefulSet,
)
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.volumes import claim_name, is_claimed, named_claims
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, RecordEvent
from fairlead.engine.plugins.volume_lookup.volume_lookup import BIND_COMPLETED
from fairlead.engine.workloads.identity import ordinal_of, owner_event
from fairlead.engine.workloads.pod_control.pod_template import controller_reference
from fairlead.engine.workloads.volumes.claim_event import ClaimOutput
from fairlead.engine.workloads.volumes.command import claim_ref
from fairlead.engine.workloads.volumes.volume_index import VolumeIndex

DELETE: Final = "Delete"
WHY_SCALED_DOWN: Final = "its StatefulSet is smaller now"
STAND_IN_PREFIX: Final = "fairlead-"
_SIZE: Final = "1Gi"  # for claims and volumes whose size is unknown


class ClaimCreator:
    """Creates the claims that pods need, each once; a refused creation is repeated."""

    def __init__(self, index: VolumeIndex, output: ClaimOutput) -> None:
        """Start without claims.

        `index` must be updated before this object; `output` records the created claims.
        """
        self._index = index
        self._output = output
        self._sets: dict[str, StatefulSet] = {}
        self._being_made: dict[str, Pod | None] = {}  # by claim, the pod that needs it
        self._refused: dict[str, Pod] = {}  # by claim, those that were being made

    def see(self, one: ApiObject) -> None:
        """Store a new or changed object."""
        if isinstance(one, StatefulSet):
            self._sets[one.metadata.uid] = one
        elif isinstance(one, PersistentVolumeClaim):
            self._being_made.pop(one.key, None)
            self._refused.pop(one.key, None)

    def see_refusal(self, claim: str) -> bool:
        """Return whether a claim, the key of which is given, is to be created again later."""
        pod = self._being_made.pop(claim, None)
        if pod is not None:
            self._refused[claim] = pod
        return pod is not None

    def repeat(self, claim: str) -> Iterator[Command]:
        """Yield the creation of a refused claim, if its pod still needs it."""
        pod = self._refused.pop(claim, None)
        if pod is not None:
            yield from self.claims_for(pod)

    def forget(self, gone: ApiObject) -> Iterator[DeleteObject]:
        """Remove an object.

        Delete the claims of a surplus pod if its StatefulSet does not retain them.

        Ephemeral claims are owned by their pod; the garbage collector deletes them.
        """
        match gone:
            case Pod():
                self._forget_pod(gone)
                for key in self._not_retained(gone):
                    claim = self._index.claims.get(key)
                    if claim is not None:
                        yield DeleteObject(claim_ref(claim), why=WHY_SCALED_DOWN)
            case StatefulSet():
                self._sets.pop(gone.metadata.uid, None)
            case PersistentVolumeClaim():
                self._being_made.pop(gone.key, None)
            case _:
                pass

    def _forget_pod(self, gone: Pod) -> None:
        """Let the claims of a deleted pod not be created again."""
        for key, pod in self._being_made.items():
            if pod is not None and pod.metadata.uid == gone.metadata.uid:
                self._being_made[key] = None
        for key in [key for key, pod in self._refused.items() if pod.key == gone.key]:
            del self._refused[key]

    def missing_claims(self, objects: Iterable[ApiObject]) -> list[CreateObject]:
        """Return the claims and volumes that a dump of `objects` lacks."""
        commands = missing_storage(objects)
        for command in commands:
            self._being_made[command.target.key] = None
        return commands

    def claims_for(self, pod: Pod) -> Iterator[Command]:
        """Yield the claims that `pod` needs and that do not exist."""
        if not any(map(is_claimed, pod.spec.volumes)):
            return
        if is_terminal(pod) or pod.metadata.deletion_timestamp:
            return
        yield from self._made(ephemeral_claims(pod), pod)
        names = dict.fromkeys(named_claims(pod))
        for reference in pod.metadata.owner_references:
            owner = self._sets.get(reference.uid)
            if owner is None or not reference.controller:
                continue
            wanted = (one for one in claims_of_set(owner, pod) if one.target.name in names)
            for command in self._made(wanted, pod):
                yield command
                yield from self._output.created(_created(owner, pod, command.target.name))

    def _made(self, wanted: Iterable[CreateObject], pod: Pod) -> Iterator[CreateObject]:
        """Yield the commands in `wanted` whose claims neither exist nor are being created."""
        for one in wanted:
            key = one.target.key
            if key in self._index.claims:
                continue
            if key in self._refused:
                self._refused[key] = pod
                continue
            is_new = key not in self._being_made
            self._being_made[key] = pod
            if is_new:
                yield one

    def _not_retained(self, pod: Pod) -> Iterator[str]:
        """Yield the keys of the claims that a StatefulSet deletes together with `pod`."""
        for reference in pod.metadata.owner_references:
            owner = self._sets.get(reference.uid)
            if owner is None or not is_superfluous(owner, pod):
                continue
            if owner.spec.persistent_volume_claim_retention_policy.when_scaled == DELETE:
                yield from (one.target.key for one in claims_of_set(owner, pod))


def _created(owner: StatefulSet, pod: Pod, claim: str) -> RecordEvent:
    # upstream: stateful_pod_control.go:recordClaimEvent
    meta = owner.metadata
    ref = ObjectRef("StatefulSet", meta.namespace, meta.name, meta.uid)
    note = f"Create Claim {claim} Pod {pod.metadata.name} in StatefulSet {meta.name} success"
    return owner_event(ref, "SuccessfulCreate", note)


def is_superfluous(owner: StatefulSet, pod: Pod) -> bool:
    """Return whether the ordinal of the pod is outside the replicas of `owner`."""
    ordinal, start = ordinal_of(owner.metadata.name, pod.metadata.name), owner.spec.ordinals.start
    return ordinal is not None and not start <= ordinal < start + owner.spec.replicas


def ephemeral_claims(pod: Pod) -> Iterator[CreateObject]:
    """Yield the claims of the pod's ephemeral volumes, owned by the pod."""
    if all(volume.ephemeral is None for volume in pod.spec.volumes):
        return
    meta = pod.metadata
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template
            name = claim_name(pod, volume)
            yield _claim(template, name, meta.namespace, {"ownerReferences": [owner]})


def claims_of_set(owner: StatefulSet, pod: Pod) -> Iterator[CreateObject]:
    """Yield the claims of `owner` for `pod`; they stay when the pod is deleted.

    If the retention policy deletes them with the set, the set owns them.
    """
    # upstream: pkg/controller/statefulset/stateful_set_utils.go:updateClaimOwnerRefForSetAndPod
    policy = owner.spec.persistent_volume_claim_retention_policy
    more: Json = {}
    if policy.when_deleted == DELETE:
        reference = OwnerReference(
            api_version="apps/v1",
            kind="StatefulSet",
            name=owner.metadata.name,
            uid=owner.metadata.uid,
        )
        more = {"ownerReferences": [controller_reference(reference)]}
    for template in owner.spec.volume_claim_templates:
        described = template.get("metadata", {})
        name = f"{described.get('name', '')}-{pod.metadata.name}"
        selected = dict(owner.spec.selector.match_labels) if owner.spec.selector else {}
        labels = {**described.get("labels", {}), **selected}
        labelled = {**described, **({"labels": labels} if labels else {})}
        yield _claim({**template, "metadata": labelled}, name, pod.metadata.namespace, more)


def _claim(template: Json, name: str, namespace: str, more: Json) -> CreateObject:
    described = template.get("metadata", {})
    kept = {key: described[key] for key in ("labels", "annotations") if key in described}
    return CreateObject(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, **kept, **more},
            "spec": template.get("spec", {}),
        }
    )


# --- objects that a dump lacks ---------------------------------------------------------------


def missing_storage(objects: Iterable[ApiObject]) -> list[CreateObject]:
    """Return claims if the dump has none, and volumes if it has none, ordered by name."""
    known = list(objects)
    claims = [one for one in known if isinstance(one, PersistentVolumeClaim)]
    has_volumes = any(isinstance(one, PersistentVolume) for one in known)
    commands: list[CreateObject] = []
    if not claims:
        pods = [one for one in known if isinstance(one, Pod)]
        wanted = {(one.metadata.namespace, name) for one in pods for name in named_claims(one)}
        for namespace, name in sorted(wanted):
            volume = f"{STAND_IN_PREFIX}{namespace}-{name}"
            commands += [_bound_claim(namespace, name, volume), _volume(namespace, name, volume)]
    elif not has_volumes:
        bound = [one for one in claims if one.spec.volume_name]
        for one in sorted(bound, key=lambda claim: claim.key):
            meta = one.metadata
            commands.append(_volume(meta.namespace, meta.name, one.spec.volume_name))
    return commands


def _bound_claim(namespace: str, name: str, volume: str) -> CreateObject:
    metadata = {"name": name, "namespace": namespace, "annotations": {BIND_COMPLETED: "yes"}}
    return CreateObject(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": _SIZE}},
                "storageClassName": "",
                "volumeName": volume,
            },
        }
    )


def _volume(namespace: str, name: str, volume: str) -> CreateObject:
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
    return CreateObject(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": _SIZE},
                "claimRef": reference,
                "persistentVolumeReclaimPolicy": "Retain",
            },
        }
    )

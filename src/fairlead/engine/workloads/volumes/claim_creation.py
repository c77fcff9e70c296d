"""Creates missing claims: the claims of ephemeral volumes, and other claims that pods need.

A dump of nodes and pods lacks the claims that its pods use. `missing_storage` creates such claims,
their volumes and their classes. Every node can reach these volumes.

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
    StorageClass,
)
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.volumes import BOUND, claim_name, is_claimed, named_claims
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.plugins.volume_lookup.volume_lookup import BIND_COMPLETED, is_bound
from fairlead.engine.workloads.identity import claim_created, object_ref, ordinal_of
from fairlead.engine.workloads.pod_control.pod_template import controller_reference
from fairlead.engine.workloads.volumes.claim_event import ClaimOutput
from fairlead.engine.workloads.volumes.command import claim_ref
from fairlead.engine.workloads.volumes.volume_index import (
    IS_DEFAULT,
    VolumeIndex,
    is_volume_bound_to_claim,
)

DELETE: Final = "Delete"
WHY_SCALED_DOWN: Final = "its StatefulSet is smaller now"
STAND_IN_PREFIX: Final = "fairlead-"
_PROVISIONER: Final = "assumed.fairlead.dev"
_SIZE: Final = "1Gi"  # for claims and volumes whose size is unknown


class ClaimCreator:
    """Creates the claims that pods need; sends a creation again only if it was refused."""

    def __init__(self, index: VolumeIndex, output: ClaimOutput) -> None:
        """Initialize with no StatefulSets and no pending creations.

        The caller must update `index` with each change before it passes the change to this object.
        `output` builds the events about created claims.
        """
        self._index = index
        self._output = output
        self._sets: dict[str, StatefulSet] = {}
        self._creating: dict[str, Pod | None] = {}  # by claim, the pod that needs it
        self._refused: dict[str, Pod] = {}  # by claim whose creation was refused, the pod
        # by claim of a StatefulSet whose creation is in flight, the StatefulSet and its pod's name
        self._of_sets: dict[str, tuple[ObjectRef, str]] = {}

    def observe(self, obj: ApiObject) -> None:
        """Store a StatefulSet, or record that a claim exists; ignore other objects."""
        if isinstance(obj, StatefulSet):
            self._sets[obj.metadata.uid] = obj
        elif isinstance(obj, PersistentVolumeClaim):
            self._creating.pop(obj.key, None)
            self._refused.pop(obj.key, None)

    def observe_refusal(self, claim: str) -> bool:
        """Record that the creation of the claim with the key `claim` was refused.

        Returns True if a pod still needs the claim, so that the creation must be repeated later.
        """
        pod = self._creating.pop(claim, None)
        if pod is not None:
            self._refused[claim] = pod
        return pod is not None

    def repeat(self, claim: str) -> Iterator[Command]:
        """Yield the command that retries the refused creation of a claim.

        `claim` is the key of the claim. Yields nothing if no pod needs the claim.
        """
        pod = self._refused.pop(claim, None)
        if pod is not None:
            yield from self.claims_for(pod)

    def forget(self, gone: ApiObject) -> Iterator[DeleteObject]:
        """Remove a deleted object; yield the deletions of claims that depend on it.

        If a scale-down of a StatefulSet deleted a pod, the pod's claims are deleted too. A
        StatefulSet that retains its claims is an exception. Ephemeral claims are not included: the
        garbage collector deletes them.
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
                self._creating.pop(gone.key, None)
            case _:
                pass

    def _forget_pod(self, gone: Pod) -> None:
        """Stop retrying to create claims for the deleted pod `gone`."""
        for key, pod in self._creating.items():
            if pod is not None and pod.metadata.uid == gone.metadata.uid:
                self._creating[key] = None
        for key in [key for key, pod in self._refused.items() if pod.key == gone.key]:
            del self._refused[key]

    def missing_objects(self, objects: Iterable[ApiObject]) -> list[CreateObject]:
        """Return commands that create the storage objects that are missing from a dump.

        `objects` are all objects of the dump.
        """
        commands = missing_storage(objects)
        for command in commands:
            self._creating[command.target.key] = None
        return commands

    def claims_for(self, pod: Pod) -> Iterator[CreateObject]:
        """Yield the commands that create the missing claims of `pod`.

        A pod has a claim for each ephemeral volume, and for each volumeClaimTemplate of the pod's
        StatefulSet. Yields nothing for a pod that has finished or is being deleted.
        """
        if not any(map(is_claimed, pod.spec.volumes)):
            return
        if is_terminal(pod) or pod.metadata.deletion_timestamp:
            return
        yield from self._creations(ephemeral_claims(pod), pod)
        names = dict.fromkeys(named_claims(pod))
        for reference in pod.metadata.owner_references:
            owner = self._sets.get(reference.uid)
            if owner is None or not reference.controller:
                continue
            # upstream: stateful_pod_control.go:createMissingPersistentVolumeClaims
            claims = claims_of_set(owner, pod.metadata.name)
            for one in self._creations((one for one in claims if one.target.name in names), pod):
                self._of_sets[one.target.key] = (object_ref(owner), pod.metadata.name)
                yield one

    def creation_event(self, claim: ObjectRef, error: str) -> Iterator[Command]:
        """Yield the event about the creation of `claim` if `claim` belongs to a StatefulSet.

        `error` is the API server's error message, "" if the creation succeeded.
        """
        found = self._of_sets.pop(claim.key, None)
        if found is not None:
            owner, pod = found
            yield from self._output.created(claim_created(owner, claim.name, pod, error))

    def _creations(self, wanted: Iterable[CreateObject], pod: Pod) -> Iterator[CreateObject]:
        """Yield the creations in `wanted` that must be sent now.

        A creation is left out if its claim exists or the creation is in flight. A creation is also
        left out if it was refused and its retry is not due yet. If the claim does not exist, this
        method records that `pod` needs the claim.
        """
        for one in wanted:
            key = one.target.key
            if key in self._index.claims:
                continue
            if key in self._refused:
                self._refused[key] = pod
                continue
            is_new = key not in self._creating
            self._creating[key] = pod
            if is_new:
                yield one

    def _not_retained(self, pod: Pod) -> Iterator[str]:
        """Yield the keys of the claims that a StatefulSet deletes together with `pod`.

        A StatefulSet deletes the claims of a pod that a scale-down removed, if `whenScaled` is
        Delete. For other pods, yields nothing.
        """
        for reference in pod.metadata.owner_references:
            owner = self._sets.get(reference.uid)
            if owner is None or not is_superfluous(owner, pod):
                continue
            if owner.spec.persistent_volume_claim_retention_policy.when_scaled == DELETE:
                yield from (one.target.key for one in claims_of_set(owner, pod.metadata.name))


def is_superfluous(owner: StatefulSet, pod: Pod) -> bool:
    """Return whether `pod` has an ordinal outside the range that `owner` requests."""
    ordinal, start = ordinal_of(owner.metadata.name, pod.metadata.name), owner.spec.ordinals.start
    return ordinal is not None and not start <= ordinal < start + owner.spec.replicas


def ephemeral_claims(pod: Pod) -> Iterator[CreateObject]:
    """Yield commands that create the claims of the pod's ephemeral volumes.

    The pod owns these claims.
    """
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


def templates_by_name(templates: Iterable[Json]) -> dict[str, Json]:
    """Return a dict from each name to the last of the `templates` with this name."""
    # upstream: pkg/controller/statefulset/stateful_set_utils.go: getPersistentVolumeClaims
    return {(one.get("metadata") or {}).get("name", ""): one for one in templates}


def claims_of_set(owner: StatefulSet, pod: str) -> Iterator[CreateObject]:
    """Yield commands that create the claims of the StatefulSet `owner` for the pod named `pod`.

    The pod does not own the claims. The StatefulSet owns them if its `whenDeleted` is Delete.
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
    for of_template, template in templates_by_name(owner.spec.volume_claim_templates).items():
        described = template.get("metadata", {})
        name = f"{of_template}-{pod}"
        selected = dict(owner.spec.selector.match_labels) if owner.spec.selector else {}
        labels = {**described.get("labels", {}), **selected}
        labelled = {**described, **({"labels": labels} if labels else {})}
        yield _claim({**template, "metadata": labelled}, name, owner.metadata.namespace, more)


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
    """Return creations of the storage objects that a dump lacks, in a deterministic order.

    If the dump has no claims, the result contains all claims that pods name, and a volume for each
    claim. If the dump has claims but no volumes, the result contains the volumes of the bound
    claims. If the dump has neither StorageClasses nor free volumes, the result also contains the
    classes for the claims of StatefulSets and of the pods' ephemeral volumes.
    """
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
    return [*commands, *_missing_classes(known)]


def missing_bindings(objects: Iterable[ApiObject]) -> Iterator[PatchObject]:
    """Yield writes that complete the bindings of the Bound claims in `objects`.

    A binding is complete if the claim has the annotation pv.kubernetes.io/bind-completed. The
    scheduler treats claims without this annotation as unbound. The volume controller sets the
    annotation again if a dump lacks it, for example because a program has removed annotations.

    upstream: pkg/controller/volume/persistentvolume/pv_controller.go: syncUnboundClaim
    """
    index = VolumeIndex()
    for one in objects:
        index.observe(one)
    for _, claim in sorted(index.claims.items()):
        volume = index.volumes.get(claim.spec.volume_name)
        if volume is None or claim.status.phase != BOUND or is_bound(claim):
            continue
        if volume.spec.claim_ref is None or is_volume_bound_to_claim(volume, claim):
            patch = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}}
            yield PatchObject(claim_ref(claim), patch)


def _missing_classes(known: Iterable[ApiObject]) -> Iterator[CreateObject]:
    """Yield commands that create the StorageClasses that templates of claims name.

    StatefulSets and the ephemeral volumes of pods contain such templates. `known` contains the
    objects of the dump. Yields nothing if the dump contains a StorageClass, or a PersistentVolume
    without a claimRef.
    """
    wanted: set[str | None] = set()
    for one in known:
        match one:
            case StorageClass():
                return
            case PersistentVolume():
                if one.spec.claim_ref is None:
                    return
            case StatefulSet():
                wanted |= {_class_of(one) for one in one.spec.volume_claim_templates}
            case Pod():
                made = (one.ephemeral for one in one.spec.volumes if one.ephemeral is not None)
                wanted |= {_class_of(one.volume_claim_template) for one in made}
            case _:
                pass
    for name in sorted(one or "" for one in wanted if one != ""):
        yield _class(name)


def _class_of(template: Json) -> str | None:
    name = (template.get("spec") or {}).get("storageClassName")
    return None if name is None else str(name)


def _class(name: str) -> CreateObject:
    """Return the command that creates the StorageClass `name`.

    If `name` is "", the command creates a default StorageClass.
    """
    metadata: Json = {"name": name or f"{STAND_IN_PREFIX}default"}
    if not name:
        metadata["annotations"] = {IS_DEFAULT: "true"}
    return CreateObject(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": metadata,
            "provisioner": _PROVISIONER,
            "volumeBindingMode": "Immediate",
        }
    )


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

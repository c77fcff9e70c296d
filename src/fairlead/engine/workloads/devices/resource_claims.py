"""ResourceClaims: creates claims for pods from templates, and deallocates unused devices.

    a pod references a template ──▶ create a claim ──▶ write the claim's name to the pod's status
    a consumer finishes or is deleted ──▶ remove it from status.reservedFor; if it was the last
                                          consumer, deallocate the claim
    a pod with a generated claim has finished or is gone ──▶ delete the claim
    the creation of a claim is refused, for example by a quota ──▶ retry it with backoff

After a sync has changed a claim, later syncs leave the claim alone until its resourceVersion
changes. A snapshot is stored completely before any claim is synced. The reason is that a pod that
comes after its claim in the snapshot would otherwise count as deleted.

Differs from upstream if a pod is created before its template: the claim is created as soon as the
template exists. Upstream retries with backoff.

upstream: pkg/controller/resourceclaim/controller.go: syncPod, handleClaim, syncClaim
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from fairlead.api.codec import as_json
from fairlead.api.objects import (
    ApiObject,
    ClaimConsumer,
    Pod,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
    pod_ref,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.state.devices.extended_resources import CLAIM_ANNOTATION
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.identity import object_ref

CLAIM_REFUSED: Final = "FailedResourceClaimCreation"


class ResourceClaims:
    """The ResourceClaim controller: creates claims from templates, deallocates unused devices."""

    issuer: ClassVar[Issuer] = controller_account("resource-claim-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, ResourceClaim, ResourceClaimTemplate),
        deleted=(Pod, ResourceClaim, ResourceClaimTemplate),
        succeeded=(),
        failed=(CreateObject, PatchStatus, DeleteObject),
        readiness=False,
    )

    def __init__(self, config: WorkloadsConfig) -> None:
        """Start empty; `config` bounds the backoff after a refused creation."""
        self._config = config
        self._failures: dict[str, int] = {}  # pod uid -> consecutive refused creations
        self._retries: TimerQueue[str] = TimerQueue()  # uids of pods
        self._pods: dict[str, Pod] = {}  # pods that may use claims, by uid
        self._claims: dict[str, ResourceClaim] = {}
        self._templates: dict[str, ResourceClaimTemplate] = {}
        self._generated_claims: dict[
            tuple[str, str], str
        ] = {}  # (pod uid, pod claim name) -> claim
        self._creating: dict[tuple[str, str], CreateObject] = {}
        self._used_by: dict[str, dict[str, None]] = {}  # pod uid -> claims
        self._written: dict[str, str] = {}  # claim -> last version that was handled
        self._deleting: dict[str, None] = {}  # claims whose deletion was requested
        self._deallocated: dict[str, None] = {}  # claims whose deallocation was requested
        self._reported: dict[
            str, dict[str, str]
        ] = {}  # pod uid -> claim names in its status, or in flight

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for the claims that `stimulus` affects."""
        match stimulus:
            case ObjectChanged(one):
                return self._react(one) if self._observe(one) else []
            case ObjectDeleted(one):
                return self._forget(one)
            case ObjectsLoaded():
                return self._load(stimulus)
            case CommandFailed(CreateObject() as command, message=message):
                return self._creation_failed(command, message, now)
            case CommandFailed(PatchStatus(target)) if target.kind == "Pod":
                self._reported.pop(target.uid, None)
                return []
            case CommandFailed(DeleteObject(target)):
                self._deleting.pop(target.key, None)
                return []
            case _:
                return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        return self._react(pod) if self._observe(pod) else ()

    def next_deadline(self) -> Instant | None:
        """Return the time of the next retry of a refused creation; None if there is none."""
        return self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Sync the pods whose backoff has expired."""
        pods = [self._pods.get(uid) for uid in self._retries.pop_due(now)]
        return [command for pod in pods if pod is not None for command in self._sync_pod(pod)]

    # --- known objects ---------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded) -> list[Command]:
        concerned: list[ApiObject] = []
        for some in loaded.grouped:
            if not isinstance(some, Replicas):
                concerned += (some,) if self._observe(some) else ()
            elif _may_use_claims(some[0]):
                concerned += (pod for pod in some if self._observe(pod))
        return [command for one in concerned for command in self._react(one)]

    def _observe(self, one: ApiObject) -> bool:
        """Store an object; return whether it must be synced."""
        if type(one) is Pod:
            if not _may_use_claims(one):
                return False
            self._pods[one.metadata.uid] = one
        elif type(one) is ResourceClaim:
            self._note_claim(one)
        elif type(one) is ResourceClaimTemplate:
            self._templates[one.key] = one
        else:
            return False
        return True

    def _note_claim(self, claim: ResourceClaim) -> None:
        self._claims[claim.key] = claim
        owner, name = owner_of(claim), claim.metadata.annotations.get(POD_CLAIM_NAME)
        if owner:
            self._used_by.setdefault(owner, {})[claim.key] = None
        if owner and name is not None:
            self._generated_claims[owner, name] = claim.key
            self._creating.pop((owner, name), None)
            self._failures.pop(owner, None)
        for consumer in claim.status.reserved_for:
            self._used_by.setdefault(consumer.uid, {})[claim.key] = None

    def _react(self, one: ApiObject) -> list[Command]:
        match one:
            case Pod():
                return self._sync_pod(one)
            case ResourceClaim():
                owner = self._pods.get(owner_of(one))
                commands = [] if owner is None else self._sync_pod(owner)
                return [*commands, *self._sync_claim(one)]
            case ResourceClaimTemplate():
                pods = (pod for pod in self._pods.values() if _wants(pod, one))
                return [command for pod in pods for command in self._sync_pod(pod)]
            case _:
                return []

    def _forget(self, gone: ApiObject) -> list[Command]:
        match gone:
            case Pod():
                self._pods.pop(gone.metadata.uid, None)
                self._reported.pop(gone.metadata.uid, None)
                self._failures.pop(gone.metadata.uid, None)
                return self._release(gone)
            case ResourceClaim():
                self._claims.pop(gone.key, None)
                self._written.pop(gone.key, None)
                self._deleting.pop(gone.key, None)
                self._deallocated.pop(gone.key, None)
                owner, name = owner_of(gone), gone.metadata.annotations.get(POD_CLAIM_NAME, "")
                self._generated_claims.pop((owner, name), None)
            case ResourceClaimTemplate():
                self._templates.pop(gone.key, None)
            case _:
                pass
        return []

    # --- pods ------------------------------------------------------------------------------

    def _sync_pod(self, pod: Pod) -> list[Command]:
        """Create the pod's missing claims, and write the names of its claims to its status.

        If the pod has finished, release its claims instead.
        """
        if is_done(pod):
            return self._release(pod)
        if pod.metadata.deletion_timestamp:
            return []
        uid = pod.metadata.uid
        reported = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
        known = dict(reported)
        commands: list[Command] = []
        for wanted in pod.spec.resource_claims:
            if not wanted.resource_claim_template_name or wanted.name in reported:
                continue
            claim = self._claims.get(self._generated_claims.get((uid, wanted.name), ""))
            if claim is not None:
                known[wanted.name] = claim.metadata.name
            else:
                commands += self._create_claim(pod, wanted)
        if known != reported and known != self._reported.get(uid):
            self._reported[uid] = known
            commands.append(status_of_pod(pod, known))
        return commands

    def _create_claim(self, pod: Pod, wanted: PodResourceClaim) -> Iterator[CreateObject]:
        """Yield the creation of claim `wanted`.

        Yields nothing if the creation is already in flight, or if the template does not exist.
        """
        key_of_claim = (pod.metadata.uid, wanted.name)
        key = f"{pod.metadata.namespace}/{wanted.resource_claim_template_name}"
        template = self._templates.get(key)
        if template is not None and key_of_claim not in self._creating:
            command = self._creating[key_of_claim] = CreateObject(
                claim_manifest(pod, wanted, template)
            )
            yield command

    def _creation_failed(self, command: CreateObject, message: str, now: Instant) -> list[Command]:
        """Schedule a retry of the failed creation of a claim; return the event about the pod."""
        found = (key for key, known in self._creating.items() if known is command)
        if (key_of_claim := next(found, None)) is None:
            return []
        del self._creating[key_of_claim]
        uid, name = key_of_claim
        # upstream: pkg/controller/resourceclaim/controller.go: processNextWorkItem, syncPod
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        self._retries.add(now + self._config.retry_after(failures), uid)
        pod = self._pods.get(uid)
        return [] if pod is None else [_refused(pod, name, message)]

    def _release(self, pod: Pod) -> list[Command]:
        """Sync the pod's claims, so that the pod is removed from their consumers."""
        claims = (self._claims.get(key) for key in self._used_by.get(pod.metadata.uid, ()))
        commands = [c for claim in claims if claim is not None for c in self._sync_claim(claim)]
        if pod.metadata.uid not in self._pods:
            self._used_by.pop(pod.metadata.uid, None)
        return commands

    # --- claims ----------------------------------------------------------------------------

    def _sync_claim(self, claim: ResourceClaim) -> list[Command]:
        """Remove finished consumers, deallocate unused devices, and delete unused claims.

        The finalizer `FINALIZER` keeps a claim from being deleted while its devices are allocated.
        The finalizer is removed only after the deallocation is observed. The reason is that the
        write of the deallocation can fail with a conflict.
        """
        left = [one for one in claim.status.reserved_for if self._uses(one)]
        has_ended = len(left) < len(claim.status.reserved_for)
        is_going = bool(claim.metadata.deletion_timestamp) and not left
        is_useless = not left and claim.key not in self._deleting and self._is_orphan(claim)
        protected = FINALIZER in claim.metadata.finalizers
        to_deallocate = not left and claim.status.allocation is not None
        to_deallocate = to_deallocate and (has_ended or (is_going and protected))
        to_unprotect = protected and not left and claim.status.allocation is None
        to_unprotect = to_unprotect and (is_going or has_ended or claim.key in self._deallocated)
        if not (has_ended or to_deallocate or to_unprotect or (is_useless and not is_going)):
            return []
        version = claim.metadata.resource_version
        if version and self._written.get(claim.key) == version:
            return []
        self._written[claim.key] = version
        commands: list[Command] = []
        if has_ended or to_deallocate:
            commands.append(reserved_for_patch(claim, left))
        if to_deallocate:
            self._deallocated[claim.key] = None
        if to_unprotect:
            self._deallocated.pop(claim.key, None)
            commands.append(finalizer_removal(claim))
        if is_useless and not is_going:
            self._deleting[claim.key] = None
            commands.append(DeleteObject(object_ref(claim), why="made for a pod"))
        return commands

    def _uses(self, consumer: ClaimConsumer) -> bool:
        """Return False if `consumer` is a pod that is done or gone, else True."""
        if consumer.resource != "pods" or consumer.api_group:
            return True
        pod = self._pods.get(consumer.uid)
        return pod is not None and not is_done(pod)

    def _is_orphan(self, claim: ResourceClaim) -> bool:
        """Return whether the claim was generated for a pod that has finished or is gone."""
        owner, notes = owner_of(claim), claim.metadata.annotations
        if not owner or (POD_CLAIM_NAME not in notes and CLAIM_ANNOTATION not in notes):
            return False
        pod = self._pods.get(owner)
        return pod is None or is_done(pod)


def _refused(pod: Pod, name: str, message: str) -> RecordEvent:
    """Return the event that the creation of the claim `name` of `pod` was refused."""
    return RecordEvent(
        regarding=pod_ref(pod),
        type="Warning",
        reason=CLAIM_REFUSED,
        action="",
        note=f"PodResourceClaim {name}: {message}",
        reporting_controller="resource_claim",
    )


def _may_use_claims(pod: Pod) -> bool:
    """Return whether the pod has claims, or extended resources that may be backed by devices."""
    spec = pod.spec
    if spec.resource_claims:
        return True
    for one in (*spec.init_containers, *spec.containers):
        for name in one.resources.requests:  # loops, because it is called for all pods
            if "/" in name:
                return True
    return False


def is_done(pod: Pod) -> bool:
    """Return whether the pod has finished, or is being deleted and was never bound."""
    return is_terminal(pod) or (bool(pod.metadata.deletion_timestamp) and not pod.spec.node_name)


def _wants(pod: Pod, template: ResourceClaimTemplate) -> bool:
    meta = template.metadata
    return pod.metadata.namespace == meta.namespace and any(
        wanted.resource_claim_template_name == meta.name for wanted in pod.spec.resource_claims
    )


POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"


def owner_of(claim: ResourceClaim) -> str:
    """Return the uid of the pod that controls the claim, or "" if no pod controls it."""
    owners = claim.metadata.owner_references
    return next((one.uid for one in owners if one.controller and one.kind == "Pod"), "")


def claim_manifest(
    pod: Pod, wanted: PodResourceClaim, template: ResourceClaimTemplate
) -> dict[str, Any]:
    """Return the manifest of the claim for `wanted`, an entry of the pod's spec.resourceClaims.

    The claim is created from `template`.
    """
    meta = pod.metadata
    described = template.spec.get("metadata", {})
    kept = {"labels": described["labels"]} if "labels" in described else {}
    notes = {**described.get("annotations", {}), POD_CLAIM_NAME: wanted.name}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{meta.name}-{wanted.name}-",
            "namespace": meta.namespace,
            **kept,
            "annotations": notes,
            "ownerReferences": [owner],
        },
        "spec": template.spec.get("spec", {}),
    }


def status_of_pod(pod: Pod, made: dict[str, str]) -> PatchStatus:
    """Return the patch that writes the claim names in `made` to the status of `pod`."""
    meta = pod.metadata
    statuses = [
        {"name": name, "resourceClaimName": claim} if claim else {"name": name}
        for name, claim in made.items()
    ]
    return PatchStatus(
        ObjectRef("Pod", meta.namespace, meta.name, meta.uid), {"resourceClaimStatuses": statuses}
    )


def reserved_for_patch(claim: ResourceClaim, left: Sequence[ClaimConsumer]) -> PatchStatus:
    """Return the patch after which `claim` is reserved only for the consumers in `left`.

    If `left` is empty, the patch also deallocates the claim.
    """
    fields: dict[str, Any] = {"reservedFor": [as_json(one) for one in left] or None}
    if not left:
        fields |= {"allocation": None, "devices": None}
    version = claim.metadata.resource_version
    return PatchStatus(object_ref(claim), fields, resource_version=version)


def finalizer_removal(claim: ResourceClaim) -> PatchObject:
    """Return the patch that removes the claim's delete-protection finalizer."""
    finalizers = [one for one in claim.metadata.finalizers if one != FINALIZER]
    return PatchObject(object_ref(claim), {"metadata": {"finalizers": finalizers or None}})

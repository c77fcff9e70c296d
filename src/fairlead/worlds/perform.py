"""Performs each command as the corresponding API request, and returns its outcome.

A command may have to wait for webhooks. `perform.steps(...)` returns a generator that yields each
call of a webhook. `perform(...)` itself raises RuntimeError if a webhook must be called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, assert_never

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, RESOURCE_QUOTA, Kind, find_kind, kind_of
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.subresource.binding import bind
from fairlead.apiserver.registry.subresource.eviction import evict
from fairlead.apiserver.suspension import Suspendable, WebhookCalls, retried
from fairlead.engine.core.command import (
    ApplyStatus,
    Bind,
    CallExtender,
    Command,
    Condition,
    CreateObject,
    DeleteCollection,
    DeleteObject,
    EvictPod,
    FinalizeNamespace,
    LookUpOwners,
    ObjectRef,
    ObservedCondition,
    PatchObject,
    PatchStatus,
    RecordEvent,
    UpdateQuotaStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import (
    CollectionDeleted,
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    OwnersLookedUp,
)
from fairlead.worlds.namespace_content import delete_collection, finalize_namespace
from fairlead.worlds.owner_lookup import look_up_owners

_SimpleCommand = (
    Bind
    | PatchStatus
    | ApplyStatus
    | PatchObject
    | CreateObject
    | DeleteObject
    | FinalizeNamespace
    | EvictPod
    | RecordEvent
    | CallExtender
)
Outcome = CommandSucceeded | CommandFailed | CollectionDeleted | OwnersLookedUp

_REASONS: Final = {reason.value: reason for reason in FailureReason} | {
    "BadRequest": FailureReason.INVALID
}


# returns how a kind, or a subresource of it, is written
WriteOf = Callable[[Kind, str], Write]


def _plain(_kind: Kind, _subresource: str) -> Write:
    """Return a Write without a user and without a field manager."""
    return PLAIN


@Suspendable
def perform(
    store: Store,
    command: Command,
    now: Instant,
    write_of: WriteOf = _plain,
    quotas: QuotaLedgers | None = None,
    issuer: Issuer | None = None,
) -> WebhookCalls[Outcome]:
    """Perform `command` on `store` and return its outcome.

    For `RecordEvent` and `CallExtender`, this function does nothing, because the worlds perform
    them. `write_of` returns the user and the field manager for a kind and subresource. `quotas`
    counts the usage for `UpdateQuotaStatus`; if `quotas` is None, each `UpdateQuotaStatus` counts
    all objects again. If the outcome is a CommandSucceeded, it contains `issuer`.
    """
    try:
        match command:
            case PatchStatus() | PatchObject() | CreateObject():  # the most frequent commands
                yield from retried(partial(_request, store, command, now, write_of))
            case DeleteCollection():
                return (yield from delete_collection(store, command, now, write_of))
            case LookUpOwners():
                return look_up_owners(store, command)
            case UpdateQuotaStatus(target):
                ledgers = quotas or QuotaLedgers(store.storage)
                _update_quota_status(store, ledgers, target, now, write_of)
            case _:
                yield from retried(partial(_request, store, command, now, write_of))
    except ApiError as refusal:
        return refused(command, refusal)
    return CommandSucceeded(command, issuer)


def refused(command: Command, refusal: ApiError) -> CommandFailed:
    """Return the failed outcome of `command`, which the store refused with `refusal`."""
    reason = _REASONS.get(refusal.reason, FailureReason.INTERNAL_ERROR)
    return CommandFailed(command, reason, refusal.message)


def _request(
    store: Store, command: _SimpleCommand, now: Instant, write_of: WriteOf
) -> WebhookCalls[None]:
    match command:  # the most frequent commands come first
        case PatchStatus(target, fields, conditions, _, resource_version):
            kind = _kind(store, target.kind)
            yield from store.patch_status.steps(
                kind,
                target.namespace,
                target.name,
                fields,
                now,
                conditions=map(condition_json, conditions),
                uid=target.uid,
                resource_version=resource_version,
                write=write_of(kind, "status"),
            )
        case PatchObject():
            yield from _patch(store, command, now, write_of)
        case CreateObject(manifest):
            write = write_of(kind_of(manifest), "")
            yield from store.create.steps(manifest, now, write=write)
        case Bind(pod, node):
            write = write_of(POD, "binding")
            yield from bind.steps(
                store, pod.namespace, pod.name, node, now, uid=pod.uid, write=write
            )
        case ApplyStatus(target, status, field_manager):
            _apply_status(store, target, status, field_manager, now)
        case DeleteObject(target, grace_period_s, _, policy):
            kind = _kind(store, target.kind)
            deletion = Deletion(
                grace_period_s=grace_period_s, policy=policy, uid=target.uid or None
            )
            write = write_of(kind, "")
            yield from store.delete.steps(
                kind, target.namespace, target.name, now, deletion, write=write
            )
        case EvictPod(pod, _):
            evict(store, pod.namespace, pod.name, now, uid=pod.uid)
        case FinalizeNamespace(target):
            finalize_namespace(store, target.name)
        case RecordEvent() | CallExtender():
            pass  # Worlds perform these without requests to the store.
        case _:
            assert_never(command)


def _patch(
    store: Store, command: PatchObject, now: Instant, write_of: WriteOf
) -> WebhookCalls[None]:
    target = command.target
    kind = _kind(store, target.kind)
    write = write_of(kind, command.subresource)
    if (kind, command.subresource) != (POD, "resize"):
        yield from store.patch.steps(
            kind, target.namespace, target.name, command.patch, now, uid=target.uid, write=write
        )
        return
    from fairlead.apiserver.registry.subresource.pod_spec import resize  # noqa: PLC0415 - rarely needed
    from fairlead.worlds.container_resources import missing_resources  # noqa: PLC0415

    pod = store.get(POD, target.namespace, target.name)
    require_uid(POD, pod, target.uid)
    if rows := missing_resources(pod):  # the kubelet would have reported them before the resize
        yield from _request(store, PatchStatus(target, rows), now, write_of)
        pod = store.get(POD, target.namespace, target.name)
    wanted = store.registry.decode(POD, merge_patch(pod, command.patch))
    yield from resize.steps(store, pod, wanted, write=write)


def _kind(store: Store, name: str) -> Kind:
    """Return the built-in or custom kind called `name`; raises ApiError 404 if it is unknown."""
    kind = kind_in(store, name)
    if kind is None:
        raise ApiError("NotFound", 404, "the server could not find the requested resource")
    return kind


def kind_in(store: Store, name: str) -> Kind | None:
    """Return the built-in or custom kind called `name`, such as `Queue.example.com`, or None."""
    found = find_kind(name)
    if found is not None:
        return found
    stored = (kind for kind in store.storage.kinds() if name in (kind.qualified, kind.kind))
    return next(stored, None)


def _apply_status(
    store: Store, target: ObjectRef, status: Mapping[str, Any], field_manager: str, now: Instant
) -> None:
    # Imported here, because schemas take long to import, and simulations never apply.
    from fairlead.apiserver.endpoints.field_manager import tracking_of  # noqa: PLC0415
    from fairlead.apiserver.patch.managedfields.server_side_apply import (  # noqa: PLC0415
        ApplyRequest,
        server_side_apply,
    )

    kind = _kind(store, target.kind)
    obj = store.get(kind, target.namespace, target.name)
    require_uid(kind, obj, target.uid)
    tracking = tracking_of(kind, "status")
    if tracking is None:
        raise ApiError("NotFound", 404, "the server could not find the requested resource")
    config = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": target.name},
        "status": status,
    }
    request = ApplyRequest(config=config, manager=field_manager, force=True, subresource="status")
    store.write(kind, obj, server_side_apply(tracking, obj, request, format_timestamp(now)))


def _update_quota_status(
    store: Store, quotas: QuotaLedgers, target: ObjectRef, now: Instant, write_of: WriteOf
) -> None:
    status = quotas.status(target.namespace, target.name, now)
    if status is None:
        return
    before = store.get(RESOURCE_QUOTA, target.namespace, target.name).get("status") or {}
    fields = {
        part: status[part]
        | {one: None for one in before.get(part) or {} if one not in status[part]}
        for part in ("hard", "used")
    }
    write = write_of(RESOURCE_QUOTA, "status")
    store.patch_status(RESOURCE_QUOTA, target.namespace, target.name, fields, now, write=write)


def condition_json(condition: Condition) -> dict[str, Any]:
    """Return a condition as JSON, in the form that `with_conditions` merges.

    A member without a value is "" or 0; `with_conditions` treats it as missing.
    """
    generation = condition.observed_generation if type(condition) is ObservedCondition else 0
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": condition.last_heartbeat_time,
        "observedGeneration": generation,
    }

"""Performs a command as API requests: a generator that yields requests and receives the responses.

    steps = perform(command, resources, now, jitter)
    request = next(steps)
    ...
    request = steps.send(answer)      # an ApiRequest, or a pause in seconds
    ...
    StopIteration.value               # the Performed

The server may have performed a request to which it did not respond. Such a request is sent again
until the server responds. The repetition does no harm: a patch, deletion or eviction has the same
effect if it is performed twice. If the server refuses a repeated binding or creation, the object is
read. The object shows whether an earlier attempt succeeded. Until the server responds, the pod of a
binding stays assumed on its node.

upstream: client-go/rest/{request,with_retry}.go
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fairlead.api.timestamp import format_timestamp
from fairlead.client.api_resource import ApiResource
from fairlead.client.error import UNDECODABLE
from fairlead.client.rest_client import ApiAnswer, ApiRequest
from fairlead.client.retry_backoff import Jitter
from fairlead.engine.core.command import (
    Bind,
    Command,
    Condition,
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    ObservedCondition,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
# A request that the server answers with an internal error is sent at most this many times.
ERROR_TRIES_MAX: Final = 4
PAUSE_SECONDS_MAX: Final = 8.0
_TOO_MANY, _INTERNAL_ERROR = 429, 500
# Answers after which the same request may succeed: timeouts, overload, a gateway without a server.
_TRANSIENT: Final = (0, 408, 429, 502, 503, 504)
_CONFLICT, _NOT_FOUND = 409, 404
_CREATED_KIND: Final = "ResourceClaim"  # the only kind that the scheduler creates
_OBJECT_START: Final = b"{"
# Kinds whose conditions a strategic merge patch merges by type.
_STRATEGIC_KINDS: Final = ("Pod", "Node")
_REASONS: Final = {reason.value: reason for reason in FailureReason} | {
    "BadRequest": FailureReason.INVALID
}
_BY_CODE: Final = {
    404: FailureReason.NOT_FOUND,
    409: FailureReason.CONFLICT,
    429: FailureReason.TOO_MANY_REQUESTS,
    403: FailureReason.FORBIDDEN,
    422: FailureReason.INVALID,
    400: FailureReason.INVALID,
}

Resources = Mapping[str, ApiResource]
Steps = Generator["ApiRequest | float", ApiAnswer | None, "Performed"]
_Exchange = Generator["ApiRequest | float", ApiAnswer | None, tuple[ApiAnswer, int]]


class WrittenEffect(Struct, frozen=True):
    """The state that the watch must show before the outcome of a command is reported.

    The watch must show the object `ref` at `version` or later, or show that the object no longer
    exists. For a binding, `node` is set and `version` does not matter. The watch must show that the
    pod is bound to a node, which may differ from `node`. If `is_deletion` is True, the object must
    be gone or have a deletion timestamp. If `is_removal` is also True, the object must be gone.
    """

    ref: ObjectRef
    version: str = ""
    node: str = ""
    is_deletion: bool = False
    is_removal: bool = False


class Performed(Struct, frozen=True):
    """The outcome and the effect of a command; `effect` is None if nothing was written."""

    outcome: CommandSucceeded | CommandFailed
    effect: WrittenEffect | None = None


class _Meta(Struct):
    uid: str = ""
    resource_version: str = field(default="", name="resourceVersion")
    finalizers: list[str] | None = None


class _PodSpec(Struct):
    node_name: str = field(default="", name="nodeName")


class _Found(Struct):
    """The fields that this module reads from the object in a response."""

    metadata: _Meta = field(default_factory=_Meta)
    spec: _PodSpec = field(default_factory=_PodSpec)


class _ConditionList(Struct):
    conditions: list[dict[str, Any]] | None = None


class _WithConditions(Struct):
    status: _ConditionList | None = None


def perform(
    command: Command,
    resources: Resources,
    now: Instant,
    jitter: Jitter,
    known: Mapping[str, str] | None = None,
) -> Steps:
    """Yield the requests that perform `command`, and return its outcome.

    `resources` are keyed by the kinds that commands name. `known` maps the types of the target's
    current conditions to their statuses. A condition whose status does not change keeps its
    transition time. `jitter` returns random numbers in [0, 1) for pauses. A command that is not
    performed in a running cluster, such as DeleteCollection, causes no request and fails as
    INVALID.
    """
    match command:
        case Bind():
            return (yield from _bind(command, resources, jitter))
        case PatchStatus():
            return (yield from _patch_status(command, resources, now, jitter, known or {}))
        case PatchObject(target, patch):
            body = _with_identity(patch, target.uid, "")
            return (yield from _patch(command, target, resources, (MERGE, "", body), jitter))
        case CreateObject() if command.target.kind == _CREATED_KIND:
            return (yield from _create(command, resources, jitter))
        case DeleteObject():
            return (yield from _delete(command, resources, jitter))
        case EvictPod(pod, _):
            return (yield from _evict(command, pod, resources, jitter))
        case _:
            problem = f"{type(command).__name__} is not performed in a running cluster"
            return Performed(CommandFailed(command, FailureReason.INVALID, problem))


def _bind(command: Bind, resources: Resources, jitter: Jitter) -> Steps:
    pod = command.pod
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "target": {"kind": "Node", "name": command.node},
    }
    path = resources["Pod"].path(pod.namespace, pod.name, "binding")
    request = ApiRequest("POST", path, msgspec.json.encode(body))
    answer, tries = yield from _definite(request, jitter)
    bound = Performed(CommandSucceeded(command), WrittenEffect(pod, node=command.node))
    if answer.is_success:
        return bound
    if answer.status in (_CONFLICT, _INTERNAL_ERROR) and tries > 1:
        # An earlier attempt without a response may have bound the pod.
        get = ApiRequest("GET", resources["Pod"].path(pod.namespace, pod.name))
        shown, _ = yield from _definite(get, jitter)
        found = _found(shown)
        if found.spec.node_name == command.node and found.metadata.uid == pod.uid:
            return bound
    return _failed(command, answer)


def _patch_status(
    command: PatchStatus,
    resources: Resources,
    now: Instant,
    jitter: Jitter,
    known: Mapping[str, str],
) -> Steps:
    target = command.target
    resource = resources.get(target.kind)
    status: dict[str, Any] = dict(command.fields)
    stamp, version = format_timestamp(now), command.resource_version
    kind = MERGE
    if command.conditions and target.kind in _STRATEGIC_KINDS:
        status["conditions"] = [
            _condition(one, known.get(one.type), stamp) for one in command.conditions
        ]
        kind = STRATEGIC
    elif command.conditions and resource is not None:
        # A merge patch replaces the whole list, so the present list must be read first.
        get = ApiRequest("GET", resource.path(target.namespace, target.name))
        answer, _ = yield from _definite(get, jitter)
        if not answer.is_success:
            return _failed(command, answer)
        status["conditions"] = _merged(_conditions_of(answer), command.conditions, stamp)
        version = version or _found(answer).metadata.resource_version
    body = _with_identity({"status": status}, target.uid, version)
    return (yield from _patch(command, target, resources, (kind, "status", body), jitter))


def _patch(
    command: PatchStatus | PatchObject,
    target: ObjectRef,
    resources: Resources,
    patch: tuple[str, str, Mapping[str, Any]],
    jitter: Jitter,
) -> Steps:
    """Send `patch`, a tuple of content type, subresource and body."""
    content_type, subresource, body = patch
    resource = resources.get(target.kind)
    if resource is None:
        message = "the server could not find the requested resource"
        return Performed(CommandFailed(command, FailureReason.NOT_FOUND, message))
    path = resource.path(target.namespace, target.name, subresource)
    request = ApiRequest("PATCH", path, msgspec.json.encode(body), content_type)
    answer, _ = yield from _definite(request, jitter)
    if not answer.is_success:
        return _failed(command, answer)
    version = _found(answer).metadata.resource_version
    return Performed(CommandSucceeded(command), WrittenEffect(target, version=version))


def _create(command: CreateObject, resources: Resources, jitter: Jitter) -> Steps:
    """Create the ResourceClaim of a pod that requests devices by an extended resource.

    upstream: dynamicresources.go: createExtendedResourceClaimInAPI
    """
    target, resource = command.target, resources.get(command.target.kind)
    if resource is None:
        message = "the server could not find the requested resource"
        return Performed(CommandFailed(command, FailureReason.NOT_FOUND, message))
    body = msgspec.json.encode(command.manifest)
    request = ApiRequest("POST", resource.collection(target.namespace), body)
    answer, tries = yield from _definite(request, jitter)
    if answer.status == _CONFLICT and tries > 1:
        # An earlier attempt without a response may have created the claim; its name is random.
        shown, _ = yield from _definite(
            ApiRequest("GET", resource.path(target.namespace, target.name)), jitter
        )
        answer = shown if shown.is_success else answer
    if not answer.is_success:
        return _failed(command, answer)
    version = _found(answer).metadata.resource_version
    return Performed(CommandSucceeded(command), WrittenEffect(target, version=version))


def _delete(command: DeleteObject, resources: Resources, jitter: Jitter) -> Steps:
    target, resource = command.target, resources.get(command.target.kind)
    if resource is None:
        message = "the server could not find the requested resource"
        return Performed(CommandFailed(command, FailureReason.NOT_FOUND, message))
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if command.grace_period_s is not None:
        options["gracePeriodSeconds"] = command.grace_period_s
    if target.uid:
        options["preconditions"] = {"uid": target.uid}
    if command.policy != "Background":
        options["propagationPolicy"] = command.policy
    path = resource.path(target.namespace, target.name)
    answer, _ = yield from _definite(
        ApiRequest("DELETE", path, msgspec.json.encode(options)), jitter
    )
    if not answer.is_success:
        return _failed(command, answer)
    is_removal = command.grace_period_s == 0 and not _found(answer).metadata.finalizers
    effect = WrittenEffect(target, is_deletion=True, is_removal=is_removal)
    return Performed(CommandSucceeded(command), effect)


def _evict(command: EvictPod, pod: ObjectRef, resources: Resources, jitter: Jitter) -> Steps:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    path = resources["Pod"].path(pod.namespace, pod.name, "eviction")
    # 429 means that a PodDisruptionBudget forbids the eviction.
    request = ApiRequest("POST", path, msgspec.json.encode(body))
    answer, _ = yield from _definite(request, jitter, final=(_TOO_MANY,))
    if not answer.is_success:
        return _failed(command, answer)
    return Performed(CommandSucceeded(command), WrittenEffect(pod, is_deletion=True))


def _definite(request: ApiRequest, jitter: Jitter, final: tuple[int, ...] = ()) -> _Exchange:
    """Repeat `request` after transient failures; return (response, number of tries).

    The request is not repeated after a status in `final`. After status 500, there are at most
    ERROR_TRIES_MAX tries. A successful response without a JSON object counts as a transient
    failure. Such a response comes from a proxy, which may not have passed the request on to the API
    server.
    """
    tries = errors = 0
    while True:
        answer = yield request
        assert answer is not None
        tries += 1
        errors += answer.status == _INTERNAL_ERROR
        is_foreign = answer.is_success and not answer.body.startswith(_OBJECT_START)
        is_transient = is_foreign or (answer.status in _TRANSIENT and answer.status not in final)
        if not is_transient and not (answer.status == _INTERNAL_ERROR and errors < ERROR_TRIES_MAX):
            return answer, tries
        backoff = min(PAUSE_SECONDS_MAX, 0.05 * 2 ** min(tries, 10)) * (1 + jitter())
        yield max(backoff, answer.retry_after_s)


def _failed(command: Command, answer: ApiAnswer) -> Performed:
    by_code = _BY_CODE.get(answer.status, FailureReason.INTERNAL_ERROR)
    reason = _REASONS.get(answer.reason, by_code)
    return Performed(CommandFailed(command, reason, answer.message))


def _found(answer: ApiAnswer) -> _Found:
    try:
        return msgspec.json.decode(answer.body, type=_Found)
    except UNDECODABLE:
        return _Found()


def _with_identity(patch: Mapping[str, Any], uid: str, version: str) -> dict[str, Any]:
    """Return `patch` with the preconditions `uid` and `version`, but without empty values."""
    metadata = dict(patch.get("metadata") or {})
    if uid:
        metadata["uid"] = uid
    if version:
        metadata["resourceVersion"] = version
    return {**patch, "metadata": metadata} if metadata else dict(patch)


def _condition(wanted: Condition, before: str | None, stamp: str) -> dict[str, Any]:
    """Return the condition `wanted` as JSON for a patch.

    `before` is the present status of the condition, None if it is unknown. If the status of
    `wanted` differs from `before`, the result has the transition time `stamp`.
    """
    condition: dict[str, Any] = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason or None,
        "message": wanted.message or None,
    }
    if before != wanted.status:
        condition["lastTransitionTime"] = stamp
    if wanted.last_heartbeat_time:
        condition["lastHeartbeatTime"] = wanted.last_heartbeat_time
    if isinstance(wanted, ObservedCondition):
        condition["observedGeneration"] = wanted.observed_generation
    return condition


def _conditions_of(answer: ApiAnswer) -> list[dict[str, Any]]:
    try:
        found = msgspec.json.decode(answer.body, type=_WithConditions)
    except UNDECODABLE:
        return []
    return (found.status.conditions if found.status else None) or []


def _merged(
    before: list[dict[str, Any]], wanted: tuple[Condition, ...], stamp: str
) -> list[dict[str, Any]]:
    by_type = {str(one.get("type")): one for one in before}
    for one in wanted:
        old = by_type.get(one.type, {})
        changed = _condition(one, old.get("status"), stamp)
        merged = {**old, **changed}
        by_type[one.type] = {key: value for key, value in merged.items() if value is not None}
    return list(by_type.values())

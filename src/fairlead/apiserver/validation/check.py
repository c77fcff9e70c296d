"""The rules of each kind put together: for new objects, stored ones, and changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from fairlead.api.codec import DecodeError, decode, decode_as, decode_stored
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Job,
    Node,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    Queue,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.quantity import QuantityError
from fairlead.apiserver.defaults import with_defaults
from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.kind import POD, PRIORITY_CLASS, Kind
from fairlead.apiserver.validation.field import bounded
from fairlead.apiserver.validation.group import check_pod_group, check_queue
from fairlead.apiserver.validation.metadata import check_metadata, check_owner_ids
from fairlead.apiserver.validation.node import check_node
from fairlead.apiserver.validation.pod import (
    check_new_pod_spec,
    check_pod,
    check_runnable_pod_spec,
)
from fairlead.apiserver.validation.pod_status import CHECKED_FIELDS, check_pod_status
from fairlead.apiserver.validation.pod_update import check_pod_update
from fairlead.apiserver.validation.policy import (
    check_disruption_budget,
    check_priority_class,
    check_priority_class_update,
)
from fairlead.apiserver.validation.served import rules
from fairlead.apiserver.validation.served.metadata import (
    check_generate_name,
    check_generation,
    check_metadata_update,
    check_rest,
    times_as_new,
)
from fairlead.apiserver.validation.served.status import check_status
from fairlead.apiserver.validation.workload import (
    check_job,
    check_new_job,
    check_new_replication_controller,
    check_new_workload,
    check_replication_controller,
    check_runnable_template,
    check_workload,
)

# Kinds whose changes upstream validates as new objects and as changed ones: all is said twice.
# upstream: ValidateUpdate of pkg/registry/{apps,batch,core}/*/strategy.go
LOOKED_AT_TWICE: Final = (
    "jobs.batch", "replicasets.apps", "daemonsets.apps", "replicationcontrollers",
    "networkpolicies.networking.k8s.io",
    "volumeattachments.storage.k8s.io", "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io",
)  # fmt: skip


# Kinds whose changes are looked at before what they have become.
CHANGES_FIRST: Final = (
    "services", "secrets", "configmaps", "ingressclasses.networking.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
)  # fmt: skip


def validated_new(kind: Kind, obj: Json, *, runnable: bool = True, nullable: bool = False) -> Json:
    """`obj`, JSON that somebody wants to create, with its defaults; without nulls, or `nullable`.

    `runnable`: its containers must have names and images, for somebody will run them. Raises
    ApiError that names object and fields if it makes no sense: 400 for a field of the wrong type,
    otherwise 422.
    """
    obj = defaulted(kind, obj, nullable=nullable)
    validate_new(kind, obj, runnable=runnable, nullable=nullable)
    return obj


def defaulted(kind: Kind, obj: Json, *, nullable: bool = False) -> Json:
    """`obj` with the defaults that Fairlead's rules read.

    Raises ApiError 400 for a field of the wrong type.
    """
    return _defaulted(kind, obj, nullable=nullable)[0]


def validate_new(kind: Kind, obj: Json, *, runnable: bool = True, nullable: bool = False) -> None:
    """Refuse a new object, which has its defaults. Raises as `validated_new`."""
    view = _decoded(kind, obj, nullable=nullable)
    meta = _metadata_as_new(kind, obj, view) if nullable else _stored_metadata(kind, view)
    causes = [*bounded(meta), *bounded(_of_its_kind(obj, view))]
    causes += [*bounded(_new(view)), *_custom(kind, obj, None)]
    if runnable:
        causes += bounded(_not_runnable(view))
    if nullable:
        causes += bounded(rules.check_new(kind, obj))
    _refuse(kind, obj, causes)


def validated_stored(kind: Kind, obj: Json) -> Json:
    """`obj`, JSON without nulls from a snapshot, with its defaults.

    Only what nobody could make sense of is refused. Raises as `validated_new`.
    """
    obj, view = _defaulted(kind, obj)
    _refuse(kind, obj, _stored(kind, obj, view))
    return obj


def validate_update(kind: Kind, old: Json, new: Json, *, nullable: bool = False) -> None:
    """Refuse `new`, which has its defaults and shall replace `old`.

    What a new object may not lack and `old` lacked already is not asked for. Raises as
    `validated_new`.
    """
    view = _decoded(kind, new, nullable=nullable)
    meta = [] if nullable else list(_stored_metadata(kind, view))
    wrong = [*bounded(_of_its_kind(new, view)), *_custom(kind, new, old)]
    lacking = [*bounded(_new(view)), *bounded(_not_runnable(view))]
    if lacking:
        before = _decoded(kind, old, nullable=nullable)
        lacked = {*_new(before), *_not_runnable(before)}
        wrong += [cause for cause in lacking if cause not in lacked]
    renamed: list[Cause] = []
    if nullable:
        renamed = list(check_metadata_update(kind, old, new))
        meta = list(_metadata_as_new(kind, new, view)) * times_as_new(kind)
        wrong += bounded(rules.check_any(kind, new))
    again = wrong if kind.resource in LOOKED_AT_TWICE else ()
    changed = [*(rules.check_change(kind, old, new) if nullable else ()), *_changed(kind, old, new)]
    if kind.resource in CHANGES_FIRST:
        _refuse(kind, new, [*renamed, *changed, *meta, *wrong])
    _refuse(kind, new, [*renamed, *meta, *wrong, *again, *changed])


def _metadata_as_new(kind: Kind, obj: Json, view: ApiObject) -> Iterator[Cause]:
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateObjectMetaAccessor
    meta = obj["metadata"]
    yield from check_generate_name(kind, meta)
    yield from check_metadata(kind, view.metadata)
    yield from check_generation(kind, meta)
    yield from check_rest(kind, meta)


def _stored_metadata(kind: Kind, view: ApiObject) -> Iterator[Cause]:
    yield from check_metadata(kind, view.metadata)
    yield from check_owner_ids(view.metadata)


def validate_part(kind: Kind, old: Json, new: Json, causes: Iterable[Cause]) -> None:
    """Refuse `new`, of which only a part may differ from `old`; `causes` are about that part.

    Raises as `validated_new`.
    """
    view = _decoded(kind, new, nullable=True)
    renamed = check_metadata_update(kind, old, new)
    as_new = chain(check_metadata(kind, view.metadata), _of_its_kind(new, view))
    _refuse(kind, new, chain(renamed, as_new, causes))


def validate_new_status(
    kind: Kind, old: Json, new: Json, *, part: str = "status", nullable: bool = False
) -> None:
    """Refuse `new`, `old` with another status and metadata, written by way of `part`.

    Raises as `validated_new`.
    """
    reported = new.get("status", {})
    if not nullable:
        validate_status(kind, new, reported)
        return
    renamed = check_metadata_update(kind, old, new)
    if kind.custom is not None:
        _refuse(kind, new, chain(renamed, kind.custom.causes(new, old)))
    else:
        wrong = _reported(kind, new, reported, nullable=True)
        _refuse(kind, new, chain(renamed, wrong, check_status(kind.resource, old, new, part)))


def validate_status(
    kind: Kind, obj: Json, fields: Mapping[str, Any], *, nullable: bool = False
) -> None:
    """Refuse `obj` with the status that merging `fields` made of it. Raises as `validated_new`."""
    if kind.custom is not None:
        _refuse(kind, obj, kind.custom.causes(obj, None))
    else:
        _refuse(kind, obj, _reported(kind, obj, fields, nullable=nullable))


def _reported(kind: Kind, obj: Json, fields: Mapping[str, Any], *, nullable: bool) -> list[Cause]:
    """What is wrong with the form of a status."""
    if kind is POD:
        wrong = list(check_pod_status(obj["spec"], fields))
        if not wrong and not fields.keys() <= CHECKED_FIELDS:
            _decoded(kind, obj, nullable=nullable)
        return wrong
    return [*_of_its_kind(obj, _decoded(kind, obj, nullable=nullable))] if fields else []


def _defaulted(kind: Kind, obj: Json, *, nullable: bool = False) -> tuple[Json, ApiObject]:
    """`obj` with its defaults, which need fields of the right types, and the view of it."""
    view = _decoded(kind, obj, nullable=nullable)
    try:
        defaulted = with_defaults(kind, obj)
    except QuantityError:
        return obj, view  # the rules say where it stands
    return defaulted, view if defaulted is obj else _decoded(kind, defaulted, nullable=nullable)


def _decoded(kind: Kind, obj: Json, *, nullable: bool = False) -> ApiObject:
    try:
        return decode_stored(obj) if nullable else decode(obj)
    except DecodeError as cause:
        raise _wrong_type(kind, obj, cause) from None


def _wrong_type(kind: Kind, obj: Json, cause: DecodeError) -> ApiError:
    # upstream: apiserver/pkg/endpoints/handlers/create.go:transformDecodeError
    stated = f"{cause.field}: {cause.problem}" if cause.field else cause.problem
    meta = obj.get("metadata")
    named = meta if isinstance(meta, dict) else {}
    return ApiError(
        "BadRequest",
        400,
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {stated}',
        kind=kind,
        namespace=str(named.get("namespace", "")),
        name=str(named.get("name", "")),
        causes=(Cause("FieldValueInvalid", cause.problem, cause.field),),
    )


def _refuse(kind: Kind, obj: Json, causes: Iterable[Cause]) -> None:
    found = tuple(bounded(causes))
    if found:
        meta = obj.get("metadata", {})
        raise invalid(kind, meta.get("namespace", ""), meta.get("name", ""), found)


def _stored(kind: Kind, obj: Json, view: ApiObject) -> Iterator[Cause]:
    """What is wrong with any object of that kind."""
    yield from _stored_metadata(kind, view)
    yield from _of_its_kind(obj, view)


def _of_its_kind(obj: Json, view: ApiObject) -> Iterator[Cause]:
    match view:
        case Pod():
            yield from check_pod(view)
        case Node():
            yield from check_node(view)
        case PodDisruptionBudget():
            yield from check_disruption_budget(view, obj)
        case PriorityClass():
            yield from check_priority_class(view)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_workload(view)
        case ReplicationController():
            yield from check_replication_controller(view)
        case Job():
            yield from check_job(view)
        case Queue():
            yield from check_queue(view)
        case PodGroup():
            yield from check_pod_group(view)
        case _:
            return


def _custom(kind: Kind, obj: Json, old: Json | None) -> Iterator[Cause]:
    """What is wrong with a custom resource by its definition."""
    if kind.custom is not None:
        yield from bounded(kind.custom.causes(obj, old))


def _new(view: ApiObject) -> Iterator[Cause]:
    """What is wrong with a new object besides."""
    match view:
        case Pod():
            yield from check_new_pod_spec("spec", view.spec)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_new_workload(view)
        case ReplicationController():
            yield from check_new_replication_controller(view)
        case Job():
            yield from check_new_job(view)
        case _:
            return


def _not_runnable(view: ApiObject) -> Iterator[Cause]:
    """What a kubelet would miss in a pod, or in the pods of a workload."""
    match view:
        case Pod():
            yield from check_runnable_pod_spec("spec", view.spec)
        case Deployment() | ReplicaSet() | StatefulSet() | DaemonSet():
            yield from check_runnable_template(view.spec.template)
        case ReplicationController() if not view.spec.template:
            return
        case ReplicationController() | Job():
            yield from check_runnable_template(view.spec.template)
        case _:
            return


def _changed(kind: Kind, old: Json, new: Json) -> Iterator[Cause]:
    """What may not change in an object that exists."""
    if kind is POD:
        yield from check_pod_update(old, new)
    elif kind is PRIORITY_CLASS:
        yield from check_priority_class_update(
            decode_as(PriorityClass, old), decode_as(PriorityClass, new)
        )

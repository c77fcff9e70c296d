"""Events: v1 and events.k8s.io/v1 contain the same objects, with different field names.

upstream: pkg/registry/core/event/strategy.go,
pkg/apis/core/validation/events.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.label import label_key_problems
from fairlead.apiserver.conversion.kind_conversion import EVENT_FIELDS
from fairlead.apiserver.registry.strategy import (
    FieldReader,
    GarbageCollection,
    ResourceStrategy,
    text_field,
)
from fairlead.apiserver.validation.meta.field import Causes, invalid, required
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

# --- validation ----------------------------------------------------------------------------------

NAMESPACE_MISMATCH: Final = "does not match event.namespace"
TEXT_MAX: Final = 128
NOTE_MAX: Final = 1024
_TYPES: Final = ("Normal", "Warning")
_NEVER: Final = "needs to be unset"


def check_event(obj: Json, controller: str = "reportingComponent") -> Causes:
    """Yield the errors of an event; `check_new_event` is for events created as events.k8s.io/v1.

    `controller` is the name that errors use for the field that contains the reporting controller.
    """
    if obj.get("eventTime") is None:
        yield from _check_place(obj, ("default", ""))
    else:
        yield from _check_series(obj, controller)


def check_new_event(obj: Json) -> Causes:
    """Yield the errors of a new event that a client sent as events.k8s.io/v1.

    `obj` is the same event, converted to core/v1.
    """
    if obj.get("eventTime") is None:
        yield from _check_place(obj, ("default", ""))
        yield required("eventTime")
    else:
        yield from _check_series(obj, EVENT_FIELDS["reportingComponent"])
    type_ = obj.get("type", "")
    if type_ not in _TYPES:
        yield invalid("type", "", f"has invalid value: {type_}")
    for field in ("firstTimestamp", "lastTimestamp"):
        if obj.get(field) is not None:
            yield invalid(EVENT_FIELDS[field], obj[field], _NEVER)
    if obj.get("count"):
        yield invalid(EVENT_FIELDS["count"], obj["count"], _NEVER)


def _check_place(obj: Json, for_cluster: tuple[str, ...]) -> Causes:
    """Yield an error if the event and the object that it describes are in different namespaces.

    An event about a cluster-scoped object must be in one of the namespaces `for_cluster`.
    """
    place = obj["metadata"].get("namespace", "")
    theirs = (obj.get("involvedObject") or {}).get("namespace", "")
    if (theirs and theirs != place) or (not theirs and place not in for_cluster):
        yield invalid("involvedObject.namespace", theirs, NAMESPACE_MISMATCH)


def _check_series(obj: Json, controller: str) -> Causes:
    yield from _check_place(obj, ("default", "kube-system"))
    name = obj.get("reportingComponent", "")
    if not name:
        yield required(controller)
    for problem in label_key_problems(name) if name else ():
        yield invalid(controller, name, problem)
    for field in ("reportingInstance", "action", "reason"):
        text = obj.get(field, "")
        if not text:
            yield required(field)
        if len(text) > TEXT_MAX:
            yield invalid(field, "", f"can have at most {TEXT_MAX} characters")
    if len(obj.get("message", "")) > NOTE_MAX:
        yield invalid("message", "", f"can have at most {NOTE_MAX} characters")


_INVOLVED: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)


def _event_source(obj: Json) -> str:
    # upstream: pkg/registry/core/event/strategy.go:ToSelectableFields
    return str(obj.get("source", {}).get("component", "") or obj.get("reportingComponent", ""))


_EVENT_FIELDS: Final[Mapping[str, FieldReader]] = {
    **{f"involvedObject.{key}": text_field("involvedObject", key) for key in _INVOLVED},
    "reason": text_field("reason"),
    "reportingComponent": text_field("reportingComponent"),
    "source": _event_source,
    "type": text_field("type"),
}
# upstream: pkg/apis/events/v1/conversion.go:AddFieldLabelConversionsForEvent
_NEW_EVENT_FIELDS: Final[Mapping[str, FieldReader]] = {
    **{f"regarding.{key}": text_field("involvedObject", key) for key in _INVOLVED},
    "reason": text_field("reason"),
    "reportingController": text_field("reportingComponent"),
    "type": text_field("type"),
}
STRATEGY: Final = ResourceStrategy(
    allow_create_on_update=True,
    rules=KindRules(
        accepts_any_finalizer=True,
        metadata_validations=0,
        new=json_check(check_event),
        has_immutable_fields=False,
    ),
    rules_in_version={
        "events.k8s.io/v1": KindRules(
            accepts_any_finalizer=True,
            metadata_validations=0,
            new=json_check(check_new_event),
            changed=json_check(lambda obj: check_event(obj, "reportingController")),
        )
    },
    garbage_collection=GarbageCollection.UNSUPPORTED,
    selectable_fields=_EVENT_FIELDS,
    selectable_in_version={"events.k8s.io/v1": _NEW_EVENT_FIELDS},
)

"""Converts objects between the version of a request and the internal version.

The internal version is the version in which a request is handled. For a built-in kind, it is
`Kind.stored_as`, the version in which the objects are stored. This version may differ from the
version of the request in two cases. The groups "" and events.k8s.io serve the same Events.
autoscaling/v1 and v2 serve the same HorizontalPodAutoscalers.

For a custom resource, as in upstream, the internal version is the version of the request. The
objects are converted when they are read from storage and when they are stored
(`apiextensions.conversion`). With the conversion strategy `None`, no webhook is called: `shown`
converts the object when the response to a read is encoded. `shown` changes apiVersion and leaves
out the fields that the served version lacks.

upstream: pkg/apis/events/v1/conversion.go,
apiextensions-apiserver/pkg/apiserver/customresource_handler.go:schemaCoercingConverter
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.conversion.autoscaler import new_autoscaler, old_autoscaler
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.field_location import Notes

Form = Callable[[Json], Json]

# The fields of events that have other names in events.k8s.io/v1.
EVENT_FIELDS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_EVENT_FIELDS: Final = {new: old for old, new in EVENT_FIELDS.items()}
# Fields that v1 writes even if they are empty. events.k8s.io/v1 omits them if they are empty.
_EMPTY_IN_CORE: Final = ("reportingComponent", "reportingInstance")


def is_converted(kind: Kind) -> bool:
    """Return whether the stored version of `kind` differs from the served version."""
    return kind.stored_as != kind.api_version


def shown(kind: Kind, obj: Json) -> Json:
    """Return `obj` converted to the served version `kind.api_version`.

    `obj` has the internal version. A custom resource may have any version. It is converted by the
    rules of the conversion strategy None, without a webhook.
    """
    if not is_converted(kind) or obj.get("apiVersion") == kind.api_version:
        return obj
    if kind.custom is not None:
        return _named(kind.custom.pruned(obj), kind.api_version)
    show, _ = _CONVERSIONS.get((kind.api_version, kind.kind), _AS_IT_IS)
    return _named(show(obj), kind.api_version)


def internal(kind: Kind, obj: Json) -> Json:
    """Return `obj` converted from the served version `kind.api_version` to the internal version.

    For a custom resource, the two versions are the same, so `obj` is returned unchanged.
    """
    # upstream: customresource_handler.go:getOrCreateServingInfoFor, HubGroupVersion
    if not is_converted(kind) or kind.is_custom:
        return obj
    _, store = _CONVERSIONS.get((kind.api_version, kind.kind), _AS_IT_IS)
    return _named(store(obj), kind.stored_as)


def reread(kind: Kind, obj: Json) -> Json:
    """Return the stored custom resource `obj`, adapted to the current schemas of `kind`.

    Fields that the schema of the object's own version does not declare are dropped, and absent
    fields get the defaults of this schema. Then the object is converted to the storage version. If
    the conversion needs a webhook, the object keeps its version until it is written again. If
    nothing changes, or if the object with its defaults would be too large, return `obj` itself.
    """
    # upstream: customresource_handler.go:crdConversionRESTOptionsGetter, which does this each time
    # that it reads an object from etcd
    types = dict(kind.all_types)
    own, target = types.get(obj.get("apiVersion", "")), types[kind.stored_as]
    try:
        new = obj if own is None else own.pruned_and_defaulted(obj, Notes())
    except ApiError:
        return obj
    if own is not target and kind.conversion_webhook is None:
        new = _named(target.pruned(new), kind.stored_as)
    return obj if json_equal(obj, new) else new


def _named(obj: Json, api_version: str) -> Json:
    return {**obj, "apiVersion": api_version}


def _renamed(obj: Json, names: Mapping[str, str]) -> Json:
    return {names.get(key, key): value for key, value in obj.items()}


def _new_event(event: Json) -> Json:
    made = _renamed(event, EVENT_FIELDS)
    for name in ("reportingController", "reportingInstance"):
        if not made.get(name):
            made.pop(name, None)
    return made


def _core_event(event: Json) -> Json:
    return dict.fromkeys(_EMPTY_IN_CORE, "") | _renamed(event, _CORE_EVENT_FIELDS)


# Served kind -> (conversion from the stored version, conversion to the stored version).
_CONVERSIONS: Final[Mapping[tuple[str, str], tuple[Form, Form]]] = {
    ("events.k8s.io/v1", "Event"): (_new_event, _core_event),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): (old_autoscaler, new_autoscaler),
}
_AS_IT_IS: Final[tuple[Form, Form]] = (dict, dict)

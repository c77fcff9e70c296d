"""Events: v1 and events.k8s.io/v1 show the same objects with other field names.

upstream: pkg/registry/core/event/strategy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.selectable_field import FieldReader, text_field
from fairlead.apiserver.registry.strategy import GarbageCollection, ResourceStrategy
from fairlead.apiserver.validation.core.event import check_event, check_new_event
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

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

"""The strategies of resource.k8s.io.

upstream: pkg/registry/resource/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import DEVICE_TAINT_RULE, RESOURCE_SLICE
from fairlead.apiserver.registry.strategy import (
    ONLY_MANAGED_FIELDS,
    PreparationContext,
    ResourceStrategy,
    text_field,
)
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.resource import device_taint_rule, resource_claim, resource_slice
from fairlead.apiserver.validation.resource.resource_claim import (
    check_claim_status,
    without_deallocated,
)


def _rules(check: Callable[[Json], Causes]) -> KindRules:
    return KindRules(name=dns_subdomain_problems, metadata_validations=0, new=json_check(check))


def _dated(taint: Json, context: PreparationContext) -> Json:
    return taint if taint.get("timeAdded") else {**taint, "timeAdded": _second(context)}


def _second(context: PreparationContext) -> str:
    return format_timestamp(context.now)


def _dated_slice(obj: Json, context: PreparationContext) -> Json:
    """Return the ResourceSlice `obj`; each taint without a timeAdded gets the current time.

    upstream: pkg/apis/resource/v1/defaults.go: SetDefaults_DeviceTaint
    """
    devices = obj["spec"].get("devices") or []
    if not any(not t.get("timeAdded") for one in devices for t in one.get("taints") or ()):
        return obj
    dated = [
        {**one, "taints": [_dated(taint, context) for taint in one["taints"]]}
        if one.get("taints")
        else one
        for one in devices
    ]
    return {**obj, "spec": {**obj["spec"], "devices": dated}}


def _dated_rule(obj: Json, context: PreparationContext) -> Json:
    """Return the DeviceTaintRule `obj`; a taint without a timeAdded gets the current time."""
    spec = obj["spec"]
    return {**obj, "spec": {**spec, "taint": _dated(spec["taint"], context)}}


def _changed_rule(old: Json, new: Json, context: PreparationContext) -> Json:
    """Return `new`, with a new timeAdded if the taint's effect changed but its timeAdded did not.

    upstream: pkg/registry/resource/devicetaintrule/strategy.go: PrepareForUpdate
    """
    new = _dated_rule(new, context)
    before, after = old["spec"]["taint"], new["spec"]["taint"]
    is_same_time = before.get("timeAdded") == after["timeAdded"]
    if before.get("effect") == after.get("effect") or not is_same_time:
        return new
    taint = {**after, "timeAdded": _second(context)}
    return {**new, "spec": {**new["spec"], "taint": taint}}


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "deviceclasses.resource.k8s.io": ResourceStrategy(
        rules=_rules(resource_claim.check_class), returns_deleted_object=True
    ),
    "resourceclaims.resource.k8s.io": ResourceStrategy(
        metadata_with_status=ONLY_MANAGED_FIELDS,
        rules=replace(
            _rules(resource_claim.check_claim), subresources={"status": check_claim_status}
        ),
        returns_deleted_object=True,
        prepare_subresource={"status": lambda old, new, _: without_deallocated(old, new)},
        null_when_empty=(("spec", "devices", "requests"),),
        reset_fields={"status": (("metadata",),)},
    ),
    "resourceclaimtemplates.resource.k8s.io": ResourceStrategy(
        rules=_rules(resource_claim.check_claim_template),
        returns_deleted_object=True,
        null_when_empty=(("spec", "spec", "devices", "requests"),),
    ),
    RESOURCE_SLICE.resource: ResourceStrategy(
        rules=_rules(resource_slice.check_slice),
        returns_deleted_object=True,
        prepare_for_create=_dated_slice,
        prepare_for_update=lambda _, new, context: _dated_slice(new, context),
        selectable_fields={
            "spec.nodeName": text_field("spec", "nodeName"),
            "spec.driver": text_field("spec", "driver"),
        },
        unselectable_field=(
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}"
        ),
        selects_namespace=False,
    ),
    DEVICE_TAINT_RULE.resource: ResourceStrategy(
        rules=replace(
            _rules(device_taint_rule.check_rule),
            subresources={"status": device_taint_rule.check_rule_status},
        ),
        returns_deleted_object=True,
        prepare_for_create=_dated_rule,
        prepare_for_update=_changed_rule,
        metadata_with_status=ONLY_MANAGED_FIELDS,
        reset_fields={"status": (("metadata",),)},
    ),
}

"""Pods: initial status, graceful deletion, and selectable fields.

upstream: pkg/registry/core/pod/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.pods.qos import qos_class
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.deletion import mark_for_deletion
from fairlead.apiserver.registry.strategies.core.match_label_keys import with_label_keys
from fairlead.apiserver.registry.strategy import (
    MirroredField,
    PreparationContext,
    ResourceStrategy,
    text_field,
)
from fairlead.apiserver.registry.warning.pod import template_warnings
from fairlead.apiserver.registry.warning.workload import IN_HOSTNAME, name_warnings
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.validation.core.pod.spec import check_changed_pod, check_new_pod
from fairlead.apiserver.validation.core.pod.update import check_pod_update
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, view_check

FINISHED_PHASES: Final = ("Succeeded", "Failed")
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def initial_status(pod: Json, timestamp: str) -> Json:
    """Return the status of a new pod: Pending, with a condition if the pod is gated."""
    status: Json = {"phase": "Pending"}
    if pod.get("spec", {}).get("schedulingGates"):
        status["conditions"] = with_conditions((), (_GATED,), timestamp)
    return status


def merge_label_keys(pod: Json, _: PreparationContext) -> Json:
    """Return `pod` with matchLabelKeys and mismatchLabelKeys merged into its label selectors."""
    return with_label_keys(pod)


def _prepare_for_create(pod: Json, _: PreparationContext) -> Json:
    pod = with_label_keys(pod)
    schema = schema_of(POD.stored_as, POD.kind)
    if schema is not None and pod["status"].get("conditions"):
        # Imported here, because simulations create pods without conditions.
        from fairlead.apiserver.schema.incremental_decoder import changed  # noqa: PLC0415

        pod = changed(schema, None, pod)
    return {**pod, "status": {**pod["status"], "qosClass": qos_class(pod["spec"])}}


def begin_deletion(pod: Json, now: int, grace_period_s: int | None) -> Json:
    """Return `pod` marked for deletion. Only unfinished pods on a node get a grace period."""
    # upstream: pkg/registry/core/pod/strategy.go:CheckGracefulDelete
    spec = pod["spec"]
    if not spec.get("nodeName") or pod["status"].get("phase") in FINISHED_PHASES:
        grace_period_s = 0
    elif grace_period_s is None:
        grace_period_s = spec["terminationGracePeriodSeconds"]  # set by defaulting
    return mark_for_deletion(pod, now, grace_period_s)


def holds_deleted(pod: Json) -> bool:
    """Return whether the deleted `pod` is kept until its kubelet confirms the deletion."""
    return bool(pod["metadata"].get("deletionGracePeriodSeconds"))


def _warnings(old: Json | None, new: Json) -> Iterator[str]:
    if old is None:
        yield from name_warnings(new["metadata"]["name"], IN_HOSTNAME)
        yield from template_warnings("", new)


def _pod_ip(obj: Json) -> str:
    # upstream: pkg/registry/core/pod/strategy.go:ToSelectableFields
    ips = obj.get("status", {}).get("podIPs", ())
    return str(ips[0].get("ip", "")) if ips else ""


RULES: Final = KindRules(
    name=dns_subdomain_problems,
    new=check_new_pod,
    changed=view_check(check_changed_pod),
    update=check_pod_update,
)
STRATEGY: Final = ResourceStrategy(
    initial_status=initial_status,
    prepare_for_create=_prepare_for_create,
    metadata_with_status=("annotations", "finalizers", "labels", "managedFields"),
    server_status=("qosClass",),
    rules=RULES,
    begin_deletion=begin_deletion,
    holds_deleted=holds_deleted,
    returns_deleted_object=True,
    # upstream: pkg/apis/core/v1/conversion.go:Convert_v1_PodStatus_To_core_PodStatus
    mirrored=MirroredField("status", "podIP", "podIPs", "ip"),
    warnings=_warnings,
    selectable_fields={
        "spec.nodeName": text_field("spec", "nodeName"),
        "spec.restartPolicy": text_field("spec", "restartPolicy"),
        "spec.schedulerName": text_field("spec", "schedulerName"),
        "spec.serviceAccountName": text_field("spec", "serviceAccountName"),
        "spec.hostNetwork": text_field("spec", "hostNetwork", absent="false"),
        "status.phase": text_field("status", "phase"),
        "status.podIP": _pod_ip,
        "status.podIPs": _pod_ip,
        "status.nominatedNodeName": text_field("status", "nominatedNodeName"),
    },
    reset_fields={"status": (("metadata", "ownerReferences"),)},
)

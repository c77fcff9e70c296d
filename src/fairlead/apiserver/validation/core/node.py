"""Validates Nodes: their taints, resources and pod CIDRs.

As in upstream, `check_node` reports the errors of taints under the path metadata.taints.

upstream: pkg/apis/core/validation/validation.go:ValidateNode
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import Node, Taint
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.core.pod.spec import TAINT_EFFECTS
from fairlead.apiserver.validation.core.resource import check_quantities
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.ip import check_cidr

CONDITION_STATUSES: Final = ("False", "True", "Unknown")
UNIQUE: Final = "taints must be unique by key and effect pair"


def _twice(field: str, taint: Taint) -> Cause:
    since = taint.time_added or None
    shown = {
        "Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": since,
    }  # fmt: skip
    found = duplicate(field, shown)
    return Cause(found.reason, f"{found.message}: {UNIQUE}", field)


def check_node(obj: Json, view: Node) -> Causes:
    """Yield the errors of a Node."""
    # upstream: validation.go:ValidateNode, which reports taints under metadata.taints
    yield from _check_scheduled_node(view, "metadata.taints")
    ranges = obj["spec"].get("podCIDRs") or []
    for index, text in enumerate(ranges):
        yield from check_cidr(f"spec.podCIDRs[{index}]", text)
    families = [":" in text for text in ranges]
    if len(set(families)) < len(families):
        why = "may specify no more than one CIDR for each IP family"
        yield invalid("spec.podCIDRs", ranges, why)


def check_scheduled_node(node: Node) -> Causes:
    """Yield the errors in those fields of a Node that the scheduler reads.

    Errors in taints have the path spec.taints. `check_node` reports them under metadata.taints
    instead, as upstream does.
    """
    yield from _check_scheduled_node(node, "spec.taints")


def _check_scheduled_node(node: Node, taints: str) -> Causes:
    """Yield the errors of `check_scheduled_node`, with `taints` as the path of the taints."""
    yield from check_taints(node.spec.taints, taints)
    yield from check_quantities("status.capacity", node.status.capacity, child=".{}")
    yield from check_quantities("status.allocatable", node.status.allocatable, child=".{}")
    for index, found in enumerate(node.status.conditions):
        if found.status and found.status not in CONDITION_STATUSES:
            field = f"status.conditions[{index}].status"
            yield not_supported(field, found.status, CONDITION_STATUSES)


def check_taints(taints: Iterable[Taint], path: str) -> Causes:
    """Yield the errors of the taints of a Node, which are at `path`."""
    seen: dict[tuple[str, str], None] = {}
    for index, taint in enumerate(taints):
        field = f"{path}[{index}]"
        for problem in label_key_problems(taint.key):
            yield invalid(f"{field}.key", taint.key, problem)
        problems = label_value_problems(taint.value)
        if problems:
            yield invalid(f"{field}.value", taint.value, ";".join(problems))
        if not taint.effect:
            yield required(f"{field}.effect")
        elif taint.effect not in TAINT_EFFECTS:
            yield not_supported(f"{field}.effect", taint.effect, TAINT_EFFECTS)
        if (taint.key, taint.effect) in seen:
            yield _twice(field, taint)
        seen[taint.key, taint.effect] = None


def check_node_update(old: Json, new: Json) -> Causes:
    """Yield errors if an update changes immutable fields of a Node."""
    had, wants = old["spec"].get("podCIDRs") or [], new["spec"].get("podCIDRs") or []
    changed = [one != other for one, other in zip(had, wants, strict=False)]
    why = 'node updates may not change podCIDR except from "" to valid'
    for _ in range(sum(changed) if len(had) == len(wants) else bool(had)):
        yield forbidden("spec.podCIDRs", why)
    had, wants = old["spec"].get("providerID"), new["spec"].get("providerID")
    if had and had != wants:
        why = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", why)
    if old["spec"].get("externalID", "") != new["spec"].get("externalID", ""):
        yield forbidden("spec.externalID", "may not be updated")

"""Nodes: their taints and what they have.

upstream: pkg/apis/core/validation/validation.go:ValidateNode, which writes taints under metadata
"""

from __future__ import annotations

from typing import Final

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import Node, Taint
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.pod import TAINT_EFFECTS
from fairlead.apiserver.validation.resource import check_quantities

UNIQUE: Final = "taints must be unique by key and effect pair"


def _twice(field: str, taint: Taint) -> Cause:
    since = taint.time_added or None
    shown = {
        "Key": taint.key, "Value": taint.value, "Effect": taint.effect, "TimeAdded": since,
    }  # fmt: skip
    found = duplicate(field, shown)
    return Cause(found.reason, f"{found.message}: {UNIQUE}", field)


def check_node(node: Node) -> Causes:
    """A node."""
    seen: dict[tuple[str, str], None] = {}
    for place, taint in enumerate(node.spec.taints):
        field = f"metadata.taints[{place}]"
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
    yield from check_quantities("status.capacity", node.status.capacity, child=".{}")
    yield from check_quantities("status.allocatable", node.status.allocatable, child=".{}")

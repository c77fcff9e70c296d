"""Nodes: their taints and what they have.

upstream: pkg/apis/core/validation/validation.go:ValidateNode, which writes taints under metadata
"""

from __future__ import annotations

from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import Node
from fairlead.apiserver.validation.field import Causes, duplicate, invalid, not_supported
from fairlead.apiserver.validation.pod import TAINT_EFFECTS
from fairlead.apiserver.validation.resource import check_quantities


def check_node(node: Node) -> Causes:
    """A node."""
    seen: dict[tuple[str, str], None] = {}
    for place, taint in enumerate(node.spec.taints):
        field = f"metadata.taints[{place}]"
        for problem in label_key_problems(taint.key):
            yield invalid(f"{field}.key", taint.key, problem)
        for problem in label_value_problems(taint.value):
            yield invalid(f"{field}.value", taint.value, problem)
        if taint.effect not in TAINT_EFFECTS:
            yield not_supported(f"{field}.effect", taint.effect, TAINT_EFFECTS)
        if (taint.key, taint.effect) in seen:
            yield duplicate(field, f"{taint.key}:{taint.effect}")
        seen[taint.key, taint.effect] = None
    yield from check_quantities("status.capacity", node.status.capacity, child=".{}")
    yield from check_quantities("status.allocatable", node.status.allocatable, child=".{}")

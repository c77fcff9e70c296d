"""Validates updates of a pod's status.

A simulation writes thousands of statuses per second, so only the written fields are validated.

upstream: pkg/apis/core/validation/validation.go:ValidatePodStatusUpdate
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.core.pod.spec import PHASES
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, not_supported
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.object_meta import check_timestamp

CHECKED_FIELDS: Final = frozenset({"phase", "nominatedNodeName", "startTime"})
ALREADY_BOUND: Final = "may not be set on pods that are already bound to a node"


def check_pod_status(spec: Json, fields: Mapping[str, Any]) -> Causes:
    """Yield the errors of `fields`, which a write merges into the status of a pod.

    `spec` is the spec of this pod.
    """
    phase = fields.get("phase")
    if phase is not None and phase not in PHASES:
        yield not_supported("status.phase", phase, PHASES)
    node = fields.get("nominatedNodeName")
    if node:
        yield from _check_nomination("status.nominatedNodeName", spec, node)
    start = fields.get("startTime")
    if start is not None:
        yield from check_timestamp("status.startTime", str(start))


def _check_nomination(field: str, spec: Json, node: Any) -> Causes:
    if not isinstance(node, str):
        yield invalid(field, node, "must be a name")
        return
    for problem in dns_subdomain_problems(node):
        yield invalid(field, node, problem)
    if spec.get("nodeName"):
        yield forbidden(field, ALREADY_BOUND)

"""The reasons for which scale-up skips node groups.

upstream: core/scaleup/orchestrator/{orchestrator,skippedreasons}.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import QuotaTracker
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template
from fairlead.engine.core.instant import Instant

BACKOFF: Final = "in backoff after failed scale-up"
MAX_SIZE_REACHED: Final = "max node group size reached"
QUOTA_EXCEEDED: Final = 'exceeded quota: "cluster-wide", resources: '
NOT_READY: Final = "not ready for scale-up"
ATOMIC_EXCEEDS_LIMIT: Final = "atomic scale-up exceeds cluster node count limit"


def unsafe_reason(context: AutoscalingContext, group: NodeGroup, now: Instant) -> str | None:
    """Return the reason why `group` must not grow in its current state; None if it may grow."""
    if not context.registry.is_group_healthy(group.id):
        return NOT_READY
    return BACKOFF if context.registry.is_backed_off(group.id, now) else None


def skip_reason(
    context: AutoscalingContext,
    group: NodeGroup,
    templates: Mapping[str, Template],
    quota: QuotaTracker,
    now: Instant,
) -> str | None:
    """Return the reason why scale-up skips `group`; None if scale-up considers it."""
    reason = unsafe_reason(context, group, now)
    if reason is not None:
        return reason
    target, wanted = group.target_size(), 1
    if target >= group.max_size:
        return MAX_SIZE_REACHED
    if context.group_options(group).zero_or_max_node_scaling:
        wanted = group.max_size - target
        limit = context.options.max_nodes_total
        if limit and len(context.snapshot.node_names) + wanted > limit:
            return ATOMIC_EXCEEDS_LIMIT
    template = templates.get(group.id)
    if template is None:
        return NOT_READY
    exceeded = quota.exceeded(group.id, template.node, wanted)
    return quota_reason(exceeded) if exceeded else None


def quota_reason(resources: list[str]) -> str:
    """Return the reason to skip a group that would exceed the cluster's limits of `resources`."""
    return f"{QUOTA_EXCEEDED}{', '.join(resources)}"

"""execute_scale_ups: increases the target sizes of node groups, one group after the other.

upstream: core/scaleup/orchestrator/executor.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    ProviderError,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL, WARNING
from fairlead.engine.autoscaling.cluster_autoscaler.nodegroupset.balancing import ScaleUpInfo
from fairlead.engine.core.instant import Instant

_CLOUD_PROVIDER_ERROR: Final = "cloudProviderError"


class ExecutionError(Exception):
    """The provider refused to grow `group`. Groups that have already grown keep their new sizes."""

    def __init__(self, group: str, problem: str) -> None:
        """`group` is the id of the node group; `problem` is the provider's error message."""
        super().__init__(f"failed to increase node group size: {problem}")
        self.group = group
        self.type = _CLOUD_PROVIDER_ERROR


def execute_scale_ups(
    context: AutoscalingContext, infos: Sequence[ScaleUpInfo], now: Instant
) -> None:
    """Grow the groups in the order of `infos`.

    Raises ExecutionError if the provider refuses to grow a group; that group is put into backoff.
    """
    groups, events = context.groups_by_id(), context.events
    for info in infos:
        group, increase = groups[info.group], info.new - info.current
        sizes = f"{info.new} instead of {info.current} (max: {info.maximum})"
        message = f"Scale-up: setting group {info.group} size to {sizes}"
        events.on_status(NORMAL, "ScaledUpGroup", message)
        try:
            group.increase_size(increase, now)
        except ProviderError as failure:
            message = f"Scale-up failed for group {info.group}: {failure}"
            events.on_status(WARNING, "FailedToScaleUpGroup", message)
            context.registry.register_failed_scale_up(
                info.group, now, _CLOUD_PROVIDER_ERROR, str(failure)
            )
            raise ExecutionError(info.group, str(failure)) from failure
        context.registry.register_scale_up(group, increase, now)
        context.scale_up_times[info.group] = now
        message = f"Scale-up: group {info.group} size set to {sizes}"
        events.on_status(NORMAL, "ScaledUpGroup", message)

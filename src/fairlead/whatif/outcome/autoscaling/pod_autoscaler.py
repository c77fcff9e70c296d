"""The effects of HorizontalPodAutoscalers in a run: replica changes, reasons for inactivity."""

from __future__ import annotations

from msgspec import Struct

from fairlead.engine.core.instant import Instant


class ReplicaChange(Struct, frozen=True):
    """A change of a workload's replicas from `before` to `after`, and the autoscaler's reason."""

    at: Instant
    before: int
    after: int
    reason: str


class PodAutoscalerOutcome(Struct, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler, its target (such as `Deployment web`), limits and replica changes.

    `replicas` is the number at the end, None if the target has no scale. `inactive_reason` and
    `inactive_message` are those of the condition ScalingActive=False or AbleToScale=False, "" if
    both conditions are true.
    """

    autoscaler: str
    target: str
    minimum: int
    maximum: int
    replicas: int | None
    changes: tuple[ReplicaChange, ...]
    inactive_reason: str = ""
    inactive_message: str = ""

    @property
    def replicas_before(self) -> int | None:
        """The number of replicas at the start; None if the target has no scale."""
        return self.changes[0].before if self.changes else self.replicas

    @property
    def lowest(self) -> int | None:
        """The lowest number of replicas during the run; None if the target has no scale."""
        return min(self._numbers(), default=None)

    @property
    def highest(self) -> int | None:
        """The highest number of replicas during the run; None if the target has no scale."""
        return max(self._numbers(), default=None)

    def _numbers(self) -> list[int]:
        stated = (self.replicas_before, *(one.after for one in self.changes))
        return [one for one in stated if one is not None]

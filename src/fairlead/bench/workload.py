"""Workload: one benchmark, as data.

The function `build` of a Workload returns a Setting with these fields:

objects     the initial objects
initial     pods that are scheduled before the measurement
measured    pods that are created together; the measurement is the time until they are bound
churn       a function that takes the number of a churn step, counted from 0, and returns its
            stimuli; one step runs before each block of `churn_every` scheduling cycles
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from fairlead.api.objects import ApiObject, Pod
from fairlead.engine.compose import build_scheduler_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.engine import Engine

Churn = Callable[[int], Iterable[Stimulus]]


class Setting(Struct, frozen=True):
    """The objects and pods of a workload; the module's docstring describes the fields."""

    objects: list[ApiObject]
    initial: list[Pod]
    measured: list[Pod]
    churn: Churn | None = None


def _scheduler_engine() -> Engine:
    return build_scheduler_engine(EngineConfig(), SilentReporter())


class Workload(Struct, frozen=True):
    """A benchmark workload.

    If there are many measured pods, only a sample of the cycles is timed, unless `has_long_cycles`
    is set.
    """

    name: str
    # The rate in pods/s that upstream requires or, for Batch workloads, that kube-batch reaches;
    # None if there is no such rate.
    threshold: float | None
    build: Callable[[], Setting]
    # Upstream's interval between churn steps, in seconds. Here, one churn step runs for every
    # `churn_interval_s` * `threshold` measured pods. So the number of churn steps is the same as in
    # an upstream run that just reaches the threshold.
    churn_interval_s: float | None = None
    engine: Callable[[], Engine] = _scheduler_engine
    is_long: bool = False  # whether the workload runs only if it is requested by name
    # Set for the batch scheduler: a session is a long cycle, so timing it adds little to its
    # duration.
    has_long_cycles: bool = False

    @property
    def churn_every(self) -> int | None:
        """Number of scheduling cycles between two churn steps; None if there are no churn steps.

        Each cycle handles one pod.
        """
        if self.churn_interval_s is None or self.threshold is None:
            return None
        return max(1, round(self.churn_interval_s * self.threshold))

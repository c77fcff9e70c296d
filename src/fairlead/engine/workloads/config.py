"""Settings of the workload controllers; the defaults are upstream's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.engine.core.instant import DurationNs, seconds

# upstream: client-go/util/workqueue/default_rate_limiters.go:DefaultTypedControllerRateLimiter
RETRY_INITIAL_DEFAULT: Final = seconds(0.005)
RETRY_MAX_DEFAULT: Final = seconds(1_000)
PROVISION_DELAY_DEFAULT: Final = seconds(1)
VOLUME_RETRY_DEFAULT: Final = seconds(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadsConfig:
    """How the workload controllers work.

    An owner whose pods are refused waits before it tries again: doubling waits. `is_observed`:
    somebody reads what is only written to be read (status, revisions, events of creations), as in
    a local control plane; a simulation decides the same without it. CronJobs are only run where
    somebody looks, or with `runs_cron_jobs`: simulated Jobs seldom end by themselves.
    """

    retry_initial: DurationNs = RETRY_INITIAL_DEFAULT
    retry_max: DurationNs = RETRY_MAX_DEFAULT
    is_observed: bool = False
    runs_cron_jobs: bool = False

    def retry_after(self, failures: int) -> DurationNs:
        """The wait after the `failures`-th refusal in a row (1, 2, ...)."""
        doublings = min(failures - 1, self.retry_max.bit_length())
        return min(self.retry_initial << doublings, self.retry_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumesConfig:
    """How long it takes to bind a claim to a volume, to make one, and to try again."""

    bind_delay: DurationNs = 0
    provision_delay: DurationNs = PROVISION_DELAY_DEFAULT
    retry_after: DurationNs = VOLUME_RETRY_DEFAULT

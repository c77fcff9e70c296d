"""Settings of the workload controllers and the volume controller."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, seconds

# upstream: client-go/util/workqueue/default_rate_limiters.go:DefaultTypedControllerRateLimiter
RETRY_INITIAL_DEFAULT: Final = seconds(0.005)
RETRY_MAX_DEFAULT: Final = seconds(1_000)
PROVISION_DELAY_DEFAULT: Final = seconds(1)
VOLUME_RETRY_DEFAULT: Final = seconds(1)


class WorkloadsConfig(Struct, frozen=True, kw_only=True):
    """Settings of the workload controllers.

    `retry_initial` and `retry_max` (ns) bound the exponential backoff after a refused write. If
    `serves_clients` is set, API clients read the objects: status, events and revisions are written,
    and CronJobs, endpoints and adoption run (see `environment`). `follow_up_interval` (ns) is the
    time between two follow-ups of an owner with many pods (see `FollowUpPace`).
    `max_unavailable_stateful_set` is the feature gate MaxUnavailableStatefulSet.
    """

    retry_initial: DurationNs = RETRY_INITIAL_DEFAULT
    retry_max: DurationNs = RETRY_MAX_DEFAULT
    serves_clients: bool = False
    follow_up_interval: DurationNs = 0
    max_unavailable_stateful_set: bool = False

    def retry_after(self, failures: int) -> DurationNs:
        """Return the backoff (ns) after the given number of consecutive failures (1, 2, ...)."""
        doublings = min(failures - 1, self.retry_max.bit_length())
        return min(self.retry_initial << doublings, self.retry_max)


class VolumesConfig(Struct, frozen=True, kw_only=True):
    """Delays (ns) for binding a claim, provisioning a volume, and retrying.

    If `provisions` is False, `Volumes` only binds claims; external provisioners create volumes.
    """

    bind_delay: DurationNs = 0
    provision_delay: DurationNs = PROVISION_DELAY_DEFAULT
    retry_after: DurationNs = VOLUME_RETRY_DEFAULT
    provisions: bool = True

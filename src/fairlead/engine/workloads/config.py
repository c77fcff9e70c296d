"""Settings of the workload controllers and the volume controller."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, seconds

# upstream: client-go/util/workqueue/default_rate_limiters.go:DefaultTypedControllerRateLimiter
RETRY_INITIAL_DEFAULT: Final = seconds(0.005)
RETRY_MAX_DEFAULT: Final = seconds(1_000)
# upstream: pkg/controller/job/job_controller.go:DefaultJobApiBackOff, MaxJobApiBackOff
JOB_RETRY_INITIAL: Final = seconds(1)
JOB_RETRY_MAX: Final = seconds(60)
JOB_BATCH_PERIOD: Final = seconds(1)  # upstream: job_controller.go:syncJobBatchPeriod
PROVISION_DELAY_DEFAULT: Final = seconds(1)
# upstream: pkg/controller/volume/persistentvolume/config: PVClaimBinderSyncPeriod
VOLUME_RESYNC_DEFAULT: Final = seconds(15)


class WorkloadsConfig(Struct, frozen=True, kw_only=True):
    """Settings of the workload controllers.

    The backoff after a refused write is exponential. After refused writes of a Job's pods, the
    bounds of the backoff are fixed.
    """

    # The least backoff after a refused write (ns).
    retry_initial: DurationNs = RETRY_INITIAL_DEFAULT
    retry_max: DurationNs = RETRY_MAX_DEFAULT  # the greatest backoff after a refused write (ns)
    # Whether the controllers write status, events and revisions for API clients. CronJobs,
    # endpoints and adoption then run as well (see `environment`). A simulation with CronJobs also
    # sets this, because the CronJob controller reads the status of Jobs.
    serves_clients: bool = False
    # Whether objects may be missing, such as the owners of pods. Every simulation sets this. It has
    # an effect only if `serves_clients` is also set.
    starts_from_dump: bool = False
    # For owners with many pods (see `FollowUpPace`): the shortest time (ns) between two reactions
    # to pod changes of such an owner.
    follow_up_interval: DurationNs = 0
    max_unavailable_stateful_set: bool = False  # the feature gate MaxUnavailableStatefulSet
    # Generated names, for example of the pods of a ReplicaSet, are derived from serial numbers.
    # Each owner has its own serial numbers, none below this number. A process that continues with
    # stored objects must set a larger number than before. Otherwise, names repeat.
    first_serial: int = 0
    seed: int = 0  # determines the order in which a DaemonSet updates its pods

    def retry_after(self, failures: int) -> DurationNs:
        """Return the backoff (ns) after the given number of consecutive failures (1, 2, ...)."""
        return doubled(self.retry_initial, self.retry_max, failures)

    def pod_retry_after(self, owner_kind: str, failures: int) -> DurationNs:
        """Return the backoff (ns) after the owner's writes of pods were refused `failures` times.

        `owner_kind` is the kind of the owner.
        """
        if owner_kind == "Job":
            return doubled(JOB_RETRY_INITIAL, JOB_RETRY_MAX, failures)
        return self.retry_after(failures)


def doubled(initial: DurationNs, maximum: DurationNs, failures: int) -> DurationNs:
    """Return the delay after `failures` (1, 2, ...): `initial`, doubled by each further failure."""
    return min(initial << min(failures - 1, maximum.bit_length()), maximum)


class VolumesConfig(Struct, frozen=True, kw_only=True):
    """Delays (ns) for binding a claim, provisioning a volume, and retrying.

    A refused write of a claim or a volume is repeated after `resync_period`. The creation of claims
    and of provisioned volumes is repeated with exponential backoff (`RefusalBackoff`).

    If `provisions` is False, `Volumes` only binds claims; external provisioners create volumes.
    """

    bind_delay: DurationNs = 0
    provision_delay: DurationNs = PROVISION_DELAY_DEFAULT
    resync_period: DurationNs = VOLUME_RESYNC_DEFAULT
    provisions: bool = True

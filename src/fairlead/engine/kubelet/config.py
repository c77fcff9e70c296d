"""KubeletConfig: timing and behaviour of simulated kubelets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.kubelet.eviction_config import EvictionConfig

START_DELAY_DEFAULT: Final = seconds(1)
# upstream: pkg/kubelet/kubelet.go: nodeLeaseRenewIntervalFraction of nodeLeaseDurationSeconds
LEASE_PERIOD_DEFAULT: Final = seconds(10)


class StopAfter(Struct, frozen=True):
    """Pods stop `duration` ns after their termination begins."""

    duration: DurationNs


class StopAfterShare(Struct, frozen=True):
    """Pods stop after `share` (0 to 1) of their grace period."""

    share: float


class KubeletConfig(Struct, frozen=True, kw_only=True):
    """Settings of all simulated kubelets. Durations are in ns.

    `start_delay` is the time from the binding until the pod is Running, `ready_delay` the time from
    then until it is ready. `stop` determines when the containers of a terminating pod end, at most
    after its grace period; `removal_delay` is the time from then until the object is deleted. For
    single pods, `start_delays` can return another start delay, and `removal_delays` the whole time
    from the deletion request to the removal (None: no override). If `tends_pods` is False, another
    program starts and stops pods.

    A pod runs for the first of these times that is not None: `input_duration` (only for pods that
    end with their stdin, see `reads_to_the_end`), the result of `run_durations`, and `job_duration`
    (only for pods with restartPolicy Never or OnFailure). If there is none, the pod runs forever.

    Annotations of the pod take precedence over all of these durations, except over the result of
    `removal_delays`.

    `lease_period` is the time between renewals of a node's lease. If `promises_renewals` is set,
    the lease states the period and is written once, for controllers that can read that
    (`api/lease.py`); otherwise each renewal is written. If `renews_leases` is False, nodes have no
    leases and post their status every `lease_period` instead.

    With `accepts_pods`, the status shows when a node has accepted a pod or observed a change. With
    `heeds_gates`, readiness gates count. `nodes` are the names of the nodes that have a kubelet
    (None: all nodes). `eviction` configures node-pressure eviction.
    """

    start_delay: DurationNs = START_DELAY_DEFAULT
    ready_delay: DurationNs = 0
    start_delays: Callable[[Pod], DurationNs | None] | None = None
    lease_period: DurationNs = LEASE_PERIOD_DEFAULT
    promises_renewals: bool = True
    renews_leases: bool = True
    stop: StopAfter | StopAfterShare = StopAfterShare(1.0)
    removal_delay: DurationNs = 0
    removal_delays: Callable[[Pod], DurationNs | None] | None = None
    tends_pods: bool = True
    accepts_pods: bool = False
    heeds_gates: bool = False
    input_duration: DurationNs | None = None
    job_duration: DurationNs | None = None
    run_durations: Callable[[Pod], DurationNs | None] | None = None
    nodes: tuple[str, ...] | None = None
    eviction: EvictionConfig = field(default_factory=EvictionConfig)

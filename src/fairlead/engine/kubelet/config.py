"""Timing and behaviour of simulated kubelets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.kubelet.eviction_config import EvictionConfig

START_DELAY_DEFAULT: Final = seconds(1)
# upstream: pkg/kubelet/kubelet.go: nodeLeaseRenewIntervalFraction of nodeLeaseDurationSeconds
LEASE_PERIOD_DEFAULT: Final = seconds(10)


@dataclass(frozen=True, slots=True)
class StopAfter:
    """Pods stop `duration` after their termination begins."""

    duration: DurationNs


@dataclass(frozen=True, slots=True)
class StopAfterShare:
    """Pods stop after this share (0..1) of their grace period."""

    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfig:
    """Settings of all simulated kubelets.

    `start_delay` passes from the binding until the pod is Running, `ready_delay` from there until
    it is ready; `start_delays` knows the first one of certain pods (None: of no other).
    `lease_period` is how often nodes renew their leases. If `promises_renewals` is set, the
    lease states the period and is written once, for controllers that can read that
    (`api/lease.py`); otherwise each renewal is written. Without `renews_leases`, nodes have no
    leases and post their status with that period instead. `stop` determines when the containers
    of a terminating pod end, at most after its grace period; `removal_delay` passes from then
    until the object is deleted. `removal_delays` knows for certain pods the time from the request
    to the deletion, whatever their grace period (None: of no other). Without `tends_pods`, another
    program starts and stops pods.
    With `accepts_pods`, the status shows when a node has accepted a pod or observed a change;
    with `heeds_gates`, readiness gates count. `input_duration` is how long pods with
    `stdinOnce` run, `job_duration` how long pods with restartPolicy Never or OnFailure run
    (None: forever, like others); `run_durations` knows how long certain pods run (None: not this
    pod). An annotation of the pod takes precedence. `nodes` are the nodes with a kubelet, None for
    all. `eviction` configures node-pressure eviction.
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

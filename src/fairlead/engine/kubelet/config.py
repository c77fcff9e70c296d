"""Timing and behaviour of simulated kubelets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

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
    it is ready. `lease_period` is how often nodes renew their leases; with `promises_renewals` that
    is written once, for controllers that can read it (`api/lease.py`), else each time. Without
    `renews_leases` nodes have no leases, and post their status as often instead. `stop` says
    when the containers of a terminating pod have ended, never later than its grace period;
    `removal_delay` passes from there until the object is gone. Without `tends_pods` another
    program starts and stops them; with `accepts_pods` the status states that a node has accepted a
    pod or observed a change; with `heeds_gates` readiness gates count. `input_duration` is how long
    pods with `stdinOnce` run, `job_duration` how long those with restartPolicy Never or OnFailure
    run (None: without end, as others); an annotation of the pod takes precedence. `nodes` are those
    that have a kubelet, None for all. `eviction` configures node-pressure eviction.
    """

    start_delay: DurationNs = START_DELAY_DEFAULT
    ready_delay: DurationNs = 0
    lease_period: DurationNs = LEASE_PERIOD_DEFAULT
    promises_renewals: bool = True
    renews_leases: bool = True
    stop: StopAfter | StopAfterShare = StopAfterShare(1.0)
    removal_delay: DurationNs = 0
    tends_pods: bool = True
    accepts_pods: bool = False
    heeds_gates: bool = False
    input_duration: DurationNs | None = None
    job_duration: DurationNs | None = None
    nodes: tuple[str, ...] | None = None
    eviction: EvictionConfig = field(default_factory=EvictionConfig)

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

    `start_delay` is the time from the binding until the pod is Running. `ready_delay` is the time
    from Running until the pod is ready. `stop` determines when the containers of a terminating pod
    end. The containers end no later than the end of the pod's grace period. `removal_delay` is the
    time from the end of the containers until the object is deleted.

    If `start_delays` returns a time for a pod, this time replaces `start_delay`. If
    `removal_delays` returns a time for a pod, this time replaces `stop` and `removal_delay`. The
    pod is then removed that long after the kubelet observes the deletion request. If `manages_pods`
    is False, another program starts and stops pods.

    Three fields determine how long a pod runs, in this order of precedence: `input_duration`,
    `run_durations` and `job_duration`. `input_duration` is only for pods that end when their stdin
    ends (see `reads_to_the_end`). `job_duration` is only for pods with restartPolicy Never or
    OnFailure. If no field states a duration for a pod, the pod runs forever.

    The durations in a pod's annotations (`engine.kubelet.annotation`) take precedence over all
    durations of this class except the result of `removal_delays`.

    `ignores_deadline` returns whether the kubelet ignores the activeDeadlineSeconds of a pod.

    If `never_starts` returns True for a pod that does not run yet, the pod's containers fail to
    start, and the pod stays Pending. If `never_stops` returns True for a terminating pod, the
    kubelet cannot stop its containers. The pod then stays until its machine stops.

    `lease_period` is the time between renewals of a node's lease. If `annotates_renewals` is set,
    the kubelet writes the lease once, with the period in an annotation. Readers of the lease then
    compute the time of the last renewal (`api/lease.py`). Otherwise the kubelet writes each
    renewal. If `renews_leases` is False, nodes have no leases, and kubelets post the status of
    their nodes every `lease_period` instead.

    If `spaces_rejections` is set and the pods of a controller are rejected repeatedly, the kubelet
    reports each further rejection with a delay (`repeated_rejection`).

    If `accepts_pods` is set, the kubelet also writes the status of pods that it accepts or is about
    to remove, and of pods with a changed specification. If `applies_readiness_gates` is set, a pod
    is ready only if all of its readiness gates are true and its status shows no stopped container.
    If `waits_for_claims` is set, a pod does not start before its PersistentVolumeClaims are bound
    (`claim_mount`). `nodes` are the names of the nodes that have a kubelet (None: all nodes).
    `eviction` configures node-pressure eviction.
    """

    start_delay: DurationNs = START_DELAY_DEFAULT
    ready_delay: DurationNs = 0
    start_delays: Callable[[Pod], DurationNs | None] | None = None
    lease_period: DurationNs = LEASE_PERIOD_DEFAULT
    annotates_renewals: bool = True
    renews_leases: bool = True
    stop: StopAfter | StopAfterShare = StopAfterShare(1.0)
    removal_delay: DurationNs = 0
    removal_delays: Callable[[Pod], DurationNs | None] | None = None
    manages_pods: bool = True
    spaces_rejections: bool = True
    accepts_pods: bool = False
    applies_readiness_gates: bool = False
    waits_for_claims: bool = False
    input_duration: DurationNs | None = None
    job_duration: DurationNs | None = None
    run_durations: Callable[[Pod], DurationNs | None] | None = None
    ignores_deadline: Callable[[Pod], bool] | None = None
    never_starts: Callable[[Pod], bool] | None = None
    never_stops: Callable[[Pod], bool] | None = None
    nodes: tuple[str, ...] | None = None
    eviction: EvictionConfig = field(default_factory=EvictionConfig)

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

    The containers of a terminating pod end no later than the end of the pod's grace period. Three
    fields determine how long a pod runs, in this order of precedence: `input_duration`,
    `run_durations` and `job_duration`. If no field states a duration for a pod, the pod runs
    forever. The durations in a pod's annotations (`engine.kubelet.annotation`) take precedence over
    all durations of this class except the result of `removal_delays`.
    """

    start_delay: DurationNs = START_DELAY_DEFAULT  # from the binding until the pod is Running
    ready_delay: DurationNs = 0  # from Running until the pod is ready
    # If this returns a time, it replaces `start_delay`.
    start_delays: Callable[[Pod], DurationNs | None] | None = None
    lease_period: DurationNs = LEASE_PERIOD_DEFAULT  # the time between renewals of a node's lease
    # Whether the kubelet writes the lease only once, with the period in an annotation. Readers of
    # the lease then compute the time of the last renewal (`api/lease.py`). Otherwise the kubelet
    # writes each renewal.
    annotates_renewals: bool = True
    # If False, nodes have no leases, and kubelets post the status of their nodes every
    # `lease_period` instead.
    renews_leases: bool = True
    # Determines when the containers of a terminating pod end.
    stop: StopAfter | StopAfterShare = StopAfterShare(1.0)
    removal_delay: DurationNs = 0  # from the end of the containers until the object is deleted
    # If this returns a time for a pod, the time replaces `stop` and `removal_delay`. The pod is
    # then removed that long after the kubelet observes the deletion request.
    removal_delays: Callable[[Pod], DurationNs | None] | None = None
    manages_pods: bool = True  # if False, another program starts and stops pods
    # Whether, if the pods of a controller are rejected repeatedly, the kubelet reports each further
    # rejection with a delay (`repeated_rejection`).
    spaces_rejections: bool = True
    # Whether the kubelet also writes the status of pods that it accepts or is about to remove, and
    # of pods with a changed specification.
    accepts_pods: bool = False
    # Whether a pod is ready only if all of its readiness gates are true and its status shows no
    # stopped container.
    applies_readiness_gates: bool = False
    # Whether a pod starts only after its PersistentVolumeClaims are bound (`claim_mount`).
    waits_for_claims: bool = False
    # Only for pods that end when their stdin ends (see `reads_to_the_end`).
    input_duration: DurationNs | None = None
    job_duration: DurationNs | None = None  # only for pods with restartPolicy Never or OnFailure
    run_durations: Callable[[Pod], DurationNs | None] | None = None
    # Returns whether the kubelet ignores the activeDeadlineSeconds of a pod.
    ignores_deadline: Callable[[Pod], bool] | None = None
    # If this returns True for a pod that does not run yet, the pod's containers fail to start, and
    # the pod stays Pending.
    never_starts: Callable[[Pod], bool] | None = None
    # If this returns True for a terminating pod, the kubelet cannot stop its containers. The pod
    # then stays until its machine stops.
    never_stops: Callable[[Pod], bool] | None = None
    # The names of the nodes that have a kubelet (None: all nodes).
    nodes: tuple[str, ...] | None = None
    # Configures node-pressure eviction.
    eviction: EvictionConfig = field(default_factory=EvictionConfig)

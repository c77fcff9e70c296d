"""SimulatedKubelets: the times that pods take in the simulation of a dump, and their sources.

    --startup-time      the same time to start for every pod
    KWOK Stages         the times of the pods that they select
    the dump            the startup time of the workload, as its pods show it
    otherwise           the kubelet's defaults

For each pod, the first of these sources that contains a time for the pod is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.apiserver.kind import POD
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.whatif.configuration.kwok_stage import is_stage, stages_note, with_stages
from fairlead.whatif.run.experiment import QUIET
from fairlead.whatif.run.pod_timing.failing_revision import (
    NO_FAILURES,
    FailingRevisions,
    failing_revisions,
)
from fairlead.whatif.run.pod_timing.startup_time import NO_TIMES, StartupTimes, startup_times
from fairlead.whatif.run.pod_timing.stuck_pod import stuck_pods
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_STARTING: Final = seconds(60)


class SimulatedKubelets(Struct, frozen=True):
    """The kubelets' configuration, the quiet time of the experiment, and notes.

    The fields `times` and `failing` are empty if the same time is set for every pod.
    """

    config: KubeletConfig
    # A run has settled when nothing has changed for this time (ns). It is longer than any startup
    # time. So a run does not count as settled while a pod is still starting.
    quiet: DurationNs = QUIET
    notes: tuple[str, ...] = ()
    times: StartupTimes = NO_TIMES  # the startup times in the dump
    failing: FailingRevisions = NO_FAILURES  # the revisions whose pods fail to start
    has_stages: bool = False


def simulated_kubelets(
    cluster: Sequence[Manifest],
    *,
    renews_leases: bool,
    taken_at: Instant,
    startup: DurationNs | None = None,
    more_stages: Iterable[Manifest] = (),
    seed: int = 0,
) -> SimulatedKubelets:
    """Return the kubelets of `cluster`, with the KWOK Stages in it and `more_stages`.

    If `renews_leases` is set, the kubelets renew their Leases. `taken_at` is the time of the dump.
    `startup` is the time in ns that every pod takes to start. If it is None, the startup times in
    the dump are used. `seed` determines the jitter of Stages. Raises InputError for a Stage that is
    not simulated.
    """
    stages = [one for one in (*samples(cluster), *more_stages) if is_stage(one)]
    failing, stuck = NO_FAILURES, stuck_pods(cluster, taken_at)
    config, times = stuck.in_config(KubeletConfig(renews_leases=renews_leases)), NO_TIMES
    longest = startup or 0
    if startup is None:
        times = startup_times(cluster)
        config, longest = replace(config, start_delays=times), times.longest
        failing = failing_revisions(cluster)
        if failing.reasons:
            config = replace(config, never_starts=failing)
    if stages:
        config = with_stages(config, stages, seed)
        longest = max(longest, _longest(config, cluster))
    if startup is not None:
        config = replace(config, start_delay=startup, start_delays=None)
    return SimulatedKubelets(
        config=config,
        quiet=max(QUIET, longest + _STARTING),
        notes=(*([stages_note(stages)] if stages else []), *stuck.notes),
        times=times,
        failing=failing,
        has_stages=bool(stages),
    )


def _longest(config: KubeletConfig, cluster: Iterable[Manifest]) -> DurationNs:
    """Return the longest time that a pod of `cluster` takes to start."""
    if config.start_delays is None:
        return 0
    delays = (config.start_delays(one.pod) for one in cluster if one.kind is POD)
    return max((one for one in delays if one is not None), default=0)

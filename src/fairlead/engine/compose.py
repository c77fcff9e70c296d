"""From configuration to engine: the one place where the controllers are put together."""

from __future__ import annotations

from fairlead.core.reporter import Reporter
from fairlead.core.tie_break import TieBreak
from fairlead.engine.config import EngineConfig
from fairlead.engine.engine import Engine
from fairlead.engine.loop_watch import LoopWatch
from fairlead.kubelet.controller import Kubelets
from fairlead.scheduling.controller import Scheduler
from fairlead.state.cluster import Cluster
from fairlead.workloads.claims import Claims
from fairlead.workloads.controller import Workloads
from fairlead.workloads.disruption import Disruption
from fairlead.workloads.drain import Drain
from fairlead.workloads.volumes import Volumes


def build_engine(config: EngineConfig, reporter: Reporter) -> Engine:
    """An engine with a scheduler and everything that surrounds it in a simulated cluster.

    The scheduler is last, so that a pod is only tried once everything else that is due has been
    done. Raises ProfileError for a scheduler profile that cannot be served.
    """
    cluster, watch = Cluster(), LoopWatch(reporter)
    scheduler = Scheduler(config.scheduler, cluster, watch, TieBreak(config.seed), config.start)
    controllers = (
        Kubelets(config.kubelet),
        Workloads(config.workloads),
        Claims(),
        Volumes(config.volumes),
        Disruption(),
        Drain(watch),
        watch,
        scheduler,
    )
    return Engine(cluster, controllers)


def build_scheduler_engine(config: EngineConfig, reporter: Reporter) -> Engine:
    """An engine with a scheduler alone, for a world in which others do the rest."""
    cluster, tie_break = Cluster(), TieBreak(config.seed)
    scheduler = Scheduler(config.scheduler, cluster, reporter, tie_break, config.start)
    return Engine(cluster, [scheduler])

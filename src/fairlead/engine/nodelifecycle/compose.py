"""From configuration to controllers: those of kube-controller-manager that look after nodes."""

from __future__ import annotations

from fairlead.engine.core.controller import Controller
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.controller import NodeLifecycle
from fairlead.engine.nodelifecycle.pod_gc import PodGarbageCollector
from fairlead.engine.nodelifecycle.taint_eviction import TaintEviction


def node_controllers(
    config: NodeLifecycleConfig, reporter: Reporter, start: Instant
) -> tuple[Controller, ...]:
    """The controllers in the order in which they are told; `start` is when they begin (ns).

    Without the taint manager pods stay on tainted nodes.
    """
    lifecycle = NodeLifecycle(config, reporter, start)
    collector = PodGarbageCollector(config, reporter, start)
    if not config.enable_taint_manager:
        return lifecycle, collector
    takes_over = config.is_taking_over
    return lifecycle, TaintEviction(config.profile, reporter, is_taking_over=takes_over), collector

"""Builds the node controllers of kube-controller-manager from their configuration."""

from __future__ import annotations

from fairlead.engine.core.controller import Controller
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.controller import NodeLifecycle
from fairlead.engine.nodelifecycle.eviction.taint_eviction import TaintEviction
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.pod_gc import PodGarbageCollector


def node_controllers(
    config: NodeLifecycleConfig, reporter: Reporter, start: Instant
) -> tuple[Controller, ...]:
    """Return the node controllers in the order in which they handle changes.

    The controllers start at `start`. If the taint manager is disabled
    (`--enable-taint-manager=false`), NoExecute taints evict no pods.
    """
    pods = NodePods()
    lifecycle = NodeLifecycle(config, reporter, start, pods)
    collector = PodGarbageCollector(config, reporter, start, pods)
    if not config.enable_taint_manager:
        return lifecycle, collector
    takes_over = config.is_taking_over
    evictions = TaintEviction(config.profile, reporter, pods, is_taking_over=takes_over)
    return lifecycle, evictions, collector

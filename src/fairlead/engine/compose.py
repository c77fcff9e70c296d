"""Builds an engine from its configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from fairlead.engine.config import EngineConfig
from fairlead.engine.core.controller import Controller
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.loop_detector import LoopDetector
from fairlead.engine.nodelifecycle.compose import node_controllers
from fairlead.engine.nodelifecycle.controller import NodeLifecycle
from fairlead.engine.nodelifecycle.eviction.taint_eviction import TaintEviction
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.workloads.compose import (
    disruption_controller,
    pod_autoscaler,
    volume_controller,
    volume_providers,
    workload_controllers,
)
from fairlead.engine.workloads.deletion.namespace_deletion import NamespaceDeletion
from fairlead.engine.workloads.deletion.pod_finalizers import PodFinalizers
from fairlead.engine.workloads.deletion.resource_finalizers import ResourceFinalizers
from fairlead.engine.workloads.devices.device_taint_eviction import DeviceTaintEviction
from fairlead.engine.workloads.devices.resource_claims import ResourceClaims
from fairlead.engine.workloads.drain.controller import Drain
from fairlead.engine.workloads.drain.node_finalizers import NodeFinalizers
from fairlead.engine.workloads.drain.rolling_drain import RollingDrains
from fairlead.engine.workloads.resource_quota import ResourceQuotas

# Parts that can be left out, so that another program can replace them.
PARTS: Final = (
    "kubelet",
    "workloads",
    "volumes",
    "provisioner",
    "disruption",
    "node-lifecycle",
    "scheduler",
)


_NODE_CONTROLLERS: Final[dict[type[object], str]] = {
    NodeLifecycle: "node-lifecycle",
    TaintEviction: "taint-eviction",
}


def build_engine(
    config: EngineConfig,
    reporter: Reporter,
    without: Collection[str] = (),
    first: Sequence[Controller] = (),
) -> Engine:
    """Return an engine with all controllers of a cluster.

    The controllers in `first` receive each stimulus before all other controllers. The schedulers
    come last, so that a pod is tried only after all other due work. `without` names the parts that
    are left out. PARTS lists the possible names. Raises ProfileError for an invalid scheduler
    profile. Raises BatchConfigurationError for a batch configuration with unknown names.
    """
    cluster, watch = _cluster(config), LoopDetector(reporter)
    cluster.keeps_readiness = _reads_readiness(config) or bool(first)
    volumes = replace(config.volumes, provisions="provisioner" not in without)
    has_rules = config.scheduler.version.device_taint_rules
    parts: tuple[tuple[str, tuple[Controller, ...]], ...] = (
        ("kubelet", (Kubelets(_kubelet_config(config, without), watch, cluster),)),
        ("workloads", workload_controllers(config.workloads)),
        ("workloads", (pod_autoscaler(config.pod_autoscaler, config.workloads),)),
        (
            "volumes",
            (ResourceClaims(config.workloads), volume_controller(volumes, config.workloads)),
        ),
        ("volumes", (DeviceTaintEviction(reporter, has_rules=has_rules),)),
        # Fairlead's volume controller also provisions volumes. If another program's volume
        # controller runs instead, it needs a separate provisioner.
        (
            "provisioner",
            volume_providers(volumes, config.workloads, provisions="volumes" in without),
        ),
        ("disruption", (disruption_controller(config.workloads),)),
        ("", (NamespaceDeletion(), ResourceQuotas(start=config.start, config=config.workloads))),
        ("", (Drain(watch), RollingDrains(), *_finalizers(config))),
        ("node-lifecycle", node_controllers(config.node_lifecycle, watch, config.start)),
        ("", _autoscalers(config, watch)),
        ("", (watch,)),
        ("scheduler", tuple(_schedulers(config, cluster, watch))),
    )
    kept = (controllers for name, controllers in parts if name not in without)
    return Engine(cluster, (*first, *chain.from_iterable(kept)))


def _cluster(config: EngineConfig) -> Cluster:
    return Cluster(device_taint_rules=config.scheduler.version.device_taint_rules)


def _reads_readiness(config: EngineConfig) -> bool:
    """Return whether the state must contain the newest readiness of pods.

    Users' plugins, extenders, the batch scheduler and the node autoscalers may read the readiness.
    The scheduler of Kubernetes 1.19 needs it too, because it tries pods again after every change of
    a pod.
    """
    scheduler = config.scheduler
    others = (config.batch, config.autoscaler, config.karpenter)
    return (
        bool(scheduler.out_of_tree or scheduler.extenders)
        or scheduler.version.queue is not SchedulingQueue
        or others != (None,) * len(others)
    )


def _finalizers(config: EngineConfig) -> tuple[Controller, ...]:
    if not config.removes_finalizers:
        return ()
    nodes = NodeFinalizers(drains=config.karpenter is None)
    return (nodes, PodFinalizers(), ResourceFinalizers())


def _autoscalers(config: EngineConfig, reporter: Reporter) -> tuple[Controller, ...]:
    autoscalers: list[Controller] = []
    # Most runs have no autoscaler, and importing one takes as long as a small run.
    if config.autoscaler is not None:
        from fairlead.engine.autoscaling.compose import cluster_autoscaler  # noqa: PLC0415

        autoscalers.append(
            cluster_autoscaler(config.autoscaler, reporter, seed=config.seed, start=config.start)
        )
    if config.karpenter is not None:
        from fairlead.engine.autoscaling.karpenter.controller import Karpenter  # noqa: PLC0415

        autoscalers.append(
            Karpenter(config.karpenter, reporter, seed=config.seed, start=config.start)
        )
    return tuple(autoscalers)


def _kubelet_config(config: EngineConfig, without: Collection[str]) -> KubeletConfig:
    """Return the configuration of the kubelets for an engine without the parts in `without`.

    Fairlead's node lifecycle controller computes the renewal times of a lease from an annotation.
    So the kubelets normally do not write every renewal. If `without` contains this controller, it
    is replaced by another program that does not read the annotation. The kubelets then write every
    renewal.
    """
    if "node-lifecycle" in without:
        return replace(config.kubelet, annotates_renewals=False)
    return config.kubelet


def build_scheduler_engine(config: EngineConfig, reporter: Reporter) -> Engine:
    """Return an engine that has only schedulers; other programs run the other controllers."""
    cluster = _cluster(config)
    return Engine(cluster, _schedulers(config, cluster, reporter))


def build_running_engine(
    config: EngineConfig, reporter: Reporter, controllers: Collection[str]
) -> Engine:
    """Return an engine with only the named `controllers` and the loop detector.

    The names are `scheduler`, `node-lifecycle` and `taint-eviction`. `scheduler` includes the batch
    scheduler if `config` has one.
    """
    cluster, watch = _cluster(config), LoopDetector(reporter)
    chosen: list[Controller] = []
    for controller in node_controllers(config.node_lifecycle, watch, config.start):
        name = _NODE_CONTROLLERS.get(type(controller))
        if name in controllers:
            chosen.append(controller)
    chosen.append(watch)
    if "scheduler" in controllers:
        chosen += _schedulers(config, cluster, watch)
    return Engine(cluster, chosen)


def _schedulers(config: EngineConfig, cluster: Cluster, reporter: Reporter) -> list[Controller]:
    """Return the pod scheduler, and the batch scheduler if `config` has one.

    The batch scheduler comes last, so that a session runs only after all other work that is due.
    Otherwise, the session would see gangs whose pods are not all created yet.
    """
    batch, seed = config.batch, config.seed
    scheduler = Scheduler(_without_jobs(config), cluster, reporter, TieBreak(seed), config.start)
    if batch is None:
        return [scheduler]
    # Imported only if there is a batch scheduler.
    from fairlead.engine.batch.controller import Batch  # noqa: PLC0415

    if config.scheduler.version.pod_groups:
        batch = replace(batch, ownership=replace(batch.ownership, own_groups_only=True))
    return [scheduler, Batch(batch, cluster, reporter, TieBreak(seed))]


def _without_jobs(config: EngineConfig) -> SchedulerConfig:
    """Return the scheduler's configuration without the profiles that the batch scheduler serves."""
    if config.batch is None:
        return config.scheduler
    taken = config.batch.ownership.scheduler_names
    profiles = (p for p in config.scheduler.profiles if p.scheduler_name not in taken)
    return dataclasses.replace(config.scheduler, profiles=tuple(profiles))

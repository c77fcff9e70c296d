"""BATCH_WORKLOADS: gangs of a hundred pods in an empty cluster, with thresholds from kube-batch.

Nodes have 32 CPU and 64Gi. Pods request 1 CPU and 1Gi. The configuration is kube-batch's built-in
default. The thresholds are the rates (pods/s) of kube-batch itself on two cores, in one process and
without an API server. kube-batch was stopped after two minutes, long before all pods were placed.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import ApiObject, Pod, PodGroup, Queue
from fairlead.bench.templates import nodes, pods, requests
from fairlead.bench.workload import Setting, Workload
from fairlead.engine.batch.configuration_file import shipped_configuration
from fairlead.engine.batch.controller import Batch
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.scheduler_name import KUBE_BATCH
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster

_GANG: Final = 100
_NAMESPACE: Final = "bench"
_NODE: Final = {"cpu": "32", "memory": "64Gi", "pods": "110"}


def batch_engine(configuration: str = KUBE_BATCH) -> Engine:
    """Return an engine that contains only the batch scheduler.

    `configuration` is the name of a configuration that is shipped with Fairlead.
    """
    cluster = Cluster()
    # The whole benchmark runs at one instant, so sessions cannot wait for a period.
    config = replace(shipped_configuration(configuration), schedule_period_s=0)
    return Engine(cluster, [Batch(config, cluster, SilentReporter(), TieBreak(0))])


def _gangs(node_count: int, tasks: int) -> Setting:
    names = [f"job-{i:03d}" for i in range(tasks // _GANG)]
    objects: list[ApiObject] = [*nodes(node_count, allocatable=_NODE)]
    objects.append(decode_as(Queue, {"metadata": {"name": "default"}, "spec": {"weight": 1}}))
    objects += [decode_as(PodGroup, _group(name)) for name in names]
    return Setting(objects, [], [pod for name in names for pod in _members(name)])


def _group(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": _NAMESPACE}
    return {"metadata": meta, "spec": {"minMember": _GANG, "queue": "default"}}


def _members(name: str) -> list[Pod]:
    spec = requests("1", "1Gi", schedulerName=KUBE_BATCH)
    return list(pods(name, _GANG, _NAMESPACE, spec, annotations=gang_annotations(name)))


def gang_annotations(group: str) -> dict[str, str]:
    """Return the annotations of a member of `group`."""
    return {GROUP_NAME_ANNOTATION: group}


BATCH_WORKLOADS: Final = (
    Workload(
        "Batch/1000Nodes_5000Tasks",
        2.1,
        lambda: _gangs(1_000, 5_000),
        engine=batch_engine,
        has_long_cycles=True,
    ),
    Workload(
        "Batch/5000Nodes_10000Tasks",
        0.64,
        lambda: _gangs(5_000, 10_000),
        engine=batch_engine,
        has_long_cycles=True,
    ),
)

"""Differences between the workloads of two dumps: replicas, containers, images and requests.

If a dump lacks the object of a workload, for example a custom resource, the values come from the
workload's pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import items, mapping, text
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.facts import is_static, is_terminating
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import CRON_JOB, DAEMON_SET, JOB, NODE
from fairlead.engine.workloads.daemon_set.rule import nodes_without_pod, target_node
from fairlead.engine.workloads.pod_control.scale_down import is_ready
from fairlead.whatif.dump_comparison.field_difference import (
    ADDED,
    CHANGED,
    REMOVED,
    arrow,
    field_differences,
)
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.result.tabular_answer import Row
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

_WITHOUT_REPLICAS: Final = (DAEMON_SET, JOB, CRON_JOB)


class DumpedWorkload(Struct, frozen=True):
    """A workload: its number of replicas, and its containers by name."""

    replicas: int | None  # None if the workload has no such number
    containers: dict[str, tuple[str, dict[str, Any]]]  # {name: (image, requests)}
    # Whether the values come from the workload's pods. This is the case if the dump lacks the
    # workload, or if another object controls the workload.
    is_of_pods: bool = False
    # The number of wanted pods that do not exist, are not ready, or are on a node that does not
    # exist. None for Jobs and CronJobs, because their pods end. Also None if the values come from
    # the pods, or if the dump has no pods at all.
    missing: int | None = None


DumpedWorkloads = Mapping[WorkloadRef, DumpedWorkload]


def workloads_of(inventory: Inventory, pods: Iterable[Pod]) -> dict[WorkloadRef, DumpedWorkload]:
    """Return the workloads of the dump that contains `inventory` and `pods`.

    The values of a workload come from the workload's object in the dump. If the dump lacks this
    object, or if another object controls the workload, the values come from the workload's pods.
    Static pods are left out, because they belong to their nodes.
    """
    of_pods: dict[WorkloadRef, list[Pod]] = defaultdict(list)
    for pod in pods:
        if not is_static(pod):
            of_pods[workload_of(pod)].append(pod)
    nodes = {one.ref.name: one.node for one in inventory.of_kind(NODE)}
    found: dict[WorkloadRef, DumpedWorkload] = {}
    for one in (each for kind in WORKLOADS for each in inventory.of_kind(kind)):
        if one.controller is None:
            ref = WorkloadRef(one.full_kind, one.ref.namespace, one.ref.name)
            found[ref] = _of_object(one)
            if of_pods:
                missing = _missing(one, found[ref].replicas, of_pods.get(ref, ()), nodes)
                found[ref] = replace(found[ref], missing=missing)
    return {ref: _of_pods(own) for ref, own in of_pods.items()} | found


def _missing(
    one: Manifest, replicas: int | None, pods: Iterable[Pod], nodes: Mapping[str, Node]
) -> int | None:
    """Return how many pods of the workload `one` are missing, as `DumpedWorkload.missing` counts.

    `replicas` is the number of replicas, None for a DaemonSet. `pods` are the pods of the workload.
    """
    if one.kind in (JOB, CRON_JOB):
        return None
    present = [pod for pod in pods if not is_terminating(pod)]
    wanted = replicas
    if wanted is None:
        occupied = {target_node(pod) for pod in present}
        lacking = nodes_without_pod(one.value, nodes.values(), occupied)
        wanted = len(occupied.union(lacking))
    ready = sum(is_ready(pod) and pod.spec.node_name in nodes for pod in present)
    return max(0, wanted - ready)


def _of_object(one: Manifest) -> DumpedWorkload:
    spec = mapping(one.value, "spec")
    replicas = None if one.kind in _WITHOUT_REPLICAS else spec.get("replicas", 1)
    template = one.pod_template if isinstance(one.pod_template, dict) else {}
    containers = {
        text(each, "name"): (text(each, "image"), mapping(each, "resources", "requests"))
        for name in ("initContainers", "containers")
        for each in items(template, "spec", name)
    }
    return DumpedWorkload(replicas, containers)


def _of_pods(pods: Sequence[Pod]) -> DumpedWorkload:
    spec = pods[0].spec
    containers = {
        one.name: (one.image, dict(one.resources.requests))
        for one in (*spec.init_containers, *spec.containers)
    }
    return DumpedWorkload(len(pods), containers, is_of_pods=True)


def workload_rows(old: DumpedWorkloads, new: DumpedWorkloads) -> list[Row]:
    """Return a row for each workload that differs."""
    rows: list[Row] = []
    for ref in sorted({*old, *new}):
        before, after = old.get(ref), new.get(ref)
        if before is None or after is None:
            one = before or after
            assert one is not None
            size = [] if one.replicas is None else [_replicas(one)]
            change, what = ADDED if before is None else REMOVED, size
        else:
            change, what = CHANGED, list(_workload_differences(before, after))
            if not what:
                continue
        rows.append(
            {
                "workload": str(ref),
                "change": change,
                "what": what,
                "replicas_before": None if before is None else before.replicas,
                "replicas": None if after is None else after.replicas,
                "missing_before": None if before is None else before.missing,
                "missing": None if after is None else after.missing,
            }
        )
    return rows


def _replicas(one: DumpedWorkload) -> str:
    return counted(one.replicas or 0, "pod" if one.is_of_pods else "replica")


def _workload_differences(old: DumpedWorkload, new: DumpedWorkload) -> Iterator[str]:
    if old.replicas != new.replicas:
        yield f"replicas {arrow(old.replicas, new.replicas)}"
    if None not in (old.missing, new.missing) and old.missing != new.missing:
        yield f"pods missing or not ready {arrow(old.missing, new.missing)}"
    if old.is_of_pods != new.is_of_pods:  # admission changes the containers of pods
        return
    yield from (
        f"container {name} {ADDED}" for name in new.containers if name not in old.containers
    )
    for name, (image, requests) in old.containers.items():
        if name not in new.containers:
            yield f"container {name} {REMOVED}"
            continue
        new_image, new_requests = new.containers[name]
        if image != new_image:
            yield f"image of {name} {arrow(image, new_image)}"
        yield from field_differences(f"requests of {name}:", requests, new_requests)

"""Describes one loop of the autoscaler in the format of the recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.conformance.autoscaler.instant import to_ms
from fairlead.engine.autoscaling.cluster_autoscaler.expander.chain import Choice
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    NodeDeleteResult,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.utilization import Utilization
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.status import (
    ScaleUpStatus,
    not_triggered,
    sends_not_triggered,
)
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import (
    LoopRecord,
    StaticAutoscaler,
)
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template


def loop_entry(autoscaler: StaticAutoscaler, record: LoopRecord, *, single: bool) -> Json:
    """Return an entry with the input and the decisions of one loop.

    `single` is True if the recorded case consists of separate loops. The entry then contains the
    templates of nodes. `single` is False if the case is a timeline of loops. The entry then
    contains the duration `took_ms`, if the loop took any time.
    """
    entry: Json = {"t_ms": to_ms(record.at), "scaleUp": [_scale_up(s) for s in record.scale_ups]}
    if record.sleep_time and not single:
        entry["took_ms"] = record.sleep_time // NANOSECONDS_PER_MILLISECOND
    if record.error:
        entry["error"] = record.error
    if record.unschedulable is not None:
        entry["unschedulable"] = _keys(record.unschedulable)
        entry["toHelp"] = _keys(record.to_help)
    if record.choices:
        entry["expander"] = [_choice(choice) for choice in record.choices]
    entry["scaleDown"] = _scale_down(autoscaler, record)
    entry |= _state(autoscaler, record)
    if single and record.templates is not None:
        entry["templates"] = {name: _template(one) for name, one in record.templates.items()}
    return entry


def _keys(pods: Iterable[Pod]) -> list[str]:
    return [pod.key for pod in pods]


def _choice(choice: Choice) -> Json:
    options = []
    for one in choice.options:
        option: Json = {
            "group": one.group.id,
            "nodes": one.nodes,
            "pods": [pod.key for pod in one.pods],
        }
        if one.similar:
            option["similar"] = list(one.similar)
        options.append(option)
    found: Json = {"options": options}
    if choice.best is not None:
        found["best"] = choice.best.group.id
    found["equals"] = [one.group.id for one in choice.equals]
    return found


def _scale_up(status: ScaleUpStatus) -> Json:
    entry: Json = {"result": str(status.result)}
    if status.infos:
        entry["increases"] = [
            {"group": one.group, "from": one.current, "to": one.new, "max": one.maximum}
            for one in status.infos
        ]
    lists: dict[str, Sequence[str]] = {
        "triggered": _keys(status.triggered),
        "awaitEvaluation": _keys(status.await_evaluation),
        "failedResize": status.failed_resize,
    }
    entry |= {name: list(found) for name, found in lists.items() if found}
    if status.error:
        entry |= {"error": status.error, "errorType": status.error_type}
    if status.remain:
        entry["remain"] = _remain(status)
    return entry


def _remain(status: ScaleUpStatus) -> list[Json]:
    found = []
    for info in status.remain:
        entry: Json = {"pod": info.pod.key}
        if info.rejected:
            entry["rejected"] = {name: list(why) for name, why in info.rejected.items()}
        if info.skipped:
            entry["skipped"] = {name: list(why) for name, why in info.skipped.items()}
        if sends_not_triggered(status):
            entry["message"] = not_triggered(status, info)
        found.append(entry)
    return found


def _scale_down(autoscaler: StaticAutoscaler, record: LoopRecord) -> Json:
    status, planner = record.scale_down, autoscaler.planner
    entry: Json = {
        "result": str(status.result),
        "unneeded": list(planner.unneeded.by_name),
        "unremovable": {},
        "utilization": {
            name: _utilization(used) for name, used in planner.eligibility.utilizations.items()
        },
    }
    for name, why in planner.unremovable.reasons.items():
        found: Json = {"reason": str(why.reason)}
        if why.blocking is not None:
            found["blockingPod"] = why.blocking.pod.key
            found["blockingReason"] = str(why.blocking.reason)
        entry["unremovable"][name] = found
    if status.candidates is not None:
        entry["candidates"] = list(status.candidates)
    if status.to_delete is not None:
        chosen = status.to_delete
        entry["toDelete"] = {
            "empty": [one.name for one in chosen.empty],
            "drain": [one.name for one in chosen.drain],
        }
    if status.deleting:
        entry["deleting"] = [
            {"node": one.name, "evicted": _keys(one.evicted)} if one.evicted else {"node": one.name}
            for one in status.deleting
        ]
    results = status.delete_results.items()
    if results:
        entry["deleteResults"] = {name: _result(result) for name, result in results}
    return entry


def _result(result: NodeDeleteResult) -> Json:
    found = {"result": str(result.type)}
    return {**found, "error": result.error} if result.error else found


def _utilization(used: Utilization) -> Json:
    found: Json = {"resource": used.resource, "utilization": used.value}
    if used.resource in ("cpu", "memory"):
        found |= {"cpu": used.cpu, "memory": used.memory}
    else:
        found["gpu"] = used.gpu
    return found


def _state(autoscaler: StaticAutoscaler, record: LoopRecord) -> Json:
    """Return the contents of the cluster state registry after the loop; omit default values."""
    registry = autoscaler.context.registry
    found: Json = {}
    upcoming = registry.upcoming_nodes(record.at)
    if upcoming:
        found["upcomingAfter"] = upcoming
    groups: Json = {}
    for group in autoscaler.context.provider.node_groups():
        entry: Json = {}
        if not registry.is_group_healthy(group.id):
            entry["healthy"] = False
        if registry.is_backed_off(group.id, record.at):
            entry["backoff"] = True
        if entry:
            groups[group.id] = entry
    if groups:
        found["groups"] = groups
    if not registry.is_cluster_healthy():
        found["clusterHealthy"] = False
    return found


def _template(template: Template) -> Json:
    allocatable = template.node.status.allocatable
    found: Json = {
        "milliCPU": milli_value(allocatable.get("cpu", 0)),
        "memory": whole_value(allocatable.get("memory", 0)),
    }
    if template.node.spec.taints:
        found["taints"] = [
            f"{one.key}={one.value}:{one.effect}" for one in template.node.spec.taints
        ]
    if template.pods:
        requests = [pod_requests(pod.pod) for pod in template.pods]
        found["pods"] = len(template.pods)
        found["requestedMilliCPU"] = sum(one.get("cpu", 0) for one in requests)
        found["requestedMemory"] = sum(one.get("memory", 0) for one in requests)
    return found

"""Replays recorded traces: pods scheduled one after the other in a changing cluster.

Where the scheduler would choose a node at random, the trace uses the first node by name, so each
step has only one possible result. As in the recording, a pod runs as soon as it is bound, and an
unschedulable pod is deleted. Victims of preemption are deleted immediately, and the pod that
preempted them is retried in the same step. The statuses of disruption budgets do not change.
"""

from __future__ import annotations

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.conformance.scheduling.pod import build
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.evaluation import Evaluation, evaluate
from fairlead.engine.state.pod_info import PodInfo

_EPOCH = parse_timestamp("2026-01-01T00:00:00Z")


def decide_sequence(case: Json) -> Json:
    """Return Fairlead's decisions about all steps of `case`, in the form of its field `expect`.

    Raises ValueError if an operation is unknown.
    """
    trace = _Trace(build(case))
    steps = [trace.step(number, step) for number, step in enumerate(case["steps"])]
    return {"steps": steps, "final": trace.final()}


class _Trace:
    """The cluster on which the steps of a trace are performed."""

    def __init__(self, built: BuiltProfile) -> None:
        self._built = built
        self._cluster = built.framework.cluster

    def step(self, number: int, step: Json) -> Json:
        """Perform `step` and return its result; `number` is its index in the trace."""
        match step["op"]:
            case "schedule":
                pod = step["pod"]
                key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                return {"op": "schedule", "pod": key} | self._schedule(number, pod)
            case "delete":
                return {"op": "delete", "target": step["target"]} | self._delete(step["target"])
            case "node":
                node = decode_as(Node, without_nulls(step["node"]))
                self._cluster.apply(ObjectChanged(node))
                return {"op": "node", "node": node.metadata.name}
            case unknown:
                raise ValueError(f"unknown op {unknown!r}")

    def _delete(self, key: str) -> Json:
        known = self._cluster.pods.get(key)
        if known is not None:
            self._cluster.apply(ObjectDeleted(known.pod))
        return {"deleted": known is not None}

    def _schedule(self, number: int, obj: Json) -> Json:
        found = self._evaluate(obj)
        result: Json = {}
        if found.preemption is not None and found.preemption.nominated:
            result["preempted"], node = self._preempt(found)
            status = obj.get("status", {}) | {"nominatedNodeName": node}
            obj = obj | {"status": status}
            found = self._evaluate(obj)
        if not found.choices:
            return _not_possible(found)
        node = found.best[0] if found.via == "score" else found.choices[0]
        self._bind(number, obj, node)
        return result | _feasible(found, node)

    def _evaluate(self, obj: Json) -> Evaluation:
        pod = decode_as(Pod, without_nulls(obj))
        return evaluate(self._built, PodInfo(pod, self._cluster.shapes.shape_of(pod)))

    def _preempt(self, found: Evaluation) -> tuple[Json, str]:
        assert found.preemption is not None
        node = min(found.preemption.nominated)
        candidate = found.preemption.candidates[node]
        for victim in candidate.victims:
            self._cluster.apply(ObjectDeleted(victim.pod))
        decision = {
            "node": node,
            "victims": [victim.key for victim in candidate.victims],
            "numPDBViolations": candidate.pdb_violations,
            "nominated": found.preemption.nominated,
            "candidates": len(found.preemption.candidates),
            "fitError": found.fit_error,
        }
        return decision, node

    def _bind(self, number: int, obj: Json, node: str) -> None:
        started = format_timestamp(_EPOCH + seconds(number))
        bound = obj | {
            "spec": obj["spec"] | {"nodeName": node},
            "status": {"phase": "Running", "startTime": started},
        }
        self._cluster.apply(ObjectChanged(decode_as(Pod, without_nulls(bound))))

    def final(self) -> Json:
        """Return the keys of the pods on each node, by node name."""
        nodes = self._cluster.table.nodes()
        return {node.name: sorted(pod.key for pod in node.pods.values()) for node in nodes}


def _not_possible(found: Evaluation) -> Json:
    result: Json = {"node": None, "fitError": found.fit_error}
    if found.preemption is not None and found.preemption.ineligible:
        result["ineligible"] = found.preemption.ineligible
    return result


def _feasible(found: Evaluation, node: str) -> Json:
    feasible = sum(status is None for status in found.verdicts.values())
    result: Json = {"node": node, "via": found.via, "feasible": feasible, "best": found.best}
    if found.totals:
        result["bestTotal"] = max(found.totals.values())
    if found.via == "score":
        result["skippedScore"] = found.skipped_scores
    return result

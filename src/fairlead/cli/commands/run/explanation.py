"""Explains a pod as a running scheduler sees it: its place in the queue, and a verdict per node.

The explanation includes facts that a snapshot lacks: nominations, preemptions in progress, the
pod's attempts and backoff, and pods that are assumed on nodes but not yet bound.
"""

from __future__ import annotations

import io
from typing import Final

import msgspec
from rich.console import Console

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.timestamp import format_timestamp
from fairlead.cli.commands.explain.run import print_explanation
from fairlead.cli.output.console.terminal import print_line
from fairlead.engine.batch.controller import Batch
from fairlead.engine.core.instant import Instant
from fairlead.engine.engine import Engine
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.queue.queued_pod import QueuedPod, QueueName
from fairlead.engine.scheduling.remedy.selector_correction import (
    SelectorCorrection,
    find_correction,
)
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.explain.node_requirement import correction_sentences, unmet_requirements
from fairlead.whatif.explain.pod import Explanation, explanation_json, preemption_notes
from fairlead.whatif.result.result_json import API_VERSION
from fairlead.worlds.cluster.http_server import PodAnswer, PodQuery
from fairlead.worlds.cluster.runner import ClusterRunner

_QUEUES: Final = {
    QueueName.ACTIVE: "in the active queue",
    QueueName.BACKOFF: "in backoff",
    QueueName.ERROR_BACKOFF: "in backoff after an error",
    QueueName.UNSCHEDULABLE: "unschedulable",
    QueueName.IN_FLIGHT: "being scheduled",
}
_OF_BATCH: Final = (
    "waits for the batch scheduler of this process; fairlead explain without --process explains it"
)
_IN_BACKOFF: Final = (QueueName.BACKOFF, QueueName.ERROR_BACKOFF)


def explain_running(runner: ClusterRunner, query: PodQuery) -> PodAnswer:
    """Return the scheduler's explanation of a pod, as text or JSON.

    The response has status 503 if this replica is not the leader, runs no scheduler, or runs with
    --shadow. The response has status 404 if the scheduler does not know the pod, or if the pod
    waits for the batch scheduler. Extenders are not called.
    """
    if not isinstance(runner.engine, Engine):
        return PodAnswer(
            503, b"this replica does not schedule: it is not the leader, or has --shadow"
        )
    try:
        scheduler = runner.engine.find(Scheduler)
    except LookupError:
        return PodAnswer(503, b"this process runs no scheduler")
    queued = scheduler.queue.find(query.key)
    if queued is None:
        return _not_queued(runner.engine, query)
    explanation = _explanation(scheduler, queued)
    if query.output == "json":
        value = _state_json(queued)
        if explanation is not None:
            value = {**explanation_json(explanation), **value}
        return PodAnswer(200, msgspec.json.encode(value))
    text = io.StringIO()
    console = Console(file=text, width=query.width)
    print_line(console, _state(queued, runner.clock.now()))
    if explanation is not None:
        print_explanation(explanation, console, all_nodes=query.all_nodes)
    return PodAnswer(200, text.getvalue().encode())


def _not_queued(engine: Engine, query: PodQuery) -> PodAnswer:
    known = engine.cluster.pods.get(query.key)
    if known is None:
        return PodAnswer(404, f"the scheduler does not know the pod {query.key}".encode())
    node = engine.cluster.node_of(known)
    if not node and _is_of_batch(engine, known.id):
        return PodAnswer(404, f"{query.key} {_OF_BATCH}".encode())
    if query.output == "json":
        value = {"apiVersion": API_VERSION, "kind": "Explanation", "pod": query.key, "node": node}
        return PodAnswer(200, msgspec.json.encode(value))
    where = f"on node {node}" if node else "not scheduled by this process"
    return PodAnswer(200, f"{query.key}: {where}\n".encode())


def _is_of_batch(engine: Engine, pod_id: str) -> bool:
    """Return whether the batch scheduler of this process schedules the pod `pod_id`."""
    return any(pod_id in one.jobs.tasks for one in engine.controllers if isinstance(one, Batch))


def _explanation(scheduler: Scheduler, queued: QueuedPod) -> Explanation | None:
    """Return the verdicts on a pending pod; None if no profile of the scheduler handles the pod."""
    built = scheduler.profiles.get(queued.info.pod.spec.scheduler_name)
    if built is None:
        return None
    found = evaluate(built, queued.info)
    unmet: tuple[str, ...] = ()
    if found.fit_error:
        correction = _correction(queued.info.pod, built.framework.cluster)
        unmet = (*unmet_requirements(built, queued.info), *correction_sentences(correction))
    key, priority = queued.info.key, queued.info.priority
    notes = preemption_notes(found)
    return Explanation(key, "", priority, found, remedies={}, notes=notes, unmet=unmet)


def _correction(pod: Pod, cluster: Cluster) -> SelectorCorrection | None:
    """Return the correction of the typing errors in the node selector of `pod`, or None.

    The scheduler does not know which entries of the nodeSelector a RuntimeClass has added, so the
    nodeSelector of a pod with a RuntimeClass is not corrected.
    """
    kept = pod.spec.node_selector if pod.spec.runtime_class_name else {}
    return find_correction(pod, (one.node for one in cluster.table.nodes()), kept)


def _state(queued: QueuedPod, now: Instant) -> str:
    """Return a sentence about the pod's place in the queue, its attempts and its backoff."""
    if queued.gated_by:
        return f"Held back by {queued.gated_by} since {format_timestamp(queued.timestamp)}."
    attempts = "1 attempt" if queued.attempts == 1 else f"{queued.attempts:,} attempts"
    place = _QUEUES.get(queued.place, "not in the queue")
    parts = [f"{place} since {format_timestamp(queued.timestamp)}", attempts]
    if queued.plugins:
        parts.append(f"last rejected by {', '.join(queued.plugins)}")
    if queued.place in _IN_BACKOFF and queued.window > now:
        parts.append(f"next attempt not before {format_timestamp(queued.window)}")
    sentence = ", ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _state_json(queued: QueuedPod) -> Json:
    return {
        "queue": {
            "place": queued.place.value,
            "since": format_timestamp(queued.timestamp),
            "attempts": queued.attempts,
            "rejectedBy": list(queued.plugins),
            "gatedBy": queued.gated_by,
            "notBefore": format_timestamp(queued.window) if queued.window else "",
        }
    }

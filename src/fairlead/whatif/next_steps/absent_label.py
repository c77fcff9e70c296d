"""Notes about pending pods that require labels that no node has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.nodes.node_selector import required_node_affinity_matches
from fairlead.api.objects import Pod
from fairlead.engine.plugins.node_affinity import MISMATCH
from fairlead.whatif.next_steps.step_context import StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.run_outcome import NodeEnd
from fairlead.whatif.snapshot.absent_label import absent_labels

_NAMED_MAX: Final = 2  # workloads with a note of their own


def name_absent_labels(context: StepContext) -> Iterator[NextStep]:
    """Add notes to `context.causes` about labels that pending pods need; yield no step.

    A note names the labels that no node has at the end of the run with the change, for example
    because the change deletes a node pool. There is no note about a workload that the change
    creates or edits, because its pods in the snapshot may need other labels. There is none either
    if an autoscaler acts, because new nodes may have the labels.
    """
    answer, change = context.answer, context.answer.change
    if change.apply or answer.changed.autoscaling is not None:
        return
    pods = [pod for pod in answer.difference.pending if MISMATCH.message in pod.reason]
    names = [ref for ref in dict.fromkeys(pod.workload for pod in pods)
             if not is_named(ref.name, change.set)]  # fmt: skip
    found = []
    for ref, spec in context.pod_specs(names).items():
        if sentences := missing_labels(spec, answer.changed.nodes):
            words = " ".join(sentences)
            found.append(f"Pods of {ref} are pending because of labels that they require. {words}")
    context.causes.extend(found[:_NAMED_MAX])
    yield from ()


def missing_labels(spec: Json, nodes: Iterable[NodeEnd]) -> list[str]:
    """Return sentences about labels that pods with `spec` require, if none of `nodes` has them."""
    pod = decode_as(Pod, {"spec": spec})
    known = [(one.name, one.labels) for one in nodes]
    if any(required_node_affinity_matches(pod.spec, labels, name) for name, labels in known):
        return []
    return [*absent_labels(pod, [labels for _, labels in known])]

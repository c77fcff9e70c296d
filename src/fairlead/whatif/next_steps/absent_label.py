"""Notes about pending pods that require labels that no node has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.outcome.assessment.next_step import NextStep

_NAMED_MAX: Final = 2  # workloads with a note of their own


def name_absent_labels(context: StepContext) -> Iterator[NextStep]:
    """Add notes to `context.causes` about labels that pending pods need; yield no step.

    A note names the labels that no node has at the end of the run with the change, for example
    because the change deletes a node pool, or because a label in the change is misspelled.
    """
    answer = context.answer
    pending = dict.fromkeys(pod.workload for pod in answer.difference.pending)
    found = [
        f"Pods of {ref} are pending because of labels that they require. "
        f"{answer.changed.absent_labels[ref]}"
        for ref in pending
        if ref in answer.changed.absent_labels
    ]
    context.causes.extend(found[:_NAMED_MAX])
    yield from ()

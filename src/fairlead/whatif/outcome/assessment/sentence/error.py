"""Refused pods, failed Jobs and other errors of objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from fairlead.api.text.count import counted
from fairlead.whatif.outcome.assessment.sentence.words import (
    counted_pods,
    end_words,
    listed_names,
    pods_of,
)
from fairlead.whatif.outcome.assessment.sentence.workload import stopped_rollouts
from fairlead.whatif.outcome.comparison.effect import Effect, by_reason
from fairlead.whatif.outcome.run_outcome import KEPT_RESOURCES, ObjectError
from fairlead.whatif.outcome.workload import POD


def replacements_refused_sentence(effect: Effect) -> str | None:
    """Return sentences about workloads whose new pods would be refused from now on.

    Workloads that already lack refused pods are left out: other sentences are about them. Returns
    None if there are no such workloads.
    """
    lacking = {one.workload for one in effect.lasting_errors}
    refused = [one for one in effect.refused_replacements if one.workload not in lacking]
    groups = sorted(by_reason(refused).items(), key=lambda group: (-len(group[1]), group[0]))
    if not groups:
        return None
    (reason, rows), *others = groups
    names = listed_names([str(one.workload) for one in rows])
    sentence = f"From now on, new pods of {names} are refused, including replacements: {reason}."
    count = sum(len(one) for _, one in others)
    more = f" So are new pods of {counted(count, 'more workload')}, for other reasons."
    return sentence + (more if count else "")


def error_sentence(effect: Effect) -> str | None:
    """Return sentences about failed Jobs, Jobs that can no longer succeed, and all other errors.

    If there are no errors, return a sentence about failed pods. If there are no failed pods either,
    return None.
    """
    errors = effect.lasting_errors
    if not errors:
        return _failed_pods(effect)
    failing = [one for one in errors if one.is_failing_job]
    others = [one for one in errors if not (one.is_failed_job or one.is_failing_job)]
    sentences = [*_failed_jobs(one for one in errors if one.is_failed_job)]
    if failing:
        first, count = failing[0], len(failing) - 1
        more = f" and {counted(count, 'other Job')}" if count else ""
        sentences.append(f"{first.subject}{more} can only fail: {first.message}.")
    if others:  # The sentence may end with a message, without a full stop.
        sentences.append(_other_errors(effect, others))
    return " ".join(sentences)


def _other_errors(effect: Effect, errors: Sequence[ObjectError]) -> str:
    """Return a sentence about `errors`, which are not failures of Jobs."""
    first = errors[0]
    refused = {one.workload for one in errors}
    rows = [one for one in effect.workloads if one.missing and one.workload in refused]
    if rows:
        count = sum(one.missing for one in rows)
        whose = str(rows[0].workload) if len(rows) == 1 else f"{len(rows):,} workloads"
        first = next((one for one in errors if one.workload == rows[0].workload), first)
        verb = "is" if count == 1 else "are"
        rollouts = stopped_rollouts(one for one in rows if not one.pending)
        message = first.message.rstrip(".") + "." if rollouts else first.message
        return f"{counted_pods(count)} of {whose} {verb} not created: {message}{rollouts}"
    if first.message.startswith(KEPT_RESOURCES):
        others = sum(one.message.startswith(KEPT_RESOURCES) for one in errors) - 1
        verb = "keeps its" if others == 1 else "keep their"
        more = f". {counted(others, 'other pod')} {verb} former resources too." if others else ""
        return f"{first.subject} keeps its former resources, because {first.message}{more}"
    return f"{counted(len(errors), 'error')}: {first.subject}: {first.message}"


def _failed_jobs(jobs: Iterable[ObjectError]) -> Iterator[str]:
    """Yield a sentence for each failure reason of `jobs`, with the name of the first such Job."""
    by_reason: dict[str, list[ObjectError]] = defaultdict(list)
    for job in jobs:
        by_reason[job.message.rpartition(" (")[2]].append(job)
    for first, *others in by_reason.values():
        more = f" and {counted(len(others), 'other Job')} fail" if others else " fails"
        yield f"{first.subject}{more}: {first.message}."


def _failed_pods(effect: Effect) -> str | None:
    """Return a sentence about failed new pods that have no controller; None if there are none."""
    completed = effect.difference.completed
    pods = [pod for pod in completed if pod.has_failed and pod.workload.kind == POD]
    return f"{pods_of(pods)} {end_words(pods, 'fail', effect.changed)}." if pods else None

"""A next step for Jobs that fail because the change displaces their pods: a higher backoffLimit.

Each displaced pod counts as a failure of its Job, unless the podFailurePolicy of the Job says
otherwise. A Job fails if it has more failures than its backoffLimit.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from fairlead.api.json import number
from fairlead.api.text.name_list import joined
from fairlead.apiserver.kind import JOB
from fairlead.engine.workloads.job.finished_condition import EXCEEDED
from fairlead.whatif.next_steps.step_context import NAMES_MAX, TRIES_MAX, StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.workload import WorkloadRef


def raise_backoff_limits(context: StepContext) -> Iterator[NextStep]:
    """Yield a command that raises the backoffLimit of the Jobs that fail because of the change.

    Each limit becomes the number of failures that the Job has in the dump, plus the number of its
    displaced pods. The step is tried in a simulation. The change may displace the new pods, too. In
    this case, the step raises the limits further and is tried again, up to TRIES_MAX times in all.
    The step is yielded only if none of these Jobs fails in its trial.

    Jobs that fail for another reason are left out, and so are Jobs that the change itself writes or
    edits. If more than NAMES_MAX Jobs fail, no step is yielded.
    """
    effect, change = context.answer.effect, context.answer.change
    written = {(one.kind, one.namespace, one.name) for one in context.written}
    displaced = Counter(pod.workload for pod in effect.difference.displaced)
    failures = {
        job: number(manifest.value, "status", "failed")
        for job, manifest in context.workloads(_failed(effect) & displaced.keys()).items()
        if (job.kind, job.namespace, job.name) not in written and not is_named(str(job), change.set)
    }
    if not failures or len(failures) > NAMES_MAX:
        return
    for tries in range(1, TRIES_MAX + 1):
        limits = {job: failed + tries * displaced[job] for job, failed in failures.items()}
        edits = (f"{job}:spec.backoffLimit={limit}" for job, limit in limits.items())
        tried = context.ask(replace(change, set=(*change.set, *edits)))
        if tried is None:
            return
        if not failures.keys() & _failed(tried):
            yield _raised(limits)
            return


def _failed(effect: Effect) -> set[WorkloadRef]:
    """Return the Jobs that have failed because they exceeded their backoffLimit."""
    found = set()
    for one in effect.lasting_errors:
        if one.is_failed_job and one.message.endswith(f"({EXCEEDED.reason})"):
            namespace, _, name = one.subject.partition(" ")[2].partition("/")
            found.add(WorkloadRef(JOB.kind, namespace, name))
    return found


def _raised(limits: Mapping[WorkloadRef, int]) -> NextStep:
    """Return the step that raises the backoffLimit of each Job in `limits`."""
    jobs = joined(f"{job} to {limit}" for job, limit in limits.items())
    then = "new pods then start the work of the Jobs again"
    if len(limits) == 1:
        then = "a new pod then starts the work of the Job again"
    commands = (
        shlex.join(("kubectl", "patch", "job", "-n", job.namespace, job.name, "-p", _patch(limit)))
        for job, limit in limits.items()
    )
    return NextStep(
        f"before the change, raise the backoffLimit of {jobs}; {then}",
        command=" && ".join(commands),
    )


def _patch(limit: int) -> str:
    return json.dumps({"spec": {"backoffLimit": limit}}, separators=(",", ":"))

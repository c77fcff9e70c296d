"""Displacements of pods that repeat, for ever or for a time."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.run_outcome import FAILED, REJECTIONS, WASTED, Recurrence, RunOutcome


def loop_sentence(effect: Effect) -> str | None:
    """Return a sentence about the displacements that never end; None if there are none."""
    lasting = last_reports(one for one in effect.loops if not is_over(one, effect.changed))
    if not lasting:
        return None
    first = lasting[0]
    if first.kind == "cycle":
        return f"Workloads displace one another in a cycle: {first.message}."
    return f"{lasting_loop(first)}."


def repeated_sentence(effect: Effect) -> str | None:
    """Return a sentence about displacements that repeated for a time; None if there are none."""
    ended = past_loops(effect.loops, effect.changed)
    return past_loop(ended[0], effect.changed) if ended else None


def last_reports(reports: Iterable[Recurrence]) -> list[Recurrence]:
    """Return the last report of each loop in `reports`, ordered by the loops' first reports.

    The last report of a loop has the highest number of displacements.
    """
    return list({one.loop: one for one in reports}.values())


def past_loops(reports: Iterable[Recurrence], run: RunOutcome) -> list[Recurrence]:
    """Return the last report of each repeated displacement in `reports` that has ended.

    Preemptions for a pod that runs at the end, although it did not use the freed room, are left
    out. Other findings are about their consequences: displaced pods, and pods that waited.
    """
    ended = [one for one in reports if is_over(one, run)]
    return last_reports(one for one in ended if one.kind != WASTED or not _has_all_pods(one, run))


def lasting_loop(first: Recurrence) -> str:
    """Return the sentence, without a full stop, about a loop that did not end."""
    ending = " without end" if first.kind == REJECTIONS else ""
    return f"{first.message[:1].upper()}{first.message[1:]}{ending}"


def past_loop(first: Recurrence, run: RunOutcome) -> str:
    """Return the sentence about `first`, a repeated displacement (loop) of `run` that has ended."""
    message = f"{first.message[:1].upper()}{first.message[1:]}"
    workload = first.workload
    if first.kind == WASTED:
        return f"{message}."
    if workload is not None and not run.workloads[workload].wanted:
        return f"{message}; {workload} needs no pods at the end."
    if first.kind == REJECTIONS:
        return f"{message} until all run."
    return f"{message}, and all run at the end."


def is_over(one: Recurrence, run: RunOutcome) -> bool:
    """Return whether the loop of displacements `one` has ended in `run`.

    The loop has ended if nothing changes any more at the end of the run, and all wanted pods of its
    workload are ready. In a DaemonSet, no rejected pod may be left either. Rejected pods do not
    count as wanted pods.

    Preemptions for a pod that does not use the freed room (WASTED) have ended if nothing changes
    any more, or if the pod runs.
    """
    workload = one.workload
    if one.kind == WASTED:
        return run.settled or _has_all_pods(one, run)
    if workload is None or not run.settled or not _has_all_pods(one, run):
        return False
    return not (workload.is_daemon_set and one.kind == REJECTIONS) or not any(
        pod.workload == workload and pod.phase == FAILED for pod in run.pods.values()
    )


def _has_all_pods(one: Recurrence, run: RunOutcome) -> bool:
    """Return whether all wanted pods of the workload of `one` are ready at the end of `run`."""
    ready = None if one.workload is None else run.workloads.get(one.workload)
    return ready is not None and ready.at_end >= ready.wanted

"""The verdict on a single run, such as the run of a scenario: findings, the most severe first.

`verdict.py` compares two runs instead. Both modules order their findings by OutcomeKind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.sentence.drain import causes, unfinished_drain
from fairlead.whatif.outcome.assessment.sentence.loop import (
    is_over,
    last_reports,
    lasting_loop,
    past_loop,
    past_loops,
)
from fairlead.whatif.outcome.assessment.sentence.loss import data_deletion, gone_for_good, not_back
from fairlead.whatif.outcome.assessment.sentence.pending_pod import (
    autoscaler_reasons,
    pending_while_scaling,
)
from fairlead.whatif.outcome.assessment.sentence.unfinished import returning, still_not_running
from fairlead.whatif.outcome.assessment.sentence.words import NAMES_MAX
from fairlead.whatif.outcome.assessment.sentence.workload import INCOMPLETE_MIN, incomplete_gangs
from fairlead.whatif.outcome.assessment.verdict import Finding, OutcomeKind, Verdict
from fairlead.whatif.outcome.outage import LostPod
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.scheduling_message import reasons_in_words
from fairlead.whatif.outcome.workload import POD

_NONE_PENDING: Final = "No pod is pending at the end"
_EXCEPT: Final = "except pods with a negative priority"


def run_verdict(outcome: RunOutcome) -> Verdict:
    """Return the findings about the run with this outcome, the most severe first.

    If there is nothing to report, the only finding says that no pod is pending.
    """
    found = [
        Finding(kind, sentence) for kind, row in _TABLE if (sentence := row(outcome)) is not None
    ]
    return Verdict(tuple(found or [Finding(OutcomeKind.NONE_PENDING, f"{_NONE_PENDING}.")]))


def _loop(outcome: RunOutcome) -> str | None:
    lasting = last_reports(one for one in outcome.loops if not is_over(one, outcome))
    if not lasting:
        return None
    others = len(lasting) - 1
    more = f"; {counted(others, 'more loop')} of displacements" if others else ""
    return f"{lasting_loop(lasting[0])}{more}."


def _repeated(outcome: RunOutcome) -> str | None:
    ended = past_loops(outcome.loops, outcome)
    return past_loop(ended[0], outcome) if ended else None


def _undrained(outcome: RunOutcome) -> str | None:
    if not outcome.blocking:
        return None
    return f"A drain does not complete: {causes(outcome.blocking)}."


def _data_deleted(outcome: RunOutcome) -> str | None:
    return data_deletion(outcome.deleted_claims)


def _pending(outcome: RunOutcome) -> str | None:
    pods = [pod for pod in outcome.pending if not pod.has_negative_priority]
    if not pods:
        return None
    return f"{counted_of(len(pods), len(outcome.pods), 'pod')} {_pending_words(outcome, pods)}"


def _negative_priority_pending(outcome: RunOutcome) -> str | None:
    pods = [pod for pod in outcome.pending if pod.has_negative_priority]
    if not pods:
        return None
    are = f"{counted(len(pods), 'pod')} with a negative priority"
    verb = "is" if len(pods) == 1 else "are"
    return f"{are} {verb} {_pending_words(outcome, pods)}"


def _pending_words(outcome: RunOutcome, pods: Sequence[PodEnd]) -> str:
    """Return the end of a sentence that says that `pods` are pending, and why."""
    awaits = outcome.awaits_nodes(pods)
    pending = pending_while_scaling(outcome) if awaits else "pending at the end"
    why = reasons_in_words(pod.reason for pod in pods)
    return f"{pending}{why}.{autoscaler_reasons(outcome, pods)}"


def _error(outcome: RunOutcome) -> str | None:
    errors = [one for one in outcome.errors if not one.is_over]
    if not errors:
        return None
    first, others = errors[0], len(errors) - 1
    more = f"; {counted(others, 'more object')} with errors" if others else ""
    return f"{first.subject}: {first.message.rstrip('.')}{more}."


def _gone(outcome: RunOutcome) -> str | None:
    return gone_for_good(_gone_pods(outcome))


def _gone_pods(outcome: RunOutcome) -> list[PodEnd]:
    """Return the displaced pods that have no controller and do not exist at the end."""
    known = {*outcome.pods, *(pod.key for pod in outcome.completed_and_deleted)}
    displaced = {pod.key: pod for pod in outcome.displaced}
    return [pod for key, pod in displaced.items() if pod.workload.kind == POD and key not in known]


def _down(outcome: RunOutcome) -> str | None:
    return not_back(_lost(outcome))


def _lost(outcome: RunOutcome) -> list[LostPod]:
    """Return the pods that should run again after their nodes failed, but do not.

    Pending pods and gone pods (`_gone_pods`) are left out, because other findings are about them.
    """
    if outcome.outage is None:
        return []
    known = {pod.key for pod in (*outcome.pending, *_gone_pods(outcome))}
    return [one for one in outcome.outage.not_back if one.pod not in known]


def _unfinished(outcome: RunOutcome) -> str | None:
    end = f"{for_readers(seconds(outcome.virtual_seconds))}, when the simulation ends"
    starting = still_not_running(outcome, returning(_lost(outcome)), end)
    found = (unfinished_drain(outcome, end), starting)
    return " ".join(one for one in found if one) or None


def _breached(outcome: RunOutcome) -> str | None:
    if not outcome.pdb_breaches:
        return None
    budgets = list(dict.fromkeys(one.pdb for one in outcome.pdb_breaches))
    number = len(outcome.pdb_breaches)
    are = "is" if number == 1 else "are"
    times = "when it allows" if len(budgets) == 1 else "when they allow"
    return (
        f"{_budgets(budgets)} breached: {counted(number, 'pod')} {are} displaced {times} "
        "no more disruptions."
    )


def _budgets(names: Sequence[str]) -> str:
    noun, are = ("Budget", "is") if len(names) == 1 else ("Budgets", "are")
    return f"{noun} {listed(names, NAMES_MAX)} {are}"


def _displaced(outcome: RunOutcome) -> str | None:
    preempted, evicted = len(outcome.preempted), len(outcome.evicted)
    parts = [
        f"{counted(number, 'pod')} {'is' if number == 1 else 'are'} {how}"
        for number, how in ((preempted, "preempted"), (evicted, "evicted"))
        if number
    ]
    return f"{' and '.join(parts)}." if parts else None


def _gangs(outcome: RunOutcome) -> str | None:
    gangs = outcome.jobs.gangs
    if not gangs.gangs:
        return None
    started = sum(len(one.waits) for one in gangs.waits)
    starts = counted_of(started, gangs.gangs, "gang", ("starts", "start"))
    finish = "finishes" if gangs.finished == 1 else "finish"
    are = "is" if gangs.broken == 1 else "are"
    broken = f"; {gangs.broken:,} {are} broken by preemption" if gangs.broken else ""
    return f"{starts}, and {gangs.finished:,} {finish}{broken}."


def _incomplete_gang(outcome: RunOutcome) -> str | None:
    times = outcome.jobs.gangs.incomplete_for
    return incomplete_gangs({one: time for one, time in times.items() if time >= INCOMPLETE_MIN})


def _none_pending(outcome: RunOutcome) -> str | None:
    if not all(pod.has_negative_priority for pod in outcome.pending):
        return None
    none = f"{_NONE_PENDING} ({_EXCEPT})" if outcome.pending else _NONE_PENDING
    broken = outcome.failed_nodes.union(one.name for one in outcome.nodes if not one.is_ready)
    placed = sum(pod.node not in broken for pod in outcome.placed)
    completed = len(outcome.completed)
    if not placed:
        return f"{none}: {counted(completed, 'pod')} completed." if completed else None
    ended = f", and {completed:,} completed" if completed else ""
    return f"{none}: {counted(placed, 'pod')} on nodes{ended}."


_Row = Callable[[RunOutcome], str | None]
_TABLE: Final[Sequence[tuple[OutcomeKind, _Row]]] = (
    (OutcomeKind.LOOP, _loop),  # never ends
    (OutcomeKind.UNDRAINED, _undrained),  # a request that is not completed
    (OutcomeKind.DATA_DELETED, _data_deleted),  # damage that nothing can undo
    (OutcomeKind.PENDING, _pending),  # damage that remains at the end
    (OutcomeKind.ERROR, _error),
    (OutcomeKind.GONE, _gone),
    (OutcomeKind.DOWN, _down),
    (OutcomeKind.UNFINISHED, _unfinished),  # may disappear after the end of the run
    (OutcomeKind.BREACHED, _breached),  # temporary damage
    (OutcomeKind.INCOMPLETE_GANG, _incomplete_gang),
    (OutcomeKind.REPEATED, _repeated),
    (OutcomeKind.NONE_PENDING, _none_pending),  # harmless; the most general comes first
    (OutcomeKind.GANGS, _gangs),
    (OutcomeKind.DISPLACED, _displaced),
    # Pods that exist to give way, so that they are not the main result of a run.
    (OutcomeKind.NEGATIVE_PRIORITY_PENDING, _negative_priority_pending),
)

"""Verdict: the result of a what-if in one sentence, from an ordered table of outcomes.

Each row of the table that applies is a finding; the first is the verdict. Rows are ordered by
severity. Loops that never end come first, then drains that are refused or not completed, deleted
data, and workloads without any ready pod. Then come other damage that remains at the end, temporary
damage, and harmless effects. Displaced and pending pods with a negative priority come last: they
exist to give way to other pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT, STATEFUL_SET
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome, ReplicaShortage
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.difference import WAITS_FOR_LOWER
from fairlead.whatif.outcome.comparison.effect import Effect, by_reason
from fairlead.whatif.outcome.comparison.pod_role import is_kept
from fairlead.whatif.outcome.comparison.waited_pod import AwaitedReturn, WaitedPod, only_waited
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect, expected_rollout
from fairlead.whatif.outcome.outage import LossCause, LostPod, expected_duration
from fairlead.whatif.outcome.packing import NODES_IN_USE, PRICE, ROOM, PackingRow
from fairlead.whatif.outcome.run_outcome import (
    FAILED,
    KEPT_RESOURCES,
    REJECTIONS,
    UNSTOPPED,
    WASTED,
    DeletedClaim,
    ObjectError,
    PodEnd,
    Recurrence,
    RunOutcome,
    Undrained,
    UndrainedCause,
)
from fairlead.whatif.outcome.scheduling_message import reasons_in_words, with_explanation
from fairlead.whatif.outcome.workload import POD

NAMES_MAX: Final = 2
_PENDING: Final = "Pending"  # a phase
_NEGATIVE: Final = " (negative priority)"
_HELD_BACK_BY: Final = {  # {kind of a workload: why it creates no pods}
    STATEFUL_SET.kind: WAITS_FOR_LOWER,
    DEPLOYMENT.kind: "the Deployment is paused and has no ReplicaSet",
}
INCOMPLETE_MIN: Final = seconds(60)
"""From this time on, a gang with too few running members is reported; less is a slow start."""
_MAY_RETURN: Final = (LossCause.STARTING, LossCause.NOT_YET)
"""The causes of losses that a longer run may end."""


class OutcomeKind(StrEnum):
    """The kinds of outcome, the most severe first, as in `_TABLE`.

    Only single runs have the kinds NONE_PENDING and GANGS (`run_verdict`).
    """

    LOOP = "loop"
    REFUSED = "refused"
    UNDRAINED = "undrained"
    DATA_DELETED = "data_deleted"
    UNAVAILABLE = "unavailable"
    PENDING = "pending"
    ERROR = "error"
    GONE = "gone"
    NOT_CREATED = "not_created"
    DOWN = "down"
    UNFINISHED = "unfinished"
    REPLACEMENTS_REFUSED = "replacements_refused"
    BREACHED = "breached"
    BRIEFLY_UNAVAILABLE = "briefly_unavailable"
    INCOMPLETE_GANG = "incomplete_gang"
    REPEATED = "repeated"
    RESCALED = "rescaled"
    LIMITED = "limited"
    NONE_PENDING = "none_pending"
    GANGS = "gangs"
    REPACKED = "repacked"
    DISPLACED = "displaced"
    UPDATED = "updated"
    STARTED = "started"
    COMPLETED = "completed"
    REMOVED = "removed"
    MOVED = "moved"
    SCALED = "scaled"
    BUDGET_CHANGED = "budget_changed"
    INTERRUPTED = "interrupted"
    RESIZED = "resized"
    CLAIMS_DELETED = "claims_deleted"
    NEGATIVE_PRIORITY_DISPLACED = "negative_priority_displaced"
    NEGATIVE_PRIORITY_PENDING = "negative_priority_pending"
    UNCHANGED = "unchanged"


_WARNINGS: Final = (
    OutcomeKind.REPLACEMENTS_REFUSED,
    OutcomeKind.BREACHED,
    OutcomeKind.BRIEFLY_UNAVAILABLE,
    OutcomeKind.INCOMPLETE_GANG,
    OutcomeKind.REPEATED,
    OutcomeKind.RESCALED,
    OutcomeKind.LIMITED,
    OutcomeKind.NEGATIVE_PRIORITY_PENDING,
)


class Severity(StrEnum):
    """How harmful an outcome is to users and workloads: bad, warning or good."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"


class Finding(Struct, frozen=True):
    """An outcome that occurs: its kind, and a sentence that states it."""

    kind: OutcomeKind
    sentence: str

    @property
    def severity(self) -> Severity:
        """The severity of this kind of finding: bad, warning or good."""
        rank = list(OutcomeKind).index(self.kind)
        if rank <= list(OutcomeKind).index(OutcomeKind.UNFINISHED):
            return Severity.BAD
        return Severity.WARNING if self.kind in _WARNINGS else Severity.GOOD


class Verdict(Struct, frozen=True):
    """All outcomes that occur, the most severe first; UNCHANGED if no outcome occurs.

    NEGATIVE_PRIORITY_PENDING is always last, although some outcomes before it are harmless.
    """

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The most severe finding, which is the verdict."""
        return self.findings[0]


def verdict_of(effect: Effect) -> Verdict:
    """Return the verdict with all outcomes that `effect` has."""
    found = [
        Finding(kind, sentence) for kind, row in _TABLE if (sentence := row(effect)) is not None
    ]
    return Verdict(tuple(found or [Finding(OutcomeKind.UNCHANGED, _unchanged(effect))]))


def _unchanged(effect: Effect) -> str:
    """Return text that says that nothing changes, and what stays the same in both runs.

    If a part of the change is not simulated, the text names this part.
    """
    but = f", but {effect.unsimulated} is not simulated" if effect.unsimulated else ""
    text = f"Nothing changes for any pod{but}."
    if pending := len(effect.changed.pending):
        text += f" {counted(pending, 'pod')} {'stays' if pending == 1 else 'stay'} pending."
    if shortages := effect.shortages_of_both:
        text += f" In both runs, {_shortage(shortages)}"
    before, after = effect.without.autoscaling, effect.changed.autoscaling
    if before is None or after is None or not after.transitions:
        return text
    # Imported only if it is needed.
    from fairlead.whatif.outcome.autoscaling.node_group import transition_words  # noqa: PLC0415

    words = transition_words(after.transitions)
    if words != transition_words(before.transitions):
        return text
    return f"{text} In both runs, {after.autoscaler} {words}."


# --- the rows ----------------------------------------------------------------------------------


def _loop(effect: Effect) -> str | None:
    lasting = last_reports(one for one in effect.loops if not is_over(one, effect.changed))
    if not lasting:
        return None
    first = lasting[0]
    if first.kind == "cycle":
        return f"Workloads displace one another in a cycle: {first.message}."
    return f"{lasting_loop(first)}."


def _repeated(effect: Effect) -> str | None:
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
    """Return whether the loop of displacements `one` ended, and `run` settled after it.

    The loop ended if all wanted pods of its workload are ready at the end of the run. In a
    DaemonSet, no rejected pod may be left either. Rejected pods do not count as wanted pods.

    Preemptions for a pod that does not use the freed room (WASTED) end when the run settles or the
    pod runs.
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


def _rescaled(effect: Effect) -> str | None:
    """Return a sentence about autoscalers that do not keep the replicas that the change sets."""
    before = {one.autoscaler: one.replicas_before for one in effect.without.pod_autoscalers}
    found = [
        one
        for one in effect.changed.pod_autoscalers
        if one.replicas_before != before.get(one.autoscaler, one.replicas_before)
        and one.replicas not in (None, one.replicas_before)
    ]
    if not found:
        return None
    first, others = found[0], len(found) - 1
    more = _and_more(others, "autoscaler", "does the same", "do the same")
    return (
        f"HorizontalPodAutoscaler {first.autoscaler} scales {first.workload} from "
        f"{first.replicas_before:,} to {first.replicas:,} replicas (limits {first.minimum:,} and "
        f"{first.maximum:,}){more}."
    )


def _limited(effect: Effect) -> str | None:
    """Return a sentence about autoscalers that need more than maxReplicas because of the change."""
    found = effect.replica_shortages
    return _shortage(found) if found else None


def _shortage(found: Sequence[tuple[PodAutoscalerOutcome, ReplicaShortage]]) -> str:
    """Return a sentence about autoscalers that need more than maxReplicas."""
    (first, shortage), others = found[0], len(found) - 1
    how_long = f"for {for_readers(shortage.lasted)}" if shortage.is_over else "until the end"
    more = _and_more(others, "autoscaler", "lacks replicas", "lack replicas")
    return (
        f"HorizontalPodAutoscaler {first.autoscaler} needs up to {shortage.proposed:,} replicas "
        f"{how_long}, but its maxReplicas is {first.maximum:,}{more}."
    )


def _scaled(effect: Effect) -> str | None:
    """Return a sentence about workloads whose range of replicas differs between the runs."""
    found = effect.replica_ranges
    if not found:
        return None
    first, others = found[0], len(found) - 1
    more = _and_more(others, "workload", "has another range", "have another range")
    return (
        f"{first.workload} has {first.changed} replicas over time instead of {first.without} "
        f"(HorizontalPodAutoscaler {first.autoscaler}){more}."
    )


def _and_more(others: int, noun: str, one: str, several: str) -> str:
    """Return the end of a sentence, such as `; 2 more autoscalers do the same`.

    `others` is the number after the semicolon, and `noun` is the singular of the noun. `one` is the
    predicate for one object, and `several` is the predicate for more than one. Return "" if
    `others` is 0.
    """
    if not others:
        return ""
    return f"; {counted(others, f'more {noun}')} {one if others == 1 else several}"


def _refused(effect: Effect) -> str | None:
    refused, nodes = effect.drain.refused, effect.drain.nodes
    if not refused:
        return None
    errors = " ".join(one.message for one in refused)
    missing = [one.flag for one in effect.drain.needed if f"use {one.flag} to" in errors]
    why = f"it needs {' and '.join(missing)}" if missing else refused[0].summary
    where = refused[0].node if len(nodes) == 1 else f"{len(refused):,} of {len(nodes):,} nodes"
    return f"kubectl drain refuses {where}: {why}."


def _undrained(effect: Effect) -> str | None:
    undrained, drains = effect.changed.blocking, effect.changed.drains
    if not undrained:
        return None
    blocking = [one.pdb for one in effect.budgets if one.blocked]
    why = f" because of {_plural(len(blocking), 'budget')} {_names(blocking)}" if blocking else ""
    if not drains:
        return f"The drain does not complete: {causes(undrained, why)}."
    back = sum(one.back_at is not None for one in drains)
    blocked = {one.pod.node for one in undrained}
    waiting = sum(one.back_at is None and one.node in blocked for one in drains)
    rest = [one for one in drains if one.back_at is None and one.node not in blocked]
    away = sum(one.begun_at is not None for one in rest)
    unbegun = len(rest) - away
    more = f", {away:,} {'is' if away == 1 else 'are'} not back" if away else ""
    more += (
        f", {unbegun:,} {'waits for its' if unbegun == 1 else 'wait for their'} turn"
        if unbegun
        else ""
    )
    return (
        f"The rolling drain does not complete: {counted_of(back, len(drains), 'node')} back, "
        f"{waiting:,} {'is' if waiting == 1 else 'are'} not empty{why}{more}."
    )


def causes(undrained: Sequence[Undrained], why: str = "") -> str:
    """Return why the `undrained` pods stay; `why` is the reason for refused evictions."""
    return ", ".join(_causes(undrained, why))


def _causes(undrained: Sequence[Undrained], why: str) -> Iterator[str]:
    """Yield why the `undrained` pods stay; `why` is the reason for refused evictions."""
    for cause in UndrainedCause:
        found = [one for one in undrained if one.cause is cause]
        if not found:
            continue
        ending = "s" if len(found) == 1 else ""
        match cause:
            case UndrainedCause.REFUSED:
                what = f"cannot be evicted{why}"
            case UndrainedCause.UNSTOPPED:
                what = f"never stop{ending} ({UNSTOPPED})"
            case UndrainedCause.KEPT | UndrainedCause.PROTECTED | UndrainedCause.STOPPING:
                what = f"stay{ending}: {found[0].why}"
        nodes = counted(len({one.pod.node for one in found}), "node")
        yield f"{_pods(len(found))} on {nodes} {what}"


def _data_deleted(effect: Effect) -> str | None:
    return data_deletion(effect.deleted_claims)


def data_deletion(claims: Iterable[DeletedClaim]) -> str | None:
    """Return sentences about the deleted `claims` whose data is lost; None if there are none."""
    lost = [one for one in claims if not one.keeps_data]
    sentences = [
        f"{_deletion(found)}, {_lost_data(found)}: {_names([one.claim for one in found])}."
        for found in _by_use(lost)
    ]
    return " ".join(sentences) or None


def _by_use(claims: Sequence[DeletedClaim]) -> Iterator[list[DeletedClaim]]:
    """Yield the claims that are gone, and the claims that pods still use; leave out empty lists."""
    for is_in_use in (False, True):
        if found := [one for one in claims if one.is_in_use is is_in_use]:
            yield found


def _deletion(claims: Sequence[DeletedClaim]) -> str:
    """Return a clause that `claims` are deleted; either all of them are in use, or none."""
    verb, pod = ("is", "its pods") if len(claims) == 1 else ("are", "their pods")
    when = f" as soon as {pod} are gone, which nothing can undo" if claims[0].is_in_use else ""
    return f"{_claims(claims)} {verb} deleted{when}"


def _lost_data(lost: Sequence[DeletedClaim]) -> str:
    """Return a clause about the volumes of the claims `lost`."""
    verb, volumes = ("is", "its volume") if len(lost) == 1 else ("are", "their volumes")
    if not all(one.reclaim_policy for one in lost):
        return f"perhaps with {volumes} (the dump lacks the reclaim policy)"
    return f"and so {verb} {volumes} with all data"


def _claims_deleted(effect: Effect) -> str | None:
    kept = [one for one in effect.deleted_claims if one.keeps_data]
    sentences = [
        f"{_deletion(found)}, and no volume: {_names([one.claim for one in found])}."
        for found in _by_use(kept)
    ]
    return " ".join(sentences) or None


def _claims(claims: Sequence[DeletedClaim]) -> str:
    return counted(len(claims), "PersistentVolumeClaim")


def _pending(effect: Effect) -> str | None:
    pods = [pod for pod in effect.difference.pending if not pod.has_negative_priority]
    if not pods:
        return None
    workloads = (one for one in effect.workloads if not one.has_negative_priority)
    rest = f"{_taken_room(effect)}{_incomplete_gangs(effect)}{_later_pods(effect)}"
    return f"{_pods_of(pods)} {_pending_words(effect, pods)}{rest}{_pending_rollouts(workloads)}"


def _negative_priority_pending(effect: Effect) -> str | None:
    """Return a sentence about pending pods with a negative priority; None if there are none."""
    pods = [pod for pod in effect.difference.pending if pod.has_negative_priority]
    if not pods:
        return None
    workloads = (one for one in effect.workloads if one.has_negative_priority)
    words = f"{_pending_words(effect, pods)}{_pending_rollouts(workloads)}"
    return f"{_pods_of(pods)}{_NEGATIVE} {words}"


def _pending_words(effect: Effect, pods: Sequence[PodEnd]) -> str:
    """Return the predicate about the pending `pods`, their reasons, and those of the autoscaler."""
    stay = "stays pending" if len(pods) == 1 else "stay pending"
    if effect.changed.awaits_nodes(pods):
        stay = f"{'is' if len(pods) == 1 else 'are'} {pending_while_scaling(effect.changed)}"
    why = reasons_in_words(pod.reason for pod in pods)
    return f"{stay}{why}.{autoscaler_reasons(effect.changed, pods)}"


def _pending_rollouts(workloads: Iterable[WorkloadEffect]) -> str:
    return _stopped_rollouts(one for one in workloads if one.pending)


def _taken_room(effect: Effect) -> str:
    """Return a sentence about pods that took the room of pending pods on nodes that returned.

    The pending pods ran on these nodes until the nodes failed. The sentence begins with a space; it
    is "" if there are no such pods.
    """
    found, outage = effect.difference, effect.changed.outage
    if outage is None:
        return ""
    pending = {pod.key for pod in found.pending if not pod.has_negative_priority}
    left = {one.node for one in found.evicted if one.pod.key in pending}
    back = left.intersection(one.node for one in outage.nodes if one.back_at is not None)
    taken = [pod for pod in found.placed if pod.node in back and not pod.belongs_to_node]
    if not taken:
        return ""
    nodes = {pod.node for pod in taken}
    when = f"{next(iter(nodes))} returned" if len(nodes) == 1 else "failed nodes returned"
    verb = "was" if len(taken) == 1 else "were"
    return f" When {when}, {_pods_of(taken)} {verb} placed there first."


def autoscaler_reasons(run: RunOutcome, pods: Iterable[PodEnd]) -> str:
    """Return sentences about limits and rules that stop the autoscaler from helping `pods`.

    `pods` are pending. The text begins with a space. Returns "" if there are no such limits or
    rules. Topology constraints are such rules.
    """
    found = run.autoscaling
    if found is None or not (found.limits or found.ignored or found.waiting):
        return ""
    # Imported only if it is needed.
    from fairlead.whatif.outcome.autoscaling.reached_limit import without_node_words  # noqa: PLC0415

    words = without_node_words(found, [pod.key for pod in pods])
    return f" {words}" if words else ""


def pending_while_scaling(run: RunOutcome) -> str:
    """Return a clause for pending pods for which an autoscaler may still add nodes."""
    acting = run.acting_autoscaler
    return f"pending when the simulation ends, while {acting} adds and removes nodes"


def _incomplete_gangs(effect: Effect) -> str:
    """Return a sentence about gangs of which too few members run at the end, or ""."""
    known = {group.group for group in effect.without.jobs.incomplete}
    found = [group for group in effect.changed.jobs.incomplete if group.group not in known]
    if not found:
        return ""
    names = _names([f"{one.title} ({one.ready} of {one.minimum} members)" for one in found])
    gangs = "Gang" if len(found) == 1 else "Gangs"
    verb = "has" if len(found) == 1 else "have"
    return f" {gangs} {names} {verb} fewer running members than the minimum."


def _incomplete_for_a_time(effect: Effect) -> str | None:
    """Return a sentence about gangs of which too few members ran for a time, or None.

    A time counts only if the change makes it longer by at least INCOMPLETE_MIN. The gangs that
    `_incomplete_gangs` names are left out.
    """
    found, without = effect.difference, effect.without.jobs
    known = {one.group for one in without.incomplete}
    if found.pending or found.gone:
        known.update(one.group for one in effect.changed.jobs.incomplete)
    before = without.gangs.incomplete_for
    return incomplete_gangs(
        {
            group: lasted
            for group, lasted in effect.changed.jobs.gangs.incomplete_for.items()
            if group not in known and lasted - before.get(group, 0) >= INCOMPLETE_MIN
        }
    )


def incomplete_gangs(lasted: Mapping[str, DurationNs]) -> str | None:
    """Return a sentence about gangs and the times for which too few of their members ran.

    Return None if there are none. The gang with the longest time comes first.
    """
    if not lasted:
        return None
    groups = sorted(lasted, key=lambda group: (-lasted[group], group))
    longest = for_readers(lasted[groups[0]])
    if len(groups) == 1:
        return f"Gang {groups[0]} runs with fewer members than its minimum for {longest}."
    names = _names(groups)
    return f"Gangs {names} run with fewer members than their minimum, for up to {longest}."


def _later_pods(effect: Effect) -> str:
    """Return a sentence about pods that StatefulSets create only after pending pods are ready.

    Return "" if there are none.
    """
    kind = STATEFUL_SET.kind
    rows = [one for one in effect.workloads if one.workload.kind == kind and one.missing]
    rows = [one for one in rows if one.pending]
    if not rows:
        return ""
    count, names = sum(one.missing for one in rows), _names([str(one.workload) for one in rows])
    whose, verb = ("its", "creates") if len(rows) == 1 else ("their", "create")
    is_one = sum(one.pending for one in rows) == 1
    their = f"{whose} pending pod is" if is_one else f"{whose} pending pods are"
    return f" {names} {verb} {counted(count, 'more pod')} only after {their} ready (OrderedReady)."


def _stopped_rollouts(workloads: Iterable[WorkloadEffect]) -> str:
    """Return a sentence about the rollouts of `workloads` that do not finish; "" if all finish."""
    rows = [one for one in workloads if one.outdated]
    if not rows:
        return ""
    count = sum(one.outdated for one in rows)
    keep = "keeps" if count == 1 else "keep"
    does, names = "does" if len(rows) == 1 else "do", _names([str(one.workload) for one in rows])
    rollouts = _plural(len(rows), "rollout")
    return f" The {rollouts} of {names} {does} not finish: {_pods(count)} {keep} the old template."


def _replacements_refused(effect: Effect) -> str | None:
    """Return sentences about workloads whose new pods would be refused from now on.

    Workloads that already lack refused pods are left out: other sentences are about them.
    """
    lacking = {one.workload for one in effect.lasting_errors}
    refused = [one for one in effect.refused_replacements if one.workload not in lacking]
    groups = sorted(by_reason(refused).items(), key=lambda group: (-len(group[1]), group[0]))
    if not groups:
        return None
    (reason, rows), *others = groups
    names = _names([str(one.workload) for one in rows])
    sentence = f"From now on, new pods of {names} are refused, including replacements: {reason}."
    count = sum(len(one) for _, one in others)
    more = f" So are new pods of {counted(count, 'more workload')}, for other reasons."
    return sentence + (more if count else "")


def _error(effect: Effect) -> str | None:
    """Return sentences about failed Jobs, Jobs that can no longer succeed, and all other errors.

    If there are no errors, return a sentence about failed pods. If there are no failed pods either,
    return None.
    """
    errors = effect.lasting_errors
    if not errors:
        return _failed(effect)
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
        rollouts = _stopped_rollouts(one for one in rows if not one.pending)
        message = first.message.rstrip(".") + "." if rollouts else first.message
        return f"{_pods(count)} of {whose} {verb} not created: {message}{rollouts}"
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


def _failed(effect: Effect) -> str | None:
    """Return a sentence about failed new pods that have no controller; None if there are none."""
    completed = effect.difference.completed
    pods = [pod for pod in completed if pod.has_failed and pod.workload.kind == POD]
    return f"{_pods_of(pods)} {_end(effect, pods, 'fail')}." if pods else None


def _gone(effect: Effect) -> str | None:
    found = gone_for_good(effect.difference.gone)
    # The sentence about pending pods, if there is one, names the gangs.
    gangs = "" if found is None or effect.difference.pending else _incomplete_gangs(effect)
    return found and f"{found}{gangs}"


def gone_for_good(pods: Sequence[PodEnd]) -> str | None:
    """Return a sentence about `pods`, which nothing replaces; None if `pods` is empty."""
    if not pods:
        return None
    verb = "is" if len(pods) == 1 else "are"
    return f"{_pods(len(pods))} {verb} gone for good: nothing replaces {_names(_keys(pods))}."


def _not_created(effect: Effect) -> str | None:
    return " ".join(filter(None, (_not_replaced(effect), _held_back(effect)))) or None


def _not_replaced(effect: Effect) -> str | None:
    """Return a sentence about displaced pods that are not created again; None if there are none."""
    pods = effect.difference.not_created
    if not pods:
        return None
    verb = "is" if len(pods) == 1 else "are"
    awaited = list(dict.fromkeys(one.waits_for for one in pods if one.waits_for))
    refused = {one.workload for one in effect.errors}
    why = f": the StatefulSet waits for {_names(awaited)}" if awaited else ""
    if not why:
        why = _old_pods_stay([one.pod for one in pods], effect.changed)
    if not why and all(_is_ordered(one.pod) and one.pod.workload not in refused for one in pods):
        why = f": {WAITS_FOR_LOWER}"
    others = (one for one in effect.workloads if one.not_created)
    rollouts = _stopped_rollouts(one for one in others if not (one.pending or one.missing))
    return f"{_pods_of([one.pod for one in pods])} {verb} not created again{why}.{rollouts}"


def _held_back(effect: Effect) -> str | None:
    """Return sentences about the pods that the workloads `effect.held_back` lack, or None."""
    sentences = []
    for kind, why in _HELD_BACK_BY.items():
        if rows := [one for one in effect.held_back if one.workload.kind == kind]:
            count = sum(one.missing for one in rows)
            names, verb = _names([str(one.workload) for one in rows]), "is" if count == 1 else "are"
            each = why if len(rows) == 1 else why.replace("the ", "each ", 1)
            sentences.append(f"{_pods(count)} of {names} {verb} not created: {each}.")
    return " ".join(sentences) or None


def _old_pods_stay(pods: Sequence[PodEnd], run: RunOutcome) -> str:
    """Return a clause that the deleted `pods` have not stopped; "" if one of them is gone."""
    ends = [run.pods.get(pod.key) for pod in pods]
    leaving = [end for end in ends if end is not None and end.is_terminating]
    if len(leaving) < len(pods):
        return ""
    silent = {node.name for node in run.nodes if not node.is_ready}
    are, have = ("the old pod", "has") if len(pods) == 1 else ("the old pods", "have")
    if all(pod.node in silent for pod in leaving):
        never = "never stops" if len(pods) == 1 else "never stop"
        return f": {are} {never}, because the kubelet of the node does not answer"
    return f": {are} {have} not stopped"


def _is_ordered(pod: PodEnd) -> bool:
    return pod.workload.kind == STATEFUL_SET.kind


def _down(effect: Effect) -> str | None:
    pending = {pod.key for pod in effect.difference.pending}
    gone = {pod.key for pod in effect.difference.gone}
    awaited = {one.pod.key for one in effect.difference.not_created}
    return not_back([one for one in effect.lost if one.pod not in pending | gone | awaited])


def not_back(lost: Sequence[LostPod]) -> str | None:
    """Return a sentence about the `lost` pods; None if a longer run may bring all of them back."""
    if all(one.cause in _MAY_RETURN for one in lost):
        return None
    causes = Counter(one.cause.words for one in lost).most_common()
    words = ", ".join(f"{cause} ({count:,})" for cause, count in causes)
    words = causes[0][0] if len(causes) == 1 else words
    verb = "is" if len(lost) == 1 else "are"
    return f"{_pods(len(lost))} of failed nodes {verb} not back: {words}."


def _unfinished(effect: Effect) -> str | None:
    after = for_readers(seconds(effect.changed.virtual_seconds))
    drain = unfinished_drain(effect.changed, f"{after}, when the simulation ends (--horizon)")
    if drain and effect.changed.drains:  # pods of a rolling drain start all the time
        return drain
    rollouts, starting = _unfinished_rollouts(effect, after), _still_starting(effect, after)
    found = (drain, _unreplaced(effect), rollouts, starting)
    return " ".join(one for one in found if one) or None


def _unreplaced(effect: Effect) -> str:
    """Return a sentence about drifted nodes that Karpenter has not replaced; "" if there are none.

    The most frequent reason comes first.
    """
    if not effect.unreplaced:
        return ""
    nodes = counted(len(effect.unreplaced), "drifted node")
    counts = Counter(_without_pods(why) for why in effect.unreplaced.values() if why)
    reasons = [f"{why} ({counted(count, 'node')})" for why, count in counts.most_common()]
    because = f": {listed(reasons)}" if reasons else ""
    return f"At the end, Karpenter has not replaced {nodes}{because}."


def _without_pods(why: str) -> str:
    """Return Karpenter's reason `why` without the pods that it names."""
    return why.partition(" (Pod=")[0].partition(", ")[0]


def unfinished_drain(changed: RunOutcome, end: str) -> str:
    """Return a sentence about a drain that continues after the run; "" if no drain continues.

    `end` is the text for the end of the run, for example "3m, when the simulation ends".
    """
    drains, stopping = changed.drains, _stopping(changed)
    if changed.blocking:
        return ""
    if any(one.back_at is None for one in drains):
        back = sum(one.back_at is not None for one in drains)
        expected = expected_duration(drains) if back else None
        pace = "" if expected is None else f"; at this pace, it takes {for_readers(expected)}"
        return (
            f"The rolling drain is not finished after {end}: "
            f"{counted_of(back, len(drains), 'node')} back{stopping and f', {stopping}'}{pace}."
        )
    if not stopping:
        return ""
    return f"The drain is not finished after {end}: {stopping}."


def _still_starting(effect: Effect, after: str) -> str:
    """Return a sentence about pods that may still start after the run; "" if there are none."""
    waiting = returning(effect.lost) + _not_running(effect)
    return still_not_running(effect.changed, waiting, f"{after}, when the simulation ends")


def returning(lost: Iterable[LostPod]) -> int:
    """Return how many of the `lost` pods may run again in a longer run."""
    return sum(one.cause in _MAY_RETURN for one in lost)


def still_not_running(run: RunOutcome, pods: int, end: str) -> str:
    """Return a sentence that `pods` pods still do not run; "" if `pods` is 0 or `run` settled.

    `end` is the text for the end of the run, for example "3m, when the simulation ends".
    """
    if run.settled or not pods:
        return ""
    return f"{_pods(pods)} {'is' if pods == 1 else 'are'} still not running after {end}."


def _unfinished_rollouts(effect: Effect, after: str) -> str:
    """Return a sentence about rollouts that continue after the run; "" if there are none.

    A rollout also counts if the cluster has settled, but the rollout waits for a pod that is not
    ready. Return "" if pods are pending, because the sentence about these pods names the rollouts.
    """
    rows = [one for one in effect.workloads if one.outdated]
    if effect.difference.pending or not rows:
        return ""
    if effect.changed.settled:
        refused = {one.workload for one in effect.errors}
        return _stopped_rollouts(one for one in rows if one.workload not in refused).strip()
    count = sum(one.outdated for one in rows)
    expected = expected_rollout(rows, seconds(effect.changed.virtual_seconds))
    takes = "the rollout takes" if len(rows) == 1 else "the rollouts take"
    pace = "" if expected is None else f" At this pace, {takes} {for_readers(expected)}."
    return (
        f"The {_plural(len(rows), 'rollout')} of {_names([str(one.workload) for one in rows])} "
        f"{'is' if len(rows) == 1 else 'are'} not finished after {after}, when the simulation ends "
        f"(--horizon): {_pods(count)} {'keeps' if count == 1 else 'keep'} the old template.{pace}"
    )


def _stopping(changed: RunOutcome) -> str:
    """Return a clause about the evicted pods that have not stopped; "" if there are none."""
    found = changed.stopping
    if not found:
        return ""
    nodes = listed(sorted({one.pod.node for one in found}), 2)
    last = max(found, key=lambda one: one.stops_at or 0)
    left = for_readers(max(0, (last.stops_at or 0) - changed.started_at))
    have, whose = ("has", "its") if len(found) == 1 else ("have", "the last")
    return (
        f"{_pods(len(found))} on {nodes} {have} not stopped, and {whose} grace period ends after "
        f"{left} ({last.pod.key})"
    )


def _breached(effect: Effect) -> str | None:
    breached = [one for one in effect.budgets if one.state is BudgetResult.BREACHED]
    if not breached:
        return None
    pods = sum(one.breaches for one in breached)
    names = _names([one.pdb for one in breached])
    verb, allow = ("is", "it allows") if len(breached) == 1 else ("are", "they allow")
    displaced = f"{_pods(pods)} {'is' if pods == 1 else 'are'} displaced"
    return (
        f"{_plural(len(breached), 'Budget')} {names} {verb} breached: {displaced} when {allow} no "
        "more disruptions."
    )


def _unavailable(effect: Effect) -> str | None:
    return _without_ready_pod([one for one in effect.workloads if one.is_unavailable])


def _briefly_unavailable(effect: Effect) -> str | None:
    rows = [one for one in effect.workloads if one.had_no_ready_pod and not one.is_unavailable]
    return _without_ready_pod([one for one in rows if not (one.gone or one.belongs_to_node)])


def _without_ready_pod(found: Sequence[WorkloadEffect]) -> str | None:
    """Return a sentence about the workloads in `found`; None if there are none.

    The sentence names the workloads without a ready pod at the end, if there are any, and counts
    the others: `deploy/a has no ready pod to the end, and 2 more workloads for up to 31s.`

    If there is only one workload, and it has no ready pod at the end, the sentence also gives the
    reasons why its pods do not run.
    """
    if not found:
        return None
    rows = sorted(found, key=_gap, reverse=True)
    endless = sum(one.readiness.lowest_for is None for one in rows)
    named, others = (rows[:endless], rows[endless:]) if endless else (rows, [])
    reasons = with_explanation(", ".join(rows[0].reasons)) if len(rows) == endless == 1 else ""
    why = f": {reasons}" if reasons else ""
    verb = "has" if len(named) == 1 else "have"
    rest = f", and {counted(len(others), 'more workload')} {_how_long(others)}" if others else ""
    names = _names([str(one.workload) for one in named])
    return f"{names} {verb} no ready pod {_how_long(named)}{rest}{why}."


def _how_long(rows: Sequence[WorkloadEffect]) -> str:
    """Return, as text, the longest time that a workload in `rows` was without a ready pod.

    `rows` are sorted by this time, the longest first.
    """
    lasted = rows[0].readiness.lowest_for
    if lasted is None:
        return "to the end"
    if len(rows) == 1:
        return f"for {rows[0].readiness.lowest_for_words}"
    return f"for up to {for_readers(lasted)}"


def _gap(one: WorkloadEffect) -> tuple[bool, DurationNs]:
    """Return a sort key: the time without a ready pod; a time that lasts to the end is longest."""
    lasted = one.readiness.lowest_for
    return lasted is None, lasted or 0


def _repacked(effect: Effect) -> str | None:
    """Return a sentence that compares the placements of both runs; None if --reschedule is not set.

    If both runs have the same placement, the sentence also compares it with the dump. In that case,
    the sentence states the nodes in use and the room for more pods, for the runs and for the dump.
    """
    rows = {one.measure: one for one in effect.packing}
    if not rows:
        return None
    moved = len(effect.difference.moved)
    if not moved and all(one.without == one.changed for one in effect.packing):
        nodes, room = rows[NODES_IN_USE], rows[ROOM]
        unit = "node" if nodes.changed == 1 else "nodes"
        return (
            f"Scheduled again, the pods use {_amount(nodes.changed)} {unit} with and without the "
            f"change (in the dump: {_amount(nodes.today)}). This leaves room for "
            f"{_amount(room.changed)} of the largest pods (in the dump: {_amount(room.today)})."
        )
    price = f", at {_instead(rows[PRICE], ' per hour')}" if PRICE in rows else ""
    where = "is on another node" if moved == 1 else "are on other nodes"
    other = f"; {_pods(moved)} {where}" if moved else ""
    unit = " node" if rows[NODES_IN_USE].changed == 1 else " nodes"
    return (
        f"Scheduled again with the change, the pods use {_instead(rows[NODES_IN_USE], unit)}, "
        f"with room for {_instead(rows[ROOM], ' of the largest pods')}{price}{other}."
    )


def _instead(row: PackingRow, unit: str) -> str:
    """Return the numbers of `row` as text, such as `57 nodes instead of 60`.

    If both numbers are equal, the text is like `60 nodes (as without it)`. `unit`, here ` nodes`,
    follows the first number. The first number is the value with the change, and the second number
    is the value without the change.
    """
    if row.without == row.changed:
        return f"{_amount(row.changed)}{unit} (as without it)"
    return f"{_amount(row.changed)}{unit} instead of {_amount(row.without)}"


def _amount(value: float | None) -> str:
    return "an unknown number" if value is None else f"{value:,}"


def _displaced(effect: Effect) -> str | None:
    back = _recovered(effect)
    awaited = {one.pod.key: one for one in effect.awaited_returns}
    late = [awaited[pod.key] for pod in back if pod.key in awaited]
    negative = _negative_keys(effect)
    back = [pod for pod in back if pod.key not in awaited and pod.key not in negative]
    sentences = (
        _displaced_again(effect, back, negative=False),
        _late(effect, late),
        _displaced_not_started(effect),
    )
    return " ".join(filter(None, sentences)) or None


def _negative_priority_displaced(effect: Effect) -> str | None:
    """Return a sentence about displaced pods with a negative priority that run again, or None."""
    awaited = {one.pod.key for one in effect.awaited_returns}
    negative = _negative_keys(effect)
    pods = [pod for pod in _recovered(effect) if pod.key in negative]
    return _displaced_again(effect, [pod for pod in pods if pod.key not in awaited], negative=True)


def _negative_keys(effect: Effect) -> set[str]:
    """Return the keys of the pods that had a negative priority when they were displaced.

    The pods that replace them can have another priority if the change sets another default. A pod
    on a deleted node is not evicted; it had the priority that it has without the change.
    """
    found, without = effect.difference, effect.without.pods
    # Reversed, so that the first displacement of a pod decides; preemptions come before evictions.
    left = {one.pod.key: one.pod for one in (*found.evicted[::-1], *found.preempted[::-1])}
    pods = (left.get(pod.key) or without.get(pod.key, pod) for pod in found.displaced)
    return {pod.key for pod in pods if pod.has_negative_priority}


def _late(effect: Effect, late: Sequence[AwaitedReturn]) -> str | None:
    """Return a sentence about StatefulSet pods that ran again only when their nodes returned."""
    if not late:
        return None
    after = _time(max(effect.changed.after_start(one.pod.started_at or 0) for one in late))
    owners = _names([str(ref) for ref in dict.fromkeys(one.pod.workload for one in late)])
    are, run = ("is", "runs") if len(late) == 1 else ("are", "run")
    nodes = {one.node for one in late}
    whose = "its" if len(late) == 1 else "their"
    back = f"{whose} failed {'node returns' if len(nodes) == 1 else 'nodes return'}"
    who = f"{_pods(len(late))} of {owners}"
    return f"{who} {are} displaced and {run} again only when {back}, after {after}."


def _displaced_again(effect: Effect, back: Sequence[PodEnd], *, negative: bool) -> str | None:
    """Return a sentence about displaced pods that run again (`back`); None without such pods.

    `negative` tells whether all of them had a negative priority, or none.
    """
    if not back:
        return None
    changed = effect.changed
    after = max(changed.after_start(pod.started_at or 0) for pod in back)
    negative_keys = _negative_keys(effect)
    alike = [one for one in effect.difference.displaced if (one.key in negative_keys) is negative]
    all_of_them = len(back) == len(alike)
    run = "runs again" if len(back) == 1 else "all run again" if all_of_them else "run again"
    victims = (one.pod for one in effect.difference.preempted)
    preempted = len({pod.key for pod in victims if (pod.key in negative_keys) is negative})
    how = f", {preempted:,} by preemption," if preempted and all_of_them else ""
    displaced = "is displaced" if len(back) == 1 else "are displaced"
    when = f" {'after' if len(back) == 1 else 'within'} {_time(after)}"
    # Rolling drains and node autoscalers displace pods over a long time, so that the time since the
    # change is not a time for which pods are down.
    if changed.drains or changed.autoscaling is not None:
        which = "" if len(back) == 1 else "the last one "
        when = f", {which}{_time(after)} after the change"
    who = f"{_pods_of(back)}{_NEGATIVE if negative else ''}{_new_ones(effect, back)}"
    return f"{who} {displaced}{how} and {run}{when}{_waits(effect, back)}."


def _displaced_not_started(effect: Effect) -> str | None:
    """Return a sentence about displaced pods that get a node but do not start, or None.

    The sentence does not include pods of failed nodes; `_down` and `_unfinished` count these pods.
    """
    lost = {one.pod for one in effect.lost}
    ends = (effect.changed.pods.get(pod.key) for pod in effect.difference.displaced)
    failing = [
        pod
        for pod in ends
        if pod is not None and pod.key not in lost and _fails_to_start(pod, effect.changed)
    ]
    if not failing:
        return None
    do = "is displaced and does" if len(failing) == 1 else "are displaced and do"
    return f"{_pods_of(failing)}{_new_ones(effect, failing)} {do} not start, as in the dump."


def _new_ones(effect: Effect, displaced: Sequence[PodEnd]) -> str:
    """Return a clause that says how many of the `displaced` pods are new; "" if none is new.

    New pods have a node only with the change, and did not exist before it. A pod that waits for a
    node in the dump is not new, even if it has a node only with the change.
    """
    without = effect.without.pods
    created = {
        key
        for key in _keys(effect.difference.placed)
        if key not in without or not without[key].is_initial
    }
    new = sum(pod.key in created for pod in displaced)
    if not new:
        return ""
    if new == len(displaced):
        return ", which is new," if new == 1 else ", which are new,"
    return f", {new:,} of them new,"


def _fails_to_start(pod: PodEnd, run: RunOutcome) -> bool:
    """Return whether `pod` has a node but never starts (`FailingRevisions`)."""
    if not pod.is_placed or pod.phase != _PENDING or pod.started_at is not None:
        return False
    return run.settled or (pod.workload, pod.revision) in run.failing_revisions


def _is_rejected(pod: PodEnd, run: RunOutcome) -> bool:
    """Return whether `pod` has not started and kubelets repeatedly reject its workload's pods."""
    rejected = {one.workload for one in run.recurrences if one.kind == REJECTIONS}
    return pod.started_at is None and pod.workload in rejected


def _waits(effect: Effect, back: Sequence[PodEnd]) -> str:
    """Return a clause about the pods in `back` that waited long for a node; "" if none did."""
    keys = set(_keys(back))
    waited = [one for one in effect.waited if one.pod.key in keys]  # the longest wait is first
    if not waited:
        return ""
    longest = for_readers(waited[0].waited)
    if len(back) == 1:
        return f"; it waits {longest} for a node"
    if len(waited) == 1:
        return f"; 1 of them waits {longest} for a node"
    who = "all" if len(waited) == len(back) else f"{len(waited):,} of them"
    return f"; {who} wait up to {longest} for a node"


def _updated(effect: Effect) -> str | None:
    pods = [one.pod for one in effect.difference.replaced]
    if not pods:
        return None
    running = [pod.started_at for pod in pods if pod.started_at is not None]
    took = effect.changed.after_start(max(running)) if len(running) == len(pods) else None
    verb = "is" if len(pods) == 1 else "are"
    within = "" if took is None else f" within {_time(took)}"
    resized = sum(one.is_resize for one in effect.difference.replaced)
    what = "replaced or resized" if resized else "replaced"
    if resized == len(pods):
        what, within = "resized in place", ""
    return f"{_pods_of(pods)} {verb} {what}{within}."


def _started(effect: Effect) -> str | None:
    """Return sentences about pods that have a node only with the change; None if there are none.

    The sentences do not include pods of failed nodes; `_down` and `_unfinished` count these pods.
    New pods that were displaced later are left out, too, because `_displaced` counts them.
    """
    found, changed = effect.difference, effect.changed
    known = {*(one.pod for one in effect.lost), *_keys(found.displaced)}
    placed = [pod for pod in found.placed if pod.key not in known]
    failing = [pod for pod in placed if _fails_to_start(pod, changed)]
    keys = set(_keys(failing))
    others = [pod for pod in placed if pod.key not in keys and not _is_rejected(pod, changed)]
    starts = {pod.key: _first_start(pod, changed) for pod in others}
    starting = [pod for pod in others if starts[pod.key] is None]
    started = [pod for pod in others if starts[pod.key] is not None]
    kept = [pod for pod in started if is_kept(pod, changed)]
    started = [pod for pod in started if not is_kept(pod, changed)]
    own = _of_other_nodes(started, effect.without)
    new_nodes = set(_keys(own))
    pods = [pod for pod in started if pod.key not in new_nodes]
    removed = {pod.workload for pod in found.removed}
    what = "new pod" if any(pod.workload in removed for pod in (*pods, *starting)) else "more pod"
    sentences = []
    if failing:
        do = "gets a node but does" if len(failing) == 1 else "get nodes but do"
        sentences.append(f"{_pods_of(failing, 'more pod')} {do} not start, as in the dump.")
    if starting:
        do = "gets a node but does" if len(starting) == 1 else "get nodes but do"
        sentences.append(f"{_pods_of(starting, what)} {do} not run yet.")
    alone = "" if found.displaced else ", and none is displaced"
    for those, who in ((pods, _pods_of(pods, what)), (own, _pods_of_nodes(own))):
        if those:
            after = _time(changed.after_start(max(starts[pod.key] or 0 for pod in those)))
            verb = "runs" if len(those) == 1 else "run"
            where = _on_new_nodes(own) if those is own else ""
            sentences.append(f"{who} {verb}{where} after {after}{alone}.")
            alone = ""
    if kept:
        sentences.append(_kept(kept))
    return " ".join(sentences) or None


def _kept(pods: Sequence[PodEnd]) -> str:
    """Return a sentence about `pods` that ran before the change and are removed only without it."""
    stay = "stays" if len(pods) == 1 else "stay"
    if not all(pod.own_node for pod in pods):
        return f"{_pods_of(pods)} {stay}, removed only without the change."
    nodes = counted(len({pod.node for pod in pods}), "node")
    return f"{_pods_of_nodes(pods)} {stay} on {nodes}, removed only without the change."


def _of_other_nodes(pods: Iterable[PodEnd], other: RunOutcome) -> list[PodEnd]:
    """Return those of `pods` whose own nodes do not exist in the run `other`.

    Such pods are DaemonSet pods and static pods, which come and go with their nodes.
    """
    return [pod for pod in pods if pod.own_node and pod.own_node not in other.node_names]


def _pods_of_nodes(pods: Sequence[PodEnd], which: str = "") -> str:
    """Return text such as "5 DaemonSet pods"; `pods` are pods of DaemonSets and static pods.

    `which` is text that is inserted after the number.
    """
    daemons = sum(pod.workload.is_daemon_set for pod in pods)
    kinds = ["DaemonSet"] if daemons else []
    kinds += ["static"] if daemons < len(pods) else []
    return counted(len(pods), f"{which}{' or '.join(kinds)} pod")


def _on_new_nodes(pods: Iterable[PodEnd]) -> str:
    nodes = {pod.node for pod in pods}
    return f" on {counted(len(nodes), 'new node')}"


def _first_start(pod: PodEnd, run: RunOutcome) -> Instant | None:
    """Return when the new `pod` first ran in `run`; None if it has not run.

    The first start can differ from the last start, because an autoscaler may have moved the pod
    later.
    """
    first = pod.first_started_at
    has_run = pod.started_at is not None and first is not None and first >= run.started_at
    return first if has_run else pod.started_at


def _completed(effect: Effect) -> str | None:
    pods = [pod for pod in effect.difference.completed if not pod.has_failed]
    return f"{_pods_of(pods)} {_end(effect, pods, 'complete')}." if pods else None


def _end(effect: Effect, pods: Sequence[PodEnd], verb: str) -> str:
    """Return a text such as "run and complete; the last one after 5m".

    If all of `pods` existed already when the run began, the text does not say that they run.
    """
    after = _time(effect.changed.after_start(max(pod.ended_at or 0 for pod in pods)))
    is_known = all(pod.is_initial for pod in pods)
    if len(pods) == 1:
        return f"{'' if is_known else 'runs and '}{verb}s after {after}"
    return f"{'' if is_known else 'run and '}{verb}; the last one after {after}"


def _removed(effect: Effect) -> str | None:
    """Return sentences about deleted pods and never created pods; None without such pods."""
    sentences = []
    never = list(effect.difference.fewer)
    known = {pod.key for pod in never}
    # A rollout that is not finished has deleted pods that it has not replaced yet.
    continuing = {one.workload for one in effect.workloads if one.outdated}
    deleted = [
        pod
        for pod in effect.difference.removed
        if pod.key not in known and pod.workload not in continuing
    ]
    own = _of_other_nodes(deleted, effect.changed)
    deleted = [pod for pod in deleted if pod not in own]
    stuck = [pod for pod in deleted if pod.is_terminating]  # such as pods on a failed node
    deleted = [pod for pod in deleted if not pod.is_terminating]
    if deleted:
        verb = "is" if len(deleted) == 1 else "are"
        sentences.append(f"{_pods_of(deleted)} {verb} removed{_by_failed_jobs(effect, deleted)}.")
    if stuck:
        verb, they = ("is", "it") if len(stuck) == 1 else ("are", "they")
        words = _pods_of(stuck, "terminating pod")
        sentences.append(f"{words} {verb} removed; without the change, {they} would stay.")
    if own:
        verb = "is removed with its" if len(own) == 1 else "are removed with their"
        nodes = "node" if len({pod.own_node for pod in own}) == 1 else "nodes"
        sentences.append(f"{_pods_of_nodes(own)} {verb} {nodes}.")
    # A workload with new pods may have as many pods as without the change, but on other nodes.
    renewed = {pod.workload for pod in effect.difference.placed}
    absent = _of_other_nodes(never, effect.changed)
    never = [pod for pod in never if pod not in absent]
    if fewer := [pod for pod in absent if pod.workload not in renewed]:
        verb = "is" if len(fewer) == 1 else "are"
        words = _pods_of_nodes(fewer, "fewer ")
        sentences.append(f"At the end, there {verb} {words} than without the change.")
    if others := [pod for pod in absent if pod.workload in renewed]:
        verb = "exists" if len(others) == 1 else "exist"
        sentences.append(f"{_pods_of_nodes(others)} {verb} only without the change.")
    if fewer := [pod for pod in never if pod.workload not in renewed]:
        verb = "is" if len(fewer) == 1 else "are"
        words = _pods_of(fewer, "fewer pod")
        sentences.append(f"At the end, there {verb} {words} than without the change.")
    if others := [pod for pod in never if pod.workload in renewed]:
        verb = "exists" if len(others) == 1 else "exist"
        sentences.append(f"{_pods_of(others)} {verb} only without the change.")
    return " ".join(sentences) or None


def _by_failed_jobs(effect: Effect, deleted: Sequence[PodEnd]) -> str:
    """Return a clause that states how many of the `deleted` pods belonged to Jobs that fail."""
    failed = {one.workload for one in effect.lasting_errors if one.is_failed_job}
    jobs = [pod.workload for pod in deleted if pod.workload in failed]
    if not jobs:
        return ""
    which = "" if len(jobs) == len(deleted) else f" {len(jobs):,} of them"
    whose = "its" if len(jobs) == 1 else "their"
    return f",{which} because {whose} {'Job fails' if len(set(jobs)) == 1 else 'Jobs fail'}"


def _moved(effect: Effect) -> str | None:
    """Return a sentence about pods that were not displaced but are on another node.

    Such pods were deleted and created again, got their first node after the change, or are moved
    only without the change. Return None if there are no such pods. Also return None if --reschedule
    is set, because the sentence of `_repacked` then includes these pods.
    """
    if effect.packing:
        return None
    found = effect.difference
    recreated, stay, kept = found.recreated, found.staying, found.unmoved
    known = {pod.key for pod in (*recreated, *stay, *kept)}
    others = [pod for pod in found.elsewhere if pod.key not in known]
    where = "on another node" if len(recreated) == 1 else "on other nodes"
    sentences = (
        _placed(effect, recreated, f"created again {where}"),
        _placed(effect, others, "placed elsewhere"),
        _staying(stay),
        _unmoved(kept),
    )
    return " ".join(one for one in sentences if one) or None


def _placed(effect: Effect, pods: Sequence[PodEnd], how: str) -> str:
    """Return a sentence like "3 pods of deploy/a are {how} and run after 5s."; "" if no pods."""
    if not pods:
        return ""
    running = [pod.started_at for pod in pods if pod.started_at is not None]
    took = effect.changed.after_start(max(running)) if len(running) == len(pods) else None
    run = f" and {'runs' if len(pods) == 1 else 'run'} after"
    after = "" if took is None else f"{run} {_time(took)}"
    return f"{_pods_of(pods)} {'is' if len(pods) == 1 else 'are'} {how}{after}."


def _staying(pods: Sequence[PodEnd]) -> str:
    """Return a sentence about `pods`, which stay on nodes out of service; "" if `pods` is empty."""
    if not pods:
        return ""
    if len(pods) == 1:
        return f"{_pods_of(pods)} stays on a node that is not in service, and does not run."
    return f"{_pods_of(pods)} stay on nodes that are not in service, and do not run."


def _unmoved(pods: Sequence[PodEnd]) -> str:
    """Return a sentence about `pods`, which only the run without the change moves, or ""."""
    if not pods:
        return ""
    if len(pods) == 1:
        return f"{_pods_of(pods)} stays on its node, and moves only without the change."
    return f"{_pods_of(pods)} stay on their nodes, and move only without the change."


def _budget_changed(effect: Effect) -> str | None:
    budgets = [one for one in effect.budgets if one.has_new_rule]
    if not budgets:
        return None
    first = f"{budgets[0].pdb} {budgets[0].new_rule}"
    others = len(budgets) - 1
    differ = "budget differs" if others == 1 else "budgets differ"
    rest = f"; {others:,} more {differ}"
    is_quiet = effect.difference.is_empty and not effect.waited
    quiet = ", and nothing changes for any pod" if is_quiet else ""
    return f"Budget {first}{rest if others else ''}{quiet}.{_blocked_drains(budgets)}"


def _blocked_drains(budgets: Sequence[BudgetOutcome]) -> str:
    """Return a space and a sentence about the `budgets` that never allow an eviction, or ""."""
    never = [one for one in budgets if one.blocks_drains]
    if not never:
        return ""
    which = "It" if len(budgets) == 1 else listed([one.pdb for one in never], NAMES_MAX)
    need = "needs all its pods" if len(never) == 1 else "need all their pods"
    return (
        f" {which} {need}, so the eviction of a ready pod is never allowed, and a drain of its "
        "node blocks."
    )


def _resized(effect: Effect) -> str | None:
    found = effect.difference
    known = (
        found.placed, found.removed, found.not_created, found.displaced, found.moved,
        found.pending, effect.lost,
    )  # fmt: skip
    if not found.reallocated or found.updated or any(known):
        return None
    return f"The pods request other amounts of {', '.join(found.reallocated)}."


def _needs_no_replacement(pods: int) -> str:
    if pods == 1:
        return "1 pod is down with its node and needs no replacement."
    return f"{_pods(pods)} are down with their nodes and need no replacements."


def _interrupted(effect: Effect) -> str | None:
    """Return sentences about pods that are down with their nodes, and pods that wait for a node.

    The pods that are down with their nodes run again on these nodes later. Displaced, moved and new
    pods do not count as pods that wait. If there are no pods of either kind, the result is a
    sentence about the pods that need no replacement, such as a pod of a DaemonSet on a removed
    node. Return None if there is no sentence. Sentences about pods on failed nodes are included
    only if the change puts pods on failed nodes, or keeps pods there longer.
    """
    outage, found = effect.changed.outage, effect.difference
    waited = only_waited(effect.waited, found)
    if outage is None or not found.pods_on_failed_nodes:
        return _waiting(waited) if waited else None
    sentences = []
    pods = outage.back_with_node
    is_any_node_back = any(one.back_at is not None for one in outage.nodes)
    last_back_at = outage.last_return_at
    if is_any_node_back and not (outage.evicted or found.displaced):
        # Pods that were deleted before the run, and replaced when the kubelet returned. Other
        # sentences count the replacements that waited for a node, and those of pods that ended with
        # their node, such as the pods of a Job whose restartPolicy is Never.
        failed = {one.node for one in outage.nodes}
        others = sum(not one.pod.is_initial for one in waited)
        others += sum(one.is_recreated and one.origin in failed for one in found.moved)
        others += sum(one.before.node in failed for one in found.updated)
        if outage.replaced > others:
            pods += outage.replaced - others
            last_back_at = outage.last_back_at
    if pods:
        nodes = "node" if len(outage.nodes) == 1 else "nodes"
        down = "is down with its node" if pods == 1 else f"are down with their {nodes}"
        # Relative to the change, like all times of the verdict: an outage may begin later (--at).
        last = None if last_back_at is None else effect.changed.after_start(last_back_at)
        after = "" if last is None else f" after {_time(last)}"
        come = "comes" if pods == 1 else "come"
        times = max(one.returns for one in outage.nodes)
        has_displaced = outage.evicted or found.displaced  # an earlier sentence counts these pods
        who = counted(pods, "more pod") if has_displaced else _pods(pods)
        if times > 1 and outage.last_with_node < pods:
            most = "" if len(outage.nodes) == 1 else "up to "
            how = _returns(outage.late_with_node, pods, after)
            sentences.append(f"{who} {down} {most}{times} times, and {come} back{how}.")
        else:
            why = _only_last_return(pods, len(outage.nodes)) if times > 1 else ""
            sentences.append(f"{who} {down} and {come} back{after}{why}.")
    if waited:
        sentences.append(_waiting(waited))
    # For example, the pods of failed Jobs; `_removed` counts the pods of removed nodes.
    gone = {pod.key for pod in (*found.gone, *_of_other_nodes(found.removed, effect.changed))}
    unneeded = sum(not one.cause.is_loss and one.pod not in gone for one in outage.lost)
    if unneeded and not sentences:
        sentences.append(_needs_no_replacement(unneeded))
    return " ".join(sentences) or None


def _only_last_return(pods: int, nodes: int) -> str:
    """Return why `pods` of flapping nodes come back only after the last failure."""
    fail = "the node fails" if nodes == 1 else "the nodes fail"
    run = "the pod runs" if pods == 1 else "the pods run"
    return f": {fail} again each time before {run}"


def _returns(late: int, pods: int, after: str) -> str:
    """Return text that says when the pods of flapping nodes come back.

    `pods` is the number of these pods, of which `late` do not come back every time. `after` is text
    that says when they last came back, or "".
    """
    if not late:
        return f" each time, the last time{after}" if after else " each time"
    return after + _not_each_time(late, pods)


def _not_each_time(late: int, pods: int) -> str:
    if pods == 1:
        return "; it does not always come back, because its node fails again before the pod runs"
    who = "they" if late == pods else f"{late:,} of them"
    do, pods_run = ("does", "the pod runs") if late == 1 else ("do", "these pods run")
    return f"; {who} {do} not always come back, because nodes fail again before {pods_run}"


def _waiting(waited: Sequence[WaitedPod]) -> str:
    """Return a sentence about pending pods that waited; `waited` begins with the longest wait."""
    verb = "waits" if len(waited) == 1 else "wait up to"
    pending = _pods_of([one.pod for one in waited], "pending pod")
    without_node = sum(not one.pod.node for one in waited)
    deleted = "is deleted before it gets" if without_node == 1 else "are deleted before they get"
    who = " and" if without_node == len(waited) else f"; {without_node:,} of them"
    end = f"{who} {deleted} one" if without_node else ""
    return f"{pending} {verb} {for_readers(waited[0].waited)} for a node{end}."


Row = Callable[[Effect], str | None]

_TABLE: Final[tuple[tuple[OutcomeKind, Row], ...]] = (
    # Loops that never end.
    (OutcomeKind.LOOP, _loop),
    # Drains that are refused or not completed.
    (OutcomeKind.REFUSED, _refused),
    (OutcomeKind.UNDRAINED, _undrained),
    # Damage that nothing can undo.
    (OutcomeKind.DATA_DELETED, _data_deleted),
    # Users are not served until the end, or for long enough to notice.
    (OutcomeKind.UNAVAILABLE, _unavailable),
    # Damage that remains: pods that are pending, not even created, lost, or down.
    (OutcomeKind.PENDING, _pending),
    (OutcomeKind.ERROR, _error),
    (OutcomeKind.GONE, _gone),
    (OutcomeKind.NOT_CREATED, _not_created),
    (OutcomeKind.DOWN, _down),
    # Problems that may disappear after the end of the run.
    (OutcomeKind.UNFINISHED, _unfinished),
    # Damage that begins when the next pod ends.
    (OutcomeKind.REPLACEMENTS_REFUSED, _replacements_refused),
    # Temporary damage.
    (OutcomeKind.BREACHED, _breached),
    (OutcomeKind.BRIEFLY_UNAVAILABLE, _briefly_unavailable),
    (OutcomeKind.INCOMPLETE_GANG, _incomplete_for_a_time),
    (OutcomeKind.REPEATED, _repeated),
    # Requests that an autoscaler overrides.
    (OutcomeKind.RESCALED, _rescaled),
    (OutcomeKind.LIMITED, _limited),
    # Harmless effects.
    (OutcomeKind.REPACKED, _repacked),
    (OutcomeKind.DISPLACED, _displaced),
    (OutcomeKind.UPDATED, _updated),
    (OutcomeKind.STARTED, _started),
    (OutcomeKind.COMPLETED, _completed),
    (OutcomeKind.REMOVED, _removed),
    (OutcomeKind.MOVED, _moved),
    (OutcomeKind.SCALED, _scaled),
    (OutcomeKind.BUDGET_CHANGED, _budget_changed),
    (OutcomeKind.INTERRUPTED, _interrupted),
    (OutcomeKind.RESIZED, _resized),
    (OutcomeKind.CLAIMS_DELETED, _claims_deleted),
    # Pods that exist to give way, so that they are not the main result of a change.
    (OutcomeKind.NEGATIVE_PRIORITY_DISPLACED, _negative_priority_displaced),
    (OutcomeKind.NEGATIVE_PRIORITY_PENDING, _negative_priority_pending),
)


# --- words -------------------------------------------------------------------------------------


def _recovered(effect: Effect) -> list[PodEnd]:
    """Return the displaced pods that run at the end, with their final state."""
    lost = {one.pod for one in effect.lost}
    ends = [effect.changed.pods.get(pod.key) for pod in effect.difference.displaced]
    return [
        pod
        for pod in ends
        if pod is not None
        and pod.started_at is not None
        and not pod.is_terminating
        and pod.key not in lost
    ]


def _not_running(effect: Effect) -> int:
    """Return the number of displaced, moved or new pods that have a node but do not run at the end.

    A terminating pod of a workload counts, because its replacement does not run yet. Two kinds of
    pods do not count: pods that never start (`_fails_to_start`), and the pods in `effect.lost`.
    """
    found, changed = effect.difference, effect.changed
    lost = {one.pod for one in effect.lost}
    pods = (*found.displaced, *found.placed, *found.elsewhere)
    ends = [changed.pods.get(key) for key in dict.fromkeys(_keys(pods)) if key not in lost]
    placed = [
        pod
        for pod in ends
        if pod is not None and pod.is_placed and not _fails_to_start(pod, changed)
    ]
    return sum(
        pod.started_at is None or (pod.is_terminating and pod.workload.kind != POD)
        for pod in placed
    )


def _keys(pods: Iterable[PodEnd]) -> list[str]:
    return [pod.key for pod in pods]


def _pods_of(pods: Sequence[PodEnd], what: str = "pod") -> str:
    """Return a text such as `3 pods of deploy/store/web`, or the name of a single bare pod."""
    refs = list(dict.fromkeys(pod.workload for pod in pods))
    if len(refs) == 1 and refs[0].kind == POD:
        return str(refs[0])
    owned = [ref for ref in refs if ref.kind != POD]
    whose = (
        [f"of {owned[0]}" if len(owned) == 1 else f"of {len(owned):,} workloads"] if owned else []
    )
    bare = ["without a controller"] if len(owned) < len(refs) else []
    return f"{counted(len(pods), what)} {' or '.join([*whose, *bare])}"


def _names(names: Sequence[str]) -> str:
    return listed(names, NAMES_MAX)


def _pods(count: int) -> str:
    return counted(count, "pod")


def _plural(count: int, what: str) -> str:
    return what if count == 1 else f"{what}s"


def _time(duration: DurationNs) -> str:
    return for_readers(max(duration, 0))

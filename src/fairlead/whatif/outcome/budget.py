"""BudgetOutcome: the effect of a change on one budget, such as delayed evictions or a breach.

A budget is breached if pods were displaced in violation of the budget. A budget is unmet if it had
too few healthy pods for some time, but was not breached. For example, pods may have been down on
failed nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property, partial

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.selector import Labels, selector_matches
from fairlead.api.text.count import counted
from fairlead.whatif.outcome.run_outcome import BudgetHistory, PdbBreach, RunOutcome, UndrainedCause
from fairlead.whatif.outcome.workload import WorkloadRef


class BudgetResult(StrEnum):
    """How a run affected a budget. The members are in order, from the best effect to the worst."""

    HELD = "held"
    DELAYED = "delayed"
    UNMET = "unmet"
    BLOCKS = "blocks"
    BREACHED = "breached"

    @property
    def words(self) -> str:
        """The result as a short phrase for tables."""
        return "too few healthy" if self is BudgetResult.UNMET else self.value


class BudgetOutcome(Struct, frozen=True, kw_only=True):
    """The effect of a change on one budget.

    The fields `needed`, `lowest_healthy`, `shortage` and `never_allows` are as in BudgetHistory,
    for the run with the change.
    """

    pdb: str  # `namespace/name` of the budget
    rule: str  # the rule of the budget as text
    # The number of disruptions allowed at the start, which is the instant of the change. If the
    # rule is new, this number is already reduced by the evictions that the change makes at this
    # instant.
    allowed: int
    needed: int
    lowest_healthy: int
    displaced: int  # pods that were preempted, were evicted, or were deleted with their nodes
    delayed: int  # pods that were evicted after a refusal
    blocked: int  # pods that could not be evicted at all
    breaches: int  # the number of displacements that violated the budget
    # The number of disruptions allowed at the end of the run with the change; None if the budget
    # does not exist then.
    allowed_at_end: int | None
    allowed_without: int | None  # the same for the run without the change
    # Whether the change created or deleted the budget, or changed its rule or selector.
    has_new_rule: bool = False
    shortage: int = 0  # 0 if the shortage in the run without the change is at least as great
    # Whether the rule is new and the budget selects no pod at the end of the run with the change.
    selects_none: bool = False
    # False if a workload of the budget wants more pods than it has at the end.
    never_allows: bool = False

    @property
    def state(self) -> BudgetResult:
        """The worst of the effects on the budget."""
        if self.breaches:
            return BudgetResult.BREACHED
        if self.blocked:
            return BudgetResult.BLOCKS
        if self.shortage:
            return BudgetResult.UNMET
        return BudgetResult.DELAYED if self.delayed else BudgetResult.HELD

    @property
    def blocks_drains(self) -> bool:
        """Whether the change creates or edits the budget so that it never allows an eviction."""
        return self.has_new_rule and self.never_allows and not self.selects_none

    @property
    def is_min_number(self) -> bool:
        """Whether the rule is `minAvailable` with a number of pods, not with a percentage."""
        kind, _, amount = self.rule.partition(" ")
        return kind == "minAvailable" and amount.isdigit()

    @property
    def words(self) -> str:
        """The state as text, such as `blocks 3 pods`.

        If the change created, deleted or changed the budget, the phrase `new_rule` is appended. If,
        in addition, no pod was displaced or blocked, `new_rule` is the whole text.
        """
        if not self.has_new_rule:
            return self._state_words
        touched = self.displaced or self.blocked
        return f"{self._state_words}, {self.new_rule}" if touched else self.new_rule

    @property
    def new_rule(self) -> str:
        """A phrase that compares the disruptions allowed at the end of the two runs.

        Example: `allows 0 disruptions instead of 25`.
        """
        now, before = self.allowed_at_end, self.allowed_without
        if now is None:
            return f"is deleted (it allowed {counted(before or 0, 'disruption')})"
        if self.selects_none:  # its 0 allowed disruptions would look as if it blocked evictions
            return "is new and selects no pods" if before is None else "selects no pods"
        if before is None:
            return f"is new and allows {counted(now, 'disruption')}"
        if now == before:
            return f"still allows {counted(now, 'disruption')}"
        return f"allows {counted(now, 'disruption')} instead of {before:,}"

    @property
    def _state_words(self) -> str:
        match self.state:
            case BudgetResult.BREACHED:
                # The shortage agrees with `needed` and `lowest_healthy` in the same row.
                extent = (
                    f"{counted(self.shortage, 'pod')} too few"
                    if self.shortage
                    else f"{counted(self.breaches, 'pod')} displaced"
                )
                blocks = f", blocks {counted(self.blocked, 'pod')}" if self.blocked else ""
                return f"breached, {extent}{blocks}"
            case BudgetResult.BLOCKS:
                return f"blocks {counted(self.blocked, 'pod')}"
            case BudgetResult.UNMET:
                return f"{counted(self.shortage, 'healthy pod')} too few, none displaced against it"
            case BudgetResult.DELAYED:
                return f"held, delayed {counted(self.delayed, 'pod')}"
            case _:
                return "held"


def budget_outcomes(
    without: RunOutcome, changed: RunOutcome, breaches: Collection[PdbBreach]
) -> list[BudgetOutcome]:
    """Return the budgets that the change affects, the worst first.

    `breaches` are the breaches that only the run `changed` has.
    """
    known = {history.pdb: history for history in without.budgets}
    undrained = {one.pod.key for one in changed.undrained if one.cause is UndrainedCause.REFUSED}
    breaches_of = Counter(one.pdb for one in breaches)
    pods = _PodsAtEnd(changed)
    found = []
    for history in map(partial(_without_removed, pods=pods), changed.budgets):
        if _differs(history, known.get(history.pdb)):
            one = _outcome(history, known.get(history.pdb), undrained, breaches_of)
            if one.has_new_rule:
                never = one.never_allows and not (one.is_min_number and pods.are_too_few(history))
                one = replace(one, selects_none=pods.lack(history), never_allows=never)
            found.append(one)
    present = {history.pdb for history in changed.budgets}
    found += [
        _outcome(_deleted(history), history, undrained, breaches_of)
        for history in without.budgets
        if history.pdb not in present and history.allowed_at_end is not None
    ]
    worst = list(BudgetResult)
    return sorted(
        found,
        key=lambda one: (-worst.index(one.state), -one.breaches, not one.has_new_rule, one.pdb),
    )


def _deleted(history: BudgetHistory) -> BudgetHistory:
    """Return the history of a budget that does not exist in the run with the change.

    `history` is the history of the budget in the run without the change.
    """
    return replace(
        history, allowed_at_end=None, displaced=(), refused=(), selector=None, never_allows=False
    )


def _differs(history: BudgetHistory, known: BudgetHistory | None) -> bool:
    has_work = bool(history.displaced or history.refused)
    has_changed = has_work and history != known
    return has_changed or _has_new_rule(history, known) or _shortage(history, known) > 0


class _AlikePods(Struct):
    """The number of pods of a workload with equal labels.

    Completed pods and pods that are being deleted do not count.
    """

    workload: WorkloadRef
    labels: Labels
    existing: int = 0


class _PodsAtEnd(Struct, frozen=True, dict=True):
    """The pods at the end of `run`."""

    run: RunOutcome

    def lack(self, history: BudgetHistory) -> bool:
        """Return whether the budget exists at the end, and selects no pod then."""
        return history.selector is not None and not any(self._selected(history))

    def are_too_few(self, history: BudgetHistory) -> bool:
        """Return whether a workload of the budget wants more pods than it has at the end.

        A budget with a number as minAvailable counts only pods that exist. So such a budget may
        allow no disruption now, but allow one when its workload has all its pods.
        """
        existing: Counter[WorkloadRef] = Counter()
        for pods in self._selected(history):
            existing[pods.workload] += pods.existing
        known = self.run.workloads
        return any(
            one in known and known[one].wanted > count for one, count in existing.items() if count
        )

    def _selected(self, history: BudgetHistory) -> Iterator[_AlikePods]:
        """Yield the pods that the budget selects at the end."""
        selector = history.selector
        if selector is not None:
            for pods in self._by_namespace[history.pdb.partition("/")[0]].values():
                if selector_matches(selector, pods.labels):
                    yield pods

    @cached_property
    def _by_namespace(self) -> Mapping[str, Mapping[Hashable, _AlikePods]]:
        """The pods at the end by namespace, read once for all budgets."""
        found: dict[str, dict[Hashable, _AlikePods]] = defaultdict(dict)
        for pod in self.run.pods.values():
            key = pod.workload, frozenset(pod.labels.items())
            alike = found[pod.namespace].get(key)
            if alike is None:
                alike = found[pod.namespace][key] = _AlikePods(pod.workload, pod.labels)
            alike.existing += not (pod.is_completed or pod.is_terminating)
        return found


def _without_removed(history: BudgetHistory, pods: _PodsAtEnd) -> BudgetHistory:
    """Return `history`, with `shortage` set to 0 if the change removes all pods of the budget.

    For example, the change can delete the workload or scale it to 0.
    """
    may_be_removed = history.shortage and not (history.lowest_healthy or history.displaced)
    return replace(history, shortage=0) if may_be_removed and pods.lack(history) else history


def _shortage(history: BudgetHistory, known: BudgetHistory | None) -> int:
    """Return the shortage in `history`; 0 if the history `known` has at least the same shortage."""
    return 0 if known is not None and known.shortage >= history.shortage else history.shortage


def _has_new_rule(history: BudgetHistory, known: BudgetHistory | None) -> bool:
    """Return whether the change created or deleted the budget, or changed its rule or selector."""
    if known is None:
        return history.allowed_at_end is not None
    is_deleted = history.allowed_at_end is None and known.allowed_at_end is not None
    has_new_selector = history.selector != known.selector and history.selector is not None
    return is_deleted or has_new_selector or history.rule != known.rule


def _outcome(
    history: BudgetHistory,
    known: BudgetHistory | None,
    undrained: set[str],
    breaches_of: Counter[str],
) -> BudgetOutcome:
    refused, displaced = set(history.refused), set(history.displaced)
    has_new_rule = _has_new_rule(history, known)
    # A change takes effect at the first instant. So its evictions at that instant are already
    # subtracted from `history.allowed`. In the run without the change, nothing is subtracted.
    before = history if known is None or has_new_rule else known
    return BudgetOutcome(
        pdb=history.pdb,
        rule=history.rule,
        allowed=before.allowed,
        needed=history.needed,
        lowest_healthy=history.lowest_healthy,
        displaced=len(displaced),
        delayed=len(refused & displaced),
        blocked=len(refused & undrained),
        breaches=breaches_of[history.pdb],
        allowed_at_end=history.allowed_at_end,
        allowed_without=None if known is None else known.allowed_at_end,
        has_new_rule=has_new_rule,
        shortage=_shortage(history, known),
        never_allows=history.never_allows,
    )

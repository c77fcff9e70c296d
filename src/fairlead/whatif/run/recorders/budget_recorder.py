"""BudgetRecorder: records disruption budgets, the displaced pods that they cover, and breaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.pods.original import original_key
from fairlead.api.selector import selector_matches
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.scale_down import is_ready
from fairlead.whatif.outcome.run_outcome import NODE_DELETED, BudgetHistory, PdbBreach

# (instant, healthy pods, needed healthy pods, allowed disruptions)
_Status = tuple[Instant, int, int, int]


class _Record(Struct):
    """The history of one budget.

    `had_pods` is set if the budget had pods at first: its first status counts pods, or it selects
    pods of the snapshot. `displaced` contains (instant, pod key), ordered by time, of the pods that
    were preempted, evicted or deleted with their node. `refused` contains the instants of refused
    evictions by pod key.
    """

    rule: str
    had_pods: bool
    statuses: list[_Status] = field(default_factory=list)
    displaced: list[tuple[Instant, str]] = field(default_factory=list)
    refused: dict[str, Instant] = field(default_factory=dict)  # {pod key: last refusal}


class BudgetRecorder(Struct):
    """Observes all versions of all budgets, refused evictions, and pods that leave their nodes.

    `breaches` contains the pods that left although a budget did not allow the disruption.
    """

    breaches: list[PdbBreach] = field(default_factory=list)
    _budgets: dict[str, dict[str, PodDisruptionBudget]] = field(default_factory=dict)
    _records: dict[str, _Record] = field(default_factory=dict)
    # keys of the budgets that select the pods of a namespace with these labels
    _selections: dict[tuple[str, frozenset[tuple[str, str]]], list[str]] = field(
        default_factory=dict
    )
    _lost_at: Instant = -1  # the last instant at which pods were deleted
    _allowed: dict[str, int] = field(default_factory=dict)

    def observe(self, pdb: PodDisruptionBudget, now: Instant) -> None:
        """Record a new version of the budget `pdb`: its status, rule and selector."""
        budgets = self._budgets.setdefault(pdb.metadata.namespace, {})
        before, budgets[pdb.key] = budgets.get(pdb.key), pdb
        if before is None or before.spec.selector != pdb.spec.selector:
            self._selections.clear()
        status = pdb.status
        record = self._records.setdefault(pdb.key, _Record("", status.expected_pods > 0))
        record.rule = _rule(pdb)
        found = (status.current_healthy, status.desired_healthy, status.disruptions_allowed)
        if not record.statuses or record.statuses[-1][1:] != found:
            record.statuses.append((now, *found))

    def load(self, pods: Iterable[Pod]) -> None:
        """Record that the snapshot, whose budgets have been observed, has `pods`."""
        for pod in pods:
            for pdb in self._selecting(pod):
                self._records[pdb.key].had_pods = True

    def forget(self, pdb: PodDisruptionBudget) -> None:
        """Record the deletion of `pdb`."""
        self._budgets.get(pdb.metadata.namespace, {}).pop(pdb.key, None)
        self._selections.clear()

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets that select `pod` and do not count it as disrupted yet."""
        name = pod.metadata.name
        return [pdb for pdb in self._selecting(pod) if name not in pdb.status.disrupted_pods]

    def _selecting(self, pod: Pod) -> list[PodDisruptionBudget]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        budgets = self._budgets.get(namespace, {})
        pods = namespace, frozenset(labels.items())
        found = self._selections.get(pods)
        if found is None:
            found = self._selections[pods] = [
                key for key, pdb in budgets.items() if selector_matches(pdb.spec.selector, labels)
            ]
        return [budgets[key] for key in found]

    def displaced(self, pod: Pod, now: Instant) -> None:
        """Record that `pod` was preempted, evicted or deleted with its node.

        The displacement is recorded for all budgets that select the pod, even if they already count
        the pod as disrupted.
        """
        for pdb in self._selecting(pod):
            self._records[pdb.key].displaced.append((now, original_key(pod)))

    def refused(self, pod: Pod, now: Instant) -> None:
        """Record, for each budget in `covering(pod)`, that an eviction of `pod` was refused."""
        for pdb in self.covering(pod):
            self._records[pdb.key].refused[original_key(pod)] = now

    def preempted(self, victims: Iterable[Pod], by: str, at: Instant) -> None:
        """Record a breach for each victim whose preemption a budget does not allow.

        `by` is the key of the preemptor. The victims are counted as the scheduler counts them, but
        also against budgets that the scheduler ignores, such as those with an empty selector.

        upstream: plugins/defaultpreemption: filterPodsWithPDBViolation
        """
        allowed: dict[str, int] = {}
        for pod in victims:
            self._take(pod, self.covering(pod), allowed, by, at)

    def evicted(self, pod: Pod, why: str, at: Instant) -> None:
        """Record a breach of each budget that would have refused the eviction of `pod`.

        Call this method for evictions that do not check the budgets, such as an eviction by a
        taint.
        """
        self._lose(pod, why, at)

    def collected(self, pod: Pod, at: Instant) -> None:
        """Record a breach of each budget that does not allow the loss of `pod` with its node."""
        self._lose(pod, NODE_DELETED, at)

    def _lose(self, pod: Pod, by: str, at: Instant) -> None:
        """Record a breach of each budget that does not allow the deletion of `pod`.

        Several pods may be lost at the instant `at`, and a budget's status does not reflect these
        losses yet. So this method subtracts each loss from the number of disruptions that the
        budget still allows. The loss of an unready pod is not subtracted if the budget permits it
        (`_spares_unready`).
        """
        if self._lost_at != at:
            self._lost_at = at
            self._allowed.clear()
        budgets = self.covering(pod)
        if not is_ready(pod):
            budgets = [pdb for pdb in budgets if not _spares_unready(pdb)]
        self._take(pod, budgets, self._allowed, by, at)

    def _take(
        self,
        pod: Pod,
        budgets: Iterable[PodDisruptionBudget],
        allowed: dict[str, int],
        by: str,
        at: Instant,
    ) -> None:
        """Count the loss of `pod` against each of `budgets`, and record the breaches.

        `allowed` maps the key of a budget to the number of disruptions that the budget still
        allows. A missing number is first read from the budget's status. The number of each of
        `budgets` is reduced by 1. If the result is below 0, the budget is breached. `by` is the
        cause of the loss, and `at` is its time.
        """
        for pdb in budgets:
            left = allowed.setdefault(pdb.key, pdb.status.disruptions_allowed) - 1
            allowed[pdb.key] = left
            if left < 0:
                self.breaches.append(PdbBreach(pdb=pdb.key, pod=original_key(pod), by=by, at=at))

    def histories(self, since: Instant) -> Iterator[BudgetHistory]:
        """Yield the history of each budget from `since` on, sorted by key.

        A deleted budget is included only if, at `since` or later, one of its pods left its node or
        the eviction of one of its pods was refused.
        """
        existing = {key for budgets in self._budgets.values() for key in budgets}
        for key in sorted(self._records):
            record = self._records[key]
            displaced = tuple(dict.fromkeys(pod for at, pod in record.displaced if at >= since))
            refused = tuple(pod for pod, at in record.refused.items() if at >= since)
            if not (displaced or refused or key in existing):
                continue
            before = [status for status in record.statuses if status[0] <= since]
            statuses = [*before[-1:], *(one for one in record.statuses if one[0] > since)]
            highest = max((one[1] for one in before), default=0)
            are_new = not (highest or record.had_pods)
            lowest_healthy, needed = _lowest(statuses, highest, are_new=are_new)
            yield BudgetHistory(
                pdb=key,
                rule=record.rule,
                allowed=statuses[0][3],
                allowed_at_end=statuses[-1][3] if key in existing else None,
                needed=needed,
                lowest_healthy=lowest_healthy,
                displaced=displaced,
                refused=refused,
                shortage=_shortage(statuses, highest),
                selector=None if (pdb := self._budget(key)) is None else pdb.spec.selector,
                never_allows=pdb is not None and _never_allows(pdb),
            )

    def _budget(self, key: str) -> PodDisruptionBudget | None:
        return self._budgets.get(key.partition("/")[0], {}).get(key)


def _never_allows(pdb: PodDisruptionBudget) -> bool:
    """Return whether `pdb` counts pods, and needs all of them."""
    return 0 < pdb.status.expected_pods <= pdb.status.desired_healthy


def _spares_unready(pdb: PodDisruptionBudget) -> bool:
    """Return whether the loss of an unready pod breaks no rule of `pdb`.

    The policy AlwaysAllow permits every such loss. With any other policy, the result is True only
    if the budget's status has been computed, and the budget has all the healthy pods that it needs.

    If `desiredHealthy` is 0, the eviction API assumes that the status has not been computed. This
    function differs from the eviction API if `expectedPods` is above 0: it then assumes that the
    status has been computed.

    upstream: pkg/registry/core/pod/storage/eviction.go:Create
    """
    if pdb.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = pdb.status
    is_computed = status.desired_healthy > 0 or status.expected_pods > 0
    return is_computed and status.current_healthy >= status.desired_healthy


def _lowest(statuses: Sequence[_Status], highest: int, *, are_new: bool) -> tuple[int, int]:
    """Return the lowest number of healthy pods, and how many the budget needed then.

    If the needed number changes, for example by a scale-up, both results are from the instant with
    the greatest shortage. If there is never a shortage, both results are from the instant with the
    smallest surplus of healthy pods. The needed number of one instant must not be compared with the
    healthy pods of another instant, because this could show a shortage that never existed.

    `highest` is the highest number of healthy pods before `statuses`. `are_new` is set if the
    budget has no pod at first. In this case, a status is considered only if the number of healthy
    pods was higher at an earlier instant, because a budget does not protect pods that have not
    started yet. If there is no such status, the last status is considered.
    """
    counting = list(_counting(statuses, highest))
    if are_new:
        statuses = counting or statuses[-1:]
    numbers = {needed for _, _, needed, _ in statuses}
    if len(numbers) == 1:
        return min(healthy for _, healthy, _, _ in statuses), numbers.pop()
    _, healthy, needed, _ = min(counting or statuses, key=lambda one: (one[1] - one[2], one[1]))
    return healthy, needed


def _shortage(statuses: Iterable[_Status], highest: int) -> int:
    """Return the largest number of healthy pods that the budget lacked at any one instant.

    A status is considered only if the number of healthy pods was higher at an earlier instant.
    `highest` is the highest number of healthy pods before `statuses`.
    """
    lacking = (needed - healthy for _, healthy, needed, _ in _counting(statuses, highest))
    return max(0, max(lacking, default=0))


def _counting(statuses: Iterable[_Status], highest: int) -> Iterator[_Status]:
    """Yield the `statuses` with fewer healthy pods than at some earlier instant.

    So the new pods of a scale-up do not count as missing. `highest` is the highest number of
    healthy pods before `statuses`. This number is needed because a change can delete pods at the
    instant of the first status.
    """
    for status in statuses:
        highest = max(highest, status[1])
        if status[1] < highest:
            yield status


def _rule(pdb: PodDisruptionBudget) -> str:
    if pdb.spec.max_unavailable is not None:
        return f"maxUnavailable {pdb.spec.max_unavailable}"
    return "" if pdb.spec.min_available is None else f"minAvailable {pdb.spec.min_available}"

"""BudgetRecorder: records disruption budgets and the displaced pods that they cover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.run_outcome import BudgetHistory


@dataclass(slots=True)
class _Record:
    """The history of one budget; statuses are (instant, healthy, needed healthy, allowed).

    `displaced` contains (instant, pod key) in order of time; `refused` contains instants by pod
    key.
    """

    rule: str
    statuses: list[tuple[Instant, int, int, int]] = field(default_factory=list)
    displaced: list[tuple[Instant, str]] = field(default_factory=list)
    refused: dict[str, Instant] = field(default_factory=dict)  # {pod key: last refusal}


@dataclass(slots=True)
class BudgetRecorder:
    """Observes all versions of all budgets, and the displaced and refused pods that they cover."""

    _budgets: dict[str, dict[str, PodDisruptionBudget]] = field(default_factory=dict)
    _records: dict[str, _Record] = field(default_factory=dict)

    def observe(self, pdb: PodDisruptionBudget, now: Instant) -> None:
        """Record the status of `pdb`."""
        self._budgets.setdefault(pdb.metadata.namespace, {})[pdb.key] = pdb
        record = self._records.setdefault(pdb.key, _Record(""))
        record.rule = _rule(pdb)
        status = pdb.status
        found = (status.current_healthy, status.desired_healthy, status.disruptions_allowed)
        if not record.statuses or record.statuses[-1][1:] != found:
            record.statuses.append((now, *found))

    def forget(self, pdb: PodDisruptionBudget) -> None:
        """Record the deletion of `pdb`."""
        self._budgets.get(pdb.metadata.namespace, {}).pop(pdb.key, None)

    def covering(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Return the budgets that select `pod` and do not count it as disrupted yet."""
        name = pod.metadata.name
        return [pdb for pdb in self._selecting(pod) if name not in pdb.status.disrupted_pods]

    def _selecting(self, pod: Pod) -> Iterator[PodDisruptionBudget]:
        for pdb in self._budgets.get(pod.metadata.namespace, {}).values():
            if selector_matches(pdb.spec.selector, pod.metadata.labels):
                yield pdb

    def displaced(self, pod: Pod, key: str, now: Instant) -> None:
        """Record that `pod`, with the key `key`, was preempted, evicted or deleted with its node.

        All budgets that select the pod are included, because a budget that allowed the eviction
        already counts the pod as disrupted.
        """
        for pdb in self._selecting(pod):
            self._records[pdb.key].displaced.append((now, key))

    def refused(self, pod: Pod, key: str, now: Instant) -> None:
        """Record that an eviction of `pod`, with the key `key`, was refused."""
        for pdb in self.covering(pod):
            self._records[pdb.key].refused[key] = now

    def histories(self, since: Instant) -> Iterator[BudgetHistory]:
        """Yield the histories of budgets, sorted by name.

        These are the budgets that still exist, and budgets with displaced or refused pods at or
        after `since`.
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
            yield BudgetHistory(
                pdb=key,
                rule=record.rule,
                allowed=statuses[0][3],
                allowed_at_end=statuses[-1][3] if key in existing else None,
                needed=max(status[2] for status in statuses),
                lowest_healthy=min(status[1] for status in statuses),
                displaced=displaced,
                refused=refused,
            )


def _rule(pdb: PodDisruptionBudget) -> str:
    if pdb.spec.max_unavailable is not None:
        return f"maxUnavailable {pdb.spec.max_unavailable}"
    return "" if pdb.spec.min_available is None else f"minAvailable {pdb.spec.min_available}"

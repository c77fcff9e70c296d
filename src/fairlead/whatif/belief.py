"""Beliefs: where common belief and code differ, said where it made a difference in a run.

Most of what is told about dead nodes is older than taints, or true of another controller.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.eviction.pod_eviction_mode import WHY as NODE_LOST
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.whatif.duration import for_readers
from fairlead.whatif.outage_outcome import Belief, Cause, OutageOutcome, ZoneChange, zone_phrase
from fairlead.whatif.outcome import PdbBreach

UNASKED: Final = ("taint ", NODE_LOST)  # how the reasons begin of what asks no budget
LASTING: Final = seconds(60)
FIVE_MINUTES: Final = seconds(300)


@dataclass(frozen=True, slots=True)
class Believing:
    """What a run has to say about beliefs; `start` is when it began."""

    outage: OutageOutcome
    config: NodeLifecycleConfig
    breaches: Iterable[PdbBreach]
    start: Instant

    def all(self) -> Iterator[Belief]:
        """Those that were put to the test, in the order in which an outage meets them."""
        for test in (
            self._five_minutes,
            self._dark_zone,
            self._slow,
            self._all_dark,
            self._partly_dark,
            self._pods_a_second,
            self._budgets,
            self._sticky,
        ):
            if (found := test()) is not None:
                yield found

    def _five_minutes(self) -> Belief | None:
        """How long it took, by its parts, where it was not five minutes after all."""
        evicted = [one for one in self.outage.nodes if one.first_eviction_at and one.tainted_at]
        first = min(evicted, key=lambda one: one.first_eviction_at or 0, default=None)
        if first is None:
            return None
        left, tainted = first.first_eviction_at or 0, first.tainted_at or 0
        noticed = first.unready_at or tainted
        if abs(left - first.quiet_at - FIVE_MINUTES) < seconds(1):
            return None
        return Belief(
            name="five-minutes",
            belief="Pods leave a dead node after five minutes.",
            fact=(
                f"The first ones left {first.node} after {for_readers(left - first.quiet_at)}: "
                f"{for_readers(noticed - first.quiet_at)} until it was noticed, "
                f"{for_readers(tainted - noticed)} until its turn to be tainted came, and "
                f"{for_readers(left - tainted)} that they tolerate the taint (tolerationSeconds; "
                "300 unless a pod says otherwise)."
            ),
        )

    def _dark_zone(self) -> Belief | None:
        dark = [one for one in self._changes(ZoneState.FULL_DISRUPTION) if one.rate > 0]
        zones = {change.zone for change in self.outage.zones}
        if not dark or len(zones) == 1:
            return None
        change = max(dark, key=lambda one: one.size)
        return Belief(
            name="dark-zone",
            belief="When a whole zone goes dark, evictions stop, for it must be the network.",
            fact=(
                f"{zone_phrase(change.zone, 'Zone')} was fully dark, and emptied at the normal "
                f"rate, {_each(change.rate)}. They stop when every zone is dark, or in a zone that "
                "is dark in part and has no more nodes than the large-cluster-size-threshold."
            ),
        )

    def _slow(self) -> Belief | None:
        """Nodes whose turn did not come while they were quiet, in a zone that has turns."""
        tainted = {turn.node for turn in self.outage.turns}
        waited = Counter(
            one.zone for one in self.outage.nodes if one.unready_at and one.node not in tainted
        )
        turns = Counter(turn.zone for turn in self.outage.turns)
        if not turns:
            return None
        zone = max(turns, key=lambda name: (waited[name], name))
        rate = max((one.rate for one in self.outage.zones if one.zone == zone), default=0)
        if not waited[zone] or not rate:
            return None
        count = turns[zone] + waited[zone]
        return Belief(
            name="slow",
            belief="All pods of a dark zone leave it together.",
            fact=(
                f"{turns[zone]:,} of the {count:,} quiet nodes of {zone_phrase(zone)} had "
                f"their turn before it was over. All of them, at {_each(rate)}, would have taken "
                f"{for_readers(seconds((count - 1) / rate))}; the other nodes kept their pods."
            ),
        )

    def _all_dark(self) -> Belief | None:
        dark = [one for one in self._changes(ZoneState.FULL_DISRUPTION) if one.rate == 0]
        if not dark:
            return None
        return Belief(
            name="all-dark",
            belief="The longer all nodes are dark, the more pods are evicted.",
            fact=(
                f"From {for_readers(dark[0].at - self.start)} on no zone had a ready node: "
                "the controller blames itself, takes its NoExecute taints off and evicts nobody. "
                "When the first node is back, all of them get a new grace period."
            ),
        )

    def _partly_dark(self) -> Belief | None:
        parts = self._changes(ZoneState.PARTIAL_DISRUPTION)
        if not parts:
            return None
        change = max(parts, key=lambda one: one.unready)
        share = f"{change.unready} of the {change.size} nodes of {zone_phrase(change.zone)}"
        threshold = self.config.large_cluster_size_threshold
        if change.rate == 0:
            fact = (
                f"{share} were not ready, which is {self.config.unhealthy_zone_threshold:.0%} or "
                f"more: in a zone of up to {threshold} nodes evictions then stop altogether. Had "
                "all of them been dark, they would have gone on."
            )
        else:
            fact = (
                f"{share} were not ready, so evictions slowed down to {_each(change.rate)}, "
                f"as they do in zones of more than {threshold} nodes."
            )
        return Belief(
            name="partly-dark",
            belief="The more nodes of a zone are dark, the more pods are evicted.",
            fact=fact,
        )

    def _pods_a_second(self) -> Belief | None:
        most = max(self.outage.nodes, key=lambda one: one.evicted, default=None)
        if most is None or most.evicted < 2 or not self.outage.turns:
            return None
        return Belief(
            name="pods-a-second",
            belief="node-eviction-rate limits how many pods are evicted.",
            fact=(
                f"It limits how many nodes are tainted. {most.node} lost its {most.evicted} pods "
                "as their tolerations ended, whatever the rate."
            ),
        )

    def _budgets(self) -> Belief | None:
        ignored = Counter(one.pdb for one in self.breaches if one.by.startswith(UNASKED))
        if not ignored:
            return None
        names = ", ".join(f"{pdb} ({count})" for pdb, count in sorted(ignored.items()))
        return Belief(
            name="budgets",
            belief="A PodDisruptionBudget keeps pods from being evicted.",
            fact=(
                "It keeps them from the eviction API, as drains use it. Pods of quiet nodes are "
                f"deleted without asking, here in spite of {names}."
            ),
        )

    def _sticky(self) -> Belief | None:
        stuck = sum(one.cause is Cause.STICKY for one in self.outage.lost)
        if not stuck:
            return None
        return Belief(
            name="sticky",
            belief="A StatefulSet moves its pods away from a dead node.",
            fact=(
                f"{stuck} of its pods wait, deleted, for a node that cannot say that they are "
                "gone. They move when the node is back, its Node object is deleted, or it is "
                "tainted node.kubernetes.io/out-of-service."
            ),
        )

    def _changes(self, state: ZoneState) -> list[ZoneChange]:
        """The changes to `state` that lasted; a zone that goes dark is in part so for a pass."""
        by_zone: dict[str, list[ZoneChange]] = defaultdict(list)
        for change in self.outage.zones:
            by_zone[change.zone].append(change)
        found = [one for changes in by_zone.values() for one in _lasting(changes, state)]
        return sorted(found, key=lambda one: (one.at, one.zone))


def _lasting(changes: Iterable[ZoneChange], state: ZoneState) -> Iterator[ZoneChange]:
    """Those of one zone's `changes` that are part of a long time in `state`."""
    run: list[ZoneChange] = []
    for change in changes:
        if change.state == state:
            run.append(change)
            continue
        if run and change.at - run[0].at >= LASTING:
            yield from run
        run = []
    yield from run


def _each(rate: float) -> str:
    """`rate` in nodes a second, as people say it."""
    if rate == 0:
        return "none"
    return f"{rate:g} nodes/s" if rate > 1 else f"one node every {1 / rate:.3g} s"

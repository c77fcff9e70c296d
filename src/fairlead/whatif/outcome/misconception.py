"""Misconceptions: common beliefs about outages that a run has shown to be wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.text.count import counted
from fairlead.apiserver.admission.plugins.default_toleration_seconds import (
    TOLERATION_SECONDS_DEFAULT,
)
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.eviction.pod_eviction_mode import WHY as NODE_LOST
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.outage import (
    LossCause,
    Misconception,
    OutageOutcome,
    ZoneChange,
    zone_phrase,
)
from fairlead.whatif.outcome.run_outcome import PdbBreach

# An eviction whose reason has one of these prefixes is from a failed node, and ignores budgets.
IGNORES_BUDGETS: Final = ("taint ", NODE_LOST)
# A zone state that lasts for a shorter time is only a transition to the next state.
STATE_DURATION_MIN: Final = seconds(60)
_NAMES_MAX: Final = 3
# The number that is usually quoted: the tolerationSeconds that admission adds to pods by default.
DEFAULT_TOLERATION: Final = seconds(TOLERATION_SECONDS_DEFAULT)


def misconceptions(
    outage: OutageOutcome,
    config: NodeLifecycleConfig,
    breaches: Iterable[PdbBreach],
    start: Instant,
) -> Iterator[Misconception]:
    """Yield the common beliefs about outages that the run contradicts.

    The beliefs are in the order of the phases of an outage. `breaches` are the displacements in
    violation of budgets, and `start` is the start of the run.
    """
    evidence = _Evidence(outage, config, breaches, start)
    for check in (
        evidence.five_minutes,
        evidence.dark_zone,
        evidence.slow,
        evidence.all_dark,
        evidence.partly_dark,
        evidence.pods_a_second,
        evidence.budgets,
        evidence.sticky,
    ):
        if (found := check()) is not None:
            yield found


class _Evidence(Struct, frozen=True):
    """The facts of a run that started at `start`.

    Each public method checks one common belief about outages. The method returns a Misconception if
    the run contradicts the belief, else None.
    """

    outage: OutageOutcome
    config: NodeLifecycleConfig
    breaches: Iterable[PdbBreach]
    start: Instant

    def five_minutes(self) -> Misconception | None:
        """Return a note if the time until the first pods left their failed node was not 5 minutes.

        Return None if the time was 5 minutes, or if no pods left a tainted node. Also return None
        if the first pods were evicted because of a taint that the failure did not cause, such as
        out-of-service. Nodes that were tainted before the run are ignored, because it may be
        unknown when they failed.
        """
        evicted = [
            one
            for one in self.outage.nodes
            if one.first_eviction_at and one.tainted_at and one.tainted_at > self.start
        ]
        first = min(evicted, key=lambda one: one.first_eviction_at or 0, default=None)
        if first is None or not first.is_evicted_by_failure:
            return None
        left, tainted = first.first_eviction_at or 0, first.tainted_at or 0
        noticed = first.unready_at or tainted
        if abs(left - first.quiet_at - DEFAULT_TOLERATION) < seconds(1):
            return None
        return Misconception(
            name="five-minutes",
            belief="Pods leave a failed node after five minutes.",
            fact=(
                f"The first pods left {first.node} after {for_readers(left - first.quiet_at)}. "
                f"The node was marked not ready after {for_readers(noticed - first.quiet_at)} and "
                f"tainted {for_readers(tainted - noticed)} later (from a rate-limited queue). The "
                f"pods tolerated the taint for {for_readers(left - tainted)} (tolerationSeconds; "
                f"{TOLERATION_SECONDS_DEFAULT} unless the pod sets it)."
            ),
        )

    def dark_zone(self) -> Misconception | None:
        """Return a note if nodes of a zone without a ready node were tainted or emptied.

        Returns None if there are no such nodes, or if there is only one zone.
        """
        by_taint = self.config.evicts_by_taint
        acted = {one.zone for one in self.outage.taints}
        if not by_taint:
            acted = {one.zone for one in self.outage.nodes if one.first_eviction_at is not None}
        dark = [
            one
            for one in self._changes(ZoneState.FULL_DISRUPTION)
            if one.rate > 0 and one.zone in acted
        ]
        zones = {change.zone for change in self.outage.zones}
        if not dark or len(zones) == 1:
            return None
        change = max(dark, key=lambda one: one.size)
        return Misconception(
            name="dark-zone",
            belief="When a whole zone fails, evictions stop, as the network may have failed.",
            fact=(
                f"{zone_phrase(change.zone, 'Zone')} failed completely, and its nodes were "
                f"{'tainted' if by_taint else 'emptied'} at the normal rate, {_each(change.rate)}. "
                "Evictions stop only when every zone fails completely, or in a partially failed "
                "zone with at most large-cluster-size-threshold nodes."
            ),
        )

    def slow(self) -> Misconception | None:
        """Return a note if some failed nodes had no taint yet when the outage ended, else None."""
        tainted = {taint.node for taint in self.outage.taints}
        waited = Counter(
            one.zone for one in self.outage.nodes if one.unready_at and one.node not in tainted
        )
        taints = Counter(taint.zone for taint in self.outage.taints)
        if not taints:
            return None
        zone = max(taints, key=lambda name: (waited[name], name))
        disrupted = [
            *self._changes(ZoneState.PARTIAL_DISRUPTION),
            *self._changes(ZoneState.FULL_DISRUPTION),
        ]
        rates = [one.rate for one in disrupted if one.zone == zone]
        if 0 in rates:
            return None  # no node was tainted for a time, and `partly_dark` or `all_dark` says why
        rate = max(rates or (one.rate for one in self.outage.zones if one.zone == zone), default=0)
        if not waited[zone] or not rate:
            return None
        count = taints[zone] + waited[zone]
        return Misconception(
            name="slow",
            belief="All pods leave a failed zone at the same time.",
            fact=(
                f"{taints[zone]:,} of the {count:,} failed nodes of {zone_phrase(zone)} were "
                f"tainted before the outage ended; the others kept their pods. At {_each(rate)}, "
                f"all of them would have taken {for_readers(seconds((count - 1) / rate))}."
            ),
        )

    def all_dark(self) -> Misconception | None:
        dark = [one for one in self._changes(ZoneState.FULL_DISRUPTION) if one.rate == 0]
        if not dark:
            return None
        removes = ", removes its NoExecute taints" if self.config.evicts_by_taint else ""
        return Misconception(
            name="all-dark",
            belief="The longer all nodes are down, the more pods are evicted.",
            fact=(
                f"{for_readers(dark[0].at - self.start)} after the start, no zone had a ready node "
                "any more. In this case, the controller assumes that the fault is its own"
                f"{removes} and evicts no pods. When the first node returns, every node gets a new "
                "grace period."
            ),
        )

    def partly_dark(self) -> Misconception | None:
        parts = self._changes(ZoneState.PARTIAL_DISRUPTION)
        if not parts:
            return None
        change = max(parts, key=lambda one: one.unready)
        share = f"{change.unready} of the {change.size} nodes of {zone_phrase(change.zone)}"
        threshold = self.config.large_cluster_size_threshold
        if change.rate == 0:
            fact = (
                f"{share} were not ready, which is {self.config.unhealthy_zone_threshold:.0%} or "
                f"more. In a zone of at most {threshold} nodes, evictions then stop. If all of "
                "them had failed, evictions would have continued."
            )
        else:
            fact = (
                f"{share} were not ready, so tainting slowed down to {_each(change.rate)}. This "
                f"happens in zones of more than {threshold} nodes."
            )
        return Misconception(
            name="partly-dark",
            belief="The more nodes of a zone fail, the more pods are evicted.",
            fact=fact,
        )

    def pods_a_second(self) -> Misconception | None:
        nodes = (one for one in self.outage.nodes if one.is_evicted_by_failure)
        most = max(nodes, key=lambda one: one.evicted, default=None)
        if most is None or most.evicted < 2 or not self.outage.taints:
            return None
        return Misconception(
            name="pods-a-second",
            belief="node-eviction-rate limits how many pods are evicted.",
            fact=(
                f"It limits how many nodes are tainted. {most.node} lost its {most.evicted} pods "
                "when their tolerations expired, independent of the rate."
            ),
        )

    def budgets(self) -> Misconception | None:
        ignored = Counter(one.pdb for one in self.breaches if one.by.startswith(IGNORES_BUDGETS))
        if not ignored:
            return None
        worst = sorted(ignored.items(), key=lambda one: (-one[1], one[0]))
        names = ", ".join(f"{pdb} ({count})" for pdb, count in worst[:_NAMES_MAX])
        if (more := len(worst) - _NAMES_MAX) > 0:
            names += f" and {counted(more, 'more budget')}"
        return Misconception(
            name="budgets",
            belief="A PodDisruptionBudget prevents evictions.",
            fact=(
                "It limits the eviction API, which drains use. Pods of failed nodes are deleted "
                f"directly, here against {names}."
            ),
        )

    def sticky(self) -> Misconception | None:
        stuck = sum(one.cause is LossCause.STICKY for one in self.outage.lost)
        if not stuck:
            return None
        are, they = "are", "they are gone. They move"
        if stuck == 1:
            are, they = "is", "it is gone. It moves"
        return Misconception(
            name="sticky",
            belief="A StatefulSet moves its pods away from a failed node.",
            fact=(
                f"{stuck:,} of its pods {are} marked for deletion, but the unresponsive kubelet "
                f"cannot confirm that {they} when the node returns, its Node object is deleted, or "
                "it is tainted node.kubernetes.io/out-of-service."
            ),
        )

    def _changes(self, state: ZoneState) -> list[ZoneChange]:
        """Return each change of a zone to `state` that lasted for STATE_DURATION_MIN.

        For example, a zone may be in PartialDisruption for a moment before it has failed
        completely. This change is left out. If a zone was in `state` at the end of the run, its
        last change to `state` is always included.
        """
        by_zone: dict[str, list[ZoneChange]] = defaultdict(list)
        for change in self.outage.zones:
            by_zone[change.zone].append(change)
        found = [one for changes in by_zone.values() for one in _lasting(changes, state)]
        return sorted(found, key=lambda one: (one.at, one.zone))


def _lasting(changes: Iterable[ZoneChange], state: ZoneState) -> Iterator[ZoneChange]:
    """Yield the `changes` of a zone to `state`, without the changes in short periods.

    Consecutive changes to `state` form a period. A period is short if the zone changes to another
    state before STATE_DURATION_MIN has passed.
    """
    run: list[ZoneChange] = []
    for change in changes:
        if change.state == state:
            run.append(change)
            continue
        if run and change.at - run[0].at >= STATE_DURATION_MIN:
            yield from run
        run = []
    yield from run


def _each(rate: float) -> str:
    """Return `rate` (nodes per second) as text."""
    if rate == 0:
        return "none"
    return f"{rate:g} nodes/s" if rate > 1 else f"one node every {for_readers(seconds(1 / rate))}"

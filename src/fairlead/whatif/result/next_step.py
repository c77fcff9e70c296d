"""Chooses the next steps of an answer: questions to ask next, and commands to run.

The steps come from a table with a row per kind of outcome. The last step after a harmless drain is
the command that performs it.

Requests and budgets do not always show whether a step helps: other pods may take the room first, or
replicas may be placed on nodes that fail. A step whose effect is uncertain in this way is tried in
another simulation, and is left out if it does not help.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, at, items, mapping
from fairlead.api.objects import StatefulSet
from fairlead.api.taint import OUT_OF_SERVICE
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import BETA_ZONE, HOSTNAME, ZONE
from fairlead.apiserver.kind import NODE, POD, SCALABLE, STATEFUL_SET
from fairlead.apiserver.registry.subresource.eviction import SEVERAL
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.plugins.pod_topology_spread.filter import SPREAD_MISMATCH
from fairlead.engine.plugins.volume_restrictions import CLAIM_IN_USE
from fairlead.engine.workloads.stateful_set.rule import is_ordered
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures, option_duration
from fairlead.whatif.change.node_outage.outage import STOPPED
from fairlead.whatif.change.rolling_drain import nodes_at_once
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.certainty import VERDICT
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.assessment.verdict import Finding, OutcomeKind, Severity
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect, expected_rollout
from fairlead.whatif.outcome.jobs import JobsOutcome
from fairlead.whatif.outcome.outage import LossCause, LostPod, expected_duration
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.result.new_nodes import (
    NewNodes,
    lacks_room,
    new_nodes_for,
    node_to_copy,
)
from fairlead.whatif.result.spread_rule import SpreadRule, is_hard, spread_rules
from fairlead.whatif.result.volume_reach import VolumeReach
from fairlead.whatif.snapshot.manifest import Manifest, entries_of
from fairlead.whatif.snapshot.samples import samples

STEPS_MAX: Final = 5
_ALIKE_MAX: Final = 3  # more notes that differ only in the workload become one note
_NAMES_MAX: Final = 5  # maximum number of objects that a command names
_TRIES_MAX: Final = 3  # number of remedies of one kind that are tried; each takes a simulation
_GROWTH_MAX: Final = 2  # the most new replicas that a step suggests for each present one
SEEDS: Final = 20
_HORIZON_PERCENT: Final = 110  # of the expected time of a rolling drain
_TAINT: Final = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
_TAINT_IN_WORDS: Final = f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute"
_SHUT_DOWN: Final = ("", STOPPED)  # values of --how; the default is "stopped"
_MINIMUM: Final = "minAvailable"
_FILES: Final = (".yaml", ".yml", ".json", ".gz", ".tgz", ".zip")
_SCALABLE: Final = frozenset(kind.kind for kind in SCALABLE)


class NextSteps(Struct, frozen=True):
    """The next steps of an answer, and notes about steps that would not help.

    `causes` are notes that explain why pods are pending; they come before all other notes.
    """

    steps: tuple[NextStep, ...]
    notes: tuple[str, ...]
    causes: tuple[str, ...] = ()


Ask = Callable[[ClusterChange], Effect | None]
"""Returns the effect of another change of the same cluster; None if the change is invalid."""


class _Case(Struct, frozen=True):
    """An answer, the objects of its snapshot, a way to ask again, and the notes so far."""

    answer: WhatIfAnswer
    manifests: Sequence[Manifest]
    ask: Ask
    notes: list[str]
    causes: list[str]

    def has(self, ref: WorkloadRef) -> bool:
        """Return whether the snapshot contains the workload `ref` itself, not only its pods."""
        return bool(self.workloads({ref}))

    def workloads(self, refs: Collection[WorkloadRef]) -> dict[WorkloadRef, Manifest]:
        """Return those of the workloads `refs` that the snapshot itself contains."""
        kinds = {ref.kind for ref in refs}
        found = {
            WorkloadRef(one.full_kind, one.ref.namespace, one.ref.name): one
            for one in entries_of(self.manifests)
            if isinstance(one, Manifest) and one.full_kind in kinds
        }
        return {ref: found[ref] for ref in sorted(refs) if ref in found}

    def with_edits(self, *edits: str) -> Effect | None:
        """Return the effect if the question also makes `edits`, values of --set."""
        change = self.answer.change
        return self.ask(replace(change, set=(*change.set, *edits)))

    def with_replicas(self, one: WorkloadEffect, count: int) -> Effect | None:
        """Return the effect if the question also adds `count` replicas of the workload `one`."""
        change, scale = self.answer.change, f"{one.workload}={one.readiness.wanted + count}"
        return self.ask(replace(change, scale=(*change.scale, scale)))


def next_steps(answer: WhatIfAnswer, manifests: Sequence[Manifest], ask: Ask) -> NextSteps:
    """Return at most STEPS_MAX steps; the steps against the worst outcome come first.

    `manifests` are the objects of the snapshot, and `ask` tries a step.
    """
    case = _Case(answer, manifests, ask, [], [])
    found = [
        replace(step, outcome=one.kind)
        for one in answer.verdict.findings
        if one.kind in _STEPS
        for step in _STEPS[one.kind](case)
    ]
    chosen: dict[str, NextStep] = {}
    for step in (*found, *_drain(answer), *_more_seeds(answer)):
        chosen.setdefault(step.code, step)
    notes, causes = (tuple(dict.fromkeys(texts)) for texts in (case.notes, case.causes))
    return NextSteps(tuple(chosen.values())[:STEPS_MAX], notes, causes)


# --- the rows ----------------------------------------------------------------------------------


def _refused(case: _Case) -> Iterator[NextStep]:
    """Yield a what-if that adds the flags that kubectl drain still needs."""
    change = case.answer.change
    flags = [one.flag for one in case.answer.effect.drain.needed]
    if missing := [one for one in flags if one not in change.kubectl_flags]:
        which = "flag" if len(missing) == 1 else "flags"
        yield NextStep(f"ask again with the {which} that the pods need", shlex.join(missing))


def _unfinished(case: _Case) -> Iterator[NextStep]:
    """Yield what-ifs that simulate a drain and rollouts to their end, and a plan of the drain."""
    yield from _to_the_end(case)
    yield from _drain_plan(case)


def _to_the_end(case: _Case) -> Iterator[NextStep]:
    """Yield what-ifs that simulate a drain and rollouts to their end."""
    changed, change = case.answer.changed, case.answer.change
    rows = [one for one in case.answer.effect.workloads if one.outdated]
    rollout = expected_rollout(rows, changed.ended_at - changed.started_at)
    if rollout is not None and not changed.drains:
        yield NextStep(
            "ask again with a simulation that includes the end of the rollouts",
            shlex.join(("--horizon", _rounded_up(rollout * _HORIZON_PERCENT // 100))),
        )
        return
    is_over = all(one.back_at is not None for one in changed.drains)
    if changed.blocking or (is_over and not changed.stopping):
        return
    down = option_duration("--for", change.lasts) or 0
    expected = expected_duration(changed.drains, down) or 0
    ran = changed.ended_at - changed.started_at
    expected = max(expected, _expected_stop(changed, down))
    # Later drains may take longer than the first ones.
    horizon = max(expected * _HORIZON_PERCENT // 100, 2 * ran)
    yield NextStep(
        "ask again with a simulation that includes the end of the drain",
        shlex.join(("--horizon", _rounded_up(horizon))),
    )


def _expected_stop(changed: RunOutcome, away: DurationNs) -> DurationNs:
    """Return the time that a drain is expected to take; 0 if no pods are stopping.

    Each node is assumed to take as long as the slowest of the stopping pods. In a rolling drain,
    each node is assumed to be back after the time `away`, once it is empty. A result that is too
    long does no harm, because a run ends with the drain.
    """
    begun = {one.node: one.begun_at for one in changed.drains}
    times = [
        one.stops_at - (begun.get(one.pod.node) or changed.started_at)
        for one in changed.stopping
        if one.stops_at is not None
    ]
    if not times:
        return 0
    return (max(times) + away) * len(changed.drains) if changed.drains else max(times)


def _rounded_up(duration: DurationNs) -> str:
    """Return `duration` in whole minutes if it is less than an hour, else in whole hours."""
    minutes = -(-duration // seconds(60))
    return f"{minutes}m" if minutes < 60 else f"{-(-minutes // 60)}h"


def _undrained(case: _Case) -> Iterator[NextStep]:
    """Yield what-ifs in which more evictions are allowed, and a plan of the drain.

    The plan covers everything that blocks the drain. It comes first if the what-ifs are several,
    because each of them is about only one budget.
    """
    allowing, plan = list(_blocked(case)), _drain_plan(case)
    yield from chain(plan, allowing) if len(allowing) > 1 else chain(allowing, plan)


def _drain_plan(case: _Case) -> Iterator[NextStep]:
    """Yield the command that plans the drain, if the drain does not complete in the simulation.

    For a rolling drain, the command also finds how many nodes can be drained at a time.
    """
    answer = case.answer
    change, changed = answer.change, answer.changed
    is_unfinished = any(one.back_at is None for one in changed.drains)
    if not change.drain or not (changed.blocking or is_unfinished):
        return
    # The source of an answer can also be standard input, or the context of a running cluster.
    snapshot = answer.source if answer.source.endswith(_FILES) else "SNAPSHOT"
    words = [word for one in change.drain for word in ("--nodes", one)]
    if change.max_unavailable is not None:
        words += ["--for", change.lasts or "0s"]
    aim = "find the fastest pace of the drain that is safe"
    if changed.blocking:
        aim = "list everything that blocks the drain, and what would unblock it"
    yield NextStep(aim, command=shlex.join(("fairlead", "drain-plan", snapshot, *words)))


def _blocked(case: _Case) -> Iterator[NextStep]:
    """Yield what-ifs in which the budgets that refuse evictions allow more evictions.

    If `_refuse_less` includes a budget, the what-if sets its `unhealthyPodEvictionPolicy`;
    otherwise, it is that of `_room_in`.

    The eviction API never evicts a pod that several budgets select. If there are such pods, the
    last what-if deletes all but one of their budgets.
    """
    undrained = case.answer.changed.blocking
    violating = {one.pod.key for one in undrained if one.why != SEVERAL}
    exhausted = {
        one.pdb for one in case.answer.changed.budgets if not violating.isdisjoint(one.refused)
    }
    blocking = [one for one in case.answer.effect.budgets if one.blocked and one.pdb in exhausted]
    tolerant = _refuse_less(blocking, case)
    for budget in blocking:
        if budget.pdb in tolerant:
            words = f"ask again with evictions of unready pods always allowed by {budget.pdb}"
            yield NextStep(words, shlex.join(("--set", _always_allow(budget.pdb))))
        else:
            yield from _room_in(budget, case)
    yield from _single_budget(case)


def _refuse_less(budgets: Iterable[BudgetOutcome], case: _Case) -> set[str]:
    """Return which of `budgets` refuse fewer evictions if they always allow those of unready pods.

    Budgets that the question may already change are left out. All others with unready pods are
    tried in one simulation.
    """
    effect, change = case.answer.effect, case.answer.change
    unready = {
        pdb
        for one in effect.workloads
        if one.readiness.before < one.readiness.wanted
        for pdb, _ in one.budgets
    }
    refused = {
        one.pdb: one.blocked
        for one in budgets
        if one.pdb in unready and not _may_change(one.pdb, change)
    }
    if not refused:
        return set()
    tried = case.ask(replace(change, set=(*change.set, *map(_always_allow, refused))))
    if tried is None:
        return set()
    left = {one.pdb: one.blocked for one in tried.budgets}
    return {pdb for pdb, count in refused.items() if left.get(pdb, 0) < count}


def _always_allow(pdb: str) -> str:
    return f"pdb/{pdb}:spec.unhealthyPodEvictionPolicy=AlwaysAllow"


def _single_budget(case: _Case) -> Iterator[NextStep]:
    """Yield a what-if that deletes budgets, so that each undrained pod keeps only one of them."""
    several = {one.pod.key for one in case.answer.changed.undrained if one.why == SEVERAL}
    kept: set[str] = set()
    surplus: set[str] = set()
    for key in sorted(several):
        budgets = (one for one in case.answer.changed.budgets if one.pdb not in surplus)
        covering = [one for one in budgets if key in one.refused]
        covering.sort(key=lambda one: (one.pdb not in kept, -(one.allowed_at_end or 0), one.pdb))
        kept |= {one.pdb for one in covering[:1]}
        surplus |= {one.pdb for one in covering[1:]}
    change = case.answer.change
    is_edited = change.apply or any(_is_named(one, change.set) for one in surplus)
    if surplus and len(surplus) <= _NAMES_MAX and not is_edited:
        names = sorted(surplus)
        yield NextStep(
            f"ask again without {', '.join(names)}; a pod of several budgets cannot be evicted",
            shlex.join(word for one in names for word in ("--delete", f"pdb/{one}")),
        )


def _breached(case: _Case) -> Iterator[NextStep]:
    """Yield a what-if with more replicas, which may prevent the breach of a budget.

    The what-if is about the first breached budget for which more replicas can help. If nodes fail,
    a note names the breached budgets for which no number of replicas helps.
    """
    effect = case.answer.effect
    hopeless: list[str] = []
    possible: list[tuple[BudgetOutcome, WorkloadEffect, int]] = []
    for budget in effect.budgets:
        covered = [one for one in effect.workloads if budget.pdb in dict(one.budgets)]
        if budget.state is BudgetResult.BREACHED and covered:
            count = _lacking_replicas(budget, covered[0].readiness.wanted, effect)
            if count is None:
                hopeless.append(f"{budget.pdb} ({budget.rule})")
            elif _can_scale(covered[0], case):
                possible.append((budget, covered[0], count))
    if hopeless and effect.changed.outage is not None:
        budgets = "the budget allows" if len(hopeless) == 1 else "these budgets allow"
        case.notes.append(
            "More replicas, spread evenly over the nodes, would not prevent the breach of "
            f"{listed(hopeless)}: more of them would fail than {budgets}."
        )
    for budget, one, count in possible[:1]:  # trying a step takes another run
        yield from _unbreached(budget, one, count, case)


def _lacking_replicas(budget: BudgetOutcome, wanted: int, effect: Effect) -> int | None:
    """Return how many more replicas prevent the breach of `budget`; None if no number does.

    `wanted` is the present number of replicas. The new replicas are assumed to be lost in the same
    proportion as the present ones. If the rule of `budget` is a percentage, the lost proportion is
    assumed to be that of the nodes that fail.

        half of 8 replicas fail, minAvailable 6        4, because half of 12 is 6
        half of 8 replicas fail, maxUnavailable 2      None, because 4 fail anyway
        half of the nodes fail, minAvailable 75%       None
        2 of 4 replicas and a tenth of the nodes fail, minAvailable 70%
                                                       4, because 2.4 of 8 may fail then
    """
    outage = effect.changed.outage
    kind, _, amount = budget.rule.partition(" ")
    if _is_number(budget.rule):
        missing = max(1, budget.needed - budget.lowest_healthy)
        if outage is None or not budget.lowest_healthy:
            return missing
        return max(missing, -(-budget.needed * wanted // budget.lowest_healthy) - wanted)
    if not amount.endswith("%"):
        return None
    percent = int(amount.removesuffix("%"))
    allowed = 100 - percent if kind == _MINIMUM else percent
    nodes, failed = len(effect.without.nodes), 0 if outage is None else len(outage.nodes)
    gain = allowed * nodes - 100 * failed  # of each new replica
    if gain <= 0:
        return None
    lost = wanted - budget.lowest_healthy
    return max(1, -(-(100 * lost - allowed * wanted) * nodes // gain))


def _is_number(rule: str) -> bool:
    """Return whether `rule` is `minAvailable` with a number of pods."""
    kind, _, amount = rule.partition(" ")
    return kind == _MINIMUM and amount.isdigit()


def _unbreached(
    budget: BudgetOutcome, one: WorkloadEffect, count: int, case: _Case
) -> Iterator[NextStep]:
    """Yield a what-if with `count` more replicas of the workload `one`, if it helps.

    The replicas help if they avoid the breach of `budget` and do not increase the number of pending
    pods.
    """
    if count > _GROWTH_MAX * one.readiness.wanted:
        return
    tried = case.with_replicas(one, count)
    if tried is None or len(tried.difference.pending) > len(case.answer.difference.pending):
        return
    if not any(each.pdb == budget.pdb and each.breaches for each in tried.budgets):
        yield _scaled(one, count)


def _room_in(budget: BudgetOutcome, case: _Case) -> Iterator[NextStep]:
    """Yield a what-if with more replicas, or with a budget that allows one more disruption.

    If `minAvailable` is a number, the what-if adds replicas: the number of healthy pods that the
    budget needs, minus the lowest number of healthy pods that it had, and at least 1.

    In all other cases, the what-if changes the budget. No what-if is yielded if the question may
    already change the budget. If no pod of the budget has a controller, `minAvailable` becomes a
    number. Otherwise, `maxUnavailable` is raised if the budget has it and no pod of the budget is
    pending. While pods are pending, a higher limit would make more pods wait.
    """
    effect, change = case.answer.effect, case.answer.change
    covered = [one for one in effect.workloads if budget.pdb in dict(one.budgets)]
    kind = budget.rule.partition(" ")[0]
    if _is_number(budget.rule):
        missing = max(1, budget.needed - budget.lowest_healthy)
        if budget.breaches <= missing:
            yield from (step for one in covered[:1] for step in _more_replicas(one, missing, case))
    elif _may_change(budget.pdb, change):
        return  # The question must not set a field twice.
    elif covered and all(one.workload.kind == POD.kind for one in covered):
        available = max(0, budget.lowest_healthy - 1)
        settings = ("spec.maxUnavailable=null", f"spec.minAvailable={available}")
        yield NextStep(
            f"ask again with a number as minAvailable of {budget.pdb}; other limits count only "
            "pods with a controller",
            shlex.join(word for one in settings for word in ("--set", f"pdb/{budget.pdb}:{one}")),
        )
    elif kind == "maxUnavailable" and covered and not any(one.pending for one in covered):
        # Pods that are not ready for another reason, such as a failed node, count as unavailable.
        wanted = sum(one.readiness.wanted for one in covered)
        absences = wanted - min(budget.needed, budget.lowest_healthy)
        setting = f"spec.maxUnavailable={max(absences, 0) + 1}"
        yield NextStep(
            f"ask again with one more unavailable pod allowed by {budget.pdb}",
            shlex.join(("--set", f"pdb/{budget.pdb}:{setting}")),
        )


def _may_change(pdb: str, change: ClusterChange) -> bool:
    """Return whether `change` may change the budget `pdb`."""
    return bool(change.apply) or _is_named(pdb, change.set)


def _is_named(name: str, texts: Iterable[str]) -> bool:
    """Return whether an edit in `texts`, such as `deploy/web=2`, names `name` in any namespace."""
    targets = (text.partition(":")[0].partition("=")[0] for text in texts)
    return name.rpartition("/")[2] in {one.rpartition("/")[2] for one in targets}


def _more_replicas(one: WorkloadEffect, count: int, case: _Case) -> Iterator[NextStep]:
    """Yield a what-if with `count` more replicas of the workload, if they would run."""
    if _can_grow(one, case) and _can_scale(one, case):
        yield _scaled(one, count)


def _scaled(one: WorkloadEffect, count: int) -> NextStep:
    """Return a what-if with `count` more replicas of the workload."""
    return NextStep(
        f"ask again with {_replicas(count)} of {one.workload}",
        shlex.join(("--scale", f"{one.workload}={one.readiness.wanted + count}")),
    )


def _can_grow(one: WorkloadEffect, case: _Case) -> bool:
    """Return whether more replicas of the workload `one` would run and stay.

    If pods wait for a node, new replicas would wait, too. A StatefulSet that creates its pods in
    order creates none while one of them is not ready.
    """
    effect = case.answer.effect
    is_full = bool(effect.difference.pending or effect.waited)
    waits = one.workload.kind == STATEFUL_SET.kind and _waits_in_order(one, case)
    return not (one.down or is_full or waits) and _has_unmanaged_scale(one, case)


def _waits_in_order(one: WorkloadEffect, case: _Case) -> bool:
    """Return whether a pod of the StatefulSet `one` was not ready before the change.

    Return False if the policy of the StatefulSet is Parallel, or if the change creates it.
    """
    found = case.workloads({one.workload}).get(one.workload)
    if found is None:
        return False
    owner = decode_as(StatefulSet, found.value)
    return is_ordered(owner) and one.readiness.before < owner.spec.replicas


def _can_scale(one: WorkloadEffect, case: _Case) -> bool:
    """Return whether the question can be asked again with another scale of the workload `one`."""
    change = case.answer.change
    is_edited = change.apply or _is_named(one.workload.name, (*change.scale, *change.set))
    return not is_edited and _has_unmanaged_scale(one, case)


def _has_unmanaged_scale(one: WorkloadEffect, case: _Case) -> bool:
    """Return whether the workload `one` of the snapshot has a scale that no autoscaler sets."""
    ref = one.workload
    is_autoscaled = any(
        each.target == f"{ref.kind} {ref.name}" and each.autoscaler.startswith(f"{ref.namespace}/")
        for each in case.answer.changed.pod_autoscalers
    )
    return ref.kind in _SCALABLE and not is_autoscaled and case.has(ref)


def _replicas(count: int) -> str:
    return "one more replica" if count == 1 else f"{count:,} more replicas"


def _placed(case: _Case) -> Iterator[NextStep]:
    """Yield what-ifs in which pending pods find a node."""
    yield from _with_new_nodes(case)
    yield from _unspread(case)


def _with_new_nodes(case: _Case) -> Iterator[NextStep]:
    """Yield what-ifs with new nodes.

    If pods fit only copies of the node that they left, copies of this node are suggested. The
    copies have room for these pods, and for pods of the same workloads that are evicted or created
    later. If possible, the copies also have room for the other pods that wait for lack of room.

    No copy is suggested for a pod whose volumes the copy would not reach. If the question drains
    nodes, a rolling drain is suggested for such pods. If the nodes are in several zones and pods
    may need one of them, or if a spread constraint keeps pods off nodes, new nodes are suggested
    only if a trial shows that fewer pods wait.

    If the question adds nodes already, more copies of the node that the question copies are
    suggested. Nothing is suggested if an autoscaler acts, because new nodes of its groups would
    count against its limits.
    """
    answer = case.answer
    if answer.changed.autoscaling is not None:
        return
    change, pending = answer.change, _lacking_nodes(answer.difference.pending, answer.changed.jobs)
    # Nodes that the change creates are not in the snapshot and cannot be copied.
    suitable = {one.name for one in answer.without.nodes} - _nodes_of_failed_zones(answer)
    nodes = [one for one in answer.changed.nodes if one.name in suitable]
    if change.add_nodes is not None:
        yield from _more_nodes(case, pending, nodes, change.add_nodes)
        return
    waiting = {pod.workload for pod in pending}
    is_zonal = len({node.zone for node in nodes}) > 1 and _may_need_a_zone(waiting, case)
    kept = [one.pod for one in answer.changed.blocking if one.pod.workload in waiting]
    later = [one.pod for one in answer.difference.not_created if one.pod.workload in waiting]
    later += _created_later(pending, case)
    reach = VolumeReach(case.manifests, (*pending, *kept, *later))
    by_name = {node.name: node for node in nodes}
    left = {one.pod.key: one.node for one in answer.difference.evicted if one.node in by_name}
    movable = [
        pod for pod in pending if pod.key in left and reach.reaches(pod, by_name[left[pod.key]])
    ]
    old_node = node_to_copy(movable, left, nodes)
    covered: list[PodEnd] = []
    if old_node is not None:
        covered += _taken_by_copies(old_node, movable, left, reach)
        here = [*(pod for pod in kept if pod.node == old_node.name), *later]
        covered += [pod for pod in here if reach.reaches(pod, old_node)]
    keys = {pod.key for pod in covered}
    short = [pod for pod in pending if lacks_room(pod) and pod.key not in keys]
    lacking = {pod.workload for pod in short}
    short += [pod for pod in (*kept, *later) if pod.workload in lacking and pod.key not in keys]
    if old_node is not None:
        near = [pod for pod in short if reach.reaches(pod, old_node)]
        copies = new_nodes_for([*covered, *near], [old_node], answer.without.nodes)
        if copies is None or old_node.is_tainted:
            copies = new_nodes_for(covered, [old_node], answer.without.nodes)
        else:
            short = [pod for pod in short if not reach.reaches(pod, old_node)]
        yield from _copies_of(copies, case, is_tried=is_zonal)
    short, nodes = reach.most_reached(short, nodes)
    yield from _room_for(short, nodes, case, is_tried=is_zonal)
    bound = [pod for pod in pending if pod.key in left and pod not in movable]
    if bound and change.drain and change.max_unavailable is None:
        yield NextStep(
            "ask again with drained nodes that return; pods have volumes that are local to them",
            "--max-unavailable 1 --for 10m",
        )


def _created_later(pending: Iterable[PodEnd], case: _Case) -> Iterator[PodEnd]:
    """Yield a pod for each one that a StatefulSet creates after one of its `pending` pods."""
    missing = {
        one.workload: one.missing
        for one in case.answer.effect.workloads
        if one.workload.kind == STATEFUL_SET.kind
    }
    for ref, pod in {pod.workload: pod for pod in pending}.items():
        yield from [pod] * missing.get(ref, 0)


def _may_need_a_zone(workloads: Collection[WorkloadRef], case: _Case) -> bool:
    """Return whether rules or volumes of pods of `workloads` may keep the pods off a zone.

    The rules of a workload that is not in the snapshot are those of its pods there. The result is
    also True for a workload of which the snapshot has no pods either, or which the question may
    change.
    """
    found, change = case.workloads(workloads), case.answer.change
    absent = set(workloads).difference(found)
    specs = {
        workload: one.value["spec"]
        for one in (samples(case.manifests) if absent else ())
        if one.kind is POD and (workload := workload_of(one.pod)) in absent
    }
    if change.apply or len(specs) < len(absent):
        return True
    return any(map(_has_zonal_rule, specs.values())) or any(
        _is_named(ref.name, change.set)
        or items(one.value, "spec", "volumeClaimTemplates")
        or _has_zonal_rule(mapping(one.value, "spec", "template", "spec"))
        for ref, one in found.items()
    )


def _has_zonal_rule(spec: Json) -> bool:
    """Return whether a pod with `spec` has a rule or a volume that may keep it off a zone.

    Rules about single nodes (their topologyKey is the host name) exclude no zone. An empty `spec`
    is the spec of a kind with another form, so nothing is known about its pods.
    """
    if not spec or any(at(one, "persistentVolumeClaim") for one in items(spec, "volumes")):
        return True
    spread = items(spec, "topologySpreadConstraints")
    rules = [one for one in spread if is_hard(one)]
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(spec, "affinity", kind)
        rules += items(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    return any(one.get("topologyKey") != HOSTNAME for one in rules)


def _unspread(case: _Case) -> Iterator[NextStep]:
    """Yield steps against topology spread that keeps pods pending.

    For each rule that keeps pods off nodes with room, a sentence about the rule is added to
    `case.causes`. The first step deletes the Node objects of failed nodes. The second is a what-if
    with other topology spread constraints. Each is yielded only if it helps.
    """
    rules = _rules_against(case.answer.difference.pending, case)
    for alike in _alike(rules):
        verb = "stays" if _pods(alike) == 1 else "stay"
        case.causes.append(f"{_whose_pods(alike)} {verb} pending although {_has_room(alike)}.")
    rules = [rule for rule in rules if rule.constraints]
    if any(rule.ignores_taints for rule in rules):
        yield from _without_failed_nodes(case)
    if editable := [rule for rule in rules if _can_edit(rule.workload, case)]:
        yield from _other_constraints(editable, case)


def _without_failed_nodes(case: _Case) -> Iterator[NextStep]:
    """Yield the command that deletes the Node objects of the failed nodes.

    A zone without Node objects does not count for topology spread. The command is for machines that
    do not come back: the kubelet of a machine that does come back registers its node again. There
    is no command if it leaves as many pods pending, or if it cannot name the nodes. The deletion is
    tried without the outage, because a simulation of an outage takes long.
    """
    change = case.answer.change
    if not _are_shut_down(change):
        return
    names = _failed_nodes(case.answer)
    targets = _targets(names, case.answer)
    if not targets:
        return
    deleted = (f"node/{target}" for target in targets)
    tried = case.ask(replace(change, failures=Failures(), delete=(*change.delete, *deleted)))
    before = len(case.answer.difference.pending)
    after = before if tried is None else len(tried.difference.pending)
    if after >= before:
        return
    which, objects = "nodes are", "their Node objects"
    if len(names) == 1:
        which, objects = "node is", "its Node object"
    pods = "the pending pod then runs" if before == 1 else f"the {before:,} pending pods then run"
    if after:
        verb = "runs" if before - after == 1 else "run"
        pods = f"{before - after:,} of {before:,} pending pods then {verb}"
    yield NextStep(
        f"if the failed {which} shut down for good, delete {objects}; {pods}",
        command=shlex.join(("kubectl", "delete", "nodes", *_selected(targets))),
    )


def _failed_nodes(answer: WhatIfAnswer) -> set[str]:
    outage = answer.changed.outage
    return set() if outage is None else {node.node for node in outage.nodes}


def _are_shut_down(change: ClusterChange) -> bool:
    """Return whether the failed nodes of `change` may be machines that do not come back."""
    failures = change.failures
    return failures.how in _SHUT_DOWN and not change.lasts and not failures.flap


def _targets(names: Collection[str], answer: WhatIfAnswer) -> tuple[str, ...]:
    """Return the nodes `names`, or the label that exactly these nodes have, if they are many.

    Return () if `names` are too many for a command, and no zone label selects them.
    """
    if len(names) <= _NAMES_MAX:
        return tuple(sorted(names))
    for key in (ZONE, BETA_ZONE):
        zones = {node.labels.get(key) for node in answer.changed.nodes if node.name in names}
        members = {node.name for node in answer.changed.nodes if node.labels.get(key) in zones}
        if len(zones) == 1 and members == names:
            return (f"{key}={zones.pop()}",)
    return ()


def _selected(targets: Sequence[str]) -> Iterator[str]:
    """Yield `targets` as arguments of kubectl."""
    for target in targets:
        yield from ("--selector", target) if "=" in target else (target,)


def _unspread_waits(case: _Case) -> Iterator[NextStep]:
    """Yield a what-if in which failed nodes do not count for the spread of pods that waited.

    A note names each rule for which displaced pods waited for a node. The what-if is not tried,
    because a trial of a long outage would take as long as the question itself.
    """
    waited = case.answer.effect.waited
    rules = _rules_against([one.pod for one in waited], case)
    for alike in _alike(rules):
        workloads = {rule.workload for rule in alike}
        longest = max(one.waited for one in waited if one.pod.workload in workloads)
        waits = "waits" if _pods(alike) == 1 else "wait up to"
        case.causes.append(
            f"{_whose_pods(alike)} {waits} {for_readers(longest)} for a node although "
            f"{_has_room(alike)}."
        )
    counting = [rule for rule in rules if rule.constraints and rule.ignores_taints]
    editable = [rule for rule in counting if _can_edit(rule.workload, case)]
    if editable:
        yield _honoring_taints(_edited_together(editable), counting, case)


def _alike(rules: Sequence[SpreadRule]) -> Iterator[list[SpreadRule]]:
    """Yield `rules` in groups: more than _ALIKE_MAX rules of the same words, or one rule.

    A failed zone can make the pods of hundreds of workloads wait for equal constraints.
    """
    by_words: dict[str, list[SpreadRule]] = {}
    for rule in rules:
        by_words.setdefault(rule.words, []).append(rule)
    for group in by_words.values():
        yield from [group] if len(group) > _ALIKE_MAX else ([rule] for rule in group)


def _pods(rules: Iterable[SpreadRule]) -> int:
    return sum(rule.pods for rule in rules)


def _whose_pods(rules: Sequence[SpreadRule]) -> str:
    """Return "3 pods of deploy/a/b", or the number of workloads, of which the largest are named."""
    pods = counted(_pods(rules), "pod")
    if len(rules) == 1:
        return f"{pods} of {rules[0].workload}"
    return f"{pods} of {len(rules):,} workloads ({_workloads(rules)})"


def _has_room(rules: Sequence[SpreadRule]) -> str:
    whose = "its" if len(rules) == 1 else "their"
    return f"nodes have room, because of {whose} {rules[0].words}"


def _rules_against(pods: Sequence[PodEnd], case: _Case) -> list[SpreadRule]:
    """Return the spread and anti-affinity rules that kept `pods` off nodes with room.

    Returns [] if the question does not make nodes fail, and does not drain or cordon nodes.
    """
    answer = case.answer
    if answer.changed.outage is None and not (answer.change.drain or answer.change.cordon):
        return []
    templates = {
        ref: mapping(one.value, "spec", "template", "spec")
        for ref, one in case.workloads({pod.workload for pod in pods}).items()
    }
    return list(spread_rules(pods, templates))


def _other_constraints(rules: Sequence[SpreadRule], case: _Case) -> Iterator[NextStep]:
    """Try up to three what-ifs with other topology spread constraints; yield the first that helps.

    A what-if helps if a workload has more ready pods at its end. In the first what-if, the
    constraints of all workloads of `rules` do not count tainted nodes. The others are about the
    workload with the most pods without a node: in the second, its constraints also have no
    minDomains, and in the third, they are only preferences (ScheduleAnyway).
    """
    rows = {row.workload: row for row in case.answer.effect.workloads}
    counting = [rule for rule in rules if rule.ignores_taints]
    if counting:
        edited = _edited_together(counting)
        tried = case.with_edits(*(rule.with_taints_honored() for rule in edited))
        if helped := [rule for rule in edited if _more_ready(rows[rule.workload], tried)]:
            yield _honoring_taints(helped, counting, case)
            return
    rule = max(rules, key=lambda rule: rule.pods)
    one = rows[rule.workload]
    whose = f"the topology spread of {rule.workload}"
    edit = rule.without_min_domains()
    if rule.has_min_domains and _more_ready(one, case.with_edits(edit)):
        yield NextStep(f"ask again without minDomains in {whose}", shlex.join(("--set", edit)))
        return
    edit = rule.with_anyway()
    if _more_ready(one, case.with_edits(edit)):
        words = f"ask again with {whose} as a preference (whenUnsatisfiable: ScheduleAnyway)"
        yield NextStep(words, shlex.join(("--set", edit)))


def _edited_together(rules: Sequence[SpreadRule]) -> Sequence[SpreadRule]:
    """Return `rules`, or only the one with the most pods if a command cannot name so many."""
    return rules if len(rules) <= _NAMES_MAX else [max(rules, key=lambda rule: rule.pods)]


def _honoring_taints(
    edited: Sequence[SpreadRule], counting: Sequence[SpreadRule], case: _Case
) -> NextStep:
    """Return a what-if in which the constraints of `edited` do not count tainted nodes.

    Also add a note to `case.causes`: it says that the constraints of `counting`, which include
    those of `edited`, count these nodes now.
    """
    are_failed = case.answer.changed.outage is not None
    which = "failed" if are_failed else "cordoned"
    until = ", while their Node objects exist" if are_failed else ""
    case.causes.append(
        f"The {which} nodes still count for the topology spread of {_workloads(counting)}, without "
        f"pods{until}. With nodeTaintsPolicy: Honor, they do not count."
    )
    whose = f"the topology spread of {_workloads(edited)}"
    if len(edited) < len(counting):
        whose += f", {len(edited)} of {len(counting)} such workloads"
    edits = (word for rule in edited for word in ("--set", rule.with_taints_honored()))
    words = f"ask again without the {which} nodes in {whose} (nodeTaintsPolicy: Honor)"
    return NextStep(words, shlex.join(edits))


def _workloads(rules: Sequence[SpreadRule]) -> str:
    """Return the workloads of `rules`; of several, those with the most pods are named first."""
    return listed([str(rule.workload) for rule in sorted(rules, key=lambda rule: -rule.pods)])


def _more_ready(one: WorkloadEffect, tried: Effect | None) -> bool:
    """Return whether the workload `one` has more ready pods at the end of the run `tried`."""
    return tried is not None and _ready_at_end(one, tried) > one.readiness.at_end


def _can_edit(ref: WorkloadRef, case: _Case) -> bool:
    """Return whether the question can be asked again with another template of the workload."""
    change = case.answer.change
    return ref.kind in _SCALABLE and not (change.apply or _is_named(ref.name, change.set))


def _copies_of(more: NewNodes | None, case: _Case, *, is_tried: bool) -> Iterator[NextStep]:
    """Yield a what-if with the new nodes `more`; if `is_tried` is set, it is tried first."""
    if more is not None and is_tried:
        yield from _best_nodes([more], 0, case)
    else:
        yield from _new_nodes("ask again with", more)


def _room_for(
    short: Collection[PodEnd], nodes: Sequence[NodeEnd], case: _Case, *, is_tried: bool
) -> Iterator[NextStep]:
    """Yield a what-if with new nodes for the `short` pods.

    If `is_tried` is set, or if a spread constraint keeps `short` pods off the present nodes, the
    what-if is tried first, with nodes of up to _TRIES_MAX zones.
    """
    more = new_nodes_for(short, nodes, case.answer.without.nodes)
    is_spread = any(SPREAD_MISMATCH in pod.reason for pod in short)
    if is_tried or is_spread:
        yield from _best_nodes(_by_zone(more, short, nodes, case), 0, case)
    else:
        yield from _new_nodes("ask again with", more)


def _by_zone(
    first: NewNodes | None, short: Collection[PodEnd], nodes: Sequence[NodeEnd], case: _Case
) -> list[NewNodes]:
    """Return `first`, and new nodes for the `short` pods in each other zone of `nodes`.

    The scheduler's reasons do not show in which zone a pod may run: a node that lacks room is not
    checked for other rules. Zones with few pods of the workloads come first, because there the
    workloads' spread constraints most likely admit more pods.
    """
    zone_of = {node.name: node.zone for node in nodes}
    workloads = {pod.workload for pod in short}
    pods = Counter(
        node.zone
        for node in case.answer.changed.nodes
        for pod in node.pods
        if pod.workload in workloads
    )
    known = case.answer.without.nodes
    found = [] if first is None else [first]
    tried = {zone_of[one.like] for one in found}
    for zone in sorted({*zone_of.values()} - tried, key=lambda zone: (pods[zone], zone)):
        members = [node for node in nodes if node.zone == zone]
        more = new_nodes_for(short, members, known, spread_counts=False)
        found += [] if more is None else [more]
    return found


def _taken_by_copies(
    node: NodeEnd, movable: Sequence[PodEnd], left: Mapping[str, str], reach: VolumeReach
) -> Iterator[PodEnd]:
    """Yield the `movable` pods that copies of `node` can take.

    The result contains all pods that left `node`. It also contains the pods that left other nodes,
    if a pod of the same workload left `node` and a copy of `node` reaches their volumes. `left`
    maps the key of each pod to the node that it left.
    """
    alike = {pod.workload for pod in movable if left[pod.key] == node.name}
    for pod in movable:
        if left[pod.key] == node.name or (pod.workload in alike and reach.reaches(pod, node)):
            yield pod


def _more_nodes(
    case: _Case, pending: Iterable[PodEnd], nodes: Iterable[NodeEnd], added: int
) -> Iterator[NextStep]:
    """Yield a what-if with more new nodes for the `pending` pods than the question adds.

    `added` is the number of nodes that the question adds. `nodes` are the nodes that can be copied.
    """
    change = case.answer.change
    same = [one for one in nodes if one.name == change.like and not change.instance_type]
    more = new_nodes_for(filter(lacks_room, pending), same, case.answer.without.nodes)
    if more is not None:
        yield from _best_nodes([more], added, case)


def _lacking_nodes(pending: Sequence[PodEnd], jobs: JobsOutcome) -> list[PodEnd]:
    """Return the `pending` pods that a new node may help.

    Pods that have a node but wait for a volume are left out. Of the first waiting gang, as many
    members are left out as the nodes have room for. Members of other gangs are kept, because the
    same room may be counted for several gangs.
    """
    pending = [pod for pod in pending if not pod.is_held_up]
    by_key = {pod.key: pod for pod in pending}
    for gang in jobs.waiting:
        blocked = by_key.get(gang.member)
        if blocked is not None:
            others = [pod for pod in pending if pod.workload == blocked.workload]
            others = [pod for pod in others if pod is not blocked][: gang.placeable]
            return [pod for pod in pending if pod not in others]
    return list(pending)


class _TriedNodes(Struct, frozen=True):
    """New nodes, the effect of a what-if with them, and how many fewer pods wait."""

    nodes: NewNodes
    effect: Effect
    gain: int

    @property
    def unused(self) -> int:
        """The number of new nodes that run only static pods and pods of DaemonSets."""
        known = self.effect.without.node_names
        new = [node for node in self.effect.changed.nodes if node.name not in known]
        return sum(all(pod.belongs_to_node for pod in node.pods) for node in new)


def _best_nodes(candidates: Sequence[NewNodes], added: int, case: _Case) -> Iterator[NextStep]:
    """Yield a what-if with those new nodes of `candidates` with which the fewest pods wait.

    The first _TRIES_MAX of `candidates` are tried, up to the first with which most of the waiting
    pods run: in a large cluster, a trial takes long. If some pods still wait, the step says how
    many pods run. If all of them wait, a note says so.

    `added` is the number of nodes that the question adds already. More room alone does not ensure
    that a pod runs: its rules may exclude the new nodes, or the scheduler may place other pods on
    them first.
    """
    waiting = _waiting(case.answer.effect)
    found: list[_TriedNodes] = []
    for more in candidates[:_TRIES_MAX]:
        found += _tried_nodes(more, added, case)
        if found and 2 * found[-1].gain > waiting:
            break
    best = max(found, key=lambda one: one.gain, default=None)
    if best is None:
        return
    if best.gain <= 0:
        case.notes.append(_no_help(found, case))
        return
    if 2 * best.gain <= waiting and (best.unused or _is_spread(best)):
        best = _fewer_nodes(best, waiting, added, case)
    left = waiting - best.gain
    rest = ""
    if left:
        which = "missing" if waiting > len(case.answer.difference.pending) else "pending"
        verb = "runs" if best.gain == 1 else "run"
        rest = f"; {best.gain:,} of {waiting:,} {which} pods then {verb}"
    if 2 * best.gain <= waiting and _is_spread(best):
        nodes = counted(best.nodes.count, "more node")
        case.notes.append(
            f"With {nodes} like {best.nodes.like}, {left:,} of {waiting:,} pods wait, too, because "
            f"of topology spread constraints.{_other_zones(case)}"
        )
    yield _added_nodes("ask again with", best.nodes, added, rest)


def _fewer_nodes(best: _TriedNodes, waiting: int, added: int, case: _Case) -> _TriedNodes:
    """Return `best` with fewer nodes, if as many of the `waiting` pods run with these.

    Only the number of nodes that is in proportion to these pods is tried.
    """
    count = -(-best.nodes.count * best.gain // waiting)
    if count == best.nodes.count:
        return best
    again = _tried_nodes(NewNodes(count, best.nodes.like), added, case)
    return next((one for one in again if one.gain >= best.gain), best)


def _tried_nodes(more: NewNodes, added: int, case: _Case) -> list[_TriedNodes]:
    """Return the result of a what-if that adds `more` nodes; [] if it is invalid."""
    tried = case.ask(replace(case.answer.change, add_nodes=added + more.count, like=more.like))
    if tried is None:
        return []
    return [_TriedNodes(more, tried, _waiting(case.answer.effect) - _waiting(tried))]


def _waiting(effect: Effect) -> int:
    """Return the number of pods that are pending, or that wait to be created."""
    found = effect.difference
    missing = sum(one.missing for one in effect.workloads)
    return len(found.pending) + len(found.not_created) + missing


def _no_help(tried: Sequence[_TriedNodes], case: _Case) -> str:
    """Return a note: pods stay pending with the `tried` nodes, too."""
    nodes = " or ".join(
        f"{counted(one.nodes.count, 'more node')} like {one.nodes.like}" for one in tried
    )
    first = tried[0]
    pending = first.effect.difference.pending
    is_one = len(case.answer.difference.pending) == 1
    pods = "the pod stays" if is_one else f"{len(pending):,} pods stay"
    why = "." if first.unused else ": other pods are placed on the new nodes first."
    if _is_spread(first):
        why = f", because of topology spread constraints.{_other_zones(case)}"
    return f"With {nodes}, {pods} pending, too{why}"


def _is_spread(tried: _TriedNodes) -> bool:
    """Return whether topology spread keeps pods off nodes with room, in spite of the new nodes."""
    return any(SPREAD_MISMATCH in pod.reason for pod in tried.effect.difference.pending)


def _other_zones(case: _Case) -> str:
    """Return a sentence about new nodes in several zones; "" if nodes fail or are drained.

    If nodes fail or are drained, `_unspread` suggests what may help.
    """
    change, nodes = case.answer.change, case.answer.without.nodes
    is_lasting = case.answer.changed.outage is None and not (change.drain or change.cordon)
    if not is_lasting or len({node.zone for node in nodes}) == 1:
        return ""
    return " New nodes in several zones may help; --apply adds the Node objects of a file."


def _nodes_of_failed_zones(answer: WhatIfAnswer) -> set[str]:
    """Return the nodes of the zones that --fail-zone names; a new node there would fail, too."""
    if not answer.change.failures.fail_zone:
        return set()
    failed = _failed_nodes(answer)
    zones = {node.zone for node in answer.changed.nodes if node.name in failed}
    return {node.name for node in answer.changed.nodes if node.zone in zones}


def more_nodes(
    verb: str, pending: Collection[PodEnd], nodes: Sequence[NodeEnd], known: Sequence[NodeEnd] = ()
) -> Iterator[NextStep]:
    """Yield a what-if with new nodes for the `pending` pods that lack room.

    `verb` begins the sentence of the step; `new_nodes_for` explains the other arguments.
    """
    yield from _new_nodes(verb, new_nodes_for(filter(lacks_room, pending), nodes, known))


def _new_nodes(verb: str, found: NewNodes | None) -> Iterator[NextStep]:
    """Yield a what-if with at least the new nodes `found`, which was not tried; none if it is None.

    More nodes may be necessary, because the scheduler does not pack: with new nodes, it leaves more
    room on the present nodes, too, and this room is often too small for the largest pods.
    """
    if found is not None:
        yield _added_nodes(f"{verb} at least", found)


def _added_nodes(verb: str, found: NewNodes, added: int = 0, rest: str = "") -> NextStep:
    """Return a what-if with the new nodes `found`.

    `added` is the number of nodes that the question adds already; the what-if adds these, too.
    `verb` is the first word or words of the text, and `rest` its end.
    """
    more = "one more node" if found.count == 1 else f"{found.count:,} more nodes"
    options = NewNodes(added + found.count, found.like).options
    return NextStep(f"{verb} {more} like {found.like}{rest}", shlex.join(options))


def _data_deleted(case: _Case) -> Iterator[NextStep]:
    """Yield a command that keeps the volumes of the deleted claims."""
    lost = [one for one in case.answer.effect.deleted_claims if not one.keeps_data]
    volumes = sorted({one.volume for one in lost})
    if len(volumes) <= _NAMES_MAX:
        retain = '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
        which = "volume" if len(volumes) == 1 else "volumes"
        yield NextStep(
            f"before the change, let the {which} outlive the deletion",
            command=shlex.join(("kubectl", "patch", "pv", *volumes, "-p", retain)),
        )


def _unavailable(case: _Case) -> Iterator[NextStep]:
    """Yield a remedy for one of the workloads without a ready pod.

    The remedy is the taint out-of-service on the failed nodes if the workload is a StatefulSet, or
    if one of its pods waits for a volume that a pod on a failed node keeps. For other workloads
    whose pods find a node, the remedy is one more replica. Each kind of remedy is tried for up to
    _TRIES_MAX workloads.
    """
    effect = case.answer.effect
    down = [one for one in effect.workloads if one.had_no_ready_pod and not one.gone]
    stuck = [
        one for one in down if one.workload.kind == STATEFUL_SET.kind or _awaits_volume(one, effect)
    ]
    moved = [
        one
        for one in down
        if one not in stuck and one.moved and one.budget is not BudgetResult.BREACHED
    ]
    replicas = (step for one in moved[:_TRIES_MAX] for step in _standby(one, case))
    yield from islice(chain(_out_of_service(stuck, case), replicas), 1)


def _standby(one: WorkloadEffect, case: _Case) -> Iterator[NextStep]:
    """Yield a step that adds one replica of the workload `one`.

    If the what-if makes nodes fail, the step is the same what-if with one more replica. This step
    is yielded only if the replica shortens the time without a ready pod.

    For any other what-if, the step is a kubectl command that adds the replica before the change.
    The command is not yielded if the change updates the workload, because the rollout replaces all
    replicas, or if the change scales any workload.
    """
    if case.answer.changed.outage is not None:
        if _can_grow(one, case) and _can_scale(one, case):
            tried, ref = case.with_replicas(one, 1), one.workload
            before = _without_pod(ref, case.answer.effect)
            if tried is not None and _without_pod(ref, tried) < before:
                yield _scaled(one, 1)
    elif not one.updated and not case.answer.change.scale and _can_grow(one, case):
        ref = one.workload
        replicas = f"--replicas={one.readiness.wanted + 1}"
        target = f"{ref.kind.lower()}/{ref.name}"
        yield NextStep(
            f"before the change, let one more replica of {ref} become ready on another node",
            command=shlex.join(("kubectl", "scale", "-n", ref.namespace, target, replicas)),
        )


def _without_pod(workload: WorkloadRef, effect: Effect) -> float:
    """Return the time (ns) without a ready pod of `workload`; infinity if it lasts to the end."""
    found = effect.changed.workloads.get(workload)
    if found is None or found.lowest:
        return 0
    return inf if found.lowest_for is None else found.lowest_for


def _awaits_volume(one: WorkloadEffect, effect: Effect) -> bool:
    """Return whether a pod of `one` waits for a volume that a pod on a failed node keeps.

    Either the volume is still attached to the failed node, or the pod on that node still uses the
    volume's ReadWriteOncePod claim.
    """
    found = effect.difference
    waiting = {lost.pod for lost in effect.lost if lost.cause is LossCause.ATTACHED}
    without_node = (*found.pending, *(waited.pod for waited in effect.waited))
    waiting |= {pod.key for pod in without_node if CLAIM_IN_USE.message in pod.reason}
    evicted = found.evicted
    return any(each.pod.workload == one.workload and each.pod.key in waiting for each in evicted)


def _held_back(one: WorkloadEffect, effect: Effect) -> list[LostPod]:
    """Return the pods of `one` that wait for the end of the old pod on a failed node."""
    ends = effect.changed.pods
    return [
        lost
        for lost in effect.lost
        if lost.cause is LossCause.STICKY
        and (pod := ends.get(lost.pod)) is not None
        and pod.workload == one.workload
    ]


def _down(case: _Case) -> Iterator[NextStep]:
    """Yield a remedy for StatefulSets whose pods wait for failed nodes."""
    effect = case.answer.effect
    rows = [one for one in effect.workloads if one.down and _held_back(one, effect)]
    yield from _out_of_service(rows, case)


def _out_of_service(rows: Iterable[WorkloadEffect], case: _Case) -> Iterator[NextStep]:
    """Yield the command that lets pods of the workloads `rows` be replaced on other nodes.

    The command is for machines that are shut down. There is no command if the nodes come back, or
    if their kubelets still work. The command helps if it leads to more ready pods of one of the
    workloads at the end. It does not help pods whose volumes no other node can use, so the nodes of
    up to _TRIES_MAX workloads are tried.
    """
    if not _are_shut_down(case.answer.change):
        return
    by_nodes: dict[tuple[str, ...], list[WorkloadEffect]] = defaultdict(list)
    for one in rows:
        by_nodes[_nodes_to_taint(one, case)].append(one)
    by_nodes.pop((), None)
    for nodes, concerned in islice(by_nodes.items(), _TRIES_MAX):
        change = case.answer.change
        tried = case.ask(replace(change, set=(*change.set, *_tainted(nodes, case))))
        if not any(_more_ready(one, tried) for one in concerned):
            continue
        which = "node is" if len(nodes) == 1 else "nodes are"
        yield NextStep(
            f"if the failed {which} shut down for good, have the pods replaced elsewhere",
            command=shlex.join(("kubectl", "taint", "nodes", *nodes, _TAINT_IN_WORDS)),
        )
        return


def _nodes_to_taint(one: WorkloadEffect, case: _Case) -> tuple[str, ...]:
    """Return the failed nodes that keep pods of `one`.

    Return () if a command cannot name so many nodes, or if the change edits one of them.
    """
    effect, change = case.answer.effect, case.answer.change
    nodes = {pod.node for pod in effect.difference.evicted if pod.pod.workload == one.workload}
    nodes |= {pod.node for pod in _held_back(one, effect)}
    held = sorted(nodes & _failed_nodes(case.answer))
    is_edited = change.apply or any(_is_named(name, change.set) for name in held)
    return () if len(held) > _NAMES_MAX or is_edited else tuple(held)


def _tainted(names: Collection[str], case: _Case) -> Iterator[str]:
    """Yield an edit that adds the taint out-of-service to each of the nodes `names`."""
    for one in entries_of(case.manifests):
        if isinstance(one, Manifest) and one.kind is NODE and one.ref.name in names:
            present = one.value.get("spec", {}).get("taints") or []
            kept = [taint for taint in present if taint.get("key") != OUT_OF_SERVICE]
            yield f"node/{one.ref.name}:spec.taints={json.dumps([*kept, _TAINT])}"


def _ready_at_end(one: WorkloadEffect, tried: Effect) -> int:
    """Return the number of ready pods of the workload of `one` at the end of the run `tried`."""
    found = tried.changed.workloads.get(one.workload)
    return one.readiness.before if found is None else found.at_end


_STEPS: Final[Mapping[OutcomeKind, Callable[[_Case], Iterator[NextStep]]]] = {
    OutcomeKind.REFUSED: _refused,
    OutcomeKind.UNDRAINED: _undrained,
    OutcomeKind.UNFINISHED: _unfinished,
    OutcomeKind.DATA_DELETED: _data_deleted,
    OutcomeKind.PENDING: _placed,
    OutcomeKind.DOWN: _down,
    OutcomeKind.BREACHED: _breached,
    OutcomeKind.UNAVAILABLE: _unavailable,
    OutcomeKind.BRIEFLY_UNAVAILABLE: _unavailable,
    OutcomeKind.DISPLACED: _unspread_waits,
}


# --- steps of every answer -----------------------------------------------------------------------


def _drain(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield the command that performs the drain, if the verdict is good with every seed.

    There is no command if images of pods may not run on the pods' new nodes. For a rolling drain,
    the command names only the nodes that are drained first.
    """
    change, nodes = answer.change, answer.effect.drain.nodes
    is_hypothetical = bool(change.failures.words or change.reschedule)
    if not nodes or is_hypothetical or not _is_harmless(answer):
        return
    if answer.effect.changed.image_notes:
        return
    # kubectl drain cordons all of its nodes before it drains the first of them. Therefore, pods of
    # the first node of a rolling drain could not move to the other nodes.
    # upstream: kubectl/pkg/cmd/drain/drain.go:RunDrain
    pace = change.max_unavailable
    first = nodes if pace is None else nodes[: nodes_at_once(pace, len(nodes))]
    if len(first) <= _NAMES_MAX:
        targets = [*first]
    elif len(first) == len(nodes) and len(change.drain) == 1:
        targets = ["--selector", change.drain[0]]
    else:
        return
    which = "the first node" if len(first) == 1 else f"the first {len(first):,} nodes"
    words = f"drain {which}, and the others as drained nodes return to service"
    if len(first) == len(nodes):
        words = "drain the node" if len(nodes) == 1 else "drain the nodes"
    flags = [one.flag for one in answer.effect.drain.needed]
    yield NextStep(
        f"{words}, after the other changes" if _changes_more(change) else words,
        command=shlex.join(("kubectl", "drain", *targets, *flags)),
        makes_change=True,
    )


def _is_harmless(answer: WhatIfAnswer) -> bool:
    """Return whether the verdict is good with every seed."""
    kinds = [OutcomeKind(one.what) for one in answer.certainty if one.subject == VERDICT]
    found = [answer.verdict.first, *(Finding(kind, "") for kind in kinds)]
    return all(one.severity is Severity.GOOD for one in found)


def _changes_more(change: ClusterChange) -> bool:
    """Return whether `change` is more than a drain."""
    rest = replace(
        change,
        drain=(),
        drain_as_kubectl=False,
        ignore_daemonsets=False,
        delete_emptydir_data=False,
        force=False,
        max_unavailable=None,
        lasts="",
    )
    return bool(rest.words)


def _more_seeds(answer: WhatIfAnswer) -> Iterator[NextStep]:
    # The seed also determines the order in which a DaemonSet updates its pods.
    is_stopped = any(
        one.workload.is_daemon_set and one.is_harmed and (one.updated or one.outdated)
        for one in answer.effect.workloads
    )
    is_random = answer.changed.choices_among_equals > 0 or is_stopped
    if is_random and not answer.effect.is_none and answer.seeds == 1:
        yield NextStep("ask which outcomes depend on the seed", f"--seeds {SEEDS}")

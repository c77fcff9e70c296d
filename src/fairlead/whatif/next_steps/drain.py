"""Next steps of drains: flags, budgets that block evictions, longer simulations, and commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.finalizer import TERMINATION
from fairlead.api.json import items
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE, POD, POD_DISRUPTION_BUDGET
from fairlead.apiserver.registry.subresource.eviction import SEVERAL
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.cluster_change import ClusterChange, deleted_nodes
from fairlead.whatif.change.node_outage.node_failure import option_duration
from fairlead.whatif.change.rolling_drain import nodes_at_once
from fairlead.whatif.next_steps.step_context import (
    NAMES_MAX,
    TRIES_MAX,
    StepContext,
    is_named,
    is_worse,
    scaled,
)
from fairlead.whatif.outcome.assessment.certainty import VERDICT
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.assessment.verdict import Finding, OutcomeKind, Severity
from fairlead.whatif.outcome.budget import BudgetOutcome
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect, expected_rollout
from fairlead.whatif.outcome.outage import expected_duration
from fairlead.whatif.outcome.run_outcome import BudgetHistory, RunOutcome
from fairlead.whatif.snapshot.dump_note import lacks_pods
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_FINALIZERS: Final = ("metadata", "finalizers")
_HORIZON_PERCENT: Final = 110  # of the expected time of a rolling drain


class _BudgetRule(Struct, frozen=True):
    """Edits of the fields of a budget, after which it allows one more disruption.

    If `is_number` is True, the edits make `minAvailable` a number. Otherwise, they raise
    `maxUnavailable`.
    """

    edits: Sequence[str]
    is_number: bool


def add_flags(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if that adds the flags that kubectl drain still needs."""
    change = context.answer.change
    flags = [one.flag for one in context.answer.effect.drain.needed]
    if missing := [one for one in flags if one not in change.kubectl_flags]:
        which = "flag" if len(missing) == 1 else "flags"
        yield NextStep(f"ask again with the {which} that the pods need", shlex.join(missing))


def simulate_to_the_end(context: StepContext) -> Iterator[NextStep]:
    """Yield what-ifs that run until drains or rollouts end, and the command that plans a drain."""
    yield from _longer_simulation(context)
    yield from _drain_plan(context)


def _longer_simulation(context: StepContext) -> Iterator[NextStep]:
    """Yield what-ifs that simulate a drain and rollouts to their end."""
    changed, change = context.answer.changed, context.answer.change
    rows = [one for one in context.answer.effect.workloads if one.outdated]
    rollout = expected_rollout(rows, changed.ended_at - changed.started_at)
    if changed.settled and not changed.drains:
        return  # a longer simulation would not finish the rollouts
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


def _expected_stop(changed: RunOutcome, time_away: DurationNs) -> DurationNs:
    """Return the time that a drain is expected to take; 0 if no pods are stopping.

    Each node is assumed to take as long as the slowest of the stopping pods. In a rolling drain,
    each node is assumed to return `time_away` after it becomes empty. A result that is too long
    does no harm, because the run ends when the drain ends.
    """
    begun = {one.node: one.begun_at for one in changed.drains}
    times = [
        one.stops_at - (begun.get(one.pod.node) or changed.started_at)
        for one in changed.stopping
        if one.stops_at is not None
    ]
    if not times:
        return 0
    return (max(times) + time_away) * len(changed.drains) if changed.drains else max(times)


def _rounded_up(duration: DurationNs) -> str:
    """Return `duration` in whole minutes if it is less than an hour, else in whole hours."""
    minutes = -(-duration // seconds(60))
    return f"{minutes}m" if minutes < 60 else f"{-(-minutes // 60)}h"


def allow_evictions(context: StepContext) -> Iterator[NextStep]:
    """Yield what-ifs in which more evictions are allowed, and a plan of the drain.

    The plan covers everything that blocks the drain, but each what-if changes only some of the
    budgets. Therefore the plan comes first if there is more than one what-if.
    """
    allowing, plan = list(_allowing_budgets(context)), _drain_plan(context)
    yield from chain(plan, allowing) if len(allowing) > 1 else chain(allowing, plan)


def _drain_plan(context: StepContext) -> Iterator[NextStep]:
    """Yield the command that plans the drain, if the drain does not complete in the simulation.

    For a rolling drain, the command also finds how many nodes can be drained at a time. If the
    user's what-if also applies files, scales workloads or sets fields, the plan is for the cluster
    after these changes. Nothing is yielded if the what-if does more than that: drain-plan has no
    options for the rest of the change, so the plan could contradict the answer.
    """
    answer = context.answer
    change, changed = answer.change, answer.changed
    is_unfinished = any(one.back_at is None for one in changed.drains)
    is_all = not change.without_drain.beyond_plans.words
    if not change.drain or not is_all or not (changed.blocking or is_unfinished):
        return
    words = [word for one in change.drain for word in ("--nodes", one)]
    if change.max_unavailable is not None:
        words += ["--for", change.lasts or "0s"]
    after = " after the other changes" if change.without_drain.words else ""
    aim = f"find the fastest pace of the drain{after} that is safe"
    if changed.blocking:
        aim = f"list everything that blocks the drain{after}, and what would unblock it"
    command = ("fairlead", "drain-plan", *context.arguments, *words, *change.plan_arguments)
    yield NextStep(aim, command=shlex.join(command))


def drain_before_deletion(context: StepContext) -> Iterator[NextStep]:
    """Yield the command that plans a drain of the nodes that the user's what-if deletes.

    A drain evicts pods within their budgets, but the deletion of a Node object deletes all its pods
    at the same time. Nothing is yielded if none of the deleted nodes is Ready: if a node is not
    Ready, its pods do not stop in a drain. Nodes of Karpenter do not count, because their deletion
    starts a drain. Nothing is yielded if a drain would leave all the pods pending, too
    (`_stay_pending`). Nothing is yielded either if the user's what-if does more than delete nodes,
    because the plan would not contain the rest of the change.
    """
    answer = context.answer
    targets = list(deleted_nodes(answer.change.delete))
    is_all = len(targets) == len(answer.change.delete) == len(answer.change.words)
    if not targets or not is_all or _stay_pending(answer):
        return
    left = answer.changed.node_names
    gone = {one.name for one in answer.without.nodes if one.is_ready and one.name not in left}
    nodes = (one for one in samples(context.manifests) if one.kind is NODE)
    at_once = {one.ref.name for one in nodes if TERMINATION not in items(one.value, *_FINALIZERS)}
    if gone.isdisjoint(at_once):
        return
    words = [word for one in targets for word in ("--nodes", one)]
    which = "node" if len(targets) == 1 and targets[0] in gone else "nodes"
    yield NextStep(
        f"plan a drain of the {which} before the deletion; it evicts pods within their budgets",
        command=shlex.join(("fairlead", "drain-plan", *context.arguments, *words)),
    )


def _stay_pending(answer: WhatIfAnswer) -> bool:
    """Return whether all displaced pods stay pending, and no autoscaler is adding nodes.

    The other nodes then have no place for these pods, however slowly the pods are evicted.
    """
    found, changed = answer.effect.difference, answer.changed
    displaced = {pod.key for pod in found.displaced if not pod.belongs_to_node}
    waiting = [pod for pod in found.pending if pod.key in displaced]
    return 0 < len(displaced) == len(waiting) and not changed.awaits_nodes(waiting)


def _allowing_budgets(context: StepContext) -> Iterator[NextStep]:
    """Yield what-ifs in which the budgets that refuse evictions allow more evictions.

    For a budget that `_refuse_less` returns, the what-if sets the `unhealthyPodEvictionPolicy` of
    the budget. For any other budget with a number as `minAvailable`, the what-if adds replicas
    (`_enough_replicas`). If only unready pods exhaust a budget, a command shows these pods, and the
    rule of the budget is not changed (`_is_exhausted_by_unready_pods`). The rules of the other
    budgets are changed together (`_other_rules`).

    The eviction API never evicts a pod that several budgets select. If there are such pods, the
    last what-if deletes all but one of their budgets (`_single_budget`).
    """
    undrained = context.answer.changed.blocking
    violating = {one.pod.key for one in undrained if one.why != SEVERAL}
    exhausted = {
        one.pdb for one in context.answer.changed.budgets if not violating.isdisjoint(one.refused)
    }
    blocking = [
        one for one in context.answer.effect.budgets if one.blocked and one.pdb in exhausted
    ]
    tolerant = _refuse_less(blocking, context)
    others = [one for one in blocking if one.pdb not in tolerant]
    unready = {one.pdb for one in others if _is_exhausted_by_unready_pods(one, context)}
    replicas = _enough_replicas(others, context)
    for budget in blocking:
        if budget.pdb in tolerant:
            words = f"ask again with evictions of unready pods always allowed by {budget.pdb}"
            fewer = tolerant[budget.pdb]
            if fewer < budget.blocked:
                words += f"; it then blocks {fewer:,} fewer of {budget.blocked:,} pods"
            yield NextStep(words, shlex.join(("--set", _always_allow(budget.pdb))))
        elif budget.pdb in replicas:
            yield scaled(*replicas[budget.pdb])
        elif budget.pdb in unready and context.has_object(POD_DISRUPTION_BUDGET, budget.pdb):
            yield _make_ready(budget, context)
    rules = [one for one in others if one.pdb not in replicas and one.pdb not in unready]
    yield from _other_rules(rules, context)
    yield from _single_budget(context)


def _is_exhausted_by_unready_pods(budget: BudgetOutcome, context: StepContext) -> bool:
    """Return whether `budget` would allow an eviction if its pods were ready before the change.

    A weaker rule would let a drain evict ready pods of a workload that lacks ready pods already. A
    workload that needs a quorum, such as a database of three members, could lose the quorum.
    """
    return not budget.never_allows and budget.pdb in _budgets_of_unready_pods(context)


def _budgets_of_unready_pods(context: StepContext) -> set[str]:
    """Return the budgets of the workloads that lacked ready pods before the change."""
    return {
        pdb
        for one in context.answer.effect.workloads
        if one.readiness.before < one.readiness.wanted
        for pdb, _ in one.budgets
    }


def _make_ready(budget: BudgetOutcome, context: StepContext) -> NextStep:
    """Return the command that lists the unready pods of `budget`; more of them must be ready."""
    target = _budget(budget.pdb)
    count = counted(max(1, budget.needed + 1 - budget.lowest_healthy), "more pod")
    return NextStep(
        f"make {count} ready for {target}, which would then allow an eviction; the command lists "
        "its unready pods",
        command=shlex.join(("fairlead", "explain", *context.arguments, target)),
    )


def _refuse_less(budgets: Iterable[BudgetOutcome], context: StepContext) -> dict[str, int]:
    """Return, by budget key, how many blocked pods a budget no longer blocks with AlwaysAllow.

    One simulation sets unhealthyPodEvictionPolicy AlwaysAllow in all of `budgets` that have unready
    pods and that the what-if itself does not change. A budget is left out if it blocks as many pods
    in this simulation as now.
    """
    change, unready = context.answer.change, _budgets_of_unready_pods(context)
    refused = {
        one.pdb: one.blocked
        for one in budgets
        if one.pdb in unready and not _may_change(one.pdb, change)
    }
    if not refused:
        return {}
    tried = context.ask(replace(change, set=(*change.set, *map(_always_allow, refused))))
    if tried is None:
        return {}
    left = {one.pdb: one.blocked for one in tried.budgets}
    fewer = {pdb: count - left.get(pdb, 0) for pdb, count in refused.items()}
    return {pdb: count for pdb, count in fewer.items() if count > 0}


def _always_allow(pdb: str) -> str:
    return f"pdb/{pdb}:spec.unhealthyPodEvictionPolicy=AlwaysAllow"


def _single_budget(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if that deletes budgets of pods that several budgets kept on drained nodes.

    Such a pod can be evicted only if all but one of its budgets are deleted. Even then, the last
    budget may refuse the eviction. So a trial deletes all but one budget of each such pod, to see
    which pods are then evicted. The what-if that is suggested deletes only budgets of the evicted
    pods. There is no what-if if the trial evicts none of the pods, or if evicted pods then find no
    node.
    """
    changed, change = context.answer.changed, context.answer.change
    several = {one.pod.key for one in changed.undrained if one.why == SEVERAL}
    kept: set[str] = set()
    surplus: dict[str, BudgetHistory] = {}
    for key in sorted(several):
        budgets = (one for one in changed.budgets if one.pdb not in surplus)
        covering = [one for one in budgets if key in one.refused]
        covering.sort(key=lambda one: (one.pdb not in kept, -(one.allowed_at_end or 0), one.pdb))
        kept |= {one.pdb for one in covering[:1]}
        surplus |= {one.pdb: one for one in covering[1:]}
    is_edited = change.apply or any(is_named(one, change.set) for one in surplus)
    if not surplus or len(surplus) > NAMES_MAX or is_edited:
        return
    tried = context.ask(replace(change, delete=(*change.delete, *map(_budget, surplus))))
    if tried is None or is_worse(tried, context.answer.effect):
        return
    evicted = several - {one.pod.key for one in tried.changed.undrained}
    names = sorted(one.pdb for one in surplus.values() if not evicted.isdisjoint(one.refused))
    if names:
        yield NextStep(
            f"ask again without {', '.join(names)}; a pod of several budgets cannot be evicted",
            shlex.join(word for one in names for word in ("--delete", _budget(one))),
        )


def _budget(pdb: str) -> str:
    return f"pdb/{pdb}"


def _enough_replicas(
    budgets: Iterable[BudgetOutcome], context: StepContext
) -> dict[str, tuple[WorkloadEffect, int]]:
    """Return, by budget, a workload and the number of its new replicas that allow an eviction.

    An eviction needs more healthy pods than `minAvailable` requires. If the budget always had
    `minAvailable` healthy pods, one new replica is tried. If it lacked N healthy pods at some time,
    N new replicas are tried. If N replicas do not help, because the missing pods never become
    healthy, N + 1 replicas are tried. A budget is left out if no tried number reduces the blocked
    evictions, for example because no node has room for a new replica. The replicas of all budgets
    are tried in the same simulation. If this simulation ends worse than the user's what-if
    (`is_worse`), the result contains none of its budgets: the evicted pods may find no place, or
    the replicas may take the room of other pods.
    """
    effect, change = context.answer.effect, context.answer.change
    left: list[tuple[BudgetOutcome, WorkloadEffect, int]] = []
    for budget in budgets:
        lacked = max(0, budget.needed - budget.lowest_healthy)
        covered = [one for one in effect.workloads if budget.pdb in dict(one.budgets)][:1]
        if budget.is_min_number and budget.breaches <= max(1, lacked):
            left += [
                (budget, one, lacked)
                for one in covered
                if context.can_grow(one) and context.can_scale(one)
            ]
    found: dict[str, tuple[WorkloadEffect, int]] = {}
    for more in (0, 1):
        trial = [(budget, one, lacked + more) for budget, one, lacked in left if lacked + more]
        scales = {
            one.workload: f"{one.workload}={one.readiness.wanted + count}"
            for _, one, count in trial
        }
        if not scales:
            continue
        tried = context.ask(replace(change, scale=(*change.scale, *scales.values())))
        if tried is None or is_worse(tried, effect):
            continue
        blocked = {one.pdb: one.blocked for one in tried.budgets}
        found |= {
            budget.pdb: (one, count)
            for budget, one, count in trial
            if blocked.get(budget.pdb, 0) < budget.blocked
        }
        left = [one for one in left if one[0].pdb not in found]
    return found


def _other_rules(budgets: Iterable[BudgetOutcome], context: StepContext) -> Iterator[NextStep]:
    """Yield what-ifs in which `budgets` have other rules (`_rule_with_room`), if these help.

    All rules are tried together first. If they do not help, for example because evicted pods of one
    budget find no room, up to TRIES_MAX rules are tried one by one.
    """
    rules = {one.pdb: rule for one in budgets if (rule := _rule_with_room(one, context))}
    rules = dict(islice(rules.items(), NAMES_MAX))
    if not rules:
        return
    if step := _rules_step(rules, context):
        yield step
    elif len(rules) > 1:
        alone = ({pdb: rule} for pdb, rule in islice(rules.items(), TRIES_MAX))
        yield from filter(None, (_rules_step(one, context) for one in alone))


def _rules_step(rules: Mapping[str, _BudgetRule], context: StepContext) -> NextStep | None:
    """Return the what-if in which budgets have these `rules`; None if it does not help.

    The rules help if the drain leaves fewer pods on its nodes, no more pods wait, and each workload
    has at least as many ready pods at the end. The step says how many pods still block the drain,
    and names the workloads that have no ready pod for a time because of the rules.
    """
    settings = [f"{_budget(pdb)}:{edit}" for pdb, rule in rules.items() for edit in rule.edits]
    tried, answer = context.with_edits(*settings), context.answer
    if tried is None or is_worse(tried, answer.effect):
        return None
    left, before = len(tried.changed.blocking), len(answer.changed.blocking)
    if left >= before:
        return None
    whose = listed(list(rules), NAMES_MAX)
    words = f"ask again with one more unavailable pod allowed by {whose}"
    if all(rule.is_number for rule in rules.values()):
        words = (
            f"ask again with a number as minAvailable of {whose}; other limits count only pods "
            "with a controller"
        )
    if left:
        verb = "blocks" if left == 1 else "block"
        words += f"; {left:,} of {before:,} pods then still {verb} the drain"
    if down := _newly_down(tried, answer.effect):
        verb = "has" if len(down) == 1 else "have"
        words += f"; {listed(down, NAMES_MAX)} then {verb} no ready pod for a time"
    return NextStep(words, shlex.join(word for one in settings for word in ("--set", one)))


def _newly_down(tried: Effect, present: Effect) -> list[str]:
    """Return the workloads that have no ready pod for a time only in the trial `tried`."""
    known = {one.workload for one in present.workloads if one.had_no_ready_pod}
    found = {one.workload for one in tried.workloads if one.had_no_ready_pod}
    return [str(ref) for ref in sorted(found - known) if ref.kind != POD.kind]


def _rule_with_room(budget: BudgetOutcome, context: StepContext) -> _BudgetRule | None:
    """Return the rule with which `budget` allows one more disruption; None if there is none.

    If no pod of the budget has a controller, the rule makes `minAvailable` a number. If
    `maxUnavailable` never allows a disruption, the rule sets `maxUnavailable` to 1. But the result
    is None while pods of the budget are pending, because more evictions would make more pods wait.

    The result is also None for any other budget, because such a budget allows a disruption as soon
    as more of its pods are ready. Finally, the result is None if the user's what-if may already
    change `budget`, because a question must not set a field twice.
    """
    if _may_change(budget.pdb, context.answer.change):
        return None
    covered = [one for one in context.answer.effect.workloads if budget.pdb in dict(one.budgets)]
    if covered and all(one.workload.kind == POD.kind for one in covered):
        least = max(0, budget.lowest_healthy - 1)
        edits = ("spec.maxUnavailable=null", f"spec.minAvailable={least}")
        return _BudgetRule(edits, is_number=True)
    has_maximum = budget.rule.startswith("maxUnavailable ") and budget.never_allows
    if not (covered and has_maximum) or any(one.pending for one in covered):
        return None
    return _BudgetRule(("spec.maxUnavailable=1",), is_number=False)


def _may_change(pdb: str, change: ClusterChange) -> bool:
    """Return whether `change` may change the budget `pdb`."""
    return bool(change.apply) or is_named(pdb, change.set)


def perform_drain(answer: WhatIfAnswer, manifests: Iterable[Manifest]) -> Iterator[NextStep]:
    """Yield the command that performs the drain, if the verdict is good with every seed.

    There is no command if the user's what-if also makes nodes fail or reschedules pods, or if the
    dump `manifests` lacks pods. There is no command either if an autoscaler removed a node before
    the simulated drain, or if images might not support the platform of the pods' new nodes. For a
    rolling drain, the command names only the nodes that are drained first. A command that would
    name more than NAMES_MAX nodes is left out.
    """
    change, nodes = answer.change, answer.effect.drain.nodes
    is_hypothetical = bool(change.failures.words or change.reschedule)
    if not nodes or is_hypothetical or not _is_harmless(answer):
        return
    if answer.effect.changed.image_notes or lacks_pods(samples(manifests)):
        return
    if not {one.what for one in answer.changed.skipped}.isdisjoint(nodes):
        return
    # kubectl drain cordons all of its nodes before it drains the first of them. Therefore, pods of
    # the first node of a rolling drain could not move to the other nodes.
    # upstream: kubectl/pkg/cmd/drain/drain.go:RunDrain
    pace = change.max_unavailable
    first = nodes if pace is None else nodes[: nodes_at_once(pace, len(nodes))]
    if len(first) <= NAMES_MAX:
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
        f"{words}, after the other changes" if change.without_drain.words else words,
        command=shlex.join(("kubectl", "drain", *targets, *flags)),
        makes_change=True,
    )


def _is_harmless(answer: WhatIfAnswer) -> bool:
    """Return whether the verdict is good with every seed."""
    kinds = [OutcomeKind(one.what) for one in answer.certainty if one.subject == VERDICT]
    found = [answer.verdict.first, *(Finding(kind, "") for kind in kinds)]
    return all(one.severity is Severity.GOOD for one in found)

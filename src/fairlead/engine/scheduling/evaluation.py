"""evaluate: evaluates one pod on every node, and keeps every verdict and score.

`fairlead explain` and `fairlead conformance` use `evaluate`. `evaluate` calls the same functions as
the scheduling cycle, but without a limit on the number of nodes, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.status import Code, Status, unschedulable
from fairlead.engine.core.stimulus import CallOutcome
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.diagnosis import NO_NODES, fit_error
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.engine.scheduling.extender.extender import SILENT, ExtenderCalls, interested_extenders
from fairlead.engine.scheduling.extender.filter import REJECTOR, pass_extenders
from fairlead.engine.scheduling.extender.preempt import narrow_candidates
from fairlead.engine.scheduling.extender.prioritize import extender_scores, with_extenders
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.post_filter import run_post_filters
from fairlead.engine.scheduling.preemption.default_preemption import PreemptionSearch
from fairlead.engine.scheduling.prioritization import explain_scores
from fairlead.engine.state.pod_info import PodInfo

Call = Callable[[CallExtender], CallOutcome]
NO_PREEMPTION: Final = (
    "The profile of the pod has no plugin that preempts, so no pods are preempted for it."
)
NEVER_PREEMPTS: Final = "The preemptionPolicy of the pod is Never, so no pods are preempted for it."
NO_REASON = unschedulable("the extender gave no reason").by(REJECTOR)


class PreemptionEvaluation(Struct):
    """The result of an attempt to make room for a pod by preemption.

    `nominated` contains the best candidate node. If the rules that choose a candidate rate several
    nodes as equal, `nominated` contains all of these nodes.
    """

    ineligible: str = ""
    potential_nodes: list[str] = field(default_factory=list)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    rejected: dict[str, Status] = field(default_factory=dict)
    nominated: list[str] = field(default_factory=list)
    rule: str = ""
    post_filter_error: str = ""


class RoomEvaluation(Struct, frozen=True):
    """The evictions with which the PostFilter plugin `by` would make the pod fit on `node`.

    The keys of `victims` are the pods to evict, and the values are their priorities.
    """

    by: str
    node: str
    victims: dict[str, int]


class Evaluation(Struct):
    """All verdicts on one pod in one cluster.

    The fields `scores`, `totals` and `best` cover the feasible nodes.
    """

    # The verdict of the PreEnqueue plugin that gates the pod. If it is set, no other field is.
    gated: Status | None = None
    pre_filter: Status | None = None  # set if PreFilter rejected the pod as a whole
    # The nodes to which PreFilter limits the pod; None if it does not.
    restricted_to: list[str] | None = None
    # An entry per node, None if the pod fits the node.
    verdicts: dict[str, Status | None] = field(default_factory=dict)
    # The plugins whose PreFilter returned Skip.
    skipped_filters: list[str] = field(default_factory=list)
    # The scores by plugin or extender, then by node, not weighted. Scores of plugins are normalised
    # to 0..100; scores of extenders are usually 0..100.
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    # The plugins whose PreScore returned Skip.
    skipped_scores: list[str] = field(default_factory=list)
    # The weight of each Score plugin and each extender in `scores`.
    weights: dict[str, int] = field(default_factory=dict)
    # The sum of the weighted scores of each node.
    totals: dict[str, int] = field(default_factory=dict)
    best: list[str] = field(default_factory=list)  # the nodes with the highest total
    # The scheduler would choose one of these nodes.
    choices: list[str] = field(default_factory=list)
    via: str = ""  # why the nodes in `choices` are preferred: "nominated", "single" or "score"
    score_error: str = ""  # set if an error of a plugin or an extender makes the cycle fail
    fit_error: str = ""  # the message of the failure if the pod fits no node
    unschedulable_plugins: tuple[str, ...] = ()  # the plugins that rejected the pod
    # A sentence that says why the pod may not preempt other pods; "" if it may.
    no_preemption: str = ""
    preemption: PreemptionEvaluation | None = None
    # Set if the pod fits no node, but a PostFilter plugin would evict other pods to make it fit.
    room: RoomEvaluation | None = None


class _ExtenderAccess(Struct, frozen=True):
    """The extenders to call for the pod, and the function that calls them."""

    extenders: Sequence[ExtenderCalls] = ()
    call: Call | None = None


def evaluate(
    built: BuiltProfile, pod: PodInfo, call: Call | None = None, reporter: Reporter = SILENT
) -> Evaluation:
    """Evaluate `pod` as if it were scheduled now.

    `call` calls an extender. If `call` is None, no extender is called. Failed calls that are
    ignored are reported to `reporter`.
    """
    result = Evaluation()
    table = built.framework.cluster.table
    result.gated = built.framework.run_pre_enqueue(pod)
    if result.gated is not None:
        return result
    if not table.count:
        result.fit_error = NO_NODES
        return result
    result.no_preemption = _no_preemption(built, pod)
    found = find_nodes_that_fit(built.plans, pod)
    advice = (
        _ExtenderAccess()
        if call is None
        else _ExtenderAccess(interested_extenders(built.extenders, pod, reporter), call)
    )
    broken = _judge(result, found, advice)
    if broken is not None:
        result.score_error = broken.message
    elif found.count():
        _fill_scores(built, pod, found, result, advice)
    else:
        _fill_failure(built, pod, found, result, advice)
    return result


def _no_preemption(built: BuiltProfile, pod: PodInfo) -> str:
    if not built.may_preempt:
        return NO_PREEMPTION
    is_forbidden = built.preemption is not None and built.preemption.is_forbidden(pod)
    return NEVER_PREEMPTS if is_forbidden else ""


def _judge(result: Evaluation, found: Feasibility, advice: _ExtenderAccess) -> Status | None:
    """Add the verdicts of plugins and extenders to `result`; return the first ERROR, else None."""
    broken = found.error()
    if broken is not None:
        _fill_verdicts(result, found)
        return broken
    table, positions = found.plan.table, found.positions()
    broken = run_consultation(pass_extenders(advice.extenders, found), advice.call)
    _fill_verdicts(result, found)
    for at in positions.tolist():
        name, code = table.at(int(found.plan.rows[at])).name, int(found.codes[at])
        if code:
            result.verdicts[name] = found.statuses[code].by(REJECTOR) if code > 0 else NO_REASON
    return broken


def _fill_verdicts(result: Evaluation, found: Feasibility) -> None:
    plan = found.plan
    diagnosis = found.diagnosis()
    result.pre_filter = found.rejected
    result.skipped_filters = sorted(found.state.skipped_filters)
    if plan.node_names is not None and found.rejected is None:
        result.restricted_to = list(plan.node_names)
    for node in plan.table.nodes():
        fits = found.is_feasible(node)
        result.verdicts[node.name] = None if fits else diagnosis.status_of(node.row)


def _fill_scores(
    built: BuiltProfile,
    pod: PodInfo,
    found: Feasibility,
    result: Evaluation,
    advice: _ExtenderAccess,
) -> None:
    table, plan = found.plan.table, found.plan
    ranked = explain_scores(built.plans, pod, found)
    feasible = [name for name, status in result.verdicts.items() if status is None]
    nominated = pod.pod.status.nominated_node_name
    if nominated in feasible:
        result.via, result.choices = "nominated", [nominated]
    elif len(feasible) == 1:
        result.via, result.choices = "single", feasible
    if ranked.error is not None:
        result.score_error = ranked.error.message
        return
    names = [table.at(int(plan.rows[at])).name for at in ranked.positions]
    for plugin, scores in ranked.by_plugin.items():
        result.scores[plugin] = dict(zip(names, scores.tolist(), strict=True))
    result.skipped_scores = sorted(found.state.skipped_scores)
    result.weights = built.framework.weights()
    result.totals = dict(zip(names, ranked.totals.tolist(), strict=True))
    _add_extenders(result, advice)
    highest = max(result.totals.values())
    result.best = sorted(name for name, total in result.totals.items() if total == highest)
    if not result.via:
        result.via, result.choices = "score", result.best


def _add_extenders(result: Evaluation, advice: _ExtenderAccess) -> None:
    given = run_consultation(extender_scores(advice.extenders, list(result.totals)), advice.call)
    for calls, scores in given:
        name = calls.extender.address(calls.extender.prioritize_verb)
        result.scores[name] = {node: scores[node] for node in result.totals if node in scores}
        result.weights[name] = calls.extender.weight
    result.totals = with_extenders(result.totals, given)


def _fill_failure(
    built: BuiltProfile,
    pod: PodInfo,
    found: Feasibility,
    result: Evaluation,
    advice: _ExtenderAccess,
) -> None:
    diagnosis = found.diagnosis()
    result.unschedulable_plugins = diagnosis.plugins()
    asking = run_post_filters(built.framework, found, pod, diagnosis, advice.extenders)
    outcome = run_consultation(asking, advice.call)
    result.fit_error = fit_error(diagnosis, outcome.message if built.names_preemption else "")
    if outcome.status.is_success:
        victims = {victim.key: victim.priority for victim in outcome.result.victims}
        node = outcome.result.nominated_node or ""
        result.room = RoomEvaluation(outcome.status.plugin, node, victims)
    if built.preemption is None:
        return
    if outcome.status.code is Code.ERROR:
        result.preemption = PreemptionEvaluation(post_filter_error=outcome.message)
        return
    search = built.preemption.search(found.state, pod, diagnosis)
    if search.dry_run is not None and any(one.extender.preempt_verb for one in advice.extenders):
        candidates = list(search.dry_run.candidates())
        left = run_consultation(
            narrow_candidates(advice.extenders, candidates, diagnosis.table), advice.call
        )
        if not isinstance(left, Status):
            dry_run, pick = built.preemption.rank(left, diagnosis)
            search = replace(search, dry_run=dry_run, pick=pick)
    result.preemption = _preemption(found, search)


def _preemption(found: Feasibility, search: PreemptionSearch) -> PreemptionEvaluation:
    table = found.plan.table
    result = PreemptionEvaluation(
        ineligible=search.ineligible,
        potential_nodes=[table.at(row).name for row in search.potential.tolist()],
    )
    if search.dry_run is None:
        return result
    result.candidates = {c.node.name: c for c in search.dry_run.candidates()}
    result.rejected = {table.at(row).name: why for row, why in search.dry_run.rejected()}
    if search.pick is not None:
        result.rule = search.pick.rule
        result.nominated = sorted(table.at(row).name for row in search.pick.rows)
    return result

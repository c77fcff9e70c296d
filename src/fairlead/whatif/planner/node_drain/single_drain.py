"""Checks which nodes can be drained, each node alone, while all other nodes stay in service.

A drain requires that the kubelet answers, no terminating pod stays on the node forever, and no
budget refuses an eviction. In addition, the scheduler must place all pods of the node on other
nodes. If drained nodes return, pods that fit no other node wait until their node is back. Unlike
`drain_plan`, this module does not simulate the drains, and does not search for changes that would
unblock a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node_drain.blocker_table import blocker_tables
from fairlead.whatif.planner.node_drain.drain_plan import (
    DrainPlan,
    begun_plan,
    command_findings,
    completed,
    drain_effort,
    left_out_findings,
    refusal_findings,
)
from fairlead.whatif.planner.node_drain.drain_planner import (
    Blocker,
    DrainPlanner,
    PlannedDrain,
    PodMove,
    first_in_words,
)
from fairlead.whatif.planner.node_drain.unplaced_pod import with_preemption
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.progress import Progress


def check_alone(
    planner: DrainPlanner,
    nodes: Sequence[str],
    source: str,
    progress: Progress,
    *,
    return_again: bool = False,
) -> DrainPlan:
    """Return a plan with the drains and blockers that are found if each node is drained alone.

    The plan has no simulated `runs`. The drains are sorted by effort (`drain_effort`), the lowest
    first. Nodes return to service if `return_again` is set. The model is unchanged afterwards.
    Raises InputError for the dump `source` if all `nodes` are exempt from drains (`begun_plan`).
    """
    plan = begun_plan(planner.model, nodes, source)

    def check(name: str) -> tuple[list[Blocker], PlannedDrain | Blocker]:
        drained = planner.drained_alone(name, return_again=return_again)
        if isinstance(drained, Blocker):
            drained = with_preemption(planner, drained)
        return planner.refusals(name), drained

    progress.begin("checking nodes", len(plan.nodes))
    order = sorted(plan.nodes, key=lambda one: drain_effort(planner, one))
    for number, (blockers, drained) in enumerate(independent_checks(planner.model, check, order)):
        progress.reach(number, 0)
        if isinstance(drained, Blocker):
            blockers.append(drained)
        elif not blockers:
            plan.drains.append(drained)
        plan.blockers += blockers
    return completed(plan, planner)


# --- the answer -------------------------------------------------------------------------------


def single_drain_answer(plan: DrainPlan, source: str, notes: tuple[str, ...]) -> TabularAnswer:
    """Return the answer of `fairlead drain-plan` for the case that --nodes is not set.

    `plan` is the result of `check_alone`. The answer is "no" if no node can be drained.
    """
    facts: Json = {
        "drainable": len(plan.drains),
        "blocked": plan.blocked,
        "left_out": plan.left_out,
        "kubectl_flags": {one.flag: list(one.pods) for one in plan.flags},
    }
    return TabularAnswer(
        "SingleDrains",
        source,
        _verdict(plan),
        (
            _limits(plan),
            *_failing_jobs(plan),
            *refusal_findings(plan),
            *left_out_findings(plan),
            *command_findings(plan),
        ),
        (_nodes(plan), *blocker_tables(plan.blockers)[:2]),
        facts,
        notes,
        is_no=not plan.drains,
    )


def _verdict(plan: DrainPlan) -> str:
    count, total = len(plan.drains), counted(len(plan.nodes), "node")
    if len(plan.nodes) == 1:
        has_refused = any(one.refused for one in plan.drains)
        but = ", but evicted pods would not be created again" if has_refused else ""
        return f"{plan.nodes[0]} {'can' if count else 'cannot'} be drained{but}."
    if not count:
        return f"None of {total} can be drained."
    nodes = f"Each of {total}" if count == len(plan.nodes) else f"{count:,} of {total}"
    refused = sum(bool(one.refused) for one in plan.drains)
    but = ""
    if refused:
        which = "one" if refused == 1 else f"{refused:,}"
        which = "each" if refused == count else which
        but = f" On {which} of them, evicted pods would not be created again."
    return f"{nodes} can be drained alone, while the others stay in service.{but}"


def _limits(plan: DrainPlan) -> str:
    """Return sentences that say what this check leaves out, and which command includes it."""
    command = f"fairlead drain-plan {plan.snapshot} --nodes NODE"
    if not plan.drains:
        return f"{command} also looks for changes that would unblock a node."
    also = " or looks for changes that would unblock the node" if plan.blockers else ""
    return (
        f"This answer checks only budgets, room, Jobs and admission. {command} also simulates the "
        f"drain{also}. To drain several nodes, name all of them, because their pods may need the "
        "same room."
    )


def _failing_jobs(plan: DrainPlan) -> Iterator[str]:
    """Yield a sentence about the Jobs that fail because of the drains, if any."""
    drains = [drain for drain in plan.drains if drain.failing]
    jobs = listed(sorted({job for drain in drains for job in drain.failing.values()}))
    if len(drains) == 1:
        yield f"The drain of {drains[0].node} makes {jobs} fail."
    elif drains:
        nodes = listed([drain.node for drain in drains])
        yield f"The drain of each of these nodes makes a Job fail: {nodes} ({jobs})."


def _nodes(plan: DrainPlan) -> ResultTable:
    """Return a table of all nodes; the blocked nodes come last."""
    rows: list[Json] = [
        {
            "node": drain.node,
            "drainable": "yes",
            "pods": drain.leaving,
            "limited": sum(drain.charged.values()),
            "why": _conditions(drain),
            "first": list(drain.first),
            "lost": list(drain.lost),
            "waits": list(drain.waits),
            "pending_negative": [*drain.pending, *drain.preempted],
            "failing_jobs": _jobs_of(drain),
            "refused": drain.refused,
        }
        for drain in plan.drains
    ]
    reasons: dict[str, list[str]] = {}
    for one in plan.blockers:
        reasons.setdefault(one.node, []).append(f"{one.owner}: {one.why}")
    rows += [
        {
            "node": node,
            "drainable": "no",
            "pods": None,
            "limited": None,
            "why": listed(list(dict.fromkeys(found)), 1),
            "first": [],
            "lost": [],
            "waits": [],
            "pending_negative": [],
            "failing_jobs": [],
            "refused": {},
        }
        for node, found in sorted(reasons.items())
    ]
    columns = (
        ResultColumn("node", "node", NAME),
        ResultColumn("drainable", "drainable alone"),
        ResultColumn("pods", "pods that leave", NUMBER),
        ResultColumn("limited", "of these with a budget", NUMBER),
        ResultColumn("why", "why"),
    )
    return ResultTable("nodes", "which nodes can be drained", columns, rows)


def moves_in_words(moves: Collection[PodMove]) -> str:
    """Return how many pods move to how many nodes, such as `2 pods move to 2 other nodes`.

    Also return how many pods come back to their node.
    """
    gone = [one for one in moves if not one.returns]
    parts = []
    if gone:
        targets = len({one.target for one in gone})
        pods = f"{counted(len(gone), 'pod')} {'moves' if len(gone) == 1 else 'move'}"
        parts.append(f"{pods} to {'another node' if targets == 1 else f'{targets:,} other nodes'}")
    if returning := len(moves) - len(gone):
        verb = "comes" if returning == 1 else "come"
        parts.append(f"{counted(returning, 'pod')} {verb} back to the cordoned node")
    return " and ".join(parts)


def _conditions(drain: PlannedDrain) -> str:
    """Return what happens to the pods of `drain`, as text."""
    parts = []
    if elsewhere := [one for one in drain.moves if one.pod not in drain.waits]:
        parts.append(moves_in_words(elsewhere))
        if drain.first:
            parts[0] += f" if you evict {first_in_words(drain.first)}"
    if preemptors := [one for one in drain.moves if one.pod in drain.preempts]:
        verb = "preempts" if len(preemptors) == 1 else "preempt"
        parts.append(f"{counted(len(preemptors), 'pod')} {verb} pods of lower priority")
    if waits := [one for one in drain.moves if one.pod in drain.down]:
        verb = "waits" if len(waits) == 1 else "wait"
        parts.append(f"{counted(len(waits), 'pod')} {verb} until the node is back")
    if jobs := _jobs_of(drain):
        parts.append(failure_in_words(jobs))
    if drain.refused:
        parts.append(refusal_in_words(drain))
    if drain.lost:
        has, is_gone = ("has", "is") if len(drain.lost) == 1 else ("have", "are")
        pods = counted(len(drain.lost), "pod")
        parts.append(f"{pods} {has} no controller and {is_gone} gone for good")
    parts += negative_in_words(drain)
    return "; ".join(parts) or "no pod has to move"


def negative_in_words(drain: PlannedDrain) -> Iterator[str]:
    """Yield clauses that count the pods with a negative priority that fit on no other node.

    The pods that are preempted do not leave the drained node, so they have their own clause.
    """
    if count := len(drain.pending):
        verb = "fits" if count == 1 else "fit"
        yield f"{counted(count, 'pod')} with a negative priority {verb} on no other node"
    if count := len(drain.preempted):
        pods = counted(count, "such pod" if drain.pending else "pod")
        which = "" if drain.pending else " with a negative priority"
        where, is_, fits = "another node", "is", "fits"
        if count > 1:
            where, is_, fits = "other nodes", "are", "fit"
        yield f"{pods}{which} on {where} {is_} preempted and {fits} nowhere else"


def _jobs_of(drain: PlannedDrain) -> list[str]:
    return sorted(set(drain.failing.values()))


def refusal_in_words(drain: PlannedDrain) -> str:
    """Return a clause that counts the pods whose replacements the API server refuses."""
    verb, its = ("is", "its") if len(drain.refused) == 1 else ("are", "their")
    replacements = "replacement" if len(drain.refused) == 1 else "replacements"
    pods = counted(len(drain.refused), "pod")
    return f"{pods} {verb} not created again, because the API server refuses {its} {replacements}"


def failure_in_words(jobs: Sequence[str]) -> str:
    """Return a clause that says that `jobs` fail, and why."""
    fails = "fails" if len(jobs) == 1 else "fail"
    return f"{listed(jobs, 2)} {fails}, because evicted pods count as failures"

"""Next steps for pods that topology spread keeps off nodes with room."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import mapping
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import BETA_ZONE, ZONE
from fairlead.engine.plugins.pod_topology_spread.constraint import HONOR
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.next_steps.earlier_change import step_before_failure, with_later_failure
from fairlead.whatif.next_steps.spread_rule import SpreadRule, is_hard, spread_rules
from fairlead.whatif.next_steps.step_context import NAMES_MAX, StepContext, is_worse, more_ready
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef

_ALIKE_MAX: Final = 3  # more notes that differ only in the workload become one note


def relax_spread(context: StepContext) -> Iterator[NextStep]:
    """Yield steps that help if topology spread keeps pods pending.

    For each rule that keeps pods off nodes with room, a sentence about the rule is added to
    `context.causes`. There is no step for nodes that would have room only after a preemption,
    because other pods would lose their nodes. If it helps to delete the Node objects of failed
    nodes, the failed nodes are the cause, and the deletion is the first step. The second step sets
    nodeTaintsPolicy to Honor, so that failed nodes do not count. The second step is yielded without
    a trial. If the deletion does not help, the only step is a what-if with other topology spread
    constraints. This what-if is yielded only if it helps.
    """
    rules = _rules_against(context.answer.difference.pending, context)
    for alike in _alike(rules):
        verb = "stays" if _pods(alike) == 1 else "stay"
        context.causes.append(f"{_whose_pods(alike)} {verb} pending although {_has_room(alike)}.")
    rules = [rule for rule in rules if rule.constraints and not rule.needs_preemption]
    counting = [rule for rule in rules if rule.ignores_taints]
    deletion = list(_without_failed_nodes(context)) if counting else []
    yield from deletion
    editable = [rule for rule in rules if context.can_edit(rule.workload)]
    if deletion:
        counting = [rule for rule in counting if rule in editable]
        if counting:
            yield _honoring_taints(_edited_together(counting), counting, context)
    elif editable:
        yield from _other_constraints(editable, context)


def held_by_failed_zones(pods: Sequence[PodEnd], context: StepContext) -> set[WorkloadRef]:
    """Return the workloads whose `pods` are pending because of topology spread and --fail-zone.

    A zone whose nodes have all failed counts as a zone without pods. So each of the other zones
    gets at most maxSkew pods, however many nodes it has. If a failed node is back at the end, its
    zone holds up no pods.
    """
    if not context.answer.change.failures.fail_zone:
        return set()
    nodes = context.answer.changed.nodes
    down = {node.name for node in nodes if not node.is_ready}
    failed = context.failed_nodes() & down
    whole = {
        key
        for key in (ZONE, BETA_ZONE)
        if {node.labels.get(key) for node in nodes if node.name in failed}
        - {node.labels.get(key) for node in nodes if node.name not in failed}
    }
    return {
        rule.workload
        for rule in (_rules_against(pods, context) if whole else ())
        if not rule.needs_preemption
        and any(
            is_hard(one) and one["topologyKey"] in whole and one.get("nodeTaintsPolicy") != HONOR
            for one in rule.constraints
        )
    }


def _without_failed_nodes(context: StepContext) -> Iterator[NextStep]:
    """Yield the command that deletes the Node objects of the failed nodes.

    A zone without Node objects does not count for topology spread. The command is for machines that
    do not come back. If a machine comes back, its kubelet registers the node again. There is no
    command if the deletion does not reduce the number of pending pods, or if there are too many
    nodes to name. The deletion is tried without the outage, because a simulation of an outage takes
    long.
    """
    change = context.answer.change
    if not context.may_be_shut_down():
        return
    names = context.failed_nodes()
    targets = _targets(names, context.answer)
    if not targets:
        return
    deleted = (f"node/{target}" for target in targets)
    tried = context.ask(replace(change, failures=Failures(), delete=(*change.delete, *deleted)))
    before = len(context.answer.difference.pending)
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


def _targets(names: Collection[str], answer: WhatIfAnswer) -> tuple[str, ...]:
    """Return arguments that select exactly the nodes `names`: their names or one zone label.

    If there are more than NAMES_MAX names, the label is used; the result is () if no zone label
    selects exactly these nodes.
    """
    if len(names) <= NAMES_MAX:
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


def ignore_failed_nodes(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if in which failed nodes do not count for the spread of pods that waited.

    Also add to `context.causes` a text about each rule that made these pods wait. The what-if is
    not tried, because a trial of a long outage would take as long as the user's what-if. The
    what-if does not change rules for which failed nodes do not matter (`_loses_domain`). If failed
    nodes do not matter for any rule, yield nothing.
    """
    waited = context.answer.effect.waited
    rules = _rules_against([one.pod for one in waited], context)
    for alike in _alike(rules):
        workloads = {rule.workload for rule in alike}
        longest = max(one.waited for one in waited if one.pod.workload in workloads)
        waits = "waits" if _pods(alike) == 1 else "wait up to"
        context.causes.append(
            f"{_whose_pods(alike)} {waits} {for_readers(longest)} for a node although "
            f"{_has_room(alike)}."
        )
    counting = [
        rule
        for rule in rules
        if rule.constraints
        and not rule.needs_preemption
        and rule.ignores_taints
        and _loses_domain(rule, context)
    ]
    editable = [rule for rule in counting if context.can_edit(rule.workload)]
    if editable:
        yield _honoring_taints(_edited_together(editable), counting, context)


def _loses_domain(rule: SpreadRule, context: StepContext) -> bool:
    """Return whether a constraint of `rule` may have fewer domains without the failed nodes.

    If the pods have a nodeSelector or a node affinity, return True, because it is not known which
    nodes count. If the pods have neither, return False if each domain of a failed node has another
    node that is neither tainted nor cordoned.
    """
    template = mapping(context.workloads({rule.workload})[rule.workload].value, "spec", "template")
    if mapping(template, "spec", "nodeSelector") or mapping(
        template, "spec", "affinity", "nodeAffinity"
    ):
        return True
    failed = context.failed_nodes()
    for key in {one["topologyKey"] for one in rule.constraints if is_hard(one)}:
        nodes = context.answer.changed.nodes
        lost = {node.labels.get(key) for node in nodes if node.name in failed}
        kept = {
            node.labels.get(key)
            for node in nodes
            if node.name not in failed and node.is_schedulable and not node.is_tainted
        }
        if lost - kept:
            return True
    return False


def _alike(rules: Sequence[SpreadRule]) -> Iterator[list[SpreadRule]]:
    """Divide `rules` into lists, so that each rule is in exactly one list.

    If more than _ALIKE_MAX rules have equal `words`, these rules form one list. Every other rule is
    alone in its list. After the failure of a zone, hundreds of rules can have equal `words`.
    """
    by_words: dict[tuple[str, bool], list[SpreadRule]] = {}
    for rule in rules:
        by_words.setdefault((rule.words, rule.needs_preemption), []).append(rule)
    for group in by_words.values():
        yield from [group] if len(group) > _ALIKE_MAX else ([rule] for rule in group)


def _pods(rules: Iterable[SpreadRule]) -> int:
    return sum(rule.pods for rule in rules)


def _whose_pods(rules: Sequence[SpreadRule]) -> str:
    """Return words for pods and their workload, such as "3 pods of deploy/a/b".

    For several rules, return the number of pods, the number of workloads, and their names.
    """
    pods = counted(_pods(rules), "pod")
    if len(rules) == 1:
        return f"{pods} of {rules[0].workload}"
    return f"{pods} of {len(rules):,} workloads ({_workloads(rules)})"


def _has_room(rules: Sequence[SpreadRule]) -> str:
    whose = "its" if len(rules) == 1 else "their"
    room = "preemption would make room" if rules[0].needs_preemption else "nodes have room"
    return f"{room}, because of {whose} {rules[0].words}"


def _rules_against(pods: Sequence[PodEnd], context: StepContext) -> list[SpreadRule]:
    """Return the spread and anti-affinity rules that kept `pods` off nodes with room.

    Returns [] if the user's what-if does not make nodes fail, drain nodes or cordon nodes.
    """
    answer = context.answer
    if answer.changed.outage is None and not (answer.change.drain or answer.change.cordon):
        return []
    templates = {
        ref: mapping(one.value, "spec", "template", "spec")
        for ref, one in context.workloads({pod.workload for pod in pods}).items()
    }
    return list(spread_rules(pods, templates))


def _other_constraints(rules: Sequence[SpreadRule], context: StepContext) -> Iterator[NextStep]:
    """Try up to three what-ifs with other topology spread constraints; yield the first that helps.

    A what-if helps if more pods of an edited workload are ready at the end than without the edit,
    and nothing else is worse. It does not help, for example, if the rollout of the edit needs more
    room than there is. In the first what-if, the constraints of all workloads of `rules` do not
    count tainted nodes. The second and the third what-if edit only the workload with the most pods
    without a node. In the second, its constraints count no tainted nodes and have no minDomains. In
    the third, its constraints are only preferences (ScheduleAnyway).
    """
    rows = {row.workload: row for row in context.answer.effect.workloads}
    counting = [rule for rule in rules if rule.ignores_taints]
    if counting:
        edited = _edited_together(counting)
        domains = _domains_in_service(edited, context)
        tried = _with_edits(context, *(rule.with_taints_honored(domains) for rule in edited))
        if helped := [rule for rule in edited if _helps(rows[rule.workload], tried, context)]:
            yield _honoring_taints(helped, counting, context)
            return
    rule = max(rules, key=lambda rule: rule.pods)
    one = rows[rule.workload]
    whose = f"the topology spread of {rule.workload}"
    edit = rule.without_min_domains()
    if rule.has_min_domains and _helps(one, _with_edits(context, edit), context):
        yield _with_rules(f"ask again without minDomains in {whose}", (edit,), context)
        return
    edit = rule.with_anyway()
    if _helps(one, _with_edits(context, edit), context):
        words = f"ask again with {whose} as a preference (whenUnsatisfiable: ScheduleAnyway)"
        yield _with_rules(words, (edit,), context)


def _helps(one: WorkloadEffect, tried: Effect | None, context: StepContext) -> bool:
    """Return whether more pods of `one` are ready in the trial, and nothing else is worse."""
    is_better = tried is not None and not is_worse(tried, context.answer.effect)
    return is_better and more_ready(one, tried)


def _edited_together(rules: Sequence[SpreadRule]) -> Sequence[SpreadRule]:
    """Return `rules`; if one command cannot name them all, only the rule with the most pods."""
    return rules if len(rules) <= NAMES_MAX else [max(rules, key=lambda rule: rule.pods)]


def _honoring_taints(
    edited: Sequence[SpreadRule], counting: Sequence[SpreadRule], context: StepContext
) -> NextStep:
    """Return a what-if in which the constraints of `edited` do not count tainted nodes.

    Also add a note to `context.causes`. The note says that the constraints of `counting`, which
    includes `edited`, count tainted nodes now. If fewer domains than minDomains remain without
    these nodes, the what-if also removes minDomains. If nodes fail, the edit precedes the failure
    (`earlier_change`).
    """
    are_failed = context.answer.changed.outage is not None
    which = "failed" if are_failed else "cordoned"
    # Cordoned nodes keep their pods.
    empty = "" if context.answer.change.cordon else ", without pods"
    until = ", while their Node objects exist" if are_failed else ""
    domains = _domains_in_service(counting, context)
    but = ""
    if short := [rule for rule in counting if rule.lacks_domains(domains)]:
        whose = f" of {_workloads(short)}" if len(short) < len(counting) else ""
        but = f", but fewer domains remain then than minDomains{whose}"
    context.causes.append(
        f"The {which} nodes still count for the topology spread of {_workloads(counting)}{empty}"
        f"{until}. With nodeTaintsPolicy: Honor, they do not count{but}."
    )
    whose = f"the topology spread of {_workloads(edited)}"
    if len(edited) < len(counting):
        whose += f", {len(edited)} of {len(counting)} such workloads"
    edits = [rule.with_taints_honored(domains) for rule in edited]
    fields = "nodeTaintsPolicy: Honor"
    if any(rule.lacks_domains(domains) for rule in edited):
        fields += ", without minDomains"
    words = f"ask again without the {which} nodes in {whose} ({fields})"
    return _with_rules(words, edits, context)


def _with_edits(context: StepContext, *edits: str) -> Effect | None:
    """Run the what-if that `_with_rules` returns; return its effect, or None if it is invalid."""
    change = context.answer.change
    return context.ask(with_later_failure(replace(change, set=(*change.set, *edits))))


def _with_rules(words: str, edits: Iterable[str], context: StepContext) -> NextStep:
    """Return a what-if with `edits` of topology spread constraints.

    If nodes fail, they fail after the rollouts of the edited workloads (`earlier_change`).
    """
    options = shlex.join(word for edit in edits for word in ("--set", edit))
    return step_before_failure(NextStep(words, options), "set", context.answer.change)


def _domains_in_service(rules: Iterable[SpreadRule], context: StepContext) -> dict[str, int]:
    """Return the number of domains of each topology key of `rules`, counted over nodes in service.

    Cordoned nodes and all nodes that the user's what-if makes fail are not in service, although a
    failed node may be back at the end of the run.
    """
    failed = context.failed_nodes()
    in_service = [
        node
        for node in context.answer.changed.nodes
        if node.name not in failed and not node.unschedulable
    ]
    keys = {one["topologyKey"] for rule in rules for one in rule.constraints}
    return {
        key: len({node.labels[key] for node in in_service if key in node.labels}) for key in keys
    }


def _workloads(rules: Sequence[SpreadRule]) -> str:
    """Return the names of the workloads of `rules`; the workload with the most pods comes first."""
    return listed([str(rule.workload) for rule in sorted(rules, key=lambda rule: -rule.pods)])

"""NextStep: suggestions after an answer: parts of the report, further questions, and commands.

The steps come from a table with a row per kind of outcome; a harmless drain ends with the command
that performs it. The options of a step can be added to the same question.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypedDict
from urllib.parse import quote

from fairlead.api.taint import OUT_OF_SERVICE
from fairlead.apiserver.kind import POD, STATEFUL_SET
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind, Severity
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.outage import LossCause
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.report.new_nodes import (
    NewNodes,
    lacks_room,
    new_nodes_for,
    node_to_copy,
)

STEPS_MAX: Final = 5
_VOLUMES_MAX: Final = 5  # maximum number of volumes in one command
SEEDS: Final = 20
_SHUT_DOWN: Final = f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute"
_MINIMUM: Final = "minAvailable"
_FILES: Final = (".yaml", ".yml", ".json", ".gz", ".tgz", ".zip")
_SCALABLE: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")


class NextStep(TypedDict, total=False):
    """One suggestion: a sentence, with options, a command or a place.

    `options` extend the question; `command` is run instead. `place` is a part of the report: the id
    of an element, or the target of a link in it, such as `tab=evictions&row=store/web-1`.
    """

    words: str
    options: str
    command: str
    place: str


def next_steps(answer: WhatIfAnswer) -> list[NextStep]:
    """Return at most STEPS_MAX steps; those of the worst outcome come first."""
    found = [step for one in answer.verdict.findings for step in _STEPS[one.kind](answer)]
    chosen: dict[str, NextStep] = {}
    for step in (*found, *_drain(answer), *_drain_plan(answer), *_more_seeds(answer)):
        chosen.setdefault(step.get("options") or step.get("command") or step["place"], step)
    return list(chosen.values())[:STEPS_MAX]


# --- the rows ----------------------------------------------------------------------------------


def _displacements(_answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield {"words": "See every displaced pod and its cause.", "place": "changes"}


def _refused(answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield {
        "words": "Drain with the flags that the pods need:",
        "command": _kubectl_drain(answer),
    }


def _blocked(answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield {"words": "See which pods cannot be evicted, and why.", "place": "tab=undrained"}
    for budget in answer.effect.budgets:
        if budget.state is BudgetResult.BLOCKS:
            yield from _room_in(budget, answer.effect)


def _breached(answer: WhatIfAnswer) -> Iterator[NextStep]:
    breached = [one for one in answer.effect.budgets if one.state is BudgetResult.BREACHED]
    for budget in breached[:1]:
        yield {
            "words": f"See which pods were displaced against {budget.pdb}, and by what.",
            "place": _row("pdb_breaches", budget.pdb),
        }
    for budget in breached:
        if budget.rule.startswith(_MINIMUM):
            yield from _room_in(budget, answer.effect)
    if answer.changed.outage is not None:
        yield {
            "words": "See why budgets do not keep pods from leaving failed nodes.",
            "place": "misconceptions",
        }


def _row(tab: str, value: str) -> str:
    """Return the place of the rows with `value` in the table of the tab `tab`."""
    return f"tab={tab}&row={quote(value)}"


def _room_in(budget: BudgetOutcome, effect: Effect) -> Iterator[NextStep]:
    """Yield a what-if with more replicas, or with a budget that allows one more disruption.

    If `minAvailable` is a number, more replicas are suggested: as many as the budget lacked
    healthy pods, at least 1. Nothing is suggested if the budget has more breaches than this.
    Otherwise, the budget is changed: for pods without a controller to a lower number for
    `minAvailable`, and for a `maxUnavailable` (also a percentage) to a higher number.
    """
    covered = [one for one in effect.workloads if budget.pdb in dict(one.budgets)]
    kind, _, amount = budget.rule.partition(" ")
    if kind == _MINIMUM and amount.isdigit():
        missing = max(1, budget.needed - budget.lowest_healthy)
        if budget.breaches <= missing:
            yield from (step for one in covered[:1] for step in _more_replicas(one, missing))
    elif covered and all(one.workload.kind == POD.kind for one in covered):
        available = max(0, budget.lowest_healthy - 1)
        settings = ("spec.maxUnavailable=null", f"spec.minAvailable={available}")
        yield {
            "words": (
                f"Ask again with a number as minAvailable of {budget.pdb}; other limits count only "
                "pods with a controller:"
            ),
            "options": shlex.join(
                word for one in settings for word in ("--set", f"pdb/{budget.pdb}:{one}")
            ),
        }
    elif kind == "maxUnavailable" and covered:
        absences = sum(one.readiness.wanted for one in covered) - budget.needed
        yield {
            "words": f"Ask again with one more unavailable pod allowed by {budget.pdb}:",
            "options": shlex.join(
                ("--set", f"pdb/{budget.pdb}:spec.maxUnavailable={max(absences, 0) + 1}")
            ),
        }


def _more_replicas(one: WorkloadEffect, count: int) -> Iterator[NextStep]:
    """Yield a what-if with `count` more replicas of the workload.

    Yield nothing if pods of the workload are pending or down, because new pods would be, too.
    """
    if one.workload.kind in _SCALABLE and not (one.pending or one.down):
        more = "one more replica" if count == 1 else f"{count:,} more replicas"
        yield {
            "words": f"Ask again with {more} of {one.workload}:",
            "options": shlex.join(("--scale", f"{one.workload}={one.readiness.wanted + count}")),
        }


def _pending(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield a step that shows why pods are pending, and what-ifs with new nodes.

    Some pods fit only copies of the node that they left. The first what-if adds such copies. They
    are also for pods of the same workloads that are still on that node, because a budget does not
    allow their eviction while the other pods are pending.
    """
    yield {"words": "See why no node takes these pods.", "place": "pending"}
    pending = answer.difference.pending
    left = {one.pod.key: one.node for one in answer.difference.evicted}
    lost = _nodes_of_failed_zones(answer)
    nodes = [node for node in answer.changed.nodes if node.name not in lost]
    old_node = node_to_copy(pending, left, nodes)
    covered: set[str] = set()
    if old_node is not None:
        waiting = {pod.workload for pod in pending}
        held = [one.pod for one in answer.changed.undrained if one.pod.workload in waiting]
        there = [pod for pod in pending if left.get(pod.key) == old_node.name]
        there += [pod for pod in held if pod.node == old_node.name]
        covered = {pod.key for pod in there}
        yield from _new_nodes("Ask again with", new_nodes_for(there, [old_node]))
    others = [pod for pod in pending if pod.key not in covered]
    yield from more_nodes("Ask again with", others, nodes, answer.without.nodes)


def _nodes_of_failed_zones(answer: WhatIfAnswer) -> set[str]:
    """Return the nodes of the zones that --fail-zone names; a new node there would fail, too."""
    outage = answer.changed.outage
    if outage is None or not answer.change.failures.fail_zone:
        return set()
    failed = {one.node for one in outage.nodes}
    zones = {node.zone for node in answer.changed.nodes if node.name in failed}
    return {node.name for node in answer.changed.nodes if node.zone in zones}


def more_nodes(
    verb: str, pending: Collection[PodEnd], nodes: Sequence[NodeEnd], known: Sequence[NodeEnd] = ()
) -> Iterator[NextStep]:
    """Yield a what-if with new nodes for the `pending` pods that lack room.

    `verb` begins the sentence of the step. The new nodes are copies of one of `nodes`. `known` are
    the nodes of another run; `new_nodes_for` explains their use.
    """
    short = [pod for pod in pending if lacks_room(pod)]
    yield from _new_nodes(verb, new_nodes_for(short, nodes, known))


def _new_nodes(verb: str, found: NewNodes | None) -> Iterator[NextStep]:
    if found is not None:
        more = "one more node" if found.count == 1 else f"{found.count:,} more nodes"
        yield {
            "words": f"{verb} {more} like {found.like}:",
            "options": shlex.join(found.options),
        }


def _gone(_answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield {"words": "See which pods are gone for good.", "place": "tab=gone"}


def _data_deleted(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield a step that shows the deleted claims, and a command that keeps their volumes."""
    yield {"words": "See which claims are deleted.", "place": "tab=deleted_claims"}
    lost = [one for one in answer.effect.deleted_claims if not one.keeps_data]
    volumes = sorted({one.volume for one in lost})
    if len(volumes) <= _VOLUMES_MAX:
        retain = '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
        which = "volume" if len(volumes) == 1 else "volumes"
        yield {
            "words": f"Before the change, let the {which} outlive the deletion:",
            "command": shlex.join(("kubectl", "patch", "pv", *volumes, "-p", retain)),
        }


def _not_created(_answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield {
        "words": "See which pods are not created again, and what they wait for.",
        "place": "tab=not_created",
    }


def _down(_answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield {
        "words": "See which pods do not come back from failed nodes, and why.",
        "place": "tab=lost",
    }


def _unavailable(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield a step that shows the pods of an unavailable workload, and one with a remedy.

    For a StatefulSet with pods on failed nodes, and for pods whose volumes are attached to failed
    nodes, the remedy is a taint that marks the nodes as out of service. For other workloads whose
    pods find a node, the remedy is one more replica.
    """
    down = [one for one in answer.effect.workloads if one.had_no_ready_pod and not one.gone]
    for one in down[:1]:
        yield {
            "words": f"See what happens to the pods of {one.workload}.",
            "place": f"pod={quote(str(one.workload))}",
        }
        if one.workload.kind == STATEFUL_SET.kind or _awaits_volume(one, answer.effect):
            yield from _out_of_service(one, answer.effect)
        elif one.readiness.at_end and one.budget is not BudgetResult.BREACHED:
            yield from _more_replicas(one, 1)


def _awaits_volume(one: WorkloadEffect, effect: Effect) -> bool:
    """Return whether a pod of `one` waits for a volume that is attached to a failed node."""
    waiting = {lost.pod for lost in effect.lost if lost.cause is LossCause.ATTACHED}
    evicted = effect.difference.evicted
    return any(each.pod.workload == one.workload and each.pod.key in waiting for each in evicted)


def _out_of_service(one: WorkloadEffect, effect: Effect) -> Iterator[NextStep]:
    """Yield the command that lets the pods of `one` be replaced on other nodes."""
    outage = effect.changed.outage
    failed = {node.node for node in outage.nodes} if outage is not None else set()
    nodes = {pod.node for pod in effect.difference.evicted if pod.pod.workload == one.workload}
    if held := sorted(nodes & failed):
        which = "node is" if len(held) == 1 else "nodes are"
        yield {
            "words": f"If the failed {which} shut down for good, have the pods replaced elsewhere:",
            "command": shlex.join(("kubectl", "taint", "nodes", *held, _SHUT_DOWN)),
        }


def _nothing(_answer: WhatIfAnswer) -> Iterator[NextStep]:
    yield from ()


_STEPS: Final[dict[OutcomeKind, Callable[[WhatIfAnswer], Iterator[NextStep]]]] = {
    **dict.fromkeys(OutcomeKind, _nothing),
    OutcomeKind.LOOP: _displacements,
    OutcomeKind.REFUSED: _refused,
    OutcomeKind.UNDRAINED: _blocked,
    OutcomeKind.DATA_DELETED: _data_deleted,
    OutcomeKind.PENDING: _pending,
    OutcomeKind.GONE: _gone,
    OutcomeKind.NOT_CREATED: _not_created,
    OutcomeKind.DOWN: _down,
    OutcomeKind.BREACHED: _breached,
    OutcomeKind.UNAVAILABLE: _unavailable,
    OutcomeKind.BRIEFLY_UNAVAILABLE: _unavailable,
    OutcomeKind.DISPLACED: _displacements,
    OutcomeKind.REPEATED: _displacements,
}


# --- steps of every answer -----------------------------------------------------------------------


def _drain(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield the command that performs the drain, if the drain does no lasting harm.

    The command for a rolling drain has only the nodes that are drained first.
    """
    nodes, first = answer.effect.drain.nodes, _first_nodes(answer)
    if answer.verdict.first.severity is Severity.GOOD and nodes:
        which = "the first node" if len(first) == 1 else f"the first {len(first):,} nodes"
        words = f"Drain {which}, and the others as drained nodes return to service:"
        yield {
            "words": "Drain:" if len(first) == len(nodes) else words,
            "command": _kubectl_drain(answer),
        }


def _drain_plan(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield the command that lists what blocks the drain, if the drain does not complete."""
    if answer.effect.changed.undrained and answer.change.drain:
        # The source of an answer can also be standard input, or the context of a running cluster.
        snapshot = answer.source if answer.source.endswith(_FILES) else "SNAPSHOT"
        nodes = [word for one in answer.change.drain for word in ("--nodes", one)]
        yield {
            "words": "List everything that blocks the drain, and what would unblock it:",
            "command": shlex.join(("fairlead", "drain-plan", snapshot, *nodes)),
        }


def _first_nodes(answer: WhatIfAnswer) -> Sequence[str]:
    # kubectl drain cordons all of its nodes before it drains the first of them. Therefore, pods of
    # the first node of a rolling drain could not move to the other nodes.
    # upstream: kubectl/pkg/cmd/drain/drain.go:RunDrain
    return answer.effect.drain.nodes[: answer.change.max_unavailable]


def _kubectl_drain(answer: WhatIfAnswer) -> str:
    flags = [one.flag for one in answer.effect.drain.needed]
    return shlex.join(("kubectl", "drain", *_first_nodes(answer), *flags))


def _more_seeds(answer: WhatIfAnswer) -> Iterator[NextStep]:
    if answer.changed.choices_among_equals and answer.seeds == 1:
        yield {
            "words": "Ask which outcomes depend on the seed:",
            "options": f"--seeds {SEEDS}",
        }

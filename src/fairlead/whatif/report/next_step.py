"""NextStep: what to look at, ask or run after an answer, from a table with a row per outcome.

Each row of the verdict suggests steps; a harmless drain ends with the command that performs it. The
options of a step can be added to the same question.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Final, TypedDict

from fairlead.whatif.outcome.assessment.verdict import OutcomeKind, Severity
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.effect import Effect
from fairlead.whatif.outcome.workload_effect import WorkloadEffect
from fairlead.whatif.question import WhatIfAnswer

STEPS_MAX: Final = 4
SEEDS: Final = 20
_SCALABLE: Final = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")


class NextStep(TypedDict, total=False):
    """One suggestion: a sentence, and what it is about.

    `options` extend the question, `command` is run instead, `place` is a part of the report.
    """

    words: str
    options: str
    command: str
    place: str


def next_steps(answer: WhatIfAnswer) -> list[NextStep]:
    """Return at most STEPS_MAX steps, those of the worst outcome first."""
    found = [step for one in answer.verdict.findings for step in _STEPS[one.kind](answer.effect)]
    chosen: dict[str, NextStep] = {}
    for step in (*found, *_drain(answer), *_more_seeds(answer)):
        chosen.setdefault(step.get("place") or step.get("options") or step["command"], step)
    return list(chosen.values())[:STEPS_MAX]


# --- the rows ----------------------------------------------------------------------------------


def _displacements(_effect: Effect) -> Iterator[NextStep]:
    yield {"words": "See every displaced pod and its cause.", "place": "changes"}


def _refused(effect: Effect) -> Iterator[NextStep]:
    yield {
        "words": "Drain with the flags that the pods need:",
        "command": _kubectl_drain(effect),
    }


def _blocked(effect: Effect) -> Iterator[NextStep]:
    for budget in effect.budgets:
        if budget.state is BudgetResult.BLOCKS:
            yield from _room_in(budget, effect)


def _breached(effect: Effect) -> Iterator[NextStep]:
    yield {
        "words": "See which pods were displaced against a budget: tab PDB breaches.",
        "place": "changes",
    }
    for budget in effect.budgets:
        if budget.state is BudgetResult.BREACHED:
            yield from _room_in(budget, effect)


def _room_in(budget: BudgetOutcome, effect: Effect) -> Iterator[NextStep]:
    """Yield the question whether the budget would hold with more replicas, or one more absence.

    A budget that demands all pods, or forbids every disruption, allows none at any scale.
    """
    covered = [one for one in effect.workloads if budget.pdb in dict(one.budgets)]
    kind, _, amount = budget.rule.partition(" ")
    if kind == "minAvailable" and amount.isdigit():
        missing = max(1, budget.needed - budget.lowest_healthy)
        yield from (step for one in covered[:1] for step in _more_replicas(one, missing))
    elif kind == "maxUnavailable":
        yield {
            "words": f"Ask again with one more absence allowed by {budget.pdb}:",
            "options": shlex.join(
                ("--set", f"pdb/{budget.pdb}:spec.maxUnavailable={_one_more(amount)}")
            ),
        }


def _one_more(amount: str) -> str:
    return str(int(amount) + 1) if amount.isdigit() else "1"


def _more_replicas(one: WorkloadEffect, count: int) -> Iterator[NextStep]:
    if one.workload.kind in _SCALABLE:
        more = "one more replica" if count == 1 else f"{count:,} more replicas"
        yield {
            "words": f"Ask again with {more} of {one.workload}:",
            "options": shlex.join(("--scale", f"{one.workload}={one.readiness.wanted + count}")),
        }


def _pending(effect: Effect) -> Iterator[NextStep]:
    yield {"words": "See why no node takes these pods.", "place": "pending"}
    node = min((one.name for one in effect.changed.nodes), default="")
    short = any("Insufficient" in pod.reason for pod in effect.difference.pending)
    if node and short:
        yield {
            "words": "Ask again with one more node:",
            "options": shlex.join(("--add-nodes", "1", "--like", node)),
        }


def _lost(_effect: Effect) -> Iterator[NextStep]:
    yield {"words": "See which pods nothing creates again.", "place": "changes"}


def _down(_effect: Effect) -> Iterator[NextStep]:
    yield {
        "words": "See which pods do not come back from failed nodes, and why.",
        "place": "outage",
    }


def _unavailable(effect: Effect) -> Iterator[NextStep]:
    """Yield the question about another replica, which a StatefulSet would not create."""
    down = [
        one
        for one in effect.workloads
        if one.readiness.lowest == 0 < one.readiness.before and one.workload.kind != "StatefulSet"
    ]
    yield from (step for one in down[:1] for step in _more_replicas(one, 1))


def _nothing(_effect: Effect) -> Iterator[NextStep]:
    yield from ()


_STEPS: Final[dict[OutcomeKind, Callable[[Effect], Iterator[NextStep]]]] = {
    **dict.fromkeys(OutcomeKind, _nothing),
    OutcomeKind.LOOP: _displacements,
    OutcomeKind.REFUSED: _refused,
    OutcomeKind.UNDRAINED: _blocked,
    OutcomeKind.PENDING: _pending,
    OutcomeKind.GONE: _lost,
    OutcomeKind.NOT_CREATED: _lost,
    OutcomeKind.DOWN: _down,
    OutcomeKind.BREACHED: _breached,
    OutcomeKind.UNAVAILABLE: _unavailable,
    OutcomeKind.DISPLACED: _displacements,
}


# --- steps of every answer -----------------------------------------------------------------------


def _drain(answer: WhatIfAnswer) -> Iterator[NextStep]:
    """Yield the command that performs a drain which does no lasting harm."""
    is_good = answer.verdict.first.severity is Severity.GOOD
    if is_good and answer.effect.drain.nodes:
        yield {"words": "Drain:", "command": _kubectl_drain(answer.effect)}


def _kubectl_drain(effect: Effect) -> str:
    flags = [one.flag for one in effect.drain.needed]
    return shlex.join(("kubectl", "drain", *effect.drain.nodes, *flags))


def _more_seeds(answer: WhatIfAnswer) -> Iterator[NextStep]:
    if answer.changed.choices_among_equals and answer.seeds == 1:
        yield {
            "words": "Ask which outcomes depend on chance:",
            "options": f"--seeds {SEEDS}",
        }

"""Extender filters: remove the feasible nodes that an extender rejects.

The extenders are called one after the other. Each extender gets the nodes that the previous
extender accepted. The reason for a rejected node is the text in the extender's answer, which may be
empty.
upstream: pkg/scheduler/schedule_one.go: findNodesThatPassExtenders; extender.go: Filter
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from fairlead.api.extender import FilterResult
from fairlead.engine.core.status import Status, error, unresolvable, unschedulable
from fairlead.engine.core.stimulus import CallOutcome
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.scheduling.extender.answer import ExtenderError, read_answer
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.extender.extender import ExtenderCalls
from fairlead.engine.state.node_info import NodeInfo

# Extenders cannot declare which events are relevant to them. So every event wakes a pod that an
# extender rejected.
# upstream: framework/types.go: ExtenderName
REJECTOR: Final = "Extender"

Verdicts = dict[str, Status]


def pass_extenders(
    extenders: Sequence[ExtenderCalls], found: Feasibility
) -> Consultation[Status | None]:
    """Remove from `found` the nodes that the extenders reject.

    Returns an ERROR status if an extender that is not `ignorable` failed, else None.
    """
    if not extenders:
        return None
    nodes = found.nodes()
    outcome = yield from _narrow(extenders, nodes)
    if isinstance(outcome, Status):
        return outcome
    left, verdicts = outcome
    plan, table = found.plan, found.plan.table
    # a node may have been deleted during the call
    there = (node for node in left if table.find(node.name) is node)
    positions = [plan.position(node.row) for node in there]
    judged = {}
    for name, status in verdicts.items():
        known = table.find(name)
        at = None if known is None else plan.position(known.row)
        if at is not None and at not in positions:
            judged[at] = status
    found.judge(np.array(positions, np.int64), judged)
    if len(left) != len(nodes):
        found.extender_rejectors = (REJECTOR,)
    return None


def passes_extenders(
    extenders: Sequence[ExtenderCalls], node: NodeInfo, found: Feasibility
) -> Consultation[bool]:
    """Return whether all extenders accept `node`, and `node` still exists.

    Returns False if an extender that is not `ignorable` failed.

    upstream: schedule_one.go: evaluateNominatedNode
    """
    outcome = yield from _narrow(extenders, [node])
    if isinstance(outcome, Status) or not outcome[0]:
        return False
    return found.plan.table.find(node.name) is node


def _narrow(
    extenders: Sequence[ExtenderCalls], nodes: list[NodeInfo]
) -> Consultation[tuple[list[NodeInfo], Verdicts] | Status]:
    verdicts: Verdicts = {}
    for calls in extenders:
        if not nodes:
            break
        if not calls.extender.filter_verb:
            continue
        [answer] = yield (calls.filter([node.name for node in nodes]),)
        try:
            nodes, rejected = _read(calls, answer, nodes)
        except ExtenderError as cause:
            if not calls.extender.ignorable:
                return error(str(cause))
            calls.ignore(calls.extender.filter_verb, cause)
            continue
        verdicts |= rejected
    return nodes, verdicts


def _read(
    calls: ExtenderCalls, answer: CallOutcome, nodes: list[NodeInfo]
) -> tuple[list[NodeInfo], Verdicts]:
    result = read_answer(calls, answer, FilterResult)
    if result.error:
        raise ExtenderError(result.error)
    by_name = {node.name: node for node in nodes}
    left = dict.fromkeys(_names(calls, result))
    for name in left:
        if name not in by_name:
            raise ExtenderError(
                f'extender "{calls.extender.url_prefix}" claims a filtered node "{name}" '
                "which is not found in the input node list"
            )
    failed = {name: unschedulable(why) for name, why in result.failed_nodes.items()}
    never = {name: unresolvable(why) for name, why in result.failed_and_unresolvable_nodes.items()}
    return [by_name[name] for name in left], failed | never


def _names(calls: ExtenderCalls, result: FilterResult) -> Iterator[str]:
    """Yield the names of the accepted nodes; `result` contains the names or the whole nodes."""
    if calls.extender.node_cache_capable and result.node_names is not None:
        yield from result.node_names
    elif result.nodes is not None:
        for node in result.nodes.items:
            metadata = node.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            yield name if isinstance(name, str) else ""

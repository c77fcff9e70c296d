"""Trials of new nodes: a what-if with new nodes is suggested only if fewer pods wait in a trial.

A trial takes about as long as the user's what-if, so the number of trials is bounded. The result
decides which nodes are suggested, what the step says about pods that still wait, and which notes
explain why new nodes do not help.
"""

from __future__ import annotations

import shlex
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import items
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.framework.diagnosis import GROUP_UNSCHEDULABLE
from fairlead.whatif.change.new_node import models_of
from fairlead.whatif.next_steps.new_nodes import (
    APART,
    RULED_OUT,
    SPREAD,
    TOGETHER,
    NewNodes,
    fits,
    free_room,
    may_use_new_node,
    new_nodes_for,
    words_of_copies,
)
from fairlead.whatif.next_steps.quota import refusal_words
from fairlead.whatif.next_steps.spread_rule import is_hard
from fairlead.whatif.next_steps.step_context import TRIES_MAX, StepContext, waiting_pods
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.scheduling_message import reasons_of
from fairlead.whatif.outcome.workload import WorkloadRef


class _TriedNodes(Struct, frozen=True):
    """New nodes, and the effect of a what-if with them.

    `gain` is the decrease of the number of waiting pods. With fewer than `least` nodes, the gain is
    smaller, or some of the waiting pods do not run. `unused` is the number of these nodes that run
    only static pods and pods of DaemonSets.
    """

    nodes: NewNodes
    effect: Effect
    gain: int
    unused: int
    least: int = 1


def _unused_nodes(effect: Effect) -> int:
    """Return the number of new nodes that run only static pods and pods of DaemonSets."""
    known = effect.without.node_names
    new = [node for node in effect.changed.nodes if node.name not in known]
    return sum(all(pod.belongs_to_node for pod in node.pods) for node in new)


def best_nodes(
    candidates: Sequence[NewNodes],
    added: int,
    context: StepContext,
    together: NewNodes | None = None,
) -> Iterator[NextStep]:
    """Try `candidates`; yield a what-if with the new nodes that leave the fewest pods waiting.

    Only the first TRIES_MAX of `candidates` are tried. If topology spread or anti-affinity keeps
    pods off new nodes with room in the first trial, the next trial has the nodes `together`, which
    are of several zones. In all other cases, the trials end as soon as most of the waiting pods
    run or, if trials are slow (`StepContext.is_slow`), as soon as some of them run. If some pods
    still wait, the step says how many pods run. If all pods wait, a note says so. If other pods
    take the room of the new nodes, more nodes are tried (`_more_for_rivals`), and the step names
    these pods.

    `added` is the number of nodes that the user's what-if adds already. A pod may wait in spite of
    the new nodes, because its rules exclude the new nodes, or because other pods are placed on them
    first.
    """
    waiting = waiting_pods(context.answer.effect)
    found: list[_TriedNodes] = []
    left = deque(candidates[:TRIES_MAX])
    enough = 0 if context.is_slow else waiting / 2
    while left:
        found += _tried_nodes(left.popleft(), added, context)
        is_partial = bool(found) and found[0].gain < waiting
        if together and is_partial and _kept_off(found[0], SPREAD, APART):
            left.appendleft(together)
            together = None
        elif found and found[-1].gain > enough:
            break
    best = max(found, key=lambda one: one.gain, default=None)
    if best is None:
        return
    if best.gain < waiting:
        best = _more_for_rivals(best, waiting, added, context)
    if best.gain <= 0:
        context.notes.append(_no_help(found, context))
        return
    may_be_half_empty = _is_spread(best) and not context.is_slow
    if 2 * best.gain <= waiting and (best.unused or may_be_half_empty):
        best = _fewer_nodes(best, waiting, added, context)
    still = waiting - best.gain
    rest = "; fewer may be enough" if best.nodes.count > best.least else ""
    if still:
        which = "missing" if waiting > len(context.answer.difference.pending) else "pending"
        verb = "runs" if best.gain == 1 else "run"
        rest = f"; {best.gain:,} of {waiting:,} {which} pods then {verb}"
        rest += refusal_words(best.effect)
    rest += _rivals_words(best, context)
    if 2 * best.gain <= waiting and (spread := len(_spread_pods(best))):
        context.notes.append(
            f"With {_further_words(best.nodes, context)}, {min(still, spread):,} of {waiting:,} "
            "pods wait, too, because of topology spread constraints."
        )
    like = context.answer.change.like
    yield added_nodes("ask again with", best.nodes, added, rest, like)


def _fewer_nodes(best: _TriedNodes, waiting: int, added: int, context: StepContext) -> _TriedNodes:
    """Return a trial with fewer nodes and at least the same gain as the trial `best`, or `best`.

    `waiting` is the number of pods that wait without new nodes. `added` is the number of new nodes
    in the user's what-if. Only one smaller number of nodes is tried. Example: if 6 new nodes help
    only half of the waiting pods, 3 new nodes are tried.
    """
    count = -(-best.nodes.count * best.gain // waiting)
    if count == best.nodes.count:
        return best
    again = _tried_nodes(NewNodes(count, best.nodes.like), added, context)
    return next((one for one in again if one.gain >= best.gain), best)


def _more_for_rivals(
    best: _TriedNodes, waiting: int, added: int, context: StepContext
) -> _TriedNodes:
    """Return a trial with more nodes and a higher gain than the trial `best`, or else `best`.

    Pods that wait even without the change may be placed on the new nodes first. So the further
    nodes have room for all pods that lack room in the trial `best`. There are up to TRIES_MAX
    trials, because the new nodes may let further pods be created. If some of the new nodes stay
    unused, more nodes are tried only if gangs wait: a gang uses no node before all its members have
    room. If topology spread keeps pods off the new nodes, more nodes help these pods only if the
    pods are spread over nodes. If trials are slow, each trial must have at least a tenth more nodes
    than the trial before.
    """
    last = best
    for _ in range(TRIES_MAX):
        is_useless = last.unused and not _has_waiting_gangs(last)
        more = None if is_useless else _with_further_nodes(last, added, context)
        if more is None or best.gain == waiting:
            break
        if context.is_slow and 10 * (more.count - last.nodes.count) < last.nodes.count:
            break
        found = _tried_nodes(more, added, context)
        if not found:
            break
        [last] = [replace(one, least=last.nodes.count + 1) for one in found]
        if last.gain > best.gain:
            best = last
    return best


def _has_waiting_gangs(tried: _TriedNodes) -> bool:
    """Return whether pods wait in the trial `tried` because other members of their gang wait."""
    outcome = tried.effect.changed
    in_groups = (GROUP_UNSCHEDULABLE in pod.reason for pod in outcome.pending)
    return outcome.jobs.waiting_count > 0 or any(in_groups)


def _with_further_nodes(tried: _TriedNodes, added: int, context: StepContext) -> NewNodes | None:
    """Return the new nodes of `tried`, and further copies for the pods that lack room in the trial.

    If several nodes are copied, the further copies have the same ratio as in the trial. But if the
    new nodes are full only in some zones, the further copies are in these zones, because rules may
    keep the pods off the other zones. Pods that are spread over single nodes get one more node
    each. `added` is the number of nodes that the user's what-if adds. The result is None if no copy
    can take any of the pods.

    The further copies are for all members of gangs that wait, so the number of unused nodes is
    subtracted.
    """
    if apart := sum(_spread_over_nodes(pod, context) for pod in _spread_pods(tried)):
        return NewNodes(tried.nodes.count + apart, tried.nodes.like)
    likes = set(models_of(tried.nodes.like))
    nodes = [one for one in tried.effect.changed.nodes if one.name in likes]
    full = [one for one in nodes if not _has_room(tried, one.zone)]
    more = _for_pods_that_still_wait(tried, full or nodes, context)
    if more is None or not full or len(full) == len(nodes):
        if more is None:
            return None
        further = max(1, more.count - tried.unused)
        return NewNodes(tried.nodes.count + further, tried.nodes.like)
    from fairlead.whatif.next_steps.node_kinds import mixed  # noqa: PLC0415 - rarely needed

    present = NewNodes(added + tried.nodes.count, tried.nodes.like)
    total = mixed(Counter(present.copies) + Counter(more.copies))
    return NewNodes(total.count - added, total.like)


def _has_room(tried: _TriedNodes, zone: str) -> bool:
    """Return whether a new node in `zone` has room for a pending pod in the trial `tried`."""
    rooms = _rooms_by_zone(tried).get(zone, ())
    pending = tried.effect.difference.pending
    return any(fits({**pod.requests, "pods": 1}, room) for pod in pending for room in rooms)


def _rooms_by_zone(tried: _TriedNodes) -> dict[str, list[Counter[str]]]:
    """Return the free room of each new node in the trial `tried`, by zone."""
    known = tried.effect.without.node_names
    found: dict[str, list[Counter[str]]] = {}
    for node in tried.effect.changed.nodes:
        if node.name not in known:
            found.setdefault(node.zone, []).append(free_room(node))
    return found


def _for_pods_that_still_wait(
    tried: _TriedNodes, nodes: Sequence[NodeEnd], context: StepContext
) -> NewNodes | None:
    """Return further copies of one of `nodes` for the pods that lack room in the trial `tried`.

    The result is None if no copy can take any of these pods. Either all pods of a workload count,
    or no pod of it. The nodes of the trial were chosen for the workloads whose pods wait because of
    the change, so copies of `nodes` are assumed to admit these pods.
    """
    outcome = tried.effect.changed
    covered = {pod.workload for pod in context.answer.difference.pending}
    known = (*context.answer.without.nodes, *outcome.nodes)
    by_workload: dict[WorkloadRef, list[PodEnd]] = {}
    spread = {pod.key for pod in _spread_pods(tried)}
    short = [pod for pod in outcome.pending if may_use_new_node(pod) and pod.key not in spread]
    for pod in short:
        by_workload.setdefault(pod.workload, []).append(pod)
    fitting = [
        pod
        for workload, pods in by_workload.items()
        if new_nodes_for(pods[:1], nodes, known, admits=workload in covered) is not None
        for pod in pods
    ]
    admits = any(pod.workload in covered for pod in fitting)
    return new_nodes_for(fitting, nodes, known, admits=admits)


def _rivals(tried: _TriedNodes, context: StepContext) -> list[PodEnd]:
    """Return the pods that wait with and without the change, but run on the trial's new nodes.

    `tried` is the trial. These pods have a node only because of the new nodes, so they may leave
    too little room for other pods.
    """
    waiting = {pod.key for pod in context.answer.without.pending}
    known = tried.effect.without.node_names
    return [
        pod
        for node in tried.effect.changed.nodes
        if node.name not in known
        for pod in node.pods
        if pod.key in waiting
    ]


def _rivals_words(tried: _TriedNodes, context: StepContext) -> str:
    """Return a clause that names the pods of `_rivals`, for a step's text; "" if there are none."""
    rivals = _rivals(tried, context)
    if not rivals:
        return ""
    if len(rivals) == 1:
        return f"; {rivals[0].key}, pending anyway, takes room there"
    workloads = listed([str(ref) for ref in sorted({pod.workload for pod in rivals})])
    return f"; {len(rivals):,} pods of {workloads}, pending anyway, take room there"


def _tried_nodes(more: NewNodes, added: int, context: StepContext) -> list[_TriedNodes]:
    """Try a what-if that adds the new nodes `more`.

    Returns a list that contains only the result. The list is empty if the what-if is invalid.
    """
    tried = context.ask(
        replace(context.answer.change, add_nodes=added + more.count, like=more.like)
    )
    if tried is None:
        return []
    effect = context.answer.effect
    gain = waiting_pods(effect) - waiting_pods(tried)
    unused = max(0, _unused_nodes(tried) - _unused_nodes(effect))
    return [_TriedNodes(more, tried, gain, unused, more.least)]


def _no_help(tried: Sequence[_TriedNodes], context: StepContext) -> str:
    """Return a note that the new nodes in `tried` do not reduce the number of waiting pods.

    The note is about the first trial. If pending pods run in this trial, other pods wait instead:
    for example, the drain of a StatefulSet continues, and a pod of another zone gets no node.
    """
    nodes = " or ".join(_further_words(one.nodes, context) for one in tried)
    first = tried[0]
    pending, known = first.effect.difference.pending, context.answer.difference.pending
    others = _others(first.effect, context.answer.effect)
    is_one = len(known) == 1
    still = len(pending) - len(others)
    if still < len(known) and not _is_spread(first):
        helped = len(known) - still
        run = "the pod runs" if is_one else f"{helped:,} of {len(known):,} pending pods run"
        count = waiting_pods(first.effect) - still
        wait = f"{counted(count, 'other pod')} {'waits' if count == 1 else 'wait'}"
        if count == 1 and others:
            wait = f"{others[0].key} waits"
        return f"With {nodes}, {run}, but {wait} instead."
    pods = f"{counted(len(pending), 'pod')} {'stays' if len(pending) == 1 else 'stay'}"
    pods = "the pod stays" if is_one else pods
    is_ruled_out = any(RULED_OUT in pod.reason for pod in pending)  # perhaps by the new nodes
    placed_first = ": other pods are placed on the new nodes first."
    why = "." if first.unused or is_ruled_out else placed_first
    if any(pod.awaits_volume_detachment for pod in pending):
        why = ", because a volume that is used on one node cannot be used on another."
    if spread := len(_spread_pods(first)):
        which = "," if spread == len(pending) else f"; {spread:,} of them"
        why = f"{which} because of topology spread constraints."
    elif len(_kept_off(first, APART)) == len(pending):
        why = ", because of required anti-affinity."
    elif len(_kept_off(first, TOGETHER)) == len(pending):
        why = ", because of required affinity to other pods."
    elif why == "." and (further := _further_reasons(pending, known)):
        why = f", for a further reason: {', '.join(further)}."
    return f"With {nodes}, {pods} pending, too{why}"


def _further_reasons(pending: Iterable[PodEnd], known: Iterable[PodEnd]) -> list[str]:
    """Return those reasons of the `pending` pods that no pod in `known` has.

    `pending` are pods of a trial, and `known` are pods without the new nodes of the trial. So the
    new nodes have caused the returned reasons.
    """
    before = {reason for pod in known for reason in reasons_of(pod.reason)}
    found = dict.fromkeys(reason for pod in pending for reason in reasons_of(pod.reason))
    return [reason for reason in found if reason not in before]


def _others(tried: Effect, answer: Effect) -> list[PodEnd]:
    """Return the pods that are pending in the trial `tried`, but not in the `answer`.

    A pod can have a different name in each simulation, if both simulations create it. So such
    pods are compared by their workload.
    """
    known = {pod.key: pod for pod in answer.difference.pending}
    renamed = Counter(pod.workload for key, pod in known.items() if key not in tried.changed.pods)
    others = []
    for pod in tried.difference.pending:
        if pod.key in known:
            continue
        if renamed[pod.workload] and pod.key not in answer.changed.pods:
            renamed[pod.workload] -= 1
        else:
            others.append(pod)
    return others


def _is_spread(tried: _TriedNodes) -> bool:
    """Return whether topology spread kept pods off new nodes with room in the trial `tried`."""
    return bool(_spread_pods(tried))


def _spread_pods(tried: _TriedNodes) -> list[PodEnd]:
    """Return the pods that topology spread kept off new nodes with room in the trial `tried`."""
    return _kept_off(tried, SPREAD)


def _kept_off(tried: _TriedNodes, *messages: str) -> list[PodEnd]:
    """Return the pods that rules kept off new nodes with room in the trial `tried`.

    `messages` are the messages of these rules. If the new nodes of a zone are full, more of them
    may help, although a rule keeps the pods off the nodes of other zones.
    """
    zones = _rooms_by_zone(tried).values()
    return [
        pod
        for pod in tried.effect.difference.pending
        if any(one in pod.reason for one in messages)
        and all(any(fits({**pod.requests, "pods": 1}, room) for room in rooms) for rooms in zones)
    ]


def _spread_over_nodes(pod: PodEnd, context: StepContext) -> bool:
    """Return whether all topology spread constraints with DoNotSchedule of `pod` are about nodes.

    A further node then takes another pod, because it is a domain without pods.
    """
    spec = context.pod_specs({pod.workload}).get(pod.workload, {})
    rules = [one for one in items(spec, "topologySpreadConstraints") if is_hard(one)]
    return bool(rules) and all(one.get("topologyKey") == HOSTNAME for one in rules)


def added_nodes(
    verb: str, found: NewNodes, added: int = 0, rest: str = "", like: str = ""
) -> NextStep:
    """Return a what-if with the new nodes `found`.

    The what-if also adds the nodes that the user's what-if adds already: `added` is their number,
    and `like` is the user's value of --like. The text of the step begins with `verb` and ends with
    `rest`.
    """
    total = NewNodes(added + found.count, found.like)
    words = _words_beside(found, added, like)
    return NextStep(f"{verb} {words}{rest}", shlex.join(total.options))


def _further_words(found: NewNodes, context: StepContext) -> str:
    """Return the new nodes `found` as text, without the nodes that the user's what-if adds."""
    change = context.answer.change
    return _words_beside(found, change.add_nodes or 0, change.like)


def _words_beside(found: NewNodes, added: int, like: str) -> str:
    """Return the new nodes `found` as text, without the nodes that the user's what-if adds.

    The user's what-if adds `added` nodes like `like`. The `like` of `found` may name these nodes,
    too.
    """
    if not added or like == found.like:
        return found.words
    total = NewNodes(added + found.count, found.like)
    return words_of_copies(Counter(total.copies) - Counter(NewNodes(added, like).copies))

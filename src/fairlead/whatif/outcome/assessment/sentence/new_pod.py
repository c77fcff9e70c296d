"""Pods that are new, replaced, moved or resized, and their packing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.text.count import counted
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.assessment.sentence.displaced_pod import fails_to_start, is_rejected
from fairlead.whatif.outcome.assessment.sentence.words import (
    counted_pods,
    keys_of,
    of_other_nodes,
    pods_of,
    pods_of_nodes,
    time_words,
)
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.pod_role import is_kept
from fairlead.whatif.outcome.packing import NODES_IN_USE, PRICE, ROOM, PackingRow
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome


def updated_sentence(effect: Effect) -> str | None:
    """Return a sentence about pods that a rollout replaces or resizes; None if there are none."""
    pods = [one.pod for one in effect.difference.replaced]
    if not pods:
        return None
    starts = [_first_start(pod, effect.changed) for pod in pods]
    running = [start for start in starts if start is not None]
    took = effect.changed.after_start(max(running)) if len(running) == len(pods) else None
    verb = "is" if len(pods) == 1 else "are"
    within = "" if took is None else f" within {time_words(took)}"
    resized = sum(one.is_resize for one in effect.difference.replaced)
    what = "replaced or resized" if resized else "replaced"
    if resized == len(pods):
        what, within = "resized in place", ""
    return f"{pods_of(pods)} {verb} {what}{within}."


def started_sentence(effect: Effect) -> str | None:
    """Return sentences about pods that have a node only with the change; None if there are none.

    The sentences do not include pods of failed nodes, because `down_sentence` and
    `unfinished_sentence` count these pods. New pods that were displaced later are left out, too,
    because `displaced_sentence` counts them.
    """
    found, changed = effect.difference, effect.changed
    known = {*(one.pod for one in effect.lost), *keys_of(found.displaced)}
    placed = [pod for pod in found.placed if pod.key not in known]
    failing = [pod for pod in placed if fails_to_start(pod, changed)]
    keys = set(keys_of(failing))
    others = [pod for pod in placed if pod.key not in keys and not is_rejected(pod, changed)]
    starts = {pod.key: _first_start(pod, changed) for pod in others}
    starting = [pod for pod in others if starts[pod.key] is None]
    started = [pod for pod in others if starts[pod.key] is not None]
    kept = [pod for pod in started if is_kept(pod, changed)]
    started = [pod for pod in started if not is_kept(pod, changed)]
    own = of_other_nodes(started, effect.without)
    new_nodes = set(keys_of(own))
    pods = [pod for pod in started if pod.key not in new_nodes]
    removed = {pod.workload for pod in found.removed}
    what = "new pod" if any(pod.workload in removed for pod in (*pods, *starting)) else "more pod"
    sentences = []
    if failing:
        do = "gets a node but does" if len(failing) == 1 else "get nodes but do"
        sentences.append(f"{pods_of(failing, 'more pod')} {do} not start, as in the dump.")
    if starting:
        do = "gets a node but does" if len(starting) == 1 else "get nodes but do"
        sentences.append(f"{pods_of(starting, what)} {do} not run yet.")
    alone = "" if found.displaced else ", and none is displaced"
    for those, who in ((pods, pods_of(pods, what)), (own, pods_of_nodes(own))):
        if those:
            after = time_words(changed.after_start(max(starts[pod.key] or 0 for pod in those)))
            verb = "runs" if len(those) == 1 else "run"
            where = _on_new_nodes(own) if those is own else ""
            sentences.append(f"{who} {verb}{where} after {after}{alone}.")
            alone = ""
    if kept:
        sentences.append(_kept(kept))
    return " ".join(sentences) or None


def _kept(pods: Sequence[PodEnd]) -> str:
    """Return a sentence about `pods` that ran before the change and are removed only without it."""
    stay = "stays" if len(pods) == 1 else "stay"
    if not all(pod.own_node for pod in pods):
        return f"{pods_of(pods)} {stay}, removed only without the change."
    nodes = counted(len({pod.node for pod in pods}), "node")
    return f"{pods_of_nodes(pods)} {stay} on {nodes}, removed only without the change."


def _on_new_nodes(pods: Iterable[PodEnd]) -> str:
    nodes = {pod.node for pod in pods}
    return f" on {counted(len(nodes), 'new node')}"


def _first_start(pod: PodEnd, run: RunOutcome) -> Instant | None:
    """Return when the new `pod` first ran in `run`; None if it has not run.

    The first start can differ from the last start, because the pod may have been displaced later,
    for example by an autoscaler or the failure of its node.
    """
    first = pod.first_started_at
    has_run = pod.started_at is not None and first is not None and first >= run.started_at
    return first if has_run else pod.started_at


def moved_sentence(effect: Effect) -> str | None:
    """Return a sentence about pods that were not displaced but are on another node.

    Such pods were deleted and created again, got their first node after the change, or are moved
    only without the change. Return None if there are no such pods. Also return None if --reschedule
    is set, because the sentence of `repacked_sentence` then includes these pods.
    """
    if effect.packing:
        return None
    found = effect.difference
    recreated, stay, kept = found.recreated, found.staying, found.unmoved
    known = {pod.key for pod in (*recreated, *stay, *kept)}
    others = [pod for pod in found.elsewhere if pod.key not in known]
    where = "on another node" if len(recreated) == 1 else "on other nodes"
    sentences = (
        _placed(effect, recreated, f"created again {where}"),
        _placed(effect, others, "placed elsewhere"),
        _staying(stay),
        _unmoved(kept),
    )
    return " ".join(one for one in sentences if one) or None


def _placed(effect: Effect, pods: Sequence[PodEnd], how: str) -> str:
    """Return a sentence like "3 pods of deploy/a are {how} and run after 5s."; "" if no pods."""
    if not pods:
        return ""
    running = [pod.started_at for pod in pods if pod.started_at is not None]
    took = effect.changed.after_start(max(running)) if len(running) == len(pods) else None
    run = f" and {'runs' if len(pods) == 1 else 'run'} after"
    after = "" if took is None else f"{run} {time_words(took)}"
    return f"{pods_of(pods)} {'is' if len(pods) == 1 else 'are'} {how}{after}."


def _staying(pods: Sequence[PodEnd]) -> str:
    """Return a sentence about `pods`, which stay on nodes out of service; "" if `pods` is empty."""
    if not pods:
        return ""
    if len(pods) == 1:
        return f"{pods_of(pods)} stays on a node that is not in service, and does not run."
    return f"{pods_of(pods)} stay on nodes that are not in service, and do not run."


def _unmoved(pods: Sequence[PodEnd]) -> str:
    """Return a sentence about `pods`, which only the run without the change moves.

    Returns "" if `pods` is empty.
    """
    if not pods:
        return ""
    if len(pods) == 1:
        return f"{pods_of(pods)} stays on its node, and moves only without the change."
    return f"{pods_of(pods)} stay on their nodes, and move only without the change."


def resized_sentence(effect: Effect) -> str | None:
    """Return a sentence about changed requests if nothing else changes; None otherwise."""
    found = effect.difference
    known = (
        found.placed, found.removed, found.not_created, found.displaced, found.moved,
        found.pending, effect.lost,
    )  # fmt: skip
    if not found.reallocated or found.updated or any(known):
        return None
    return f"The pods request other amounts of {', '.join(found.reallocated)}."


def repacked_sentence(effect: Effect) -> str | None:
    """Return a sentence that compares the placements of both runs; None if --reschedule is not set.

    If both runs have the same placement, the sentence also compares it with the dump. In that case,
    the sentence states the nodes in use and the room for more pods, for the runs and for the dump.
    """
    rows = {one.measure: one for one in effect.packing}
    if not rows:
        return None
    moved = len(effect.difference.moved)
    if not moved and all(one.without == one.changed for one in effect.packing):
        nodes, room = rows[NODES_IN_USE], rows[ROOM]
        unit = "node" if nodes.changed == 1 else "nodes"
        return (
            f"Scheduled again, the pods use {_amount(nodes.changed)} {unit} with and without the "
            f"change (in the dump: {_amount(nodes.today)}). This leaves room for "
            f"{_amount(room.changed)} of the largest pods (in the dump: {_amount(room.today)})."
        )
    price = f", at {_instead(rows[PRICE], ' per hour')}" if PRICE in rows else ""
    where = "is on another node" if moved == 1 else "are on other nodes"
    other = f"; {counted_pods(moved)} {where}" if moved else ""
    unit = " node" if rows[NODES_IN_USE].changed == 1 else " nodes"
    return (
        f"Scheduled again with the change, the pods use {_instead(rows[NODES_IN_USE], unit)}, "
        f"with room for {_instead(rows[ROOM], ' of the largest pods')}{price}{other}."
    )


def _instead(row: PackingRow, unit: str) -> str:
    """Return the numbers of `row` as text, such as `57 nodes instead of 60`.

    If both numbers are equal, the text is like `60 nodes (as without it)`. `unit`, here ` nodes`,
    follows the first number. The first number is the value with the change, and the second number
    is the value without the change.
    """
    if row.without == row.changed:
        return f"{_amount(row.changed)}{unit} (as without it)"
    return f"{_amount(row.changed)}{unit} instead of {_amount(row.without)}"


def _amount(value: float | None) -> str:
    return "an unknown number" if value is None else f"{value:,}"

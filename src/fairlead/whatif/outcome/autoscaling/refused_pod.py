"""RefusedPods: pods that got a node late, because the node autoscaler added no node for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.autoscaling.refusal import RefusalLog
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.waiting_time import WAITED_MIN, PodWait
from fairlead.whatif.outcome.workload import WorkloadRef

_NOTES_MAX: Final = 2


class RefusedPods(Struct, frozen=True):
    """`count` pods of `workloads` that got a node, but first waited for the reason `why`.

    The reason applied to each of the pods for at least a minute. `longest` is the longest of these
    times. The workloads with the most pods come first.
    """

    why: str
    count: int
    workloads: tuple[WorkloadRef, ...]
    longest: DurationNs


def refused_pods(log: RefusalLog, waits: Iterable[PodWait]) -> tuple[RefusedPods, ...]:
    """Return the pods in `waits` that waited for a reason in `log`, grouped by reason.

    Only waits that have ended count. The reasons with the most pods come first.
    """
    found: dict[str, list[tuple[WorkloadRef, DurationNs]]] = {}
    for one in waits:
        if one.until is None or one.until - one.since < WAITED_MIN:
            continue
        refusal = log.longest(one.key, one.since, one.until)
        if refusal is not None and refusal.lasted >= WAITED_MIN:
            found.setdefault(refusal.why, []).append((one.workload, refusal.lasted))
    groups = (
        RefusedPods(
            why=why,
            count=len(pods),
            workloads=tuple(one for one, _ in Counter(one for one, _ in pods).most_common()),
            longest=max(lasted for _, lasted in pods),
        )
        for why, pods in found.items()
    )
    return tuple(sorted(groups, key=lambda one: (-one.count, one.why)))


def refused_notes(refused: Sequence[RefusedPods], autoscaler: str) -> Iterator[str]:
    """Yield notes about `refused`, the pods that waited for the autoscaler named `autoscaler`.

    Each of the first `_NOTES_MAX` reasons has a note of its own. One more note counts the pods of
    all other reasons.
    """
    for one in refused[:_NOTES_MAX]:
        pods, workloads = counted(one.count, "pod"), listed([str(ref) for ref in one.workloads])
        yield (
            f"For up to {for_readers(one.longest)}, {autoscaler} adds no node for {pods} of "
            f"{workloads}: {one.why}."
        )
    if rest := refused[_NOTES_MAX:]:
        pods = counted(sum(one.count for one in rest), "more pod")
        yield f"For a minute or longer, {autoscaler} adds no node for {pods}, for other reasons."

"""What still goes on when the simulation ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.sentence.displaced_pod import fails_to_start
from fairlead.whatif.outcome.assessment.sentence.drain import unfinished_drain
from fairlead.whatif.outcome.assessment.sentence.words import counted_pods, keys_of
from fairlead.whatif.outcome.assessment.sentence.workload import unfinished_rollouts
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.outage import LossCause, LostPod
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.workload import POD

MAY_RETURN: Final = (LossCause.STARTING, LossCause.NOT_YET)
"""The causes of losses that a longer run may end."""


def unfinished_sentence(effect: Effect) -> str | None:
    """Return sentences about unfinished work at the end of the run; None if there is none."""
    after = for_readers(seconds(effect.changed.virtual_seconds))
    drain = unfinished_drain(effect.changed, f"{after}, when the simulation ends (--horizon)")
    if drain and effect.changed.drains:  # pods of a rolling drain start all the time
        return drain
    rollouts, starting = unfinished_rollouts(effect, after), _still_starting(effect, after)
    found = (drain, _unreplaced(effect), rollouts, starting)
    return " ".join(one for one in found if one) or None


def _unreplaced(effect: Effect) -> str:
    """Return a sentence about drifted nodes that Karpenter has not replaced; "" if there are none.

    The most frequent reason comes first.
    """
    if not effect.unreplaced:
        return ""
    nodes = counted(len(effect.unreplaced), "drifted node")
    counts = Counter(_without_pods(why) for why in effect.unreplaced.values() if why)
    reasons = [f"{why} ({counted(count, 'node')})" for why, count in counts.most_common()]
    because = f": {listed(reasons)}" if reasons else ""
    return f"At the end, Karpenter has not replaced {nodes}{because}."


def _without_pods(why: str) -> str:
    """Return Karpenter's reason `why` without the pods that it names."""
    return why.partition(" (Pod=")[0].partition(", ")[0]


def _still_starting(effect: Effect, after: str) -> str:
    """Return a sentence about pods that may still start after the run; "" if there are none."""
    waiting = returning(effect.lost) + _not_running(effect)
    return still_not_running(effect.changed, waiting, f"{after}, when the simulation ends")


def returning(lost: Iterable[LostPod]) -> int:
    """Return how many of the `lost` pods may run again in a longer run."""
    return sum(one.cause in MAY_RETURN for one in lost)


def still_not_running(run: RunOutcome, pods: int, end: str) -> str:
    """Return a sentence that says that `pods` pods still do not run.

    Returns "" if `pods` is 0, or if nothing changes any more at the end of `run`.

    `end` is the text for the end of the run, for example "3m, when the simulation ends".
    """
    if run.settled or not pods:
        return ""
    return f"{counted_pods(pods)} {'is' if pods == 1 else 'are'} still not running after {end}."


def _not_running(effect: Effect) -> int:
    """Return the number of displaced, moved or new pods that have a node but do not run at the end.

    A terminating pod of a workload counts, because its replacement does not run yet. Two kinds of
    pods do not count: pods that never start (`fails_to_start`), and the pods in `effect.lost`.
    """
    found, changed = effect.difference, effect.changed
    lost = {one.pod for one in effect.lost}
    pods = (*found.displaced, *found.placed, *found.elsewhere)
    ends = [changed.pods.get(key) for key in dict.fromkeys(keys_of(pods)) if key not in lost]
    placed = [
        pod
        for pod in ends
        if pod is not None and pod.is_placed and not fails_to_start(pod, changed)
    ]
    return sum(
        pod.started_at is None or (pod.is_terminating and pod.workload.kind != POD)
        for pod in placed
    )

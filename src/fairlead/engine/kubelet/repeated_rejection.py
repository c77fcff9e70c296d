"""RepeatedRejections: how long kubelets delay the report of a rejection that repeats endlessly.

A controller immediately replaces a pod that a kubelet rejected. If the scheduler places each
replacement on the full node again, rejection and replacement alternate many times per second, until
the node has room. A simulation of several days cannot carry out so many steps. So kubelets delay
the report of a rejection. The delay is 1/PART of the time since the rejections of the controller's
pods began. The number of rejected pods then grows only with the logarithm of the time. During the
delay, the kubelet admits the rejected pod if the node gets room, as it would admit the next
replacement. If another node gets room, the pod is replaced only when its rejection is reported.

    rejected for 1 s, 1 min, 1 h    reported 0.125 s, 7.5 s, 7.5 min later
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of
from fairlead.engine.core.instant import DurationNs, Instant

PART: Final = 8


class _Streak(Struct):
    """A series of rejections.

    `since` is the time of the first rejection. `until` is the time at which the kubelet reports the
    last rejection.
    """

    since: Instant
    until: Instant


class RepeatedRejections(Struct):
    """The current series of rejected pods of each controller, by the controller's uid.

    `pause_before` explains when a series ends.
    """

    _streaks: dict[str, _Streak] = field(default_factory=dict)

    def pause_before(self, pod: Pod, now: Instant, delay: DurationNs) -> DurationNs:
        """Record that `pod` is rejected at `now`; return the pause before the kubelet's report.

        The kubelet reports the rejection at `now + delay` plus the pause. If the pod has no
        controller, the pause is 0. The rejections of a controller's pods form a series, and the
        pause of the first rejection in a series is 0. A series ends when a pod of the controller is
        admitted. A series also ends if the time since its last report is longer than the series
        lasted. In this case, the controller evidently does not replace rejected pods immediately.
        """
        owner = controller_of(pod.metadata)
        if owner is None:
            return 0
        streak = self._streaks.get(owner.uid)
        if streak is None or now - streak.until > streak.until - streak.since:
            streak = self._streaks[owner.uid] = _Streak(now, now)
        pause = (now - streak.since) // PART
        streak.until = max(streak.until, now + delay + pause)
        return pause

    def end(self, pod: Pod) -> None:
        """Record that `pod` was admitted."""
        owner = controller_of(pod.metadata) if self._streaks else None
        if owner is not None:
            self._streaks.pop(owner.uid, None)

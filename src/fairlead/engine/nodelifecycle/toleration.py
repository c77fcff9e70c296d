"""For how long a pod tolerates NoExecute taints.

Each taint is covered by the first toleration that matches it, in the pod's order, also when a
later one would last longer.

upstream: pkg/apis/core/v1/helper/helpers.go:GetMatchingTolerations,
pkg/controller/tainteviction/taint_eviction.go:getMinTolerationTime
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Taint, Toleration
from fairlead.api.taint import tolerates

ENDLESS: Final = None


def tolerated_s(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int | None:
    """Seconds until a pod with `tolerations` must go, ENDLESS for never, -1 when not tolerated.

    There is at least one taint.
    """
    shortest: int | None = ENDLESS
    for taint in taints:
        used = next((one for one in tolerations if tolerates(one, taint)), None)
        if used is None:
            return -1
        limit = used.toleration_seconds
        if limit is not None and (shortest is None or limit < shortest):
            shortest = max(0, limit)
    return shortest

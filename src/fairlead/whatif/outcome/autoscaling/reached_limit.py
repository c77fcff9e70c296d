"""The sentence about limits because of which an autoscaler adds no node for pending pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from fairlead.api.text.name_list import listed

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.reached_limit import ReachedLimit

_NAMED_MAX: Final = 3


def reached_limit_words(
    limits: Mapping[str, tuple[ReachedLimit, ...]], pods: Collection[str]
) -> str:
    """Return a sentence about those of `limits` that stop an autoscaler from helping `pods`.

    `limits` has the limits by pod; `pods` are the keys of pending pods. The limits that concern the
    most pods come first. Returns "" if none of the pods has a limit.
    """
    concerned = [pod for pod in pods if limits.get(pod)]
    counts = Counter(one for pod in concerned for one in limits[pod])
    if not counts:
        return ""
    limits_found = [one for one, _ in counts.most_common()]
    first, whom = limits_found[0], ""
    if len(concerned) < len(pods):
        whom = f" for {len(concerned):,} of these pods"
    if len(limits_found) == 1:
        return (
            f"The limit of {first.kind} {first.name} allows no further node{whom}: {first.amount}."
        )
    kinds = {one.kind for one in limits_found}
    owners = f"{len(limits_found):,} {first.kind}s" if len(kinds) == 1 else "the autoscaler"
    named = listed([f"{one.name} ({one.amount})" for one in limits_found], _NAMED_MAX)
    return f"The limits of {owners} allow no further node{whom}: {named}."

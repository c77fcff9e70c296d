"""Shortens FailedScheduling messages to their reasons, without counts of nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from fairlead.api.text.count import counted
from fairlead.engine.framework.diagnosis import GROUP_UNSCHEDULABLE
from fairlead.engine.plugins.node_unschedulable import UNSCHEDULABLE

NOT_TRIED: Final = "not tried yet"
_REASONS_MAX: Final = 3  # different reasons that a sentence lists

_AVAILABLE: Final = re.compile(r"0/[0-9]+ nodes are available[:,] ")  # kube-batch: a comma
# upstream: dynamicresources.go: foreachPodResourceClaim
_NAMED_POD: Final = re.compile(r'^pod "[^"]*": ')
_COUNT: Final = re.compile(r"[0-9]+ ")
_LACKS: Final = re.compile(r"^insufficient ")  # kube-batch's word for "Insufficient"
# Each reason begins with a count. The reason of 1.19 for a taint contains a comma.
_BETWEEN: Final = re.compile(r", (?=[0-9]+ )")
_CORDONED: Final = f"{UNSCHEDULABLE.message} (cordoned)"
_NEVER: Final = "preemptionPolicy=Never"
# upstream: framework/preemption/preemption.go: Preempt, SelectVictimsOnDomain. The node has no
# possible victims, or the removal of victims would not make it accept the pod. Copies of the
# engine's reasons (`engine.scheduling.preemption`), because small what-ifs do not import
# preemption.
_WITHOUT_VICTIMS: Final = (
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
)


def short_reason(message: str) -> str:
    """Return the reasons in a FailedScheduling message.

    Example: `0/9 nodes are available: 2 A, 7 B. preemption: …` becomes `A, B`. If the message
    contains preemptionPolicy=Never, "preemptionPolicy is Never" is added. If nodes would refuse the
    pod even after a preemption, for other reasons than before, these reasons are added. An empty
    message becomes "not tried yet". `reasons_of` describes the result for other messages.
    """
    before = reasons_of(message)
    shortened = ", ".join(before)
    if _NEVER in _preemption(message):
        return f"{shortened}; preemptionPolicy is Never"
    remaining = [one for one in reasons_after_preemption(message) if one not in before]
    return f"{shortened}; after preemption: {', '.join(remaining)}" if remaining else shortened


def reasons_in_words(messages: Iterable[str]) -> str:
    """Return the most frequent reasons in `messages`, one per pod, as the end of a sentence.

    Examples: `: Insufficient cpu`, `. 19 pods: Insufficient cpu. 1 pod: node(s) had no free ports`.
    """
    reasons = Counter(map(short_reason, messages))
    rows = [
        (count, with_explanation(reason).removesuffix("."))
        for reason, count in reasons.most_common(_REASONS_MAX)
    ]
    if len(reasons) == 1:
        return f": {rows[0][1]}"
    others = reasons.total() - sum(count for count, _ in rows)
    if others:
        rows.append((others, "other reasons"))
    return "".join(f". {counted(count, 'pod')}: {why}" for count, why in rows)


def reasons_after_preemption(message: str) -> list[str]:
    """Return the different reasons for which nodes would refuse the pod even after a preemption.

    The list is sorted. The list is empty if preemption was not tried, or if `message` is not about
    nodes.
    """
    preemption = _preemption(message)
    if _AVAILABLE.match(preemption) is None:
        return []
    return [one for one in reasons_of(preemption) if one not in _WITHOUT_VICTIMS]


def _preemption(message: str) -> str:
    """Return the part of a FailedScheduling message that is about preemption, or ""."""
    if _AVAILABLE.match(message) is None:
        return ""
    return message.partition(". ")[2].partition("preemption: ")[2]


def with_explanation(reasons: str) -> str:
    """Return `reasons` with an explanation of `unschedulable`, upstream's word for cordoned."""
    return reasons.replace(UNSCHEDULABLE.message, _CORDONED)


def is_about_nodes(message: str) -> bool:
    """Return whether a FailedScheduling message says why nodes reject the pod."""
    return "nodes are available" in message


def reasons_of(message: str) -> list[str]:
    """Return the different reasons in a FailedScheduling message, sorted.

    If the message does not begin with "0/N nodes are available", the only reason is the message
    itself, without the name of the pod at its beginning. For an empty message, the only reason is
    "not tried yet". If the message begins with "pod group is unschedulable", these words are the
    only reason.
    """
    if not message:
        return [NOT_TRIED]
    if message.startswith(GROUP_UNSCHEDULABLE):
        return [GROUP_UNSCHEDULABLE]
    found = _AVAILABLE.match(message)
    if found is None:
        return [_NAMED_POD.sub("", message, count=1)]
    reasons = message[found.end() :].partition(". ")[0]
    each_reason = _BETWEEN.split(reasons.removesuffix("."))
    return sorted(
        {_LACKS.sub("Insufficient ", _COUNT.sub("", one, count=1)) for one in each_reason}
    )

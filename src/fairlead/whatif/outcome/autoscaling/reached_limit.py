"""Sentences that say why an autoscaler adds no node for pending pods: limits, or ignored pods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from fairlead.api.text.name_list import listed

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.reached_limit import ReachedLimit
    from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome

_NAMED_MAX: Final = 3
# upstream: karpenter pkg/controllers/provisioning/scheduling/topology.go: TopologyError.Error
_TOPOLOGY: Final = re.compile(r"unsatisfiable topology constraint for [^,]+, key=[^ ]+")


def without_node_words(outcome: AutoscalingOutcome, pods: Collection[str]) -> str:
    """Return sentences that say why the autoscaler of `outcome` adds no node for `pods`.

    `pods` are the keys of pending pods. There are three kinds of reasons: a limit is reached, the
    autoscaler ignores the pod, or a topology constraint allows no new node. The scheduler's message
    often lacks the topology constraint, because existing nodes are rejected for lack of room first.
    All other reasons are only in `outcome.waiting`. Returns "" if none of the three kinds applies.
    """
    found = (
        reached_limit_words(outcome.limits, pods),
        _ignored_words(outcome, pods),
        _topology_words(outcome, pods),
    )
    return " ".join(filter(None, found))


def _ignored_words(outcome: AutoscalingOutcome, pods: Collection[str]) -> str:
    """Return a sentence about the `pods` that the autoscaler ignores; "" if it ignores none.

    The reasons that concern the most pods come first.
    """
    counts = Counter(outcome.ignored[pod] for pod in pods if pod in outcome.ignored)
    return _no_node_words(outcome, counts, pods)


def _topology_words(outcome: AutoscalingOutcome, pods: Collection[str]) -> str:
    """Return a sentence about the `pods` whose topology constraints no new node meets.

    Returns "" if there are none.
    """
    found = (_topology_reason(outcome.waiting.get(pod, "")) for pod in pods)
    return _no_node_words(outcome, Counter(filter(None, found)), pods)


def _topology_reason(why: str) -> str:
    """Return the topology constraints that `why` names; "" if there is another reason, too.

    `why` contains the reasons for which the NodePools refuse a pod. If one NodePool refuses the pod
    for another reason, the topology constraints alone do not keep the pod from getting a node.
    """
    # A refusal for another reason may contain the separator, too, but no part of it matches.
    found = [_TOPOLOGY.match(one) for one in why.split("; ")]
    reasons = [one.group() for one in found if one]
    return listed(list(dict.fromkeys(reasons))) if len(reasons) == len(found) else ""


def _no_node_words(outcome: AutoscalingOutcome, counts: Counter[str], pods: Collection[str]) -> str:
    """Return a sentence with the reasons in `counts`, which concern some of `pods`.

    Returns "" if `counts` is empty.
    """
    if not counts:
        return ""
    whom = "these pods" if len(pods) > 1 else "this pod"
    if counts.total() < len(pods):
        whom = f"{counts.total():,} of these pods"
    reasons = listed([why for why, _ in counts.most_common()], _NAMED_MAX)
    return f"For {whom}, {outcome.autoscaler} adds no node: {reasons}."


def reached_limit_words(
    limits: Mapping[str, tuple[ReachedLimit, ...]], pods: Collection[str]
) -> str:
    """Return a sentence about the `limits` that stop an autoscaler from helping `pods`.

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
    names = {one.name for one in limits_found}
    owners = f"{len(names):,} {first.kind}s" if len(kinds) == 1 else "the autoscaler"
    if len(names) == 1:  # Different limits stop different pods.
        owners = f"{first.kind} {first.name}"
    named = listed([f"{one.name} ({one.amount})" for one in limits_found], _NAMED_MAX)
    return f"The limits of {owners} allow no further node{whom}: {named}."

"""New nodes of several zones, for pods that may not be able to run on new nodes of one zone.

Rules of the pods, of other pods or of the scheduler configuration may keep the pods off a zone. The
reasons of the scheduler do not show this, because it checks such rules only on nodes with room. So
new nodes of one zone after another are tried, and nodes of several zones together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from fairlead.api.json import Json, at, items, mapping
from fairlead.api.well_known_label import HOSTNAME
from fairlead.whatif.next_steps.new_nodes import (
    APART,
    SPREAD,
    NewNodes,
    lacks_place,
    new_nodes_for,
    repels_pods_itself,
)
from fairlead.whatif.next_steps.own_rule import has_own_rules
from fairlead.whatif.next_steps.spread_rule import is_hard
from fairlead.whatif.next_steps.step_context import StepContext, is_named
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd


def may_need_other_zones(pods: Collection[PodEnd], context: StepContext) -> bool:
    """Return whether rules may keep some of `pods` off new nodes of a zone."""
    return (
        any(SPREAD in pod.reason for pod in pods)
        or _has_own_or_zonal_rules(pods, context)
        or _may_be_kept_off(pods, context)
    )


def _has_own_or_zonal_rules(pods: Iterable[PodEnd], context: StepContext) -> bool:
    """Return whether the configuration has own rules, or rules may keep `pods` off a zone.

    Zones without a node that can be copied count, too: topology spread counts their pods.
    """
    has_zones = len({node.zone for node in context.answer.without.nodes}) > 1
    return has_own_rules(context.scheduler) or (has_zones and _may_need_a_zone(pods, context))


def _may_need_a_zone(pods: Iterable[PodEnd], context: StepContext) -> bool:
    """Return whether rules or volumes of `pods` may keep the pods off a zone.

    The rules are read from `StepContext.pod_specs`. The result is also True if `pod_specs` lacks a
    workload, or if the user's what-if may change the workload.
    """
    workloads = {pod.workload for pod in pods}
    found, change = context.workloads(workloads), context.answer.change
    specs = context.pod_specs(workloads)
    if change.apply or len(specs) < len(workloads):
        return True
    return any(map(_has_zonal_rule, specs.values())) or any(
        is_named(ref.name, change.set) or items(one.value, "spec", "volumeClaimTemplates")
        for ref, one in found.items()
    )


def _may_be_kept_off(pods: Iterable[PodEnd], context: StepContext) -> bool:
    """Return whether pods on new nodes, or in their zones, may keep some of `pods` off these nodes.

    Pods that are pending only because of their own anti-affinity about single nodes do not count.
    """
    apart = [pod for pod in pods if lacks_place(pod)]
    if not all(map(repels_pods_itself, apart)):
        return True
    return bool(apart) and _may_need_a_zone(apart, context)


def _has_zonal_rule(spec: Json) -> bool:
    """Return whether a pod with `spec` has a rule or a volume that may keep it off a zone.

    Rules about single nodes (their topologyKey is the host name) exclude no zone. The result is
    True if `spec` is empty, because nothing is then known about the pods of the workload.
    """
    if not spec or any(at(one, "persistentVolumeClaim") for one in items(spec, "volumes")):
        return True
    spread = items(spec, "topologySpreadConstraints")
    rules = [one for one in spread if is_hard(one)]
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping(spec, "affinity", kind)
        rules += items(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    return any(one.get("topologyKey") != HOSTNAME for one in rules)


def nodes_by_zone(
    first: NewNodes | None,
    short: Collection[PodEnd],
    nodes: Sequence[NodeEnd],
    context: StepContext,
) -> tuple[list[NewNodes], NewNodes | None]:
    """Return (`first` and a NewNodes for each other zone of `nodes`, nodes of several zones).

    Each of the NewNodes is for the pods in `short`. All zones count, because the scheduler's
    reasons do not show in which zones the pods may run. If a node lacks room, the scheduler does
    not check other rules. The list begins with `first`. The other zones follow, the zone with the
    fewest pods of the workloads first: there, the spread constraints and the anti-affinity of the
    workloads most likely admit more pods. But if anti-affinity keeps the pods in `short` off nodes,
    `first` is sorted like the other zones, because its zone may contain the pods that repel those
    in `short`.

    The nodes of several zones are for pods that spread constraints or anti-affinity keep off the
    nodes of one zone. There are at most as many of these zones as pods. If there are fewer than two
    such zones, the nodes of several zones are None.
    """
    zone_of = {node.name: node.zone for node in nodes}
    workloads = {pod.workload for pod in short}
    pods = Counter(
        node.zone
        for node in context.answer.changed.nodes
        for pod in node.pods
        if pod.workload in workloads
    )
    known = context.answer.without.nodes
    by_zone = {} if first is None else {zone_of[first.like]: first}
    ordered = sorted({*zone_of.values()}, key=lambda zone: (pods[zone], zone))
    for zone in ordered:
        members = [node for node in nodes if node.zone == zone]
        more = new_nodes_for(short, members, known, ignored=(SPREAD, APART))
        if more is not None:
            by_zone.setdefault(zone, more)
    in_order = [by_zone[zone] for zone in ordered if zone in by_zone]
    if first is None or any(APART in pod.reason for pod in short):
        return in_order, _of_several_zones(in_order[: len(short)])
    return list(by_zone.values()), _of_several_zones(in_order[: len(short)])


def _of_several_zones(candidates: Sequence[NewNodes]) -> NewNodes | None:
    """Return a mix of the nodes of all `candidates`; None if there are fewer than two.

    Each candidate has enough nodes for all waiting pods. So the mix of N candidates has one Nth of
    the nodes of each candidate, rounded up. The candidates may have different numbers of nodes,
    because the nodes may have different sizes.
    """
    if len(candidates) < 2:
        return None
    from fairlead.whatif.next_steps.node_kinds import mixed  # noqa: PLC0415 - rarely needed

    return mixed({one.like: -(-one.count // len(candidates)) for one in candidates})

"""Next steps for workloads without a ready pod."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import inf
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, at, mapping
from fairlead.api.nodes.taint import OUT_OF_SERVICE
from fairlead.api.objects import Pod
from fairlead.api.selector import parse_selector, selector_matches
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.kind import NODE, RESOURCE_QUOTA, STATEFUL_SET
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import NOT_ON_THIS_NODE
from fairlead.engine.plugins.volume_restrictions import CLAIM_IN_USE
from fairlead.whatif.change.cluster_change import ClusterChange, deleted_nodes, is_selector
from fairlead.whatif.next_steps.more_replicas import replicas_step, with_replicas
from fairlead.whatif.next_steps.step_context import (
    NAMES_MAX,
    TRIES_MAX,
    StepContext,
    is_named,
    more_ready,
)
from fairlead.whatif.outcome.assessment.next_step import NextStep, out_of_service_step
from fairlead.whatif.outcome.budget import BudgetResult
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.outage import LossCause, LostPod
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.snapshot.manifest import Manifest, entries_of

LONG: Final[DurationNs] = seconds(3600)
"""A failure that lasts this long is worth a command of an operator, even if the nodes return."""
# The trial of a replica delays the failure. The time of the failure between two heartbeats, and
# between two checks of the node controller, then differs, so pods are evicted some seconds earlier
# or later.
_NOISE: Final[DurationNs] = seconds(20)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TAINT: Final = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}


def keep_available(context: StepContext) -> Iterator[NextStep]:
    """Yield a remedy for one of the workloads that had no ready pod, if a remedy is found.

    For StatefulSets, the remedy is the taint out-of-service on the failed nodes. Other workloads
    get the same remedy if one of their pods waits for a volume or a device that is still in use on
    a failed node. For all other workloads, the remedy is one more replica, if their pods find a
    node and their budgets are not breached. Each kind of remedy is tried for up to TRIES_MAX
    workloads.
    """
    effect = context.answer.effect
    down = [one for one in effect.workloads if one.had_no_ready_pod and not one.gone]
    stuck = [
        one for one in down if one.workload.kind == STATEFUL_SET.kind or _awaits_claim(one, effect)
    ]
    moved = [
        one
        for one in down
        if one not in stuck and one.moved and one.budget is not BudgetResult.BREACHED
    ]
    replicas = (step for one in moved[:TRIES_MAX] for step in _standby(one, context))
    yield from islice(chain(_out_of_service(stuck, context), replicas), 1)


def _standby(one: WorkloadEffect, context: StepContext) -> Iterator[NextStep]:
    """Yield a step that adds one replica of the workload `one`.

    If the what-if makes nodes fail, the step is the same what-if with one more replica. This step
    is yielded only if the replica shortens the time without a ready pod.

    For any other what-if, the step is a kubectl command that adds the replica before the change.
    The command is not yielded if the change updates the workload, because the rollout replaces all
    replicas. Nor is the command yielded if the change scales any workload, or if the replica would
    not run. If the change adds nodes, the replica is added after the nodes, before the rest of the
    change.
    """
    if context.answer.changed.outage is not None:
        if context.can_grow(one) and context.can_scale(one):
            tried, ref = with_replicas(one, 1, context), one.workload
            before = _without_pod(ref, context.answer.effect)
            after = before if tried is None else _without_pod(ref, tried)
            if after < before - _NOISE or after == 0:
                yield replicas_step(one, 1, context)
    elif (
        not one.updated
        and not context.answer.change.scale
        and context.can_grow(one)
        and _runs_before(one, context)
    ):
        ref, has_new_nodes = one.workload, context.answer.change.add_nodes
        when = "when the new nodes are Ready, before the rest of" if has_new_nodes else "before"
        replicas = f"--replicas={one.readiness.wanted + 1}"
        target = f"{ref.kind.lower()}/{ref.name}"
        yield NextStep(
            f"{when} the change, let one more replica of {ref} become ready on another node",
            command=shlex.join(("kubectl", "scale", "-n", ref.namespace, target, replicas)),
        )


def _runs_before(one: WorkloadEffect, context: StepContext) -> bool:
    """Return whether one more replica of the workload would run if it is created before the change.

    If the change adds nodes, they are added before the replica. A simulation is made only in three
    cases: a quota may refuse the replica, the pods of the workload may find a node only because of
    the change, or their rules may require the nodes that the change empties. In the simulation, a
    pod must run on a node that takes pods after the change. Without a simulation, the result is
    True.
    """
    ref, change = one.workload, context.answer.change
    has_quota = any(
        isinstance(each, Manifest)
        and each.kind is RESOURCE_QUOTA
        and each.ref.namespace == ref.namespace
        for each in entries_of(context.manifests)
    )
    if not (has_quota or _may_make_room(change) or _has_placement_rule(context.pod_spec(ref))):
        return True
    before = ClusterChange(
        add_nodes=change.add_nodes,
        like=change.like,
        instance_type=change.instance_type,
        scale=(f"{ref}={one.readiness.wanted + 1}",),
    )
    tried = context.ask(before)
    found = None if tried is None else tried.changed.workloads.get(ref)
    if tried is None or found is None or found.at_end <= one.readiness.wanted:
        return False
    staying = {node.name for node in context.answer.changed.nodes if node.is_schedulable}
    running = (node for node in tried.changed.nodes if node.name in staying)
    return any(pod.workload == ref for node in running for pod in node.pods)


def _has_placement_rule(spec: Json) -> bool:
    """Return whether a pod with `spec` has a rule that may require some of the nodes.

    Preferred affinity requires no node.
    """
    affinity = mapping(spec, "affinity")
    return bool(spec.get("nodeSelector")) or any(at(affinity, kind, _REQUIRED) for kind in affinity)


def _may_make_room(change: ClusterChange) -> bool:
    """Return whether `change` does more than remove, drain and cordon nodes."""
    rest = tuple(one for one in change.delete if not any(deleted_nodes((one,))))
    return bool(replace(change.without_drain, delete=rest, cordon=()).words)


def _without_pod(workload: WorkloadRef, effect: Effect) -> float:
    """Return how long (ns) `workload` has no ready pod; infinity if it has none at the end."""
    found = effect.changed.workloads.get(workload)
    if found is None or found.lowest:
        return 0
    return inf if found.lowest_for is None else found.lowest_for


def _awaits_claim(one: WorkloadEffect, effect: Effect) -> bool:
    """Return whether a pod of `one` waits for a claim that a pod on a failed node keeps.

    There are two cases. In the first case, the volume of the claim is still attached to the failed
    node. In the second case, the pod on that node still uses the claim, which is a ReadWriteOncePod
    claim or a ResourceClaim for devices.
    """
    found = effect.difference
    waiting = {lost.pod for lost in effect.lost if lost.cause is LossCause.ATTACHED}
    without_node = (*found.pending, *(waited.pod for waited in effect.waited))
    waiting |= {
        pod.key
        for pod in without_node
        if CLAIM_IN_USE.message in pod.reason or NOT_ON_THIS_NODE in pod.reason
    }
    evicted = found.evicted
    return any(each.pod.workload == one.workload and each.pod.key in waiting for each in evicted)


def _held_back(one: WorkloadEffect, effect: Effect) -> list[LostPod]:
    """Return the lost pods of `one` that are not replaced, because their objects still exist."""
    ends = effect.changed.pods
    return [
        lost
        for lost in effect.lost
        if lost.cause is LossCause.STICKY
        and (pod := ends.get(lost.pod)) is not None
        and pod.workload == one.workload
    ]


def shorten_failures(context: StepContext) -> Iterator[NextStep]:
    """Yield a remedy for StatefulSets that lacked pods until nodes returned after LONG or more."""
    effect = context.answer.effect
    late = {one.pod.workload for one in effect.awaited_returns if one.missed >= LONG}
    yield from _out_of_service((one for one in effect.workloads if one.workload in late), context)


def replace_pods_of_failed_nodes(context: StepContext) -> Iterator[NextStep]:
    """Yield a remedy for StatefulSets whose pods wait for failed nodes."""
    effect = context.answer.effect
    rows = [one for one in effect.workloads if one.down and _held_back(one, effect)]
    yield from _out_of_service(rows, context)


def _out_of_service(rows: Iterable[WorkloadEffect], context: StepContext) -> Iterator[NextStep]:
    """Yield the command that lets pods of the workloads `rows` be replaced on other nodes.

    The command taints the failed nodes of a workload. The taint is for machines that are shut down.
    So nothing is yielded if the nodes come back within LONG, or if their kubelets still work. If
    there are too many nodes to name, the command taints all failed nodes by their labels
    (`_labels_of_failed_nodes`). In all other cases, up to TRIES_MAX commands for different failed
    nodes are tried one after another. Each command is tried in a simulation. A command helps if a
    workload has more ready pods at the end, or lacks pods for a shorter time. The first command
    that helps is yielded. A command does not help, for example, if no other node can use the
    volumes of the pods. The step also states how many further failed nodes hold pods of `rows`.
    This number leaves out nodes whose taints did not help in a trial.
    """
    if not context.may_be_shut_down(LONG):
        return
    left = set[str]()
    by_nodes: dict[tuple[str, ...], list[WorkloadEffect]] = defaultdict(list)
    for one in rows:
        held = _held_nodes(one, context)
        left.update(held)
        by_nodes[held].append(one)
    if len(left) > NAMES_MAX and (selector := _labels_of_failed_nodes(context)):
        by_nodes = {
            tuple(sorted(context.failed_nodes())): [*chain.from_iterable(by_nodes.values())]
        }
    else:
        selector = ""
        by_nodes = {nodes: one for nodes, one in by_nodes.items() if len(nodes) <= NAMES_MAX}
    every = ((nodes, one) for nodes, one in by_nodes.items() if _can_taint(nodes, context))
    for nodes, concerned in islice(every, TRIES_MAX):
        change, edits = context.answer.change, tuple(_tainted(nodes, context))
        tainted = replace(change, set=(*change.set, *edits))
        tried = context.ask(tainted)
        if not any(more_ready(one, tried) or _is_shorter(one, tried) for one in concerned):
            if found := [*_replaced_nodes(nodes, edits, tainted, concerned, context)]:
                yield from found
                return
            context.notes.extend(_no_place(nodes, tried, concerned[:TRIES_MAX], context))
            left.difference_update(nodes)
            continue
        yield out_of_service_step(nodes, more=len(left.difference(nodes)), selector=selector)
        return


def _labels_of_failed_nodes(context: StepContext) -> str:
    """Return a label selector that selects exactly the failed nodes; "" if none is known.

    A selector is known if whole zones fail, or if nodes fail because of a single selector of
    --fail-node. A selector of --fail-node may also select new nodes, which do not fail; in this
    case, the result is "".
    """
    failures = context.answer.change.failures
    if failures.fail_fraction or (failures.fail_zone and failures.fail_node):
        return ""
    if failures.fail_node:
        first, *others = failures.fail_node
        if others or not is_selector(first):
            return ""
        selector = parse_selector(first)
        nodes = context.answer.changed.nodes
        selected = {node.name for node in nodes if selector_matches(selector, node.labels)}
        return first if selected == context.failed_nodes() else ""
    zones = sorted({zone.rpartition("/")[2] for zone in failures.fail_zone})
    of_zones = {
        node.name for node in context.answer.without.nodes if node.labels.get(ZONE) in zones
    }
    if of_zones != context.failed_nodes():
        return ""  # such as the zones of one name in several regions
    return f"{ZONE}={zones[0]}" if len(zones) == 1 else f"{ZONE} in ({','.join(zones)})"


def _no_place(
    nodes: Sequence[str],
    tried: Effect | None,
    concerned: Iterable[WorkloadEffect],
    context: StepContext,
) -> Iterator[str]:
    """Yield a note for each workload of `concerned` whose new pods find no node in the trial.

    The trial `tried` taints `nodes`. The note names the labels that the pods require, if only
    failed nodes have them.
    """
    pending = () if tried is None else tried.difference.pending
    reasons = {pod.workload: short_reason(pod.reason) for pod in pending}
    refs = [one.workload for one in concerned if one.workload in reasons]
    if not refs:
        return
    # Imported here, because the taint usually helps.
    from fairlead.whatif.snapshot.absent_label import missing_labels  # noqa: PLC0415

    failed = context.failed_nodes()
    nodes_left = (one for one in context.answer.changed.nodes if one.name not in failed)
    others = {one.name: one.labels for one in nodes_left}
    specs = context.pod_specs(refs)
    marked = "node is" if len(nodes) == 1 else "nodes are"
    for ref in refs:
        note = (
            f"If the failed {marked} marked as out of service, pods of {ref} are created again, "
            f"but stay pending: {reasons[ref]}."
        )
        is_edited = context.answer.change.apply or is_named(ref.name, context.answer.change.set)
        pod = None if is_edited or ref not in specs else decode_as(Pod, {"spec": specs[ref]})
        if pod is not None and (labels := missing_labels(pod, others)):
            words = " ".join(labels)
            note += f" Among the other nodes, {words[0].lower()}{words[1:]}"
        yield note


def _replaced_nodes(
    nodes: Sequence[str],
    edits: Sequence[str],
    tainted: ClusterChange,
    concerned: Iterable[WorkloadEffect],
    context: StepContext,
) -> Iterator[NextStep]:
    """Yield the user's what-if with a copy of each failed node; `edits` taint the failed nodes.

    `tainted` is the user's what-if with these `edits`. The pods of `concerned` may need nodes of
    the same zone, for example because of their volumes. Nothing is yielded if the copies do not
    help, if they would fail, too, or if other nodes would fail because of them. Nothing is yielded
    either if the user's what-if or an autoscaler adds nodes, or if there are more than NAMES_MAX
    nodes.
    """
    answer, like = context.answer, ",".join(nodes)
    has_nodes = answer.change.add_nodes is not None or answer.changed.autoscaling is not None
    if has_nodes or len(nodes) > NAMES_MAX or not context.nodes_not_to_copy().isdisjoint(nodes):
        return
    tried = context.ask(replace(tainted, add_nodes=len(nodes), like=like))
    if not any(more_ready(one, tried) or _is_shorter(one, tried) for one in concerned):
        return
    new, old = ("a new node like it", "the failed node")
    if len(nodes) > 1:
        new, old = "a new node like each of them", "the failed nodes"
    options = [word for edit in edits for word in ("--set", edit)]
    yield NextStep(
        f"ask again with {old} marked as out of service, and with {new}",
        shlex.join(("--add-nodes", str(len(nodes)), "--like", like, *options)),
    )


def _is_shorter(one: WorkloadEffect, tried: Effect | None) -> bool:
    """Return whether a workload lacks ready pods for a shorter time in the trial `tried`.

    `one` is the effect of the user's what-if on the workload. The compared time is how long the
    workload had its lowest number of ready pods. The result is False if this number is lower in the
    trial.
    """
    if tried is None or one.readiness.lowest_for is None:
        return False
    found = tried.changed.workloads.get(one.workload)
    if found is None or found.lowest > one.readiness.lowest:
        return True
    is_over = found.lowest == one.readiness.lowest and found.lowest_for is not None
    return is_over and (found.lowest_for or 0) < one.readiness.lowest_for


def _held_nodes(one: WorkloadEffect, context: StepContext) -> tuple[str, ...]:
    """Return the failed nodes whose pods of the workload `one` should be replaced elsewhere."""
    effect = context.answer.effect
    nodes = {pod.node for pod in effect.difference.evicted if pod.pod.workload == one.workload}
    nodes |= {pod.node for pod in _held_back(one, effect)}
    return tuple(sorted(nodes & context.failed_nodes()))


def _can_taint(nodes: tuple[str, ...], context: StepContext) -> bool:
    """Return whether a what-if can taint `nodes`; False if there are none.

    The result is also False if the change applies files or edits one of the nodes.
    """
    change = context.answer.change
    is_edited = bool(change.apply) or any(is_named(name, change.set) for name in nodes)
    return bool(nodes) and not is_edited


def _tainted(names: Collection[str], context: StepContext) -> Iterator[str]:
    """Yield an edit for each of the nodes `names`; it adds the taint out-of-service to the node."""
    for one in entries_of(context.manifests):
        if isinstance(one, Manifest) and one.kind is NODE and one.ref.name in names:
            present = one.value.get("spec", {}).get("taints") or []
            kept = [taint for taint in present if taint.get("key") != OUT_OF_SERVICE]
            yield f"node/{one.ref.name}:spec.taints={json.dumps([*kept, _TAINT])}"

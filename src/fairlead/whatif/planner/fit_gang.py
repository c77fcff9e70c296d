"""fit of a Volcano Job or a JobSet: how many more whole copies of it fit, with all their pods.

The copies are placed one after another: first all pods of one copy, then all pods of the next. The
count ends at the first copy with a pod that admission refuses or that fits no node; the pods of
this copy are removed again. Each pod goes through a scheduling cycle of kube-scheduler's plugins.
Limits and shares of the queues of a batch scheduler do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import mapping
from fairlead.api.text.count import counted
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import JOB
from fairlead.engine.scheduling.decision import Failure
from fairlead.whatif.change.owned_object import owned_by
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.created_pod import create_pod
from fairlead.whatif.planner.fit import new_pod_info, zone_of
from fairlead.whatif.planner.new_pod import NewPods, new_pods_of
from fairlead.whatif.planner.refusal import Refusal, refusals_of
from fairlead.whatif.planner.waiting_pods import (
    WaitingPodCounts,
    place,
    place_waiting_pods,
)
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest, manifests

COPIES_MAX: Final = 10_000
_PODS_MAX: Final = 100_000  # pods of one copy
_REFUSAL_COLUMNS: Final = (
    ResultColumn("nodes", "nodes", NUMBER),
    ResultColumn("plugin", "refused by", NAME),
    ResultColumn("reason", "because"),
)
_NODE_COLUMNS: Final = (
    ResultColumn("node", "node", NAME),
    ResultColumn("zone", "zone", NAME, 1),
    ResultColumn("pods", "new pods", NUMBER),
)


class GangFitResult(Struct):
    """The result: `count` copies of `members` pods fit; `stop` is why the next copy does not.

    `placed` is the number of pods of the next copy that have room, and `pod` is the name of its
    first pod without room. `refused_by` is "admission", "scheduling" or "limit". `by_node` counts
    the pods of the copies that fit. `waiting` counts the pending pods that were placed first.
    """

    members: int
    count: int = 0
    placed: int = 0
    pod: str = ""
    stop: str = ""
    refused_by: str = ""
    by_node: dict[str, int] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    waiting: WaitingPodCounts = field(default_factory=WaitingPodCounts)


def fit_gangs(
    model: ClusterModel, written: Manifest, progress: Progress, copies_max: int = COPIES_MAX
) -> GangFitResult:
    """Place at most `copies_max` copies of `written`, a Volcano Job or a JobSet, in `model`.

    Raises InputError if `written` is invalid, or has no pods or too many.
    """
    if mapping(written.value, "spec").get("managedBy") and not owned_by(written):
        problem = "names another controller, so no pods are created in this cluster"
        raise written.refuse(problem, field="spec.managedBy")
    members = sum(count for _, count in _templates(written, 0))
    if not 0 < members <= _PODS_MAX:
        raise written.refuse(f"has {members:,} pods; expected 1 to {_PODS_MAX:,}")
    result = GangFitResult(members)
    progress.begin("placing waiting pods", 0)
    result.waiting = place_waiting_pods(model)
    progress.begin(f"placing copies of {written.title}", 0)
    model.count_quotas(written.ref.namespace)
    while result.count < copies_max:
        with model.hypothesis() as trial:
            by_node = _place_copy(model, written, result)
            if by_node is None:
                return result
            trial.commit()
        for node, pods in by_node.items():
            result.by_node[node] = result.by_node.get(node, 0) + pods
        result.count += 1
        progress.reach(result.count, 0)
    result.refused_by, result.stop = "limit", f"--max-limit is {copies_max:,}"
    return result


def _place_copy(
    model: ClusterModel, written: Manifest, result: GangFitResult
) -> dict[str, int] | None:
    """Place the pods of the next copy; return their number by node.

    Return None if a pod has no room. The reason is then in `result`.
    """
    by_node: dict[str, int] = {}
    result.placed = 0
    for template, count in _templates(written, result.count):
        for number in range(count):
            try:
                pod = new_pod_info(model, create_pod(model, template, number).pod, template)
            except ApiError as refused:
                result.refused_by, result.stop = "admission", refused.message
                result.pod = template.name_of(number)
                return None
            decision = place(model, pod, [])
            if isinstance(decision, Failure):
                result.refused_by, result.stop = "scheduling", decision.message
                result.pod, result.refusals = pod.pod.metadata.name, refusals_of(model, pod)
                return None
            node = decision.node.name
            by_node[node] = by_node.get(node, 0) + 1
            result.placed += 1
    return by_node


def _templates(written: Manifest, copy: int) -> Iterator[tuple[NewPods, int]]:
    """Yield (template, number of pods) for each Job of the copy number `copy` of `written`."""
    parts = owned_by(written, name=f"{written.ref.name}-fit-{copy}")
    for part in manifests(parts, written.ref.namespace):
        if part.kind is not JOB:
            continue
        spec = part.value["spec"]
        pods = spec.get("parallelism", 1)
        yield new_pods_of(part.source, part, Inventory()), min(pods, spec.get("completions", pods))


# --- the answer -------------------------------------------------------------------------------


def gang_fit_answer(
    result: GangFitResult,
    written: Manifest,
    model: ClusterModel,
    name: str,
    notes: tuple[str, ...],
    wanted: int = 1,
) -> TabularAnswer:
    """Return the answer about `result`; `name` is the name of the snapshot.

    The answer is no if fewer than `wanted` copies fit.
    """
    nodes = sorted(result.by_node.items(), key=lambda item: (-item[1], item[0]))
    title = f"why the next pod fits on none of {counted(model.table.count, 'node')}"
    return TabularAnswer(
        "GangFit",
        name,
        _verdict(result, written),
        tuple(_findings(result, written)),
        (
            ResultTable("refusals", title, _REFUSAL_COLUMNS, [
                {"plugin": one.plugin, "reason": one.reason, "nodes": one.nodes}
                for one in result.refusals
            ]),
            ResultTable("nodes", "where they go", _NODE_COLUMNS, [
                {"node": node, "zone": zone_of(model, node), "pods": pods}
                for node, pods in nodes
            ]),
        ),
        {
            "object": written.title,
            "namespace": written.ref.namespace,
            "count": result.count,
            "pods_each": result.members,
            "placed_of_next": result.placed,
            "stop": {"by": result.refused_by, "message": result.stop},
            "waiting_placed_first": result.waiting.placed,
            "waiting_without_node": result.waiting.without_node,
        },
        notes,
        is_no=result.count < wanted,
    )  # fmt: skip


def _verdict(result: GangFitResult, written: Manifest) -> str:
    what = f"of {written.title} ({counted(result.members, 'pod')} each)"
    copies = counted(result.count, "more whole copy", "more whole copies")
    verb = "fits" if result.count == 1 else "fit"
    if result.refused_by == "limit":
        return f"At least {copies} {what} {verb} (--max-limit)."
    if not result.count:
        have = f"{result.placed:,} of its {counted(result.members, 'pod')} would have room"
        return f"No further whole copy of {written.title} fits: {have}."
    return f"{copies} {what} {verb}, on {counted(len(result.by_node), 'node')}."


def _findings(result: GangFitResult, written: Manifest) -> Iterator[str]:
    if result.refused_by == "admission":
        yield f"A pod of the next copy is refused: {result.stop}"
    elif result.refused_by == "scheduling":
        yield f"Pod {result.pod} of the next copy is not placed: {result.stop}"
        if result.count:
            yield f"{result.placed:,} of the {result.members:,} pods of this copy would have room."
    spec = mapping(written.value, "spec")
    minimum = spec.get("minAvailable")
    if isinstance(minimum, int) and 0 < minimum < result.members:
        yield f"It starts with {minimum:,} pods (minAvailable); here, all its pods count."
    if written.kind.kind == JOB.kind:
        queue = spec.get("queue") or "default"
        yield (
            f"The limits and the share of queue {queue} do not count here; fairlead explain "
            f"DUMP queue/{queue} shows them."
        )
    if result.waiting.words:
        yield result.waiting.words


def refuse_options(written: Manifest, *, autoscale: bool, preempt: bool) -> None:
    """Raise InputError for an option that cannot be used for whole copies of `written`.

    `autoscale` and `preempt` say whether --autoscale and --preempt are given.
    """
    for option, is_given in (("--autoscale", autoscale), ("--preempt", preempt)):
        if is_given:
            problem = f"cannot be used with a {written.kind.kind}; use a Pod or another workload"
            raise InputError(option, problem, object_name=written.title)

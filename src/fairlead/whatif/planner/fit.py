"""fit: how many more copies of a given pod fit, on which nodes, and why no further pod fits.

The pods are created one after another: admission sets their defaults, quotas count them, and each
pod goes through a scheduling cycle. The count ends at the first pod that admission refuses or that
fits no node. Pending pods of the snapshot are placed first, by preemption if necessary, as the
scheduler would do.

source: https://github.com/kubernetes-sigs/cluster-capacity; quotas and users' plugins are additions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json, items, text
from fairlead.api.objects import Pod, PodStatus
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.error import ApiError
from fairlead.engine.batch.info.group import group_name, labelled_group
from fairlead.engine.kubelet.volume_attachment import SingleNodeVolumes
from fairlead.engine.scheduling.decision import Failure, Placement
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.planner.cluster_model import KUBELET, ClusterModel
from fairlead.whatif.planner.created_pod import create_pod
from fairlead.whatif.planner.new_pod import LIKE, NewPods
from fairlead.whatif.planner.refusal import Refusal, refusals_of
from fairlead.whatif.planner.waiting_pods import (
    WaitingPodCounts,
    place,
    place_waiting_pods,
)
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    WORDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.experiment_run import FORBIDDEN
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.api_refusal import refusal_of

PODS_MAX: Final = 1_000_000
_PROGRESS_EVERY: Final = 64
_BUDGETS_NAMED_MAX: Final = 3


class BreachedBudget(Struct, frozen=True):
    """A `budget` that allowed only `allowed` evictions; `evicted` of its pods were preempted."""

    budget: str
    evicted: int
    allowed: int


class FitResult(Struct):
    """The result: `count` new pods have a node; `stop` says why the next pod has none."""

    count: int = 0
    stop: str = ""
    # "admission", "scheduling", "kubelet" (the kubelet of the chosen node), "error" (such as an
    # error in a plugin) or "limit".
    refused_by: str = ""
    # The number of new pods on each node, in order of first use.
    by_node: dict[str, int] = field(default_factory=dict)
    # The reasons why nodes refuse the next pod.
    refusals: list[Refusal] = field(default_factory=list)
    # Counts the pending pods of the snapshot, which were placed first.
    waiting: WaitingPodCounts = field(default_factory=WaitingPodCounts)
    victims: list[PodInfo] = field(default_factory=list)  # the pods that the new pods preempted
    # The budgets that do not allow the eviction of all `victims` that they cover.
    breached: list[BreachedBudget] = field(default_factory=list)
    # Claims that all new pods share, if their volumes can be attached to only one node at a time.
    disks: list[str] = field(default_factory=list)
    group: str = ""  # the group that the new pods name, if its pods start only together, else ""
    # Whether the next pod would fit after a preemption that was not allowed.
    fits_by_preemption: bool = False
    # Whether preemption was allowed, but the profile of the next pod has no plugin that preempts.
    lacks_preemption: bool = False
    pod: Pod | None = None  # the last new pod that has a node

    def placements(self) -> Iterator[tuple[Pod, str]]:
        """Yield (`self.pod`, node) for each new pod that has a node; all new pods are equal."""
        if self.pod is not None:
            for node, count in self.by_node.items():
                yield from repeat((self.pod, node), count)


def fit(
    model: ClusterModel,
    source: NewPods,
    progress: Progress,
    pods_max: int = PODS_MAX,
    *,
    preempts: bool = False,
) -> FitResult:
    """Place at most `pods_max` pods of `source` in `model`, until a pod is refused or fits no node.

    The new pods preempt other pods only if `preempts` is set. Raises InputError for a pod that no
    scheduler places or that a PreEnqueue plugin rejects. Also raises InputError for an invalid pod
    of a --pod file. An invalid copy of a workload's pod (--like) raises no error, but ends the
    count, like a pod that a quota refuses.
    """
    result = FitResult()
    progress.begin("placing waiting pods", 0)
    result.waiting = place_waiting_pods(model)
    progress.begin(f"placing {source.title}", 0)
    if not preempts:
        _place_new_pods(model, source, progress, pods_max, result)
        return result
    budgets = BudgetRoom(model.current_objects(), model.now)
    with model.preempting():
        _place_new_pods(model, source, progress, pods_max, result)
    result.breached = [
        BreachedBudget(limit.key, evicted, limit.now)
        for limit, evicted in budgets.breached(victim.pod for victim in result.victims)
    ]
    return result


def _place_new_pods(
    model: ClusterModel, source: NewPods, progress: Progress, pods_max: int, result: FitResult
) -> None:
    """Place pods until one is refused or fits no node, or `pods_max` are placed; fill `result`."""
    pods, volumes = _admitted(model, source), SingleNodeVolumes(model.cluster)
    while result.count < pods_max:
        try:
            pod = next(pods)
        except ApiError as refused:
            # A LimitRange can make the pods of a valid workload invalid, for example by a default
            # limit below their requests.
            if refused.code != FORBIDDEN and source.source != LIKE:
                title = f"Pod {source.namespace}/{source.name}"
                raise refusal_of(source.source, title, refused) from None
            result.refused_by, result.stop = "admission", refused.message
            return
        result.group = _group_of(model, pod)
        decision = place(model, pod, result.victims)
        if isinstance(decision, Failure) and decision.is_error:
            result.refused_by, result.stop = "error", decision.message
            return
        if isinstance(decision, Failure):
            by_kubelet = decision.plugins == (KUBELET,)
            result.refused_by = "kubelet" if by_kubelet else "scheduling"
            result.stop = decision.message
            may_preempt = model.profile_of(pod).may_preempt
            result.lacks_preemption = model.preempts and not may_preempt
            result.fits_by_preemption = not model.preempts and _fits_by_preemption(model, pod)
            # Changes are searched only if no new pod fits. Otherwise, the smallest change would
            # often be to delete a new pod.
            result.refusals = refusals_of(model, pod, changes=not result.count)
            return
        disks = list(volumes.claims_of(pod.pod))
        result.disks = [one for one in disks if one in result.disks or not result.count]
        node, result.pod = decision.node.name, pod.pod
        result.by_node[node] = result.by_node.get(node, 0) + 1
        result.count += 1
        if result.count % _PROGRESS_EVERY == 0:
            progress.reach(result.count, 0)
    result.refused_by = "limit"
    result.stop = f"--max-limit is {pods_max:,}"


def _fits_by_preemption(model: ClusterModel, pod: PodInfo) -> bool:
    """Return whether `pod`, which fits no node, fits after a preemption; the model is unchanged."""
    with model.hypothesis(), model.preempting():
        decision = place(model, pod, [])
    return isinstance(decision, Placement)


def _admitted(model: ClusterModel, source: NewPods) -> Iterator[PodInfo]:
    """Yield an endless series of new pods, in the form in which the API server stores pods.

    If the namespace has no quotas and the pods have no claims, later pods are copies of the first
    pod with the same template (`NewPods.kept_by`). Raises ApiError if a pod or claim is refused.
    Raises InputError if a pod has no scheduler, or if a PreEnqueue plugin rejects it.
    """
    has_quota = model.count_quotas(source.namespace)
    number = 0
    while True:
        created, kept = create_pod(model, source, number), source.kept_by(number)
        yield new_pod_info(model, created.pod, source)
        number += 1
        are_copies = not (created.claims or source.has_claims or has_quota)
        while are_copies and source.kept_by(number) is kept:
            yield new_pod_info(model, _copy(created.pod, source.name_of(number)), source)
            number += 1


def _copy(pod: Pod, name: str) -> Pod:
    meta = replace(pod.metadata, name=name, uid=f"{pod.metadata.uid}-{name}")
    return replace(pod, metadata=meta, status=PodStatus())


def new_pod_info(model: ClusterModel, pod: Pod, source: NewPods) -> PodInfo:
    """Return the PodInfo of `pod`, a new pod of `source`.

    Raises InputError if no scheduler places the pod, or if a PreEnqueue plugin rejects it.
    """
    info = model.pod_info(pod)
    if missing := model.missing_scheduler(info):
        raise InputError(source.source, missing, object_name=source.title)
    gated = model.profile_of(info).framework.run_pre_enqueue(info)
    if gated is not None:
        problem = (
            f"its pods are kept out of the scheduling queue by {gated.plugin}: {gated.message}"
        )
        raise InputError(source.source, problem, object_name=source.title)
    return info


def _group_of(model: ClusterModel, pod: PodInfo) -> str:
    """Return the `namespace/name` of the group whose pods start together with `pod`, or ""."""
    starts_together = (
        model.gang_of(pod) is not None or model.is_batch(pod) or labelled_group(pod.pod)
    )
    name = group_name(pod.pod) if starts_together else ""
    return f"{pod.namespace}/{name}" if name else ""


# --- the answer -------------------------------------------------------------------------------


def fit_answer(
    result: FitResult,
    source: NewPods,
    model: ClusterModel,
    name: str,
    notes: tuple[str, ...],
    wanted: int = 1,
) -> TabularAnswer:
    """Return the answer about `result`; `name` is the name of the snapshot.

    The answer is no if fewer than `wanted` pods fit.
    """
    facts: Json = {
        "pod": source.title,
        "namespace": source.namespace,
        "count": result.count,
        "replicas_today": source.replicas,
        "stop": {"by": result.refused_by, "message": result.stop},
        "fits_by_preemption": result.fits_by_preemption,
        "waiting_placed_first": result.waiting.placed,
        "waiting_without_node": result.waiting.without_node,
        "preempted_by_waiting": result.waiting.preempted,
        "preempted_without_node": result.waiting.lost,
        "breached_budgets": breaches_json(result.breached),
    }
    return TabularAnswer(
        "Fit",
        name,
        _verdict(result, source),
        tuple(_findings(result, source)),
        (_stops(result, model), _places(result, model), victims_table(result.victims)),
        facts,
        notes,
        is_no=result.count < wanted,
    )


def _findings(result: FitResult, source: NewPods) -> Iterator[str]:
    """Yield the sentences below the verdict."""
    yield from _stop(result)
    if too_many := source.above_maximum(result.count):
        yield too_many
    if source.missing_revision:
        yield source.missing_revision
    if source.awaited and result.count:
        yield (
            f"The StatefulSet creates no further pod until {source.namespace}/{source.awaited} is "
            "ready (podManagementPolicy)."
        )
    if result.group:
        yield (
            f"The pods name PodGroup {result.group} and start only with it; here, each is placed "
            "alone."
        )
    if result.disks:
        yield (
            "Only the pods on one node can start, because the volume of claim "
            f"{result.disks[0]} is attached to one node at a time."
        )
    if result.count and (claims := _shared_claims(source)):
        which = "claim" if len(claims) == 1 else "claims"
        yield (
            f"All these pods use the same devices, those of the {which} {listed(claims, 3)}. With "
            "resourceClaimTemplateName instead of resourceClaimName, each pod would need devices "
            "of its own."
        )
    if result.waiting.words:
        yield result.waiting.words
    if result.victims:
        pods = counted(len(result.victims), "pod")
        yield f"{pods} of lower priority would be evicted."
    if result.breached:
        yield breach_words(result.breached)


def _shared_claims(source: NewPods) -> list[str]:
    """Return the ResourceClaims that all pods of `source` share."""
    claims = items(source.pod(0), "spec", "resourceClaims")
    return [name for one in claims if (name := text(one, "resourceClaimName"))]


def _stop(result: FitResult) -> Iterator[str]:
    """Yield sentences that say why no further pod fits, and whether preemption would help."""
    if result.refused_by == "admission":
        yield f"The next pod is refused: {result.stop}"
    elif result.refused_by in ("scheduling", "error"):
        yield f"The next pod is not placed: {result.stop}"
    elif result.refused_by == "kubelet":
        yield f"The next pod does not run: {result.stop}."
    if result.fits_by_preemption:
        yield "With --preempt, it is placed, and pods of lower priority are evicted."
    if result.lacks_preemption:
        yield "--preempt has no effect, because the profile of the pod has no plugin that preempts."


def _verdict(result: FitResult, source: NewPods) -> str:
    what = f"of {source.title}"
    more, verb = counted(result.count, "more pod"), "fits" if result.count == 1 else "fit"
    if result.refused_by == "limit":
        return f"At least {more} {what} {verb} (--max-limit){source.in_all(result.count)}."
    if result.refused_by == "error":
        fails = "the scheduling cycle of the next pod fails"
        if not result.count:
            return f"It is unknown whether a further pod {what} fits: {fails}."
        return f"At least {more} {what} {verb}; then {fails}."
    if not result.count:
        return f"No further pod {what} fits."
    nodes = counted(len(result.by_node), "node")
    return f"{more} {what} {verb}, on {nodes}{source.in_all(result.count)}."


def breach_words(breached: Iterable[BreachedBudget]) -> str:
    """Return a sentence with the name and the evictions of each budget that preemptions breach."""
    named = [f"{one.budget} ({one.evicted:,} evicted, {one.allowed:,} allowed)" for one in breached]
    return f"This breaches budgets: {listed(named, _BUDGETS_NAMED_MAX)}."


def breaches_json(breached: Iterable[BreachedBudget]) -> list[Json]:
    """Return the JSON of budgets that preemptions breach."""
    return [
        {"budget": one.budget, "evicted": one.evicted, "allowed": one.allowed} for one in breached
    ]


def _stops(result: FitResult, model: ClusterModel) -> ResultTable:
    rows = [
        {"plugin": one.plugin, "reason": one.reason, "nodes": one.nodes, "change": one.change}
        for one in result.refusals
    ]
    columns: tuple[ResultColumn, ...] = (
        ResultColumn("nodes", "nodes", NUMBER),
        ResultColumn("plugin", "refused by", NAME),
        ResultColumn("reason", "because", WORDS),
    )
    if not result.count:
        columns += (ResultColumn("change", "would fit after", WORDS),)
    title = f"why the next pod fits on none of {counted(model.table.count, 'node')}"
    if result.refused_by == "kubelet":
        title = "what refuses the next pod"
    return ResultTable("refusals", title, columns, rows)


def _places(result: FitResult, model: ClusterModel) -> ResultTable:
    rows = [
        {"node": name, "zone": zone_of(model, name), "pods": count}
        for name, count in sorted(result.by_node.items(), key=lambda item: (-item[1], item[0]))
    ]
    columns = (
        ResultColumn("node", "node", NAME),
        ResultColumn("zone", "zone", NAME, 1),
        ResultColumn("pods", "new pods", NUMBER),
    )
    return ResultTable("nodes", "where they go", columns, rows)


def zone_of(model: ClusterModel, node: str) -> str:
    """Return the zone label of a node; "" if the node has no zone label."""
    return model.node(node).labels.get(ZONE, "")


def victims_table(victims: Iterable[PodInfo | PodEnd]) -> ResultTable:
    """Return a table of preempted pods."""
    rows = [{"pod": pod.key, "priority": pod.priority} for pod in victims]
    columns = (ResultColumn("pod", "pod", NAME), ResultColumn("priority", "priority", NUMBER))
    return ResultTable("victims", "evicted by preemption", columns, rows)

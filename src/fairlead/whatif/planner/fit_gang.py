"""fit of a Volcano Job or a JobSet: how many more whole copies of it fit, with all their pods.

The copies are placed one after another: first all pods of one copy, then all pods of the next. The
count ends at the first copy with a pod that admission refuses or that fits no node; the pods of
this copy are removed again. Each pod goes through a scheduling cycle of kube-scheduler's plugins.
Limits and shares of the queues of a batch scheduler do not count.

If pod affinity keeps the pods of a Job in one domain, such as a rack, the node of the first pod
determines the domain. kube-scheduler does not check whether the domain has room for the other pods.
If the domain lacks room, the copy is tried again without this domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import mapping
from fairlead.api.objects import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import JOB, PRIORITY_CLASS
from fairlead.engine.scheduling.decision import Failure
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.change.owned_object import owned_by
from fairlead.whatif.change.pod_priority import PodPriorities
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.created_pod import CreatedPod, create_pod
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
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests

COPIES_MAX: Final = 10_000
_PODS_MAX: Final = 100_000  # pods of one copy
_DOMAINS_MAX: Final = 100  # attempts for one copy
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
    """The result: `count` copies of `members` pods fit; `stop` says why no further copy fits."""

    members: int
    count: int = 0
    placed: int = 0  # the number of pods of the next copy that have room
    pod: str = ""  # the name of the first pod of the next copy without room
    stop: str = ""
    refused_by: str = ""  # "admission", "scheduling" or "limit"
    # The number of pods of the copies that fit, by node.
    by_node: dict[str, int] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    # Counts the pending pods that were placed first.
    waiting: WaitingPodCounts = field(default_factory=WaitingPodCounts)
    # Domains, such as `rack a`, that had room for the first pod of a copy but not for all its pods,
    # so that another domain was used.
    small_domains: dict[str, None] = field(default_factory=dict)


# (number of the Job in the copy, topology key, value) of a domain without room for the Job
_Domain = tuple[int, str, str]


class _Attempt(Struct):
    """The placed pods of a copy, by node, and the first pod without room.

    If all pods were placed, `refused_by` is "". `job` is the number of the Job of the pod without
    room. `first` is the first pod of this Job with its node, None if it has no node.
    """

    by_node: dict[str, int] = field(default_factory=dict)
    refused_by: str = ""
    stop: str = ""
    pod: str = ""
    refusals: list[Refusal] = field(default_factory=list)
    job: int = 0
    first: tuple[PodInfo, str] | None = None


def fit_gangs(
    model: ClusterModel, written: Manifest, progress: Progress, copies_max: int = COPIES_MAX
) -> GangFitResult:
    """Place at most `copies_max` copies of `written`, a Volcano Job or a JobSet, in `model`.

    Raises InputError if `written` is invalid, or has no pods or too many pods.
    """
    if mapping(written.value, "spec").get("managedBy") and not owned_by(written):
        problem = "names another controller, so no pods are created in this cluster"
        raise written.refuse(problem, field="spec.managedBy")
    members = sum(count for _, count in _templates(model, written, 0))
    if not 0 < members <= _PODS_MAX:
        raise written.refuse(f"has {members:,} pods; expected 1 to {_PODS_MAX:,}")
    result = GangFitResult(members)
    progress.begin("placing waiting pods", 0)
    result.waiting = place_waiting_pods(model)
    progress.begin(f"placing copies of {written.title}", 0)
    model.count_quotas(written.ref.namespace)
    while result.count < copies_max:
        found = _place_in_some_domain(model, written, result)
        if found.refused_by:
            result.placed = sum(found.by_node.values())
            result.pod, result.stop = found.pod, found.stop
            result.refused_by, result.refusals = found.refused_by, found.refusals
            return result
        for node, pods in found.by_node.items():
            result.by_node[node] = result.by_node.get(node, 0) + pods
        result.count += 1
        progress.reach(result.count, 0)
    result.refused_by, result.stop = "limit", f"--max-limit is {copies_max:,}"
    return result


def _place_in_some_domain(
    model: ClusterModel, written: Manifest, result: GangFitResult
) -> _Attempt:
    """Place the next copy, and return the attempt that placed it.

    If a domain is too small for a Job, the copy is tried without this domain. If no attempt places
    the copy, return the first attempt, in which the pods go where kube-scheduler would put them.
    """
    copy = _Copy(model, written, result.count)
    first: _Attempt | None = None
    too_small: list[_Domain] = []
    for _ in range(_DOMAINS_MAX):
        with model.hypothesis() as trial:
            found = copy.place(too_small)
            if not found.refused_by:
                trial.commit()
                result.small_domains |= {f"{key} {value}": None for _, key, value in too_small}
                return found
        first = first or found
        domain = _domain_of(model, found)
        if domain is None:
            break
        too_small.append(domain)
    assert first is not None
    return first


class _Copy:
    """One copy of the Volcano Job or JobSet; each pod of the copy is created at most once."""

    def __init__(self, model: ClusterModel, written: Manifest, number: int) -> None:
        self._model = model
        self._templates = list(_templates(model, written, number))
        self._created: dict[tuple[int, int], CreatedPod] = {}  # by number of the Job and the pod

    def place(self, too_small: Sequence[_Domain]) -> _Attempt:
        """Place the pods of the copy outside the domains `too_small`."""
        model, found = self._model, _Attempt()
        for job, (template, count) in enumerate(self._templates):
            found.job, found.first = job, None
            outside = tuple(
                NodeSelectorRequirement(key, "NotIn", (value,))
                for number, key, value in too_small
                if number == job
            )
            for at in range(count):
                try:
                    created = self._pod(job, at)
                except ApiError as refused:
                    found.refused_by, found.stop = "admission", refused.message
                    found.pod = template.name_of(at)
                    return found
                pod = new_pod_info(model, _restricted(created, outside), template)
                decision = place(model, pod, [])
                if isinstance(decision, Failure):
                    found.refused_by, found.stop = "scheduling", decision.message
                    found.pod, found.refusals = pod.pod.metadata.name, refusals_of(model, pod)
                    return found
                node = decision.node.name
                found.first = found.first or (pod, node)
                found.by_node[node] = found.by_node.get(node, 0) + 1
        return found

    def _pod(self, job: int, at: int) -> Pod:
        """Return the pod number `at` of the Job number `job`; its claims are in the model.

        Raises ApiError if admission refuses the pod.
        """
        known = self._created.get((job, at))
        if known is None:
            known = create_pod(self._model, self._templates[job][0], at)
            self._created[job, at] = known
        else:
            for claim in known.claims:  # an earlier attempt has put them, and was reverted
                self._model.put(claim)
        return known.pod


def _domain_of(model: ClusterModel, found: _Attempt) -> _Domain | None:
    """Return the topology domain to which pod affinity restricts the Job of the pod without room.

    If pod affinity states several domains, such as a rack and its zone, return the domain with the
    fewest nodes: if the rack has no room, another rack of the zone may have room. Return None if
    there is no such domain, or if no pod of the Job has a node.
    """
    if found.refused_by != "scheduling" or found.first is None:
        return None
    pod, node = found.first
    affinity = pod.pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return None
    labels = model.node(node).labels
    terms = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    keys = sorted({term.topology_key for term in terms if term.topology_key in labels})
    sizes = Counter(
        key
        for info in (model.table.nodes() if len(keys) > 1 else ())
        for key in keys
        if info.labels.get(key) == labels[key]
    )
    key = min(keys, key=lambda key: (sizes[key], key), default=None)
    return None if key is None else (found.job, key, labels[key])


def _restricted(pod: Pod, requirements: tuple[NodeSelectorRequirement, ...]) -> Pod:
    """Return `pod` with `requirements` added to its required node affinity."""
    if not requirements:
        return pod
    affinity = pod.spec.affinity or Affinity()
    own = affinity.node_affinity or NodeAffinity()
    required = own.required_during_scheduling_ignored_during_execution
    terms = (NodeSelectorTerm(),) if required is None else required.node_selector_terms
    selector = NodeSelector(
        tuple(
            replace(term, match_expressions=(*term.match_expressions, *requirements))
            for term in terms
        )
    )
    own = replace(own, required_during_scheduling_ignored_during_execution=selector)
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=own)))


def _templates(
    model: ClusterModel, written: Manifest, number: int
) -> Iterator[tuple[NewPods, int]]:
    """Yield (template, number of pods) for each Job of the copy number `number` of `written`."""
    classes = PodPriorities(model.store.storage.items(PRIORITY_CLASS))
    parts = owned_by(written, name=f"{written.ref.name}-fit-{number}", priorities=classes)
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
            "small_domains": list(result.small_domains),
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
    if result.small_domains:
        domains = listed(list(result.small_domains), 3)
        yield (
            "kube-scheduler may put the first pod of a copy into a domain without room for the "
            f"other pods ({domains}); the copy then waits. The count assumes a domain with room."
        )
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

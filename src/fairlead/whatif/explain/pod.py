"""Explains the scheduling of one pod of a snapshot: the verdict of every node.

A pod that already has a node is evaluated as if it were pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from fairlead.api.json import Json, text
from fairlead.api.nodes.taint import NO_EXECUTE, OUT_OF_SERVICE
from fairlead.api.objects import ApiObject, Node, Pod
from fairlead.api.pods.facts import (
    condition,
    foreign_finalizers,
    is_daemon_pod,
    is_static,
    is_terminal,
    is_terminating,
)
from fairlead.api.pods.requests import RESIZE_PENDING
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.batch.info.group import labelled_group
from fairlead.engine.batch.scheduler_name import FAIRLEAD
from fairlead.engine.core.command import CallExtender, ObjectRef, pod_ref
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import ExtenderIgnored, Record
from fairlead.engine.core.status import Code, Status
from fairlead.engine.core.stimulus import CallOutcome, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.kubelet.volume_attachment import SingleNodeVolumes
from fairlead.engine.nodelifecycle.eviction.taint_eviction import ENDLESS, tolerated_s
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import NOT_ENOUGH
from fairlead.engine.scheduling.compose import BuiltProfile, PluginHandle, Shared, build_profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.evaluation import (
    Evaluation,
    PreemptionEvaluation,
    RoomEvaluation,
    evaluate,
)
from fairlead.engine.scheduling.extender.filter import REJECTOR
from fairlead.engine.scheduling.preemption.policy import DISRUPTION_TARGET
from fairlead.engine.scheduling.remedy.change import Remedy
from fairlead.engine.scheduling.remedy.resources import capacity_problem
from fairlead.engine.scheduling.remedy.search import find_remedy
from fairlead.engine.scheduling.remedy.selector_correction import (
    SelectorCorrection,
    find_correction,
)
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.daemon_set.rule import target_node
from fairlead.engine.workloads.pod_control.scale_down import is_ready
from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, unsimulated_in_plan
from fairlead.whatif.configuration.batch.batch_config import DEPLOYED_NOTE
from fairlead.whatif.configuration.other_scheduler import (
    no_scheduler,
    other_schedulers,
    rules_note,
    unknown_schedulers,
    with_other_schedulers,
)
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.explain.device_shortage import device_shortages
from fairlead.whatif.explain.node_requirement import correction_sentences, unmet_requirements
from fairlead.whatif.explain.pod_group import NewNodesForGroup, new_nodes_for_group, try_pod_group
from fairlead.whatif.explain.preemption import awaited_victims, victim_note, waiting_note
from fairlead.whatif.explain.readiness import why_unready
from fairlead.whatif.explain.rival import nodes_after_rivals, refusal_after_rivals
from fairlead.whatif.explain.unbound_claim import unbound_claims
from fairlead.whatif.explain.volume_place import volume_places
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.option_type import require_type
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.created_pod import create_pod
from fairlead.whatif.planner.new_pod import NewPods
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.planner.refusal import (
    REMEDIES_MAX,
    NewNode,
    find_new_node,
    kept_pods_of,
    shortage,
    within_limit_ranges,
)
from fairlead.whatif.result.result_json import API_VERSION
from fairlead.whatif.run.pod_timing.stuck_pod import is_stuck, stuck_words
from fairlead.whatif.run.run_note import ignored_call_note
from fairlead.whatif.snapshot.api_refusal import refusal_of
from fairlead.whatif.snapshot.dump_note import IGNORED_GROUPS
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.kueue import ADMISSION_GATE, admission_sentence
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.worlds.extender.extender_caller import ExtenderCaller, reaching
from fairlead.worlds.extender.request import held_by, request_body

SOURCE: Final = "explain"

_STATIC_NOTE: Final = (
    "This is a static pod. The kubelet of its node runs it there, and no scheduler can move it."
)

_UNSCHEDULABLE: Final = Code.UNSCHEDULABLE


class Explanation(Struct, frozen=True):
    """The evaluation of a pod."""

    pod: str
    node: str  # the pod's current node, "" for a pending pod
    priority: int
    evaluation: Evaluation
    # Maps infeasible nodes to small changes that would make them feasible. Nodes that are not Ready
    # and nodes that an extender rejected have no remedy. The search covers at most REMEDIES_MAX of
    # the other infeasible nodes.
    remedies: dict[str, Remedy]
    exceeds_remedies_max: bool = False  # whether there are more such nodes than REMEDIES_MAX
    # {node: why it is too small for the pod even without other pods}
    too_small: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()  # the assumptions of the explanation
    # For a pending pod that fits no node, says whether a copy of an existing node would take the
    # pod (`find_new_node`). None for other pods, and for every pod if the scheduler has extenders.
    new_node: NewNode | None = None
    # The pod's PodGroup if the group cannot start, so that the scheduler does not bind the pod;
    # otherwise "".
    held_group: str = ""
    is_terminating: bool = False  # whether the pod is being deleted
    is_static: bool = False  # whether a kubelet runs the pod without a scheduler
    # If a pending pod fits no node, sentences about the cause (`unmet_requirements`). The sentences
    # name labels that no node has and how to correct them, or taints of nodes that would otherwise
    # fit.
    unmet: tuple[str, ...] = ()
    # How many new nodes would let `held_group` start. None if no node or copy of a node would take
    # the pod itself.
    for_group: NewNodesForGroup | None = None
    # If a pending pod fits a node, a sentence about other pending pods that can take its room
    # first; "" if there are no such pods.
    after_rivals: str = ""
    # Larger than `new_node`, so that fewer copies of it are enough (`fewer_larger_nodes`); None if
    # there is no such node.
    larger_node: NewNode | None = None
    # Sentences about a pod that has a node. They say that the pod is not ready, is terminating, is
    # evicted because of a taint, waits for a volume, or is on a node that does not exist.
    state: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the pod and its node; a text with all verdicts and scores would be very long."""
        shown = listed(self.evaluation.choices) or "no node"
        where = f"on {self.node}" if self.node else "pending"
        return f"<Explanation: {self.pod} is {where}; the scheduler would choose {shown}>"


def explain_new_pod(snapshot: Snapshot, new: NewPods, config: SchedulerConfig) -> Explanation:
    """Return the scheduler's evaluation of the first pod that the template `new` would create.

    Admission first processes the pod and its claims as in the API server. Raises InputError if
    admission refuses the pod or a claim.
    """
    model = ClusterModel(snapshot, config)
    # The pod of a StatefulSet keeps its own name, because the names of its claims depend on it.
    name = new.name if new.stateful_set is None else ""
    model.count_quotas(new.namespace)
    try:
        created = create_pod(model, new, 0, name)
    except ApiError as refused:
        raise refusal_of(new.source, new.title, refused) from None
    new_controller = [] if created.controller is None else [created.controller]
    objects, pod = [*model.objects, *new_controller, *created.claims], created.pod
    return _explanation(new.source, model, pod, objects, *_with_profile(config, snapshot, pod))


def explain_pod(
    snapshot: Snapshot, target: str, config: SchedulerConfig | None = None
) -> Explanation:
    """Return the scheduler's evaluation of the pod `target` (`pod/NAMESPACE/NAME`).

    If `config` is None, the scheduler has the default configuration.

    Raises InputError if the pod does not exist or has completed.
    """
    require_type("explain_pod", "snapshot", snapshot, Snapshot)
    require_type("explain_pod", "target", target, str)
    if config is not None:
        require_type("explain_pod", "config", config, SchedulerConfig)
    config = config or read_scheduler_config(None)
    inventory = snapshot.inventory()
    manifest = inventory.find(SOURCE, target, expected=(POD,))
    if manifest.kind is not POD:
        raise InputError(SOURCE, f"{manifest.title} is not a Pod")
    model = ClusterModel(snapshot, config)
    found = next(o for o in model.objects if isinstance(o, Pod) and o.key == manifest.ref.key)
    if is_terminal(found):
        kept = foreign_finalizers(found) if is_terminating(found) else ()
        why = f"; its deletion waits for finalizer {kept[0]}" if kept else ""
        raise manifest.refuse(
            f"{_end_of(found, manifest)} and is not scheduled again{why}", field="status.phase"
        )
    if missing := "" if found.spec.node_name else model.missing_scheduler(model.pod_info(found)):
        return _without_scheduler(found, missing, config)
    others = [one for one in model.objects if one is not found]
    config, note = _with_profile(config, snapshot, found)
    explanation = _explanation(manifest.source, model, found, others, config, note)
    is_gated = any(gate.name == ADMISSION_GATE for gate in found.spec.scheduling_gates)
    why = admission_sentence(manifest, inventory) if is_gated else ""
    more = (*((why,) if why else ()), *_preemption_notes(model, model.pod_info(found)))
    state: tuple[str, ...] = ()
    if explanation.node:
        info = model.find_node(explanation.node)
        node = None if info is None else info.node
        state = (
            *_state(found, explanation.node, node, inventory, model.now),
            *_waits_for_volume(found, model.cluster),
        )
        if explanation.node not in explanation.evaluation.choices:
            more = (*more, *_binding_note(found))
    else:
        more = (*more, *unbound_claims(found, inventory, model.now))
    if explanation.evaluation.fit_error and not explanation.node:
        more = (*more, *volume_places(found, inventory))
        more = (*more, *unsimulated_in_plan(snapshot.manifests, ADDS_NODES))
    return replace(explanation, state=state, notes=(*explanation.notes, *more))


def _without_scheduler(pod: Pod, missing: str, config: SchedulerConfig) -> Explanation:
    """Return the explanation of a pending `pod` that no scheduler takes; `missing` is the reason.

    The profiles of `config` do not include the pod's schedulerName.
    """
    name = pod.spec.scheduler_name
    names = [profile.scheduler_name for profile in config.profiles]
    why = f"The pod stays pending: {missing}; {known_names(name, names)}"
    return Explanation(
        pod.key,
        "",
        pod.spec.priority or 0,
        Evaluation(fit_error=why),
        {},
        notes=tuple(unknown_schedulers([name])),
        is_terminating=is_terminating(pod),
    )


def _end_of(pod: Pod, manifest: Manifest) -> str:
    """Return how the terminal `pod` ended, with the reason and message of its status.

    Example: `has failed (Evicted: The node was low on resource: memory.)`. If the status has no
    reason, the reason and the message of the condition DisruptionTarget are used.
    """
    status = manifest.value.get("status") or {}
    reason, message = text(status, "reason"), text(status, "message")
    target = condition(pod, DISRUPTION_TARGET)
    if not reason and target is not None and target.status == "True":
        reason, message = target.reason, target.message
    because = ": ".join(filter(None, (reason, message.strip())))
    verb = "has failed" if pod.status.phase == "Failed" else "has completed"
    return f"{verb} ({because})" if because else verb


def _preemption_notes(model: ClusterModel, pod: PodInfo) -> Iterator[str]:
    """Yield notes if the scheduler has preempted `pod`, or other pods for `pod`."""
    if victims := awaited_victims(pod, model.pods()):
        yield waiting_note(pod, victims)
    if note := victim_note(pod, model.pods()):
        yield note


def _state(
    pod: Pod, name: str, node: Node | None, inventory: Inventory, now: Instant
) -> Iterator[str]:
    """Yield sentences if the node `name` of `pod` is missing, or `pod` is terminating or not ready.

    `node` is the node; None if it is missing. `now` is the time of the dump.
    """
    if node is None:
        # upstream: pkg/controller/podgc/gc_controller.go: gcOrphaned
        yield f"Node {name} does not exist, so pod garbage collection deletes the pod."
    elif is_terminating(pod):
        kept, why = foreign_finalizers(pod), ""
        if not takes_pods(node):
            why = (
                "; it stays until the kubelet of its node answers, or the node is deleted or "
                f"tainted {OUT_OF_SERVICE}"
            )
        elif kept:
            why = f"; finalizer {kept[0]} keeps it until another program removes the finalizer"
        elif is_stuck(pod, node, now):
            why = f"; {stuck_words(pod)}"
        yield f"The pod is terminating (deletionTimestamp {pod.metadata.deletion_timestamp}){why}."
    elif condition(pod, "Ready") is not None and not is_ready(pod):
        yield f"The pod is not ready: {why_unready(inventory, pod_ref(pod), node)}."
    if node is not None and not is_terminating(pod) and (note := _eviction_note(pod, node)):
        yield note


def _eviction_note(pod: Pod, node: Node) -> str:
    """Return a note about when NoExecute taints of `node` evict `pod`; "" without such taints.

    upstream: pkg/controller/tainteviction/taint_eviction.go: processPodOnNode
    """
    taints = tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
    if not taints:
        return ""
    limits = {taint: tolerated_s((taint,), pod.spec.tolerations) for taint in taints}
    ends = [(limit, taint) for taint, limit in limits.items() if limit is not ENDLESS]
    if not ends:
        noun = "taint" if len(taints) == 1 else "taints"
        which = f"NoExecute {noun} {listed([taint.key for taint in taints])}"
        return f"The pod tolerates the {which} of its node without limit, and stays."
    limit, taint = min(ends, key=lambda end: end[0])
    if limit < 0:
        return (
            f"The pod does not tolerate the NoExecute taint {taint.key} of its node: it is evicted."
        )
    after = for_readers(seconds(limit))
    when = f"{after} after the taint was added"
    if taint.time_added:
        when = f"at {format_timestamp(parse_timestamp(taint.time_added) + seconds(limit))}"
    return (
        f"The pod tolerates the NoExecute taint {taint.key} of its node for {after}. It is evicted "
        f"{when}, unless the taint is removed before."
    )


def _binding_note(pod: Pod) -> tuple[str, ...]:
    """Return a note about when a scheduler bound `pod`; () if none did or the time is unknown."""
    found = condition(pod, "PodScheduled")
    if is_static(pod) or found is None or not found.last_transition_time:
        return ()
    what = "This evaluation uses the nodes and pods of the dump, which may have been different then"
    return (f"The pod was bound at {found.last_transition_time}. {what}.",)


def _resize_notes(pod: Pod) -> tuple[str, ...]:
    """Return a note if `pod` still runs with its resources from before a resize, else ()."""
    found = condition(pod, RESIZE_PENDING)
    if found is None or found.status != "True":
        return ()
    because = f" ({found.reason}: {found.message})" if found.message else f" ({found.reason})"
    what = "This evaluation uses the requests of the resize; the pod runs with its former resources"
    return (f"The pod's resize is pending{because}. {what}.",)


def _waits_for_volume(pod: Pod, cluster: Cluster) -> Iterator[str]:
    """Yield a sentence if `pod` waits on its node for a volume that a pod on another node uses."""
    if not pod.spec.node_name or pod.status.phase != "Pending":
        return
    volumes = SingleNodeVolumes(cluster)
    holder = volumes.holder_of(pod)
    if holder is not None:
        error = volumes.attach_error(pod, cluster.now).note
        yield (
            f"The pod has not started on {pod.spec.node_name}: {error} on "
            f"{holder.pod.spec.node_name}."
        )


def _group_notes(pod: Pod, config: SchedulerConfig) -> Iterator[str]:
    """Yield a note if `pod` names a PodGroup that the evaluation ignores."""
    if pod.spec.scheduling_group is not None:
        if not config.version.pod_groups:
            yield IGNORED_GROUPS
    elif name := labelled_group(pod):
        group = f"{pod.metadata.namespace}/{name}"
        yield (
            f"The pod names PodGroup {group}, but is evaluated alone here; fairlead explain "
            f"podgroup/{group} evaluates the group."
        )


def _with_profile(
    config: SchedulerConfig, snapshot: Snapshot, pod: Pod
) -> tuple[SchedulerConfig, str]:
    """Return (configuration to use for `pod`, note about the profile that was added).

    A profile is added to `config` if `pod` belongs to another scheduler, whose rules are unknown.
    Otherwise, the result is (`config`, "").
    """
    name = pod.spec.scheduler_name
    others = other_schedulers(config, snapshot.manifests)
    config, guessed = with_other_schedulers(config, (name,) if name in others else (), ())
    return config, rules_note(guessed) if guessed else ""


def _explanation(
    source: str,
    model: ClusterModel,
    found: Pod,
    others: list[ApiObject],
    config: SchedulerConfig,
    rules: str,
) -> Explanation:
    pending = _as_pending(found)
    built = _build(source, config, pending, others)
    cluster = built.framework.cluster
    info = PodInfo(pending, cluster.shapes.shape_of(pending))
    if pending.spec.scheduling_group is not None:
        cluster.pod_groups.put_member(info, is_scheduled=False)
    with reaching(config.extenders) as extenders:
        calls = _extender_calls(extenders, model.store, info)
        evaluation = evaluate(built, info, calls, ignored := _IgnoredCalls())
    selector = model.runtime_class_selector(pending)
    correction = find_correction(pending, (n.node for n in cluster.table.nodes()), selector)
    remedies, exceeds_max = _remedies(built, info, evaluation, model, correction)
    node, name = found.spec.node_name, found.spec.scheduler_name
    is_guessed = all(profile.scheduler_name != name for profile in config.profiles)
    held_group = ""
    notes: tuple[str, ...] = (DEPLOYED_NOTE,) if is_guessed else (rules,) if rules else ()
    if is_static(found):
        notes = (_STATIC_NOTE, *notes)
    notes += _resize_notes(found)
    notes += tuple(_group_notes(found, config))
    if config.version.pod_groups and evaluation.gated is None and not node and not config.extenders:
        trial = try_pod_group(built, info)
        notes += () if trial is None else (trial.note,)
        held_group = "" if trial is None or trial.can_start else trial.group
    notes += (*preemption_notes(evaluation), *ignored.notes)
    if evaluation.fit_error and not node:
        notes += tuple(device_shortages(info, cluster, _without_devices(evaluation)))
    new_node, larger_node, unmet = None, None, tuple[str, ...]()
    if evaluation.fit_error and not node:
        unmet = (*unmet_requirements(built, info), *correction_sentences(correction))
    if evaluation.fit_error and not node and not config.extenders:
        new_node = find_new_node(model, model.pod_info(pending))
        if new_node is not None and not new_node.refusal:
            waiting = model.pod_info(pending)
            new_node, larger_node = nodes_after_rivals(model, waiting, new_node)
    after_rivals, for_group = "", None
    if evaluation.via and not node and not held_group and not config.extenders:
        after_rivals = refusal_after_rivals(model, model.pod_info(pending))
    if held_group and (like := _node_to_copy(evaluation, new_node)):
        for_group = new_nodes_for_group(model, info, like)
    return Explanation(
        found.key,
        node,
        info.priority,
        evaluation,
        remedies,
        exceeds_max,
        _too_small(built, info, evaluation),
        notes,
        new_node,
        held_group,
        is_terminating(found),
        is_static(found),
        unmet,
        for_group,
        after_rivals,
        larger_node,
    )


def _node_to_copy(evaluation: Evaluation, new_node: NewNode | None) -> str:
    """Return the name of a node whose copy would take the pod; "" if there is none."""
    if new_node is not None and not new_node.refusal:
        return new_node.like
    return min((name for name, why in evaluation.verdicts.items() if why is None), default="")


def preemption_notes(evaluation: Evaluation) -> tuple[str, ...]:
    """Return a note if a node would be feasible without its pods, but no pod is preempted.

    The note states the cause. The result is () if `evaluation.preemption` is set, because that
    field states the cause, too.
    """
    may_help = any(
        one is not None and one.code is _UNSCHEDULABLE for one in evaluation.verdicts.values()
    )
    is_noted = evaluation.no_preemption and may_help and evaluation.preemption is None
    return (evaluation.no_preemption,) if is_noted else ()


def _without_devices(evaluation: Evaluation) -> set[str]:
    """Return the nodes on which the claims of the pod cannot be allocated."""
    verdicts = evaluation.verdicts.items()
    return {name for name, why in verdicts if why is not None and NOT_ENOUGH in why.reasons}


def _too_small(built: BuiltProfile, pod: PodInfo, evaluation: Evaluation) -> dict[str, str]:
    """Return {infeasible node: why it is too small for `pod`, even without other pods}."""
    table = built.framework.cluster.table
    refused = (table.find(name) for name, why in evaluation.verdicts.items() if why is not None)
    problems = {
        node.name: capacity_problem(built.framework, pod, node)
        for node in refused
        if node is not None
    }
    return {name: problem for name, problem in problems.items() if problem}


def _remedies(
    built: BuiltProfile,
    pod: PodInfo,
    evaluation: Evaluation,
    model: ClusterModel,
    correction: SelectorCorrection | None,
) -> tuple[dict[str, Remedy], bool]:
    """Return (remedies by node, whether more than REMEDIES_MAX nodes could have a remedy).

    The smallest remedies come first. The search covers the REMEDIES_MAX nodes that lack the
    smallest fraction of the pod's requests. No remedy violates a LimitRange in `model`. No remedy
    removes a label that the pod's RuntimeClass in `model` adds to the pod's nodeSelector.
    `correction` corrects the typing errors in the pod's node selector; None if there are none. The
    pod of a DaemonSet has a remedy only for its own node.
    """
    table, found = built.framework.cluster.table, {}
    own = target_node(pod.pod) if is_daemon_pod(pod.pod) else ""
    refused = [
        (node, why)
        for name, why in sorted(evaluation.verdicts.items())
        # An extender's rejection (REJECTOR) has no remedy, because its rules are unknown. Nor is
        # there a remedy for nodes that take no pods: a changed pod would not start on them.
        if why is not None and why.plugin != REJECTOR and own in ("", name)
        if (node := table.find(name)) is not None and takes_pods(node.node)
    ]
    is_kept, selector = kept_pods_of(pod), model.runtime_class_selector(pod.pod)
    admits = within_limit_ranges(model, pod.pod)
    refused.sort(key=lambda item: shortage(pod, item[0]))
    for node, why in refused[:REMEDIES_MAX]:
        remedy = find_remedy(
            built.framework, pod, node, why,
            keeps=is_kept, kept_selector=selector, correction=correction, admits=admits,
        )  # fmt: skip
        if remedy is not None:
            found[node.name] = remedy
    smallest_first = sorted(found.items(), key=lambda item: len(item[1].changes))
    return dict(smallest_first), len(refused) > REMEDIES_MAX


class _IgnoredCalls:
    """A reporter that makes a note of each failed call of an extender if the failure is ignored."""

    def __init__(self) -> None:
        self._notes: dict[str, None] = {}  # a call may be repeated

    @property
    def notes(self) -> Iterable[str]:
        """The notes, each once, in the order of the calls."""
        return self._notes

    def report(self, record: Record) -> None:
        """Note `record` if it is about an ignored call."""
        if isinstance(record, ExtenderIgnored):
            self._notes[ignored_call_note(record.url, record.message)] = None


def _extender_calls(
    extenders: ExtenderCaller, store: Store, pod: PodInfo
) -> Callable[[CallExtender], CallOutcome]:
    """Return a function that calls extenders about `pod`; requests omit the pod's nodeName."""

    def find(ref: ObjectRef) -> Json | None:
        found = held_by(store, ref)
        if found is None or ref != pod.ref:
            return found
        spec = {key: value for key, value in found["spec"].items() if key != "nodeName"}
        return found | {"spec": spec}

    return lambda call: extenders.call(call, request_body(call, find))


def _as_pending(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, node_name="")
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="")
    if pod.spec.node_name:
        status = msgspec.structs.replace(pod.status, nominated_node_name="")
        return msgspec.structs.replace(pod, metadata=meta, spec=spec, status=status)
    return pod


def _build(source: str, config: SchedulerConfig, pod: Pod, others: list[ApiObject]) -> BuiltProfile:
    """Return the scheduler profile of `pod`, ready to run on a cluster that contains `others`.

    If no profile has the schedulerName `fairlead`, a pod with this schedulerName gets the first
    profile.

    Raises InputError, which names `source`, if no profile has the pod's schedulerName.
    """
    profiles = {profile.scheduler_name: profile for profile in config.profiles}
    profile = profiles.get(pod.spec.scheduler_name)
    if profile is None and pod.spec.scheduler_name == FAIRLEAD:
        profile = replace(config.profiles[0], scheduler_name=FAIRLEAD)
    if profile is None:
        name = pod.spec.scheduler_name
        raise InputError(
            source,
            f"{no_scheduler(name)}; {known_names(name, profiles)}",
            object_name=f"Pod {pod.key}",
            field="spec.schedulerName",
        )
    cluster = Cluster(device_taint_rules=config.version.device_taint_rules)
    nominator = Nominator()
    cluster.apply(ObjectsLoaded(others))
    handle, shared = (
        PluginHandle(cluster, nominator),
        Shared(config.extenders, version=config.version),
    )
    built = build_profile(profile, handle, TieBreak(0), config.out_of_tree, shared=shared)
    for other in cluster.pods.values():
        node = other.pod.status.nominated_node_name
        if node and not other.pod.spec.node_name:
            nominator.nominate(other, node)
    return built


def explanation_json(explanation: Explanation) -> Json:
    """Return `explanation` as JSON; the verdict of a feasible node is `null`.

    Raises InputError if `explanation` is not an Explanation.
    """
    require_type("explanation_json", "explanation", explanation, Explanation)
    found = explanation.evaluation
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "pod": explanation.pod,
        "node": explanation.node,
        "priority": explanation.priority,
        "gated": _status(found.gated),
        "verdicts": {name: _status(status) for name, status in found.verdicts.items()},
        "scores": found.scores,
        "weights": found.weights,
        "totals": found.totals,
        "equals": found.best,
        "choices": found.choices,
        "via": found.via,
        "message": found.fit_error or found.score_error,
        "unmet": list(explanation.unmet),
        "remedies": {
            name: [change.what for change in remedy.changes]
            for name, remedy in explanation.remedies.items()
        },
        "too_small": dict(explanation.too_small),
        "preemption": None if found.preemption is None else _preemption(found.preemption),
        "new_node": None if explanation.new_node is None else explanation.new_node.to_json(),
        "larger_node": (
            None if explanation.larger_node is None else explanation.larger_node.to_json()
        ),
        "new_nodes_for_group": (
            None if explanation.for_group is None else asdict(explanation.for_group)
        ),
        "room": None if found.room is None else _room(found.room),
        "held_group": explanation.held_group,
        "after_rivals": explanation.after_rivals,
        "notes": [*explanation.state, *explanation.notes],
    }


def _status(status: Status | None) -> Json | None:
    if status is None:
        return None
    return {"plugin": status.plugin, "code": status.code.value, "reasons": list(status.reasons)}


def _room(room: RoomEvaluation) -> Json:
    victims = [{"pod": pod, "priority": priority} for pod, priority in room.victims.items()]
    return {"by": room.by, "node": room.node, "victims": victims}


def _preemption(found: PreemptionEvaluation) -> Json:
    return {
        "ineligible": found.ineligible or found.post_filter_error,
        "candidates": {
            name: {
                "victims": [
                    {"pod": victim.key, "priority": victim.priority} for victim in candidate.victims
                ],
                "pdb_violations": candidate.pdb_violations,
            }
            for name, candidate in found.candidates.items()
        },
        "rejected": {name: _status(status) for name, status in found.rejected.items()},
        "nominated": found.nominated,
        "rule": found.rule,
    }

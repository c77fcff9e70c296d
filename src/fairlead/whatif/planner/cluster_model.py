"""ClusterModel: places pods of a cluster with its scheduler; the placements can be reverted.

    with model.hypothesis() as supposed:
        model.remove(pod)
        model.cordon("worker-3")
        decision = model.schedule(model.replacement(pod))
        supposed.commit()                   # without this, the end of the block reverts

Each placement is one scheduling cycle over the engine's state (`schedule_one`, then Reserve), with
all plugins of the pod's profile. Then the kubelet of the node admits the pod. The pod then runs on
its node and is ready, until the placement is undone. No time passes, and no controller acts, with
one exception: the claims of a pod are created and released with the pod (`pod_claim`).

If the configuration disables a filter that the kubelet also checks, such as NodeResourcesFit, the
kubelet may refuse a pod that the scheduler has placed. In a cluster, the pod's controller would
create equal pods without end. The model repeats the cycle if several nodes share the best score,
because the cycle can then choose another node. If the kubelets refuse the pod each time, the pod
counts as a pod that has no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.codec import decode
from fairlead.api.json import Json
from fairlead.api.nodes.taint import NO_SCHEDULE
from fairlead.api.objects import (
    ApiObject,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodCondition,
    PodGroup,
    PodStatus,
    PriorityClass,
    ResourceClaim,
    ResourceSlice,
    Taint,
)
from fairlead.api.pods.facts import (
    controller_of,
    is_daemon_pod,
    is_static,
    is_terminal,
    is_terminating,
)
from fairlead.api.pods.replicas import Replicas
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.simulation import Unchecked
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, RESOURCE_QUOTA, RUNTIME_CLASS
from fairlead.apiserver.registry.store import Store
from fairlead.engine.batch.scheduler_name import KUBE_BATCH, SCHEDULER_NAMES, VOLCANO
from fairlead.engine.core.command import CreateObject, IssuedCommand, ObjectRef, UpdateQuotaStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import API_SERVER
from fairlead.engine.core.reporter import PluginFailed, Record
from fairlead.engine.core.status import Status, unschedulable
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import DEFAULT_SCHEDULER
from fairlead.engine.framework.runtime import Framework, attempt
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_admission import admit
from fairlead.engine.kubelet.pod_lifecycle import granted_grace, stop_exit_code
from fairlead.engine.plugins.dynamic_resources.plugin import DynamicResources
from fairlead.engine.plugins.gang_scheduling import GangScheduling, gang_minimum
from fairlead.engine.scheduling.compose import BuiltProfile, PluginHandle, Shared, build_profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.scheduling.decision import Decision, Failure, Placement, refusal
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Amounts
from fairlead.engine.workloads.pod_control.pod_template import missing_classes
from fairlead.engine.workloads.volumes.claim_creation import missing_bindings, missing_storage
from fairlead.whatif.configuration.kwok_stage import with_stages
from fairlead.whatif.configuration.other_scheduler import no_scheduler
from fairlead.whatif.planner.managed_resource import profiles_without_extenders
from fairlead.whatif.planner.owner_template import OwnerTemplates
from fairlead.whatif.planner.pod_claim import (
    Claim,
    ClaimChange,
    has_claims,
    new_claims,
    released_claims,
)
from fairlead.whatif.run.autoscaling.vertical_pod_autoscaler import RecommendedRequests
from fairlead.whatif.run.next_pod import refusal_of
from fairlead.whatif.snapshot.api_refusal import as_input_error, malformed_object
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.volume_attachment import simulated_contents
from fairlead.worlds.simulation.world import SimulatedWorld

Dependent = CSINode | ResourceSlice | CSIStorageCapacity

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_RUNNING: Final = PodStatus(
    phase="Running", conditions=(PodCondition(type="Ready", status="True"),)
)
_CORDON: Final = Taint(key=UNSCHEDULABLE, effect=NO_SCHEDULE)
KUBELET: Final = "kubelet"
"""The name in `Failure.plugins` if the kubelet of the chosen node refuses the pod."""
_TRIES_MAX: Final = 50  # tries to place a pod that kubelets refuse
_ENDS_OTHERS: Final = "it would end other pods to make room"
_REFUSED: Final = "the scheduler chooses a node whose kubelet refuses the pod: "


class _Change(Struct, frozen=True):
    """A change of the model; `repeat` makes it again after `undo` has reverted it."""

    repeat: Callable[[], None]
    undo: Callable[[], None]


class Changes(Struct, frozen=True):
    """Changes that `ClusterModel.repeat` can make again after they have been reverted.

    `choices` is the number of random choices that the model had made when the last change was
    complete.
    """

    made: tuple[_Change, ...]
    choices: int


class Hypothesis(Struct):
    """Changes that are reverted unless `commit` is called.

    `start` is the number of changes in the model's log when the hypothesis began.
    """

    start: int
    is_committed: bool = False

    def commit(self) -> None:
        """Keep the changes when the block ends; an enclosing block may still revert them."""
        self.is_committed = True


class _Placed(Struct, frozen=True):
    """A placement that the model made; undoing it also undoes the reservations of plugins."""

    framework: Framework
    placement: Placement
    pod: PodInfo

    def reserve(self) -> None:
        """Call Reserve of all plugins again, to undo `unreserve`."""
        for plugin in self.framework.reserve:
            plugin.reserve(self.placement.state, self.pod, self.placement.node.name)

    def unreserve(self) -> None:
        """Call Unreserve of all plugins, in reverse order."""
        for plugin in reversed(self.framework.reserve):
            plugin.unreserve(self.placement.state, self.pod, self.placement.node.name)


class ModelErrors(Struct):
    """A Reporter that keeps the errors of scheduling cycles and of plugins, without duplicates.

    `cycles` are the messages of scheduling cycles that ended with an error. `ignored` are the
    messages of plugins that failed in calls whose failure does not end the cycle (`PluginFailed`).
    """

    cycles: dict[str, None] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)

    def report(self, record: Record) -> None:
        """Keep the message of `record` if it is a PluginFailed; ignore other records."""
        if type(record) is PluginFailed:
            self.ignored[record.message] = None


class ClusterModel:
    """A cluster for trying placements: the scheduler places pods, but nothing else happens.

    No controllers run, and no time passes. `objects` are the objects of the snapshot. Storage
    objects and PriorityClasses that the snapshot lacks are added (`missing_storage`,
    `missing_classes`). Bindings of claims are completed (`missing_bindings`). Pods in a namespace
    that is being deleted get a deletionTimestamp, if they have none. `now` is the time of the
    snapshot. If `preempts` is set, pods that fit nowhere try preemption. Extenders are not called;
    NodeResourcesFit checks their resources instead (`profiles_without_extenders`). `snapshot_words`
    is the text that names the snapshot in the commands that an answer suggests. `errors` are the
    errors of all placements that were tried so far.
    """

    def __init__(self, snapshot: Snapshot, config: SchedulerConfig, *, seed: int = 0) -> None:
        """Load `snapshot`, and set `preempts` to False.

        Raises InputError for objects that an API server would refuse.
        """
        self.now = snapshot.taken_at
        self.snapshot_words = snapshot.words
        self._manifests, self._seed = snapshot.manifests, seed
        # The model uses only the world's store and never runs the world.
        idle = Engine(Cluster(), controllers=())
        self._world = SimulatedWorld(
            idle,
            start=self.now,
            seed=seed,
            events_max=0,
            malformed=partial(malformed_object, snapshot.source, snapshot.manifests),
        )
        self._recommended = RecommendedRequests(lambda: self.now)
        self._world.admission.add(self._recommended)
        self.objects = self._load(snapshot)
        self.cluster = Cluster(device_taint_rules=config.version.device_taint_rules)
        self.cluster.apply(ObjectsLoaded(self.objects))
        self.table = self.cluster.table
        self.has_extenders = bool(config.extenders)
        self.gates = config.gates
        self.has_pod_groups = config.version.pod_groups
        self._starts_gangs = self.has_pod_groups and GangScheduling.name in config.version.factories
        self._nominator = Nominator()
        self._tie_break = TieBreak(seed)
        self.errors = ModelErrors()
        # The schedulerNames without a profile of the pods that `schedule` has placed or refused.
        self.guessed_schedulers: set[str] = set()
        self._built = self._build(config)
        self.preempts = False
        self._placed: dict[str, _Placed] = {}
        self._owned: dict[str, tuple[Claim, ...]] = {}  # {removed pod: claims that it owned}
        self._changes: list[_Change] = []  # empty outside hypotheses
        self._hypotheses = 0  # the number of open `with` blocks
        self._dependents: dict[str, list[Dependent]] | None = None
        self._copies = 0
        self._templates = OwnerTemplates(self.objects, self._world.store, self._recommended)
        # The keys of all pods that have been without a node at some time. Planners ask for the
        # waiting pods in each trial, and most clusters have few of them.
        self._once_without_node: dict[str, None] = {}
        for pod in self.cluster.pods.values():
            if pod.pod.spec.node_name:
                continue
            self._once_without_node[pod.key] = None
            if node := pod.pod.status.nominated_node_name:
                self._nominator.nominate(pod, node)

    def _load(self, snapshot: Snapshot) -> tuple[ApiObject, ...]:
        world = self._world
        try:
            world.load(simulated_contents(snapshot.manifests))
        except ApiError as refused:
            raise as_input_error(snapshot.source, snapshot.manifests, refused) from None
        loaded = self._polled()
        # Many dumps lack the PriorityClasses that their pods name. Without them, admission would
        # refuse further pods of the workloads. In a simulated run, the engine's workload
        # controllers create them; here, no controllers run.
        known = [one for one in loaded if isinstance(one, PriorityClass)]
        pods = [Replicas((one,)) for one in loaded if isinstance(one, Pod)]
        classes = map(CreateObject, missing_classes(pods, known))
        for command in (*missing_storage(loaded), *classes):
            world.perform(IssuedCommand(command, API_SERVER), self.now)
        loaded = (*loaded, *self._polled())
        return _as_namespaces_end(self._with_bindings(loaded), self.now)

    def _with_bindings(self, loaded: tuple[ApiObject, ...]) -> tuple[ApiObject, ...]:
        """Complete the bindings of claims (`missing_bindings`).

        Return `loaded`, in which the claims that were bound replace their old versions.
        """
        for command in missing_bindings(loaded):
            self._world.perform(IssuedCommand(command, API_SERVER), self.now)
        bound = {one.key: one for one in self._polled()}
        if not bound:
            return loaded
        return tuple(
            bound.get(one.key, one) if isinstance(one, PersistentVolumeClaim) else one
            for one in loaded
        )

    def _polled(self) -> tuple[ApiObject, ...]:
        """Return the objects of the store that changed since the last call."""
        found: list[ApiObject] = []
        while stimuli := self._world.poll(self.now):
            for one in stimuli:
                match one:
                    case ObjectsLoaded(objects):
                        found += objects
                    case ObjectChanged(changed):
                        found.append(changed)
                    case _:
                        pass
        return tuple(found)

    def _build(self, config: SchedulerConfig) -> dict[str, BuiltProfile]:
        found = {}
        for profile in profiles_without_extenders(config, self.objects):
            built = build_profile(
                profile,
                PluginHandle(self.cluster, self._nominator, reporter=self.errors),
                self._tie_break,
                config.out_of_tree,
                shared=Shared(version=config.version),
            )
            found[profile.scheduler_name] = built
        return found

    # --- reading ---------------------------------------------------------------------------

    def profile_of(self, pod: PodInfo) -> BuiltProfile:
        """Return the scheduler profile of `pod`.

        If no profile has the schedulerName of `pod`, return the default profile. If there is no
        default profile, return the first profile.
        """
        name = pod.pod.spec.scheduler_name
        default = self._built.get(DEFAULT_SCHEDULER) or next(iter(self._built.values()))
        return self._built.get(name, default)

    def has_profile(self, pod: PodInfo) -> bool:
        """Return whether the configuration has a profile with the schedulerName of `pod`."""
        return pod.pod.spec.scheduler_name in self._built

    def is_batch(self, pod: PodInfo) -> bool:
        """Return whether kube-batch or Volcano, rather than a scheduler profile, places `pod`."""
        name = pod.pod.spec.scheduler_name
        return name in (KUBE_BATCH, VOLCANO) and not self.has_profile(pod)

    def gang_of(self, pod: PodInfo) -> PodGroup | None:
        """Return the PodGroup of `pod` if the pods of the group start as a gang, else None."""
        group = self.cluster.pod_groups.group_of(pod) if self._starts_gangs else None
        return group if group is not None and gang_minimum(group) else None

    def missing_scheduler(self, pod: PodInfo) -> str:
        """Return the reason why no scheduler places `pod`; "" if its schedulerName is known.

        The schedulerName is known if a profile or a batch scheduler has this name. It is also known
        if a pod of the snapshot with this schedulerName is bound to a node (`other_scheduler`).
        """
        name = pod.pod.spec.scheduler_name
        if self.has_profile(pod) or name in SCHEDULER_NAMES:
            return ""
        return "" if name in self._other_schedulers else no_scheduler(name)

    @cached_property
    def _other_schedulers(self) -> frozenset[str]:
        """The schedulerNames of the pods that have a node in the snapshot and are not static."""
        pods = (one for one in self.objects if isinstance(one, Pod) and one.spec.node_name)
        return frozenset(one.spec.scheduler_name for one in pods if not is_static(one))

    def kept_out(self, pod: PodInfo) -> str | None:
        """Return why `pod` does not enter the scheduling queue; None if it enters the queue."""
        if missing := self.missing_scheduler(pod):
            return missing
        gate = self.profile_of(pod).framework.run_pre_enqueue(pod)
        return None if gate is None else gate.message

    def node(self, name: str) -> NodeInfo:
        """Return the node `name`, which must exist."""
        found = self.find_node(name)
        assert found is not None, name
        return found

    def find_node(self, name: str) -> NodeInfo | None:
        """Return the node `name`; None if it does not exist, for example because it was deleted."""
        return self.table.find(name)

    def is_free_name(self, name: str) -> bool:
        """Return whether a new node can be called `name`.

        The name must not be in use by a node, and no pod may be bound to a node of this name. The
        pods of a deleted node would count as pods of the new node.
        """
        return self.find_node(name) is None and not self.cluster.has_pods_without_node(name)

    def dependents(self, node: str) -> list[Dependent]:
        """Return the objects of the snapshot that describe the node with the name `node`.

        These are the node's CSINode, its ResourceSlices, and the CSIStorageCapacities whose
        topology names it.
        """
        if self._dependents is None:
            self._dependents = {}
            for one in self.objects:
                if isinstance(one, CSINode):
                    self._dependents.setdefault(one.metadata.name, []).append(one)
                elif isinstance(one, ResourceSlice):
                    self._dependents.setdefault(one.spec.node_name, []).append(one)
                elif isinstance(one, CSIStorageCapacity) and one.node_topology is not None:
                    for name in dict.fromkeys(one.node_topology.match_labels.values()):
                        self._dependents.setdefault(name, []).append(one)
        return self._dependents.get(node, [])

    def pods(self) -> list[PodInfo]:
        """Return the unfinished pods of the cluster, with and without a node."""
        return list(self.cluster.pods.values())

    def current_objects(self) -> list[ApiObject]:
        """Return `objects`, with the model's present pods instead of all unfinished pods."""
        others = [one for one in self.objects if not isinstance(one, Pod) or is_terminal(one)]
        return [*others, *(pod.pod for pod in self.pods())]

    def waiting_pods(self, *, with_batch: bool = False) -> list[PodInfo]:
        """Return the pods that the scheduler would try to place now, in the order of its queue.

        Pods of the batch scheduler are included only if `with_batch` is set, because they start
        only with their groups.
        """
        pods = self.cluster.pods
        found = [
            pod
            for pod in map(pods.get, self._once_without_node)
            if pod is not None
            and not self.cluster.node_of(pod)
            and not pod.terminating
            and (with_batch or not self.is_batch(pod))
            and not self.missing_scheduler(pod)
            and self.profile_of(pod).framework.run_pre_enqueue(pod) is None
        ]
        return in_queue_order(found)

    def pod_info(self, pod: Pod) -> PodInfo:
        """Return `pod` with its `Shape`, the part of its spec that affects scheduling."""
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def replacement(self, pod: PodInfo) -> PodInfo:
        """Return a new pod without a node, as the controller of `pod` would create it.

        If the owner's template differs from `pod`, the new pod follows the template
        (`OwnerTemplates`). If `pod` was removed and was the owner of claims, the new pod gets new
        claims.
        """
        self._copies += 1
        new = self.pod_info(
            _unbound(self._templates.with_current_template(pod.pod), f"{pod.id}+{self._copies}")
        )
        for one in new_claims(new.pod, self._owned.get(pod.id, ()), self.cluster):
            self.put(one)
        return new

    def countable(self, amounts: Amounts) -> Amounts:
        """Return `amounts` without the resources that DRA devices can provide.

        A pod that requests such a resource can run on a node whose `allocatable` lacks the
        resource.

        upstream: plugins/noderesources/fit.go: fitsRequest (shouldDelegateResourceToDRA)
        """
        devices, names = self.cluster.devices.extended, self.table.resources.names
        if not devices:
            return amounts
        return tuple(one for one in amounts if devices.class_of(names[one[0]]) is None)

    def as_replacement(self, pod: PodInfo) -> PodInfo:
        """Return `pod` with the labels, spec and status that its replacement would have.

        Return `pod` itself if labels and spec do not differ. A planner must find room for the
        returned pod, not for `pod`. Unlike `replacement`, this method creates no pod.
        """
        new = self._templates.with_current_template(pod.pod)
        return pod if new is pod.pod else self.pod_info(replace(new, status=_new_status(pod.pod)))

    def next_pod(self, pod: PodInfo) -> tuple[str, Json] | None:
        """Return (key, manifest) of the pod that the controller of `pod` sends to the API server.

        Returns None if the snapshot lacks the controller; see `OwnerTemplates.next_pod`.
        """
        return self._templates.next_pod(pod.pod)

    @property
    def recommended_workloads(self) -> int:
        """The number of workloads whose new pods get the requests that a VPA recommends."""
        return len(self._recommended.targets(self._world.store.storage))

    def daemon_pods(self, node: Node) -> dict[str, Pod | None]:
        """Return the running pods that DaemonSets create on a new `node`, by the DaemonSet's uid.

        The value is None for a DaemonSet whose template does not allow a pod on `node`.
        """
        name, found = node.metadata.name, self._templates.daemon_pods(node)
        return {uid: pod and _running(pod, name) for uid, pod in found.items()}

    # --- the store -------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The store behind the model, with the objects of the snapshot."""
        return self._world.store

    @property
    def unchecked(self) -> Unchecked:
        """The checks that admission has skipped for the objects of `create`."""
        return self._world.admission.unchecked

    def stop_exit_code(self, pod: Pod) -> int:
        """Return the exit code that the containers of the terminating `pod` have in a simulation.

        Raises InputError for a KWOK Stage that is not simulated.
        """
        return stop_exit_code(pod, self._kubelet)

    @cached_property
    def _kubelet(self) -> KubeletConfig:
        return with_stages(KubeletConfig(), samples(self._manifests), self._seed)

    def runtime_class_selector(self, pod: Pod) -> dict[str, str]:
        """Return the nodeSelector that admission adds to `pod` because of its RuntimeClass."""
        name = pod.spec.runtime_class_name
        found = self.store.find(RUNTIME_CLASS, "", name) if name else None
        return ((found or {}).get("scheduling") or {}).get("nodeSelector") or {}

    def create(self, manifest: Json) -> ApiObject:
        """Create an object as a user of the API server does; return the decoded object.

        The scheduler does not learn of the object. The end of a `hypothesis` block does not revert
        the creation. Raises ApiError.
        """
        world = self._world
        return decode(world.store.create(manifest, self.now, write=world.user_write()))

    def refusal_of(self, manifest: Json, replaced: Json | None) -> str:
        """Return why the API server refuses a controller's pod `manifest`; "" if it does not.

        `replaced` is an existing pod that ends before the new pod is created; None if all pods
        stay. The pod is not created.
        """
        return refusal_of(self._world, manifest, replaced)

    def free_pod_name(self, namespace: str, name: str) -> None:
        """Delete the pod from the store, so that `create` can create a pod of the same name.

        Finalizers do not keep the pod. Does nothing if there is no such pod. The scheduler does not
        learn of the deletion. The end of a `hypothesis` block does not revert the deletion.
        """
        if self.store.find(POD, namespace, name) is not None:
            self.store.storage.remove(POD, namespace, name)

    def count_quotas(self, namespace: str) -> bool:
        """Update the usage of the quotas in `namespace`; return whether there are any quotas.

        A dump of manifests lacks the usage, and a quota without usage refuses no object.
        """
        quotas = list(self._world.store.storage.items(RESOURCE_QUOTA, namespace))
        for quota in quotas:
            meta = quota["metadata"]
            ref = ObjectRef("ResourceQuota", namespace, meta["name"], meta.get("uid", ""))
            self._world.perform(IssuedCommand(UpdateQuotaStatus(ref), API_SERVER), self.now)
        return bool(quotas)

    # --- hypotheses ------------------------------------------------------------------------

    @contextmanager
    def hypothesis(self) -> Iterator[Hypothesis]:
        """Yield a Hypothesis; its changes are reverted at the end of the `with` block.

        The count of random choices is reverted too, so that later choices do not depend on
        discarded trials. If `commit` was called in the block, nothing is reverted.
        """
        supposed, choices = Hypothesis(len(self._changes)), self._tie_break.choices
        self._hypotheses += 1
        try:
            yield supposed
        finally:
            self._hypotheses -= 1
            if not supposed.is_committed:
                self._tie_break.choices = choices
                while len(self._changes) > supposed.start:
                    self._changes.pop().undo()
            elif not self._hypotheses:
                self._changes.clear()

    @contextmanager
    def preempting(self) -> Iterator[None]:
        """Set `preempts` in the `with` block, so that pods that fit nowhere try preemption."""
        before, self.preempts = self.preempts, True
        try:
            yield
        finally:
            self.preempts = before

    def changes_since(self, supposed: Hypothesis) -> Changes:
        """Return the changes that were made since the beginning of `supposed`, an open hypothesis.

        The result includes the committed changes of inner hypotheses.
        """
        return Changes(tuple(self._changes[supposed.start :]), self._tie_break.choices)

    def repeat(self, changes: Changes) -> None:
        """Make the reverted `changes` again, without new decisions.

        The model must be in the same state as when the changes were first made. The resulting state
        is then the same, too, but no scheduling cycle runs.
        """
        for change in changes.made:
            change.repeat()
        if self._hypotheses:
            self._changes += changes.made
        self._tie_break.choices = changes.choices

    def _record(self, repeat: Callable[[], None], undo: Callable[[], None]) -> None:
        """Record a change that has been made, so that the current hypothesis can revert it.

        `undo` reverts the change, and `repeat` makes it again after that.

        Outside hypotheses, changes are not recorded, because nothing reverts them.
        """
        if self._hypotheses:
            self._changes.append(_Change(repeat, undo))

    def _apply(
        self, made: ObjectChanged | ObjectDeleted, undone: ObjectChanged | ObjectDeleted
    ) -> None:
        """Apply `made`, and record that `undone` reverts it."""
        self.cluster.apply(made)
        self._record(partial(self.cluster.apply, made), partial(self.cluster.apply, undone))

    def schedule(self, pod: PodInfo) -> Decision:
        """Run one scheduling cycle for `pod`, and bind it to the node that the cycle chose.

        Return the decision. The decision is a Failure if no node fits, or if a plugin's Reserve or
        the kubelet of the node refuses the pod.
        """
        built, message = self.profile_of(pod), ""
        if not self.has_profile(pod):
            self.guessed_schedulers.add(pod.pod.spec.scheduler_name)
        for _ in range(_TRIES_MAX):
            cycle = schedule_one(built, pod, self._tie_break, runs_post_filter=self.preempts)
            decision = run_consultation(cycle)
            if isinstance(decision, Failure):
                return self._kept(decision)
            refused = self._place(built.framework, pod, decision)
            if refused is None:
                return decision
            if refused.plugin != KUBELET:
                return self._kept(refusal(refused))
            message = refused.message
            if decision.equals == 1:
                break
        return Failure(f"{_REFUSED}{message}", (KUBELET,))

    def _kept(self, failure: Failure) -> Failure:
        """Return `failure`; if it is an error, keep its message in `errors`."""
        if failure.is_error:
            self.errors.cycles[failure.message] = None
        return failure

    def kubelet_refusal(self, pod: PodInfo, node: str) -> str:
        """Return why the kubelet of `node` refuses `pod`, such as OutOfcpu; "" if it does not.

        `pod` has no node, and stays without one.
        """
        waiting = self.cluster.pods.get(pod.key)
        bound = _running(pod.pod, node)
        self.cluster.apply(ObjectChanged(bound))
        refused = self._admission_refusal(bound)
        self._unbind(bound, waiting)
        return "" if refused is None else refused.message

    def _admission_refusal(self, bound: Pod) -> Status | None:
        """Return the refusal of `bound` by the kubelet of its node; None if it is admitted.

        A critical pod is also refused if the kubelet would have to end other pods first.
        """
        node = self.node(bound.spec.node_name)
        pod = node.pods[self.cluster.pods[bound.key].id]
        admission = admit(
            pod,
            node,
            lambda: [one for one in node.pods.values() if one is not pod],
            self.table.resources.names,
        )
        if admission.rejection is not None:
            return unschedulable(admission.rejection.reason).by(KUBELET)
        if admission.victims:
            return unschedulable(_ENDS_OTHERS).by(KUBELET)
        return None

    def _unbind(self, bound: Pod, waiting: PodInfo | None) -> None:
        """Replace the pod `bound` in the state by `waiting`, the same pod without a node."""
        node, ports = self.node(bound.spec.node_name), self.cluster.pods[bound.key].shape.host_ports
        self.cluster.apply(ObjectDeleted(bound))
        if ports:  # The deletion frees them, even if another pod of the node uses them (`remove`).
            used = (port for one in node.pods.values() for port in one.shape.host_ports)
            node.used_ports.update(dict.fromkeys(used))
        if waiting is not None:
            self.cluster.apply(ObjectChanged(waiting.pod))

    @property
    def repeats_decisions(self) -> bool:
        """Whether the model makes equal decisions for equal pods on equal nodes.

        False if a profile has plugins of the user, because such plugins may keep a state.
        """
        return all(built.is_stateless for built in self._built.values())

    @property
    def choices(self) -> int:
        """The number of choices that the tie-break has made so far."""
        return self._tie_break.choices

    def reserves(self, pod: PodInfo, placement: Placement) -> bool:
        """Return whether a Reserve plugin does something for `pod`, which just got `placement`.

        A plugin whose PreFilter returned Skip for a pod does nothing in Reserve, as in upstream.

        upstream: framework/runtime/framework.go: RunReservePluginsReserve
        """
        skipped = placement.state.skipped_filters
        return any(one.name not in skipped for one in self.profile_of(pod).framework.reserve)

    def place_again(self, pod: PodInfo, row: int, choices: int) -> None:
        """Bind `pod` to a node, as `schedule` did in an equal state of the model.

        The node is in the row `row` of the model's node table.

        The parameter `choices` is the value that the property `choices` had after the decision of
        `schedule`. The method must not be used for a pod for which a Reserve plugin acts
        (`reserves`).
        """
        node = self.table.at(row)
        self._tie_break.choices = choices
        placement = Placement(node, CycleState(), "score", 1, 1)
        self._place(self.profile_of(pod).framework, pod, placement)

    def make_room(self, decision: Decision) -> tuple[PodInfo, ...]:
        """Remove the victims of the preemption in `decision`; return the victims.

        Return () if the pod was placed, or if preemption found no victims.
        """
        if isinstance(decision, Placement) or decision.post_filter_result is None:
            return ()
        victims = tuple(decision.post_filter_result.victims)
        for victim in victims:
            self.remove(victim)
        return victims

    def _place(self, framework: Framework, pod: PodInfo, placement: Placement) -> Status | None:
        """Run Reserve, and bind `pod` to the node of `placement` as a running pod.

        Return the refusal, or None after success. If a plugin or the kubelet of the node refuses
        the pod, everything is undone.
        """
        node = placement.node.name
        placed = _Placed(framework, placement, pod)
        for plugin in framework.reserve:
            status = attempt(plugin, partial(plugin.reserve, placement.state, pod, node))
            if status is not None and not status.is_success:
                placed.unreserve()
                return status.by(plugin.name)
        waiting = self.cluster.pods.get(pod.key)
        bound = _running(pod.pod, node)
        self.cluster.apply(ObjectChanged(bound))
        refused = self._admission_refusal(bound)
        if refused is not None:
            self._unbind(bound, waiting)
            placed.unreserve()
            return refused
        self._placed[pod.id] = placed
        claims = self._bind_claims(placed) if pod.pod.spec.resource_claims else ()

        def repeat() -> None:
            placed.reserve()
            self._placed[pod.id] = placed
            self.cluster.apply(ObjectChanged(bound))
            for change in claims:
                self.cluster.apply(change.made)

        def undo() -> None:
            self.cluster.apply(ObjectDeleted(bound))
            self._placed.pop(pod.id).unreserve()
            for change in claims:
                self.cluster.apply(ObjectChanged(change.before))
            if waiting is not None:
                self.cluster.apply(ObjectChanged(waiting.pod))

        self._record(repeat, undo)
        return None

    def _bind_claims(self, placed: _Placed) -> tuple[ClaimChange, ...]:
        """Allocate and reserve the claims of a pod, as its binding does; return the changes."""
        changes: list[ClaimChange] = []
        for plugin in placed.framework.reserve:
            if isinstance(plugin, DynamicResources):
                for claim in plugin.bound_claims(placed.placement.state, placed.pod):
                    known = self.cluster.related.get(ResourceClaim, claim.key)
                    if known is not None:
                        changes.append(ClaimChange(known, claim))
                        self.cluster.apply(changes[-1].made)
        return tuple(changes)

    def remove(self, pod: PodInfo) -> None:
        """Delete `pod`, which comes from the snapshot or was placed by the model."""
        placed = self._placed.pop(pod.id, None)
        known = self.cluster.pods[pod.key]
        node = self.table.find(self.cluster.node_of(known))
        # Two pods that were bound without the scheduler can have the same host port. Removing one
        # of them frees the port, so the reversal must restore the ports of the node.
        ports = dict(node.used_ports) if node is not None and pod.shape.host_ports else None
        self.cluster.apply(ObjectDeleted(known.pod))
        if placed is not None:
            placed.unreserve()
        claims = self._release_claims(known) if has_claims(known) else ()

        def repeat() -> None:
            self._placed.pop(pod.id, None)
            self.cluster.apply(ObjectDeleted(known.pod))
            if placed is not None:
                placed.unreserve()
            for change in claims:
                self.cluster.apply(change.made)

        def undo() -> None:
            if placed is not None:
                placed.reserve()
                self._placed[pod.id] = placed
            for change in claims:  # ends the assumptions of Reserve about the claims
                self.cluster.apply(ObjectChanged(change.before))
            self.cluster.apply(ObjectChanged(known.pod))
            if ports is not None and node is not None:
                node.used_ports = dict(ports)

        self._record(repeat, undo)

    def _release_claims(self, removed: PodInfo) -> tuple[ClaimChange, ...]:
        """Delete the claims that a removed pod owned, and release its other claims.

        Return the changes.
        """
        changes = tuple(released_claims(removed.pod, self.cluster))
        for change in changes:
            self.cluster.apply(change.made)
        self._owned[removed.id] = tuple(one.before for one in changes if one.after is None)
        return changes

    def put(self, added: ApiObject) -> None:
        """Add an object that the snapshot does not have, such as a claim or a pod on a node."""
        if isinstance(added, Pod) and not added.spec.node_name:
            self._once_without_node[added.key] = None
        self._apply(ObjectChanged(added), ObjectDeleted(added))

    def put_node(self, node: Node) -> None:
        """Add a node, or replace the node of the same name; the pods of a replaced node stay."""
        before = self.table.find(node.metadata.name)
        old = None if before is None else before.node
        undone = ObjectDeleted(node) if old is None else ObjectChanged(old)
        self._apply(ObjectChanged(node), undone)

    def cordon(self, name: str) -> None:
        """Mark the node `name` unschedulable and taint it, unless it is already unschedulable."""
        node = self.node(name).node
        if node.spec.unschedulable:
            return
        taints = (*(one for one in node.spec.taints if one.key != UNSCHEDULABLE), _CORDON)
        self.put_node(replace(node, spec=replace(node.spec, unschedulable=True, taints=taints)))

    def remove_node(self, name: str) -> None:
        """Delete a node and the pods on it."""
        info = self.node(name)
        for pod in list(info.pods.values()):
            self.remove(pod)
        node = info.node
        self._apply(ObjectDeleted(node), ObjectChanged(node))


def ending_namespaces(objects: Iterable[ApiObject]) -> frozenset[str]:
    """Return the names of the namespaces that are being deleted."""
    namespaces = (one.metadata for one in objects if isinstance(one, Namespace))
    return frozenset(one.name for one in namespaces if one.deletion_timestamp)


def _as_namespaces_end(objects: tuple[ApiObject, ...], now: Instant) -> tuple[ApiObject, ...]:
    """Return `objects`, with a deletionTimestamp on each pod whose namespace is being deleted.

    If such a pod had no deletionTimestamp before, its grace period begins at `now`.

    Planners need no room for replacements of these pods, because admission refuses the
    replacements. The namespace controller may delete the pods long after the deletion of the
    namespace was requested. So the time of this request does not show when the pods stop.
    """
    ending = ending_namespaces(objects)
    if not ending:
        return objects
    return tuple(
        replace(one, metadata=replace(one.metadata, deletion_timestamp=_stops_at(one, now)))
        if isinstance(one, Pod) and one.metadata.namespace in ending and not is_terminating(one)
        else one
        for one in objects
    )


def _stops_at(pod: Pod, now: Instant) -> str:
    """Return the deletionTimestamp that `pod` gets if its deletion is requested at `now`."""
    return format_timestamp(now + granted_grace(pod))


def in_queue_order(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return `pods` sorted by priority (highest first), then by creation time and key."""
    return sorted(
        pods, key=lambda pod: (-pod.priority, pod.pod.metadata.creation_timestamp, pod.key)
    )


def moves_with_drain(pod: PodInfo) -> bool:
    """Return whether a drain removes `pod` from its node.

    Pods of DaemonSets and static pods stay, and finished pods have already ended.

    upstream: staging/src/k8s.io/kubectl/pkg/drain/filters.go
    """
    return not (is_daemon_pod(pod.pod) or is_static(pod.pod) or is_terminal(pod.pod))


def is_leaving(pod: PodInfo) -> bool:
    """Return whether `pod` is already being deleted, so that no eviction is needed."""
    return is_terminating(pod.pod)


def is_placed_anew(pod: PodInfo) -> bool:
    """Return whether a drain removes `pod`, and a controller then creates a replacement."""
    has_controller = controller_of(pod.pod.metadata) is not None
    return moves_with_drain(pod) and not is_leaving(pod) and has_controller


def _unbound(pod: Pod, uid: str) -> Pod:
    meta = replace(pod.metadata, uid=uid, deletion_timestamp="", annotations={})
    spec = replace(pod.spec, node_name="")
    return replace(pod, metadata=meta, spec=spec, status=_new_status(pod))


def _new_status(pod: Pod) -> PodStatus:
    """Return the status of the replacement of `pod`: only the names of its ResourceClaims.

    The status of an in-place resize is left out, because it would count as a request. The
    replacement requests only what its spec says.
    """
    return PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)


def _running(pod: Pod, node: str) -> Pod:
    made = pod.status.resource_claim_statuses
    status = replace(_RUNNING, resource_claim_statuses=made) if made else _RUNNING
    return replace(pod, spec=replace(pod.spec, node_name=node), status=status)

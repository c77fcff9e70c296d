"""Cluster: the engine's view of the whole cluster.

    State of a pod, as in upstream's cache (backend/cache/interface.go):

        (unknown) --assume--> ASSUMED --apply(bound)--> BOUND --apply(deleted)--> (unknown)
                                 |                        ^
                                 +--forget--> (unknown)   +-- apply(bound by another scheduler)

`apply` is the only entry point for observed changes. `assume` records a scheduling decision that
the API does not show yet, and `forget` undoes `assume`. `changes` holds the changes of the last
call of `apply`, for controllers that react to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import (
    ApiObject,
    DeviceTaintRule,
    Lease,
    Node,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    ResourceSlice,
)
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import (
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.state.devices.device_ledger import DeviceLedger
from fairlead.engine.state.disruption_budgets import DisruptionBudgets
from fairlead.engine.state.node_table import NodeTable, PlacedReplicas
from fairlead.engine.state.pod_groups import PodGroupTable, is_kubernetes_pod_group
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import DEVICES, STORAGE, RelatedObjects
from fairlead.engine.state.shape import Shape, ShapeTable, is_same_shape
from fairlead.engine.state.volumes.assumed_volumes import AssumedVolumes


class PodChange(Struct, frozen=True):
    """A change of a pod; `old` is None for a new pod, and `new` is None for a deleted pod.

    To the scheduler, a finished pod (Succeeded, Failed) counts as deleted (scheduler.go:
    newPodInformer).
    """

    old: PodInfo | None
    new: PodInfo | None


class NodeChange(Struct, frozen=True):
    """A change of a node; `old` is None for a new node, and `new` is None for a deleted node."""

    old: Node | None
    new: Node | None


class StorageChange(Struct, frozen=True):
    """A change of a storage or device object.

    `old` is None for a new object, and `new` is None for a deleted object.
    """

    old: ApiObject | None
    new: ApiObject | None


class PodGroupChange(Struct, frozen=True):
    """A change of a PodGroup of scheduling.k8s.io.

    `old` is None for a new PodGroup, and `new` is None for a deleted PodGroup.
    """

    old: PodGroup | None
    new: PodGroup | None


class PodsLoaded(Struct, frozen=True):
    """New pods that were loaded in bulk: `replicas` contains these pods, and each has a node.

    `pods` maps keys to PodInfos. It contains all pods in the cluster, not only the pods in
    `replicas`.
    """

    replicas: Replicas
    pods: Mapping[str, PodInfo]

    def changes(self) -> Iterator[PodChange]:
        """Yield a `PodChange` for each pod in `replicas`."""
        return (PodChange(None, self.pods[key]) for key in self.replicas.keys)


# Classes of frequent objects whose changes are not in `Cluster.changes`.
_WITHOUT_CHANGE: Final = (PodDisruptionBudget, Lease)

Change = PodsLoaded | PodChange | NodeChange | StorageChange | PodGroupChange


class Cluster:
    """The engine's view of the whole cluster.

    `apply` applies observed changes. `assume` and `forget` record and undo assumptions about pods.
    Plugins record assumptions about volumes and devices in `assumed_volumes` and `devices`. `now`
    is the time of the stimulus or deadline that the engine is handling.
    """

    def __init__(self, *, device_taint_rules: bool = False, keeps_readiness: bool = True) -> None:
        """Start with an empty cluster.

        DeviceTaintRules have an effect only if `device_taint_rules` is set. If `keeps_readiness` is
        False, `apply` ignores every ReadinessChanged. Set `keeps_readiness` to False only if
        nothing reads the readiness of pods or the restarts of their containers from the state.
        """
        self.keeps_readiness = keeps_readiness
        self._device_taint_rules = device_taint_rules
        self.table = NodeTable()
        self.shapes = ShapeTable(self.table.resources)
        self.related = RelatedObjects()
        self.assumed_volumes = AssumedVolumes(self.related)
        self.devices = DeviceLedger()
        self.pod_groups = PodGroupTable()
        self.now: Instant = 0
        self.pods: LazyDict[PodInfo] = LazyDict(self._loaded_pod)
        self._loaded_shapes: dict[int, tuple[Replicas, Shape]] = {}  # by id of the replicas
        self.changes: list[Change] = []
        self._assumed: dict[str, str] = {}
        self._pods_without_node: dict[str, dict[str, PodInfo]] = {}

    # --- stimuli ---------------------------------------------------------------------------

    def apply(self, stimulus: Stimulus) -> None:
        """Apply the object changes in `stimulus`; a stimulus without objects changes nothing."""
        self.changes = []
        if type(stimulus) is ObjectChanged:
            changed = stimulus.object
            if type(changed) is Pod:  # by far the most frequent
                self._put_pod(changed)
            else:
                self._put(changed)
        elif type(stimulus) is CommandSucceeded:  # frequent, and changes no object
            return
        elif type(stimulus) is ObjectDeleted:
            self._remove(stimulus.object)
        elif type(stimulus) is ReadinessChanged:
            if self.keeps_readiness:
                self._put(stimulus.object)
        elif type(stimulus) is ObjectsLoaded:
            self._load(stimulus)

    def _put(self, changed: ApiObject) -> None:
        """Store a new or changed object."""
        if type(changed) is Pod:
            self._put_pod(changed)
        elif type(changed) is Node:
            self._put_node(changed)
        elif type(changed) is PodGroup:
            if is_kubernetes_pod_group(changed):
                self.changes.append(PodGroupChange(self.pod_groups.put(changed), changed))
        else:
            self._put_related(changed)

    def _remove(self, gone: ApiObject) -> None:
        if isinstance(gone, Pod):
            self._drop_pod(gone.key)
        elif isinstance(gone, Node):
            self._drop_node(gone.metadata.name)
        elif isinstance(gone, PodGroup):
            if is_kubernetes_pod_group(gone):
                self.changes.append(PodGroupChange(self.pod_groups.remove(gone), None))
        else:
            before = self.related.remove(gone)
            if isinstance(before, STORAGE):
                self.assumed_volumes.observe_deleted(before)
                self.changes.append(StorageChange(before, None))
            elif isinstance(before, DEVICES):
                if self.devices.observe_deleted(before):
                    self.table.note_all()
                self.changes.append(StorageChange(before, None))
            elif isinstance(gone, DeviceTaintRule) and self._device_taint_rules:
                self._note_slices(self.devices.pools.remove_rule(gone))

    def _put_related(self, changed: ApiObject) -> None:
        before = self.related.put(changed)
        if type(changed) in _WITHOUT_CHANGE:
            return
        if isinstance(changed, STORAGE):
            self.assumed_volumes.observe(changed)
            self.changes.append(StorageChange(before, changed))
        elif isinstance(changed, DEVICES):
            if self.devices.observe(changed):
                self.table.note_all()
            self.changes.append(StorageChange(before, changed))
        elif isinstance(changed, DeviceTaintRule) and self._device_taint_rules:
            self._note_slices(self.devices.pools.put_rule(changed))

    def _note_slices(self, slices: Iterable[ResourceSlice]) -> None:
        """Record `slices` as changed, because a DeviceTaintRule may have changed their taints."""
        self.changes += [StorageChange(one, one) for one in slices]

    def _put_pod(self, pod: Pod) -> None:
        if is_terminal(pod):
            self._drop_pod(pod.key)
            return
        meta = pod.metadata
        key = f"{meta.namespace}/{meta.name}"
        old = self.pods.get(key)
        if old is not None and is_same_shape(old.pod, pod):
            shape = old.shape
        else:
            shape = self.shapes.shape_of(pod)
        new = PodInfo(pod, shape, key if old is None else old.key)
        if old is not None and old.uid != new.uid:
            self._drop_pod(key)
            old = None
        self._move(old, new)
        self.pods[new.key] = new
        if pod.spec.scheduling_group is not None:
            self.pod_groups.put_member(new, is_scheduled=bool(self.node_of(new)))
        self.changes.append(PodChange(old, new))

    def _load(self, loaded: ObjectsLoaded) -> None:
        """Store all objects, nodes first; the columns of each node are written only once."""
        placed: list[PlacedReplicas] = []
        for some in sorted(loaded.grouped, key=_nodes_first):
            if isinstance(some, Replicas):
                # A single pod is stored immediately, because a reference to it in a LazyDict would
                # take more time and memory than its PodInfo. But a pod that it replaces may still
                # be in `placed`. So `_load_replicas` adds the pods of `placed` first.
                if len(some) == 1 and some[0].key not in self.pods:
                    self._put_pod(some[0])
                else:
                    self._load_replicas(some, placed)
            else:
                self._add_placed(placed)
                self._put(some)
        self._add_placed(placed)

    def _add_placed(self, placed: list[PlacedReplicas]) -> None:
        """Add the pods of `placed` to their nodes, and clear `placed`."""
        self.table.add_replicas(placed)
        placed.clear()

    def _load_replicas(self, replicas: Replicas, placed: list[PlacedReplicas]) -> None:
        """Add `replicas` now, or append them to `placed` if they can be added in bulk later."""
        nodes = self.table.find_all(replicas.nodes)
        found = [info for info in nodes if info is not None]
        is_usual = len(found) == len(replicas) and self._can_be_added_in_bulk(replicas)
        shape = self.shapes.shape_of(replicas[0]) if is_usual else None
        if shape is None or shape.has_volumes or self.shapes.has_huge:
            self._add_placed(placed)  # a pod in `replicas` may replace a pod in `placed`
            if not self.pods.keys().isdisjoint(replicas.keys):
                self.changes = [one for change in self.changes for one in _each(change)]
            for pod in replicas:
                self._put_pod(pod)
            return
        self._loaded_shapes[id(replicas)] = replicas, shape
        self.pods.load(replicas.rows_by_key)
        replica = PodInfo(replicas[0], shape)
        placed.append(PlacedReplicas(replicas, found, replica, self._loaded_pod))
        self.changes.append(PodsLoaded(replicas, self.pods))

    def _can_be_added_in_bulk(self, replicas: Replicas) -> bool:
        """Return whether `replicas` without volumes can be added in bulk."""
        replica = replicas[0]
        return (
            replica.spec.scheduling_group is None
            and not is_terminal(replica)
            and not self._assumed
            and self.pods.keys().isdisjoint(replicas.keys)
            and replicas.have_own_keys
            and replicas.share_pod_affinity
        )

    def _loaded_pod(self, replicas: Replicas, index: int) -> PodInfo:
        """Build the PodInfo of `replicas[index]`; store it in `pods` and on its node."""
        row, pod = replicas.rows[index], replicas[index]
        _, shape = self._loaded_shapes[id(replicas)]
        if pod.spec.affinity is not replicas[0].spec.affinity:
            shape = self.shapes.shape_of(pod)
        made = PodInfo(pod, shape)
        made.pod_class = self.table.representatives.find(replicas).pod_class
        self.pods.replace_row(made.key, row, made)
        node = self.table.find(pod.spec.node_name)
        if node is not None:
            node.lazy_pods(self._loaded_pod).replace_row(made.id, row, made)
        return made

    def _move(self, old: PodInfo | None, new: PodInfo) -> None:
        """Move a pod from the node of its version `old` to the node of its version `new`.

        `old` is None for a new pod.
        """
        was = self.node_of(old) if old is not None else ""
        now = new.pod.spec.node_name
        if not now and new.id in self._assumed:
            # an update that was sent before the bind, so its spec.nodeName is still empty
            now = self._assumed[new.id]
        elif now:
            self._assumed.pop(new.id, None)
        if old is not None and was == now and old.shape is new.shape and was:
            self._replace(was, new)
            return
        if old is not None and was:
            self._take_from(was, old)
        if now:
            self._place_on(now, new)

    def _drop_pod(self, key: str) -> None:
        old = self.pods.pop(key, None)
        if old is None:
            return
        was = self.node_of(old)
        self._assumed.pop(old.id, None)
        if was:
            self._take_from(was, old)
        if old.pod.spec.scheduling_group is not None:
            self.pod_groups.remove_member(old)
        self.changes.append(PodChange(old, None))

    def _put_node(self, node: Node) -> None:
        name = node.metadata.name
        before = self.table.find(name)
        old = before.node if before is not None else None
        info = self.table.put_node(node)
        for pod in self._pods_without_node.pop(name, {}).values():
            self.table.add_pod(info, pod)
        self.changes.append(NodeChange(old, node))

    def _drop_node(self, name: str) -> None:
        info = self.table.find(name)
        if info is None:
            return
        pods = self.table.remove_node(name)
        if pods:
            self._pods_without_node[name] = {pod.id: pod for pod in pods}
        self.changes.append(NodeChange(info.node, None))

    # --- assumptions -----------------------------------------------------------------------

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count `pod` on `node` before its binding is confirmed; `forget` undoes this."""
        self._assumed[pod.id] = node
        self._place_on(node, pod)
        if pod.pod.spec.scheduling_group is not None:
            self._note_member(pod, is_scheduled=True)

    def forget(self, pod: PodInfo) -> None:
        """Undo `assume`; does nothing if `pod` is not assumed."""
        node = self._assumed.pop(pod.id, None)
        if node is not None:
            self._take_from(node, pod)
            if pod.pod.spec.scheduling_group is not None:
                self._note_member(pod, is_scheduled=False)

    def _note_member(self, pod: PodInfo, *, is_scheduled: bool) -> None:
        """Record in the PodGroup of `pod` whether the pod is assumed on a node (`is_scheduled`)."""
        if self.pod_groups.has_member(pod):
            self.pod_groups.put_member(pod, is_scheduled=is_scheduled)

    def is_assumed(self, pod: PodInfo) -> bool:
        """Return whether `pod` is assumed on a node, and its binding is not yet confirmed."""
        return pod.id in self._assumed

    def has_pods_without_node(self, name: str) -> bool:
        """Return whether pods are bound to the node `name`, which does not exist."""
        return bool(self._pods_without_node.get(name))

    def node_of(self, pod: PodInfo) -> str:
        """Return the name of the node on which `pod` is counted; "" if there is none."""
        return pod.pod.spec.node_name or self._assumed.get(pod.id, "")

    # --- locations of pods -----------------------------------------------------------------

    def _place_on(self, node: str, pod: PodInfo) -> None:
        info = self.table.find(node)
        if info is None:
            self._pods_without_node.setdefault(node, {})[pod.id] = pod
        else:
            self.table.add_pod(info, pod)

    def _take_from(self, node: str, pod: PodInfo) -> None:
        info = self.table.find(node)
        if info is None:
            self._pods_without_node.get(node, {}).pop(pod.id, None)
        else:
            self.table.remove_pod(info, info.pods[pod.id])

    def _replace(self, node: str, pod: PodInfo) -> None:
        """Replace a pod with a version that has the same requests; sums stay unchanged."""
        info = self.table.find(node)
        if info is None:
            self._pods_without_node[node][pod.id] = pod
            return
        before = info.pods[pod.id]
        self.table.replace_pod(info, before, pod, log=not _same_for_others(before, pod))

    def bound_shapes(self) -> Counter[Shape]:
        """Return the number of pods that have a node, by `Shape` (the spec as scheduling reads it).

        Similar pods that were loaded in bulk (`Replicas`) may all be counted under the shape of one
        of these pods. All these pods have equal requests.
        """
        found = Counter(pod.shape for _, pod in self.pods.made() if pod.pod.spec.node_name)
        for one, count in self.pods.group_sizes().items():
            found[self._loaded_shapes[one][1]] += count
        return found

    def budgets(self) -> DisruptionBudgets:
        """Return all PodDisruptionBudgets, ordered by namespace and name."""
        return self.related.budgets


def _each(change: Change) -> Iterable[Change]:
    return list(change.changes()) if isinstance(change, PodsLoaded) else (change,)


def _nodes_first(loaded: Replicas | ApiObject) -> int:
    return 0 if isinstance(loaded, Node) else 1


def _same_for_others(old: PodInfo, new: PodInfo) -> bool:
    """Return whether cached verdicts about the pod's node stay valid if `new` replaces `old`."""
    return (
        old.priority == new.priority
        and old.start == new.start
        and old.terminating == new.terminating
        and old.labels == new.labels
        and old.pod.metadata.annotations == new.pod.metadata.annotations
    )

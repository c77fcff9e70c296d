"""KarpenterCluster: the objects that Karpenter reads, and the state that it keeps about nodes.

Objects are put and removed one by one. `nodes()` joins NodeClaims and Nodes. `version` counts all
changes. `pass_version` counts only the changes that can change the result of a provisioning pass. A
nomination, for example, does not change `pass_version`.

upstream: pkg/controllers/state/cluster.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead.api.objects import (
    ApiObject,
    CSINode,
    DaemonSet,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    StorageClass,
)
from fairlead.engine.autoscaling.karpenter.apis import (
    INSTANCE_TERMINATING,
    NodeClaim,
    NodeOverlay,
    NodePool,
)
from fairlead.engine.autoscaling.karpenter.labels import INITIALIZED
from fairlead.engine.autoscaling.karpenter.pdb import PodBudgets
from fairlead.engine.autoscaling.karpenter.pod import has_required_anti_affinity
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
    label_requirements,
)
from fairlead.engine.autoscaling.karpenter.state.consolidation_memory import ConsolidationMemory
from fairlead.engine.autoscaling.karpenter.state.joined_nodes import NOMINATION_NS, JoinedNodes
from fairlead.engine.autoscaling.karpenter.state.running_pods import RunningPods
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.storage import StorageObjects
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode
from fairlead.engine.core.instant import DurationNs, Instant

_NO_PODS: Final = PodsOnNode()

# Consolidation runs again after the spec of an object of these kinds has changed.
_RECONSIDERED: Final = (NodePool, NodeOverlay)

KarpenterObject = ApiObject | NodeClaim | NodePool | NodeOverlay


def _is_initialized(node: Node) -> bool:
    return node.metadata.labels.get(INITIALIZED) == "true"


def _read_of_node(node: Node) -> tuple[object, ...]:
    """Return the parts of a Node that a pass reads; see `StateNode`."""
    meta, spec, status = node.metadata, node.spec, node.status
    gone = meta.deletion_timestamp
    return meta.labels, gone, spec.taints, spec.provider_id, status.allocatable, status.capacity


def _read_of_claim(claim: NodeClaim) -> tuple[object, ...]:
    """Return the parts of a NodeClaim that a pass reads; see `StateNode`."""
    meta, status = claim.metadata, claim.status
    gone = meta.deletion_timestamp, claim.is_true(INSTANCE_TERMINATING)
    return meta.labels, gone, claim.spec, status.provider_id, status.allocatable, status.capacity


class KarpenterCluster:
    """The objects that Karpenter reads, the nominated nodes, and the nodes marked for deletion."""

    def __init__(self, nomination: DurationNs = NOMINATION_NS) -> None:
        """Start with an empty cluster. A nomination of a node lasts `nomination` ns."""
        self.node_pools: dict[str, NodePool] = {}
        self.node_claims: dict[str, NodeClaim] = {}
        self.node_objects: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.daemon_sets: dict[str, DaemonSet] = {}
        self.budgets: dict[str, PodDisruptionBudget] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.overlays: dict[str, NodeOverlay] = {}
        self.storage = StorageObjects()
        self.version = 0
        self.pass_version = 0
        self.memory = ConsolidationMemory()
        self.unbound_pods: dict[str, Pod] = {}
        self.anti_affinity_pods: dict[str, Pod] = {}
        self._stores: dict[type, dict[str, Any]] = {
            NodePool: self.node_pools,
            NodeOverlay: self.overlays,
            DaemonSet: self.daemon_sets,
            PodDisruptionBudget: self.budgets,
            Namespace: self.namespaces,
            PersistentVolumeClaim: self.storage.claims,
            PersistentVolume: self.storage.volumes,
            StorageClass: self.storage.classes,
            CSINode: self.storage.csi_nodes,
        }
        self._changed_claims: set[str] = set()
        self._joined = JoinedNodes(self.node_claims, self.node_objects, nomination)
        self._on_node: dict[str, dict[str, Pod]] = {}
        self._pods_on: dict[str, PodsOnNode] = {}
        self._daemon_pods: dict[str, dict[str, Pod]] = {}
        self._running_pods: RunningPods | None = None  # None after a change of a pod or Node
        self._label_requirements: dict[str, tuple[Mapping[str, str], Requirements]] = {}
        self._pod_budgets = PodBudgets(())
        self._are_budgets_current = True

    def put(self, obj: KarpenterObject, now: Instant) -> None:
        """Store the newest version of an object. Kinds that Karpenter does not read are ignored."""
        self.version += 1
        self.pass_version += self._changes_passes(obj)
        match obj:
            case Pod():
                self._put_pod(obj, now)
            case Node():
                self._put_node(obj, now)
            case NodeClaim():
                self._put_claim(obj, now)
            case _ if (store := self._stores.get(type(obj))) is not None:
                old = store.get(obj.key)
                store[obj.key] = obj
                self._are_budgets_current &= store is not self.budgets
                if isinstance(obj, NodePool):
                    self._changed_claims |= set(self.node_claims)
                if isinstance(obj, _RECONSIDERED) and (old is None or old.spec != obj.spec):
                    self.memory.change(now)

    def remove(self, obj: KarpenterObject, now: Instant) -> None:
        """Remove a deleted object."""
        self.version += 1
        if isinstance(obj, Pod):
            self.pass_version += self._changes_passes(obj)
        elif not isinstance(obj, PodDisruptionBudget):
            self.pass_version += 1
        match obj:
            case Pod():
                self._drop_pod(obj.key)
            case Node():
                self._running_pods = None
                self._label_requirements.pop(obj.key, None)
                self.node_objects.pop(obj.key, None)
                self._joined.node_removed()
            case NodeClaim():
                self.node_claims.pop(obj.key, None)
                self._joined.claim_removed(obj)
            case _ if (store := self._stores.get(type(obj))) is not None:
                store.pop(obj.key, None)
                self._are_budgets_current &= store is not self.budgets
                return
        self.memory.change(now)

    def _changes_passes(self, obj: KarpenterObject) -> bool:
        """Return whether `obj` has changed in a part that a provisioning pass reads.

        The result is always False if `obj` is a PodDisruptionBudget, because a pass does not read
        budgets. `Simulator` reads budgets to select the pods that a simulated pass must place, and
        detects changes of these pods itself.
        """
        match obj:
            case Pod():
                versions = (self.pods.get(obj.key), obj)
                names = [one.spec.node_name for one in versions if one is not None]
                return any(not name or name in self.node_objects for name in names)
            case Node():
                node = self.node_objects.get(obj.metadata.name)
                return node is None or _read_of_node(node) != _read_of_node(obj)
            case NodeClaim():
                claim = self.node_claims.get(obj.name)
                return claim is None or _read_of_claim(claim) != _read_of_claim(obj)
            case PodDisruptionBudget():
                return False
            case _:
                return type(obj) in self._stores

    def _put_node(self, node: Node, now: Instant) -> None:
        self._running_pods = None
        old = self.node_objects.get(node.metadata.name)
        self.node_objects[node.metadata.name] = node
        self._joined.node_put(node, old)
        if old is None or _is_initialized(old) != _is_initialized(node):
            self.memory.change(now)

    def _put_claim(self, claim: NodeClaim, now: Instant) -> None:
        """Store a NodeClaim.

        Consolidation runs again if the NodeClaim has a new provider id. Consolidation also runs
        again if the deletion of the NodeClaim has begun although Karpenter has not marked its node
        for deletion.
        """
        old = self.node_claims.get(claim.name)
        self.node_claims[claim.name] = claim
        self._changed_claims.add(claim.name)
        self._joined.claim_put(claim, old)
        key = claim.status.provider_id
        if old is None or old.status.provider_id != key:
            if key:
                self.memory.change(now)
        elif (
            key not in self._joined.marked
            and StateNode(old, None).deleted != StateNode(claim, None).deleted
        ):
            self.memory.change(now)

    def _put_pod(self, pod: Pod, now: Instant) -> None:
        key = pod.key
        old = self.pods.get(key)
        if pod.spec.node_name and (old is None or not old.spec.node_name):
            self.memory.change(now)
        self._drop_pod(key)
        self._running_pods = None
        self.pods[key] = pod
        if pod.spec.node_name:
            self._on_node.setdefault(pod.spec.node_name, {})[key] = pod
            self._pods_on.pop(pod.spec.node_name, None)
        else:
            self.unbound_pods[key] = pod
        if has_required_anti_affinity(pod):
            self.anti_affinity_pods[key] = pod
        for owner in pod.metadata.owner_references:
            if owner.kind == "DaemonSet" and owner.controller:
                self._daemon_pods.setdefault(owner.uid, {})[key] = pod

    def _drop_pod(self, key: str) -> None:
        old = self.pods.pop(key, None)
        if old is None:
            return
        self._running_pods = None
        on_node = self._on_node.get(old.spec.node_name)
        if on_node is not None:
            on_node.pop(key, None)
            self._pods_on.pop(old.spec.node_name, None)
        self.unbound_pods.pop(key, None)
        self.anti_affinity_pods.pop(key, None)
        for owner in old.metadata.owner_references:
            self._daemon_pods.get(owner.uid, {}).pop(key, None)

    @property
    def has_changed_claims(self) -> bool:
        """Whether `take_changed_claims` would return any names."""
        return bool(self._changed_claims)

    def take_changed_claims(self) -> set[str]:
        """Return the names of the NodeClaims that were added or changed since the last call.

        A change of any NodePool counts as a change of all NodeClaims.
        """
        found, self._changed_claims = self._changed_claims, set()
        return found

    def pods_on(self, node_name: str) -> PodsOnNode:
        """Return the pods bound to the node `node_name`, ordered by namespace and name."""
        if not self._on_node.get(node_name):
            return _NO_PODS
        found = self._pods_on.get(node_name)
        if found is None:
            pods = self._on_node[node_name]
            ordered = sorted(pods.values(), key=lambda pod: (pod.metadata.namespace, pod.key))
            found = self._pods_on[node_name] = PodsOnNode(tuple(ordered))
        return found

    def label_requirements(self, node: Node) -> Requirements:
        """Return the labels of a stored node as requirements."""
        name = node.metadata.name
        known = self._label_requirements.get(name)
        if known is None or known[0] is not node.metadata.labels:
            known = node.metadata.labels, label_requirements(node.metadata.labels)
            self._label_requirements[name] = known
        return known[1]

    @property
    def running_pods(self) -> RunningPods:
        """The pods that are running on nodes now."""
        if self._running_pods is None:
            self._running_pods = RunningPods(map(self.pods_on, self.node_objects))
        return self._running_pods

    @property
    def pod_budgets(self) -> PodBudgets:
        """The PodDisruptionBudgets as they are now."""
        if not self._are_budgets_current:
            self._pod_budgets = PodBudgets(self.budgets.values(), self._pod_budgets)
            self._are_budgets_current = True
        return self._pod_budgets

    def daemon_pods(self, owner: DaemonSet) -> Iterator[Pod]:
        """Return the existing pods of a DaemonSet."""
        return iter(self._daemon_pods.get(owner.metadata.uid, {}).values())

    def nodes(self, now: Instant) -> list[StateNode]:
        """Return a StateNode for each Node, and for each NodeClaim that has a provider id.

        A Node and a NodeClaim with the same provider id share one StateNode.
        """
        return self._joined.current(now)

    def is_synced(self) -> bool:
        """Return whether every NodeClaim has a provider id; if not, `nodes` lacks some nodes."""
        # upstream: cluster.go:Synced
        return all(one.status.provider_id for one in self.node_claims.values())

    @property
    def nominated_until(self) -> Mapping[str, Instant]:
        """The time at which the protection of each nominated node ends, by node key."""
        return self._joined.nominated_until

    def nominate(self, key: str, now: Instant) -> None:
        """Protect the node `key` from disruption for a while, because it will get a pod."""
        self.version += 1
        self._joined.nominate(key, now)

    def hold_nominations(self, keys: Iterable[str]) -> None:
        """Protect the nodes in `keys` from disruption until `release_nominations` is called."""
        self.version += 1
        self._joined.hold_nominations(keys)

    def release_nominations(self, renewed: Instant) -> bool:
        """Set an end to the protection that `hold_nominations` has given to nodes.

        The protection ends one nomination window after `renewed`. Returns whether
        `hold_nominations` was protecting any node.
        """
        self.version += 1
        return self._joined.release_nominations(renewed)

    def is_marked(self, key: str) -> bool:
        """Return whether Karpenter has decided to remove the node with this key."""
        return key in self._joined.marked

    def mark(self, keys: Iterable[str]) -> None:
        """Mark nodes for deletion, because Karpenter has decided to remove them."""
        self.version += 1
        self.pass_version += 1
        self._joined.mark(keys)

    def unmark(self, keys: Iterable[str]) -> None:
        """Revert `mark`, because the removal failed."""
        self.version += 1
        self.pass_version += 1
        self._joined.unmark(keys)

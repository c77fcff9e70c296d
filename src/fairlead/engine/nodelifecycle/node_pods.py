"""NodePods: an index of pods by the node to which they are bound."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import Pod
from fairlead.engine.core.stimulus import ObjectsLoaded


class NodePods:
    """All bound pods, by node. Includes finished pods, and pods whose node does not exist."""

    def __init__(self) -> None:
        self._by_node: dict[str, Mapping[str, Pod]] = {}
        self._known: dict[str, Pod] = {}
        self._own: dict[str, dict[str, Pod]] = {}  # values of `_by_node` that this index may change

    def load(self, loaded: ObjectsLoaded) -> None:
        """Store the pods that were loaded at the start."""
        if self._known:
            for pod in loaded.bound.values():
                self.put(pod)
            return
        # Other indexes share the dictionary of each node; it is copied before this index changes
        # it.
        self._by_node = dict(loaded.bound_pods)
        self._known = loaded.bound.copy()

    def put(self, pod: Pod) -> Pod | None:
        """Store `pod` if it is bound; return the version that was stored before, or None."""
        key, node = pod.key, pod.spec.node_name
        before = self._known.get(key)
        if before is not None and before.spec.node_name != node:
            self._take_off(before)
        if node:
            self._known[key] = pod
            self._pods_of(node)[key] = pod
        return before

    def remove(self, pod: Pod) -> Pod | None:
        """Remove `pod`; return its last bound version, or None."""
        before = self._known.get(pod.key)
        if before is not None:
            self._take_off(before)
        return before

    def _take_off(self, pod: Pod) -> None:
        del self._known[pod.key]
        there = self._pods_of(pod.spec.node_name)
        del there[pod.key]
        if not there:
            del self._by_node[pod.spec.node_name], self._own[pod.spec.node_name]

    def _pods_of(self, node: str) -> dict[str, Pod]:
        """Return the pods on `node`, as a dictionary that the caller may change."""
        own = self._own.get(node)
        if own is None:
            there = self._by_node.get(node, {})
            # The copy of a LazyDict stays lazy: pods that were not read yet are not created.
            own = there.copy() if isinstance(there, LazyDict) else dict(there)
            self._by_node[node] = self._own[node] = own
        return own

    def get(self, key: str) -> Pod | None:
        """Return the pod with the key `key`; None if no bound pod has this key."""
        return self._known.get(key)

    def on(self, node: str) -> list[Pod]:
        """Return the pods bound to `node`, ordered by namespace and name."""
        there = self._by_node.get(node, {})
        return [there[key] for key in sorted(there)]

    def nodes(self) -> list[str]:
        """Return the sorted names of nodes to which pods are bound; a Node need not exist."""
        return sorted(self._by_node)

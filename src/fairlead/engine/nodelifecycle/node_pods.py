"""NodePods: an index of pods by the node to which they are bound."""

from __future__ import annotations

from fairlead.api.objects import Pod
from fairlead.engine.core.stimulus import ObjectsLoaded


class NodePods:
    """All bound pods, by node. Includes finished pods, and pods whose node does not exist.

    Controllers may share an instance. Each of them calls the methods for each change of a pod, as
    if it had its own instance. The first of these calls changes the index, and the other calls
    return the same result.
    """

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}  # by pod key
        self._latest: Pod | ObjectsLoaded | None = None  # stored last; None after a removal
        self._replaced: Pod | None = None  # by `_latest`, if this is a pod

    def load(self, loaded: ObjectsLoaded) -> None:
        """Store the pods that were loaded at the start."""
        if loaded is self._latest:
            return
        if self._node_of:
            for pod in loaded.bound.values():
                self.put(pod)
        else:
            self._by_node = loaded.bound_pods.copy()
            self._node_of = loaded.bound_nodes.copy()
        self._latest = loaded

    def put(self, pod: Pod) -> Pod | None:
        """Store `pod` if it is bound; return the bound version that it replaces, or None."""
        if pod is self._latest:
            return self._replaced
        key, node = pod.key, pod.spec.node_name
        was = self._node_of.get(key)
        there = {} if was is None else self._by_node[was]
        before = there.get(key)
        if was == node:
            there[key] = pod
        else:
            self._take_off(key)
            if node:
                self._node_of[key] = node
                self._by_node.setdefault(node, {})[key] = pod
        self._latest, self._replaced = pod, before
        return before

    def remove(self, pod: Pod) -> None:
        """Remove `pod`."""
        self._latest = None
        self._take_off(pod.key)

    def _take_off(self, key: str) -> None:
        node = self._node_of.pop(key, "")
        if not node:
            return
        there = self._by_node[node]
        del there[key]
        if not there:
            del self._by_node[node]

    def get(self, key: str) -> Pod | None:
        """Return the pod with the key `key`; None if no bound pod has this key."""
        node = self._node_of.get(key)
        return None if node is None else self._by_node[node][key]

    def on(self, node: str) -> list[Pod]:
        """Return the pods bound to `node`, ordered by namespace and name."""
        there = self._by_node.get(node, {})
        return [there[key] for key in sorted(there)]

    def nodes(self) -> list[str]:
        """Return the sorted names of nodes with bound pods, even if no such Node object exists."""
        return sorted(self._by_node)

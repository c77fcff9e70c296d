"""NodePods: the newest version of every pod that has a node, by node."""

from __future__ import annotations

from fairlead.api.objects import Pod


class NodePods:
    """Pods by the node they are bound to, finished ones too; whether that node exists is open."""

    def __init__(self) -> None:
        """Start without pods."""
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._known: dict[str, Pod] = {}

    def put(self, pod: Pod) -> Pod | None:
        """Take in a new version of `pod`; gives back the one it replaces, if any."""
        key, node = pod.key, pod.spec.node_name
        before = self._known.get(key)
        if before is not None and before.spec.node_name != node:
            self._take_off(before)
        if node:
            self._known[key] = pod
            self._by_node.setdefault(node, {})[key] = pod
        return before

    def remove(self, pod: Pod) -> Pod | None:
        """Forget `pod`; gives back its last version, if it had a node."""
        before = self._known.get(pod.key)
        if before is not None:
            self._take_off(before)
        return before

    def _take_off(self, pod: Pod) -> None:
        del self._known[pod.key]
        there = self._by_node[pod.spec.node_name]
        del there[pod.key]
        if not there:
            del self._by_node[pod.spec.node_name]

    def get(self, key: str) -> Pod | None:
        """The pod called `key` if it has a node."""
        return self._known.get(key)

    def on(self, node: str) -> list[Pod]:
        """The pods on `node`, in order of namespace and name."""
        there = self._by_node.get(node, {})
        return [there[key] for key in sorted(there)]

    def nodes(self) -> list[str]:
        """The nodes that have pods, existing or not, in order."""
        return sorted(self._by_node)

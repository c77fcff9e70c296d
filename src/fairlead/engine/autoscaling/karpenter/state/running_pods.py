"""RunningPods: counts, for each node, the running pods that a selector matches.

The counts of a selector are cached, because many simulations of disruptions need them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping

from fairlead.api.objects import LabelSelector, Pod
from fairlead.api.selector import selector_matches
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode


class RunningPods:
    """The pods that have a node and are neither terminated nor terminating."""

    def __init__(self, nodes: Iterable[PodsOnNode]) -> None:
        """Group the pods on `nodes` by namespace. The pods must not change afterwards."""
        self._by_namespace: dict[str, list[Pod]] = {}
        for on_node in nodes:
            for pod in on_node.active:
                self._by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        self._by_key: dict[str, Pod] | None = None
        self._counts: dict[Hashable, Counter[str]] = {}

    def find(self, keys: Iterable[str]) -> list[Pod]:
        """Return the running pods with `keys`; the key of a pod is its `namespace/name`."""
        if self._by_key is None:
            self._by_key = {pod.key: pod for pods in self._by_namespace.values() for pod in pods}
        known = self._by_key
        return [known[key] for key in keys if key in known]

    def counts(
        self,
        namespaces: Collection[str],
        selector: LabelSelector | None,
        identity: Hashable,
    ) -> Mapping[str, int]:
        """Return {node name: number of its pods in `namespaces` that `selector` matches}.

        The selector None matches all pods. `identity` is the cache key: calls with the same
        `identity` must have the same `namespaces` and `selector`.
        """
        found = self._counts.get(identity)
        if found is None:
            found = self._counts[identity] = Counter(
                pod.spec.node_name
                for namespace in namespaces
                for pod in self._by_namespace.get(namespace, ())
                if selector is None or selector_matches(selector, pod.metadata.labels)
            )
        return found

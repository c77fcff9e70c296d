"""PodNodeIndex: the keys of the pods on each node.

Every kubelet lists the pods with `fieldSelector=spec.nodeName=...`. Without the index, each of
these lists would read all pods.

upstream: pkg/registry/core/pod/strategy.go:NodeNameIndexFunc
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

Key = tuple[str, str]  # namespace, name


class _Spec(msgspec.Struct):
    node_name: str | None = msgspec.field(default=None, name="nodeName")


class _Pod(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode: Final = msgspec.json.Decoder(_Pod).decode


class PodNodeIndex:
    """The keys of the pods on each node, in the order in which the pods were indexed."""

    def __init__(self, pods: Iterable[tuple[Key, Any]]) -> None:
        """Index `pods`, which are pairs of a key and a JSON value or text."""
        self._nodes: dict[Key, str] = {}
        self._keys: dict[str, dict[Key, None]] = {}
        for key, pod in pods:
            self.put(key, pod)

    def on(self, node: str) -> Iterable[Key]:
        """Return the keys of the pods whose spec.nodeName is `node`; `node` must not be empty."""
        return self._keys.get(node, ())

    def put(self, key: Key, pod: Any) -> None:
        """Index a pod; `pod` is its newest version as a JSON value or JSON text."""
        node = _node_of(pod)
        before = self._nodes.get(key, "")
        if node == before:
            return
        self.remove(key)
        if node:
            self._nodes[key] = node
            self._keys.setdefault(node, {})[key] = None

    def remove(self, key: Key) -> None:
        """Remove a pod, if it is indexed."""
        node = self._nodes.pop(key, None)
        if node is None:
            return
        keys = self._keys[node]
        del keys[key]
        if not keys:
            del self._keys[node]


def _node_of(pod: Any) -> str:
    if isinstance(pod, bytes):
        return _decode(pod).spec.node_name or ""
    return str((pod.get("spec") or {}).get("nodeName") or "")

"""KarpenterAuditor: checks Karpenter's commands against the NodePools that the engine received.

    a Node is disrupted       the budgets of its NodePool allow it, and no pod on it is protected
    a pod is evicted          the pod is not protected
    a NodeClaim is created    the limits of its NodePool allow it

A Node has the name of its NodeClaim. A protected pod has the annotation do-not-disrupt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from fairlead.api.json import Json
from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.objects import ApiObject, Node, Pod, Unstructured
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.api.quantity import whole_value
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT, INITIALIZED, NODE_POOL
from fairlead.engine.core.command import (
    CreateObject,
    DeleteObject,
    EvictPod,
    IssuedCommand,
    ObjectRef,
    PatchObject,
    RecordEvent,
)
from fairlead.engine.core.issuer import Component
from fairlead.testing.torture.karpenter_scenario import CORES
from fairlead.testing.torture.law import Law, LawBrokenError


class KarpenterAuditor:
    """Checks the commands of Karpenter; raises LawBrokenError if a command breaks a `Law`."""

    def __init__(
        self,
        checked: Counter[str],
        nodes: Mapping[str, Node],
        pods: Mapping[str, Pod],
        pods_on: Callable[[str], Iterator[Pod]],
    ) -> None:
        """Start without NodePools; `checked` counts the checks of each `Law`, by its name.

        `nodes` (by name) and `pods` (by uid) are the objects that the engine has received.
        `pods_on` returns the pods of a node. The caller keeps all three up to date.
        """
        self._checked = checked
        self._nodes = nodes
        self._pods = pods
        self._pods_on = pods_on
        self._pools: dict[str, Json] = {}
        self._claims: dict[str, tuple[str, int]] = {}  # by name: (NodePool, cores)
        self._ending: set[str] = set()  # NodeClaims that are being deleted
        self._disrupted: set[str] = set()  # Nodes of which the disruption has begun

    # --- what the engine received -----------------------------------------------------------

    def observe(self, view: ApiObject) -> None:
        """Store a NodePool or a NodeClaim; ignore other objects."""
        if not isinstance(view, Unstructured):
            return
        if view.kind == "NodePool":
            self._pools[view.metadata.name] = view.spec
        elif view.kind == "NodeClaim":
            self._add_claim(view.metadata.name, view.metadata.labels)
            if view.metadata.deletion_timestamp:
                self._ending.add(view.metadata.name)

    def forget(self, view: ApiObject) -> None:
        """Forget a deleted Node, NodePool or NodeClaim; ignore other objects."""
        name = view.metadata.name
        if isinstance(view, Node):
            self._disrupted.discard(name)
            self.drop_claim(name)
        elif isinstance(view, Unstructured) and view.kind == "NodePool":
            self._pools.pop(name, None)
        elif isinstance(view, Unstructured) and view.kind == "NodeClaim":
            self.drop_claim(name)

    def drop_claim(self, name: str) -> None:
        """Remove a NodeClaim that was deleted or whose creation the API server refused."""
        self._claims.pop(name, None)
        self._ending.discard(name)

    def _add_claim(self, name: str, labels: Mapping[str, str]) -> None:
        cores = CORES.get(labels.get(INSTANCE_TYPE, ""), 0)
        self._claims[name] = labels.get(NODE_POOL, ""), cores

    # --- laws -------------------------------------------------------------------------------

    def check(self, issued: Sequence[IssuedCommand]) -> None:
        """Check the commands that were issued together."""
        begun: list[str] = []
        for one in issued:
            if one.issuer.component is not Component.KARPENTER:
                continue
            match one.command:
                case RecordEvent(regarding=ref, reason="DisruptionTerminating") if (
                    ref.kind == "Node"
                ):
                    begun.append(ref.name)
                case EvictPod(pod=ref):
                    pod = self._pods.get(ref.uid)
                    safe = pod is None or not _is_protected(pod)
                    self._require(safe, Law.DO_NOT_DISRUPT, f"{ref.key} is evicted")
                case PatchObject(ObjectRef(kind="Node", name=name), patch):
                    taints = patch.get("spec", {}).get("taints") or ()
                    if not any(taint["key"] == DISRUPTED_TAINT for taint in taints):
                        self._disrupted.discard(name)
                case DeleteObject(ObjectRef(kind="NodeClaim", name=name)):
                    self._ending.add(name)
                case _:
                    pass
        self._disrupted.update(begun)
        self._check_disruptions(begun)
        for one in issued:
            if isinstance(one.command, CreateObject) and one.command.target.kind == "NodeClaim":
                self._check_limit(one.command.manifest["metadata"])

    def _check_disruptions(self, begun: list[str]) -> None:
        for name in begun:
            held = [pod.key for pod in self._pods_on(name) if _is_protected(pod)]
            self._require(not held, Law.DO_NOT_DISRUPT, f"{name} is disrupted in spite of {held}")
        for pool in sorted({self._pool_of(name) for name in begun} & self._pools.keys()):
            names = [name for name in self._nodes if self._pool_of(name) == pool]
            usual = [name for name in names if self._nodes[name].metadata.labels.get(INITIALIZED)]
            away = [name for name in usual if self._is_away(name)]
            limits = [_count(one["nodes"], len(usual)) for one in self._budgets_of(pool)]
            allowed = min(limits, default=len(usual))
            message = f"{pool}: {sorted(away)} of {len(usual)} nodes, allowed: {allowed}"
            self._require(len(away) <= allowed, Law.NODE_BUDGET, message)

    def _pool_of(self, name: str) -> str:
        node = self._nodes.get(name)
        return "" if node is None else node.metadata.labels.get(NODE_POOL, "")

    def _budgets_of(self, pool: str) -> list[Json]:
        """Return the budgets of `pool` that apply to every disruption reason."""
        budgets = self._pools[pool]["disruption"]["budgets"]
        return [one for one in budgets if not one.get("reasons")]

    def _is_away(self, name: str) -> bool:
        ready = condition(self._nodes[name], "Ready")
        is_ready = ready is not None and ready.status == "True"
        return not is_ready or name in self._ending or name in self._disrupted

    def _check_limit(self, metadata: Json) -> None:
        name, is_adopted = metadata["name"], metadata["name"] in self._nodes
        self._add_claim(name, metadata["labels"])
        pool, cores = self._claims[name]
        limit = self._pools.get(pool, {}).get("limits", {}).get("cpu")
        if is_adopted or limit is None:
            return
        left = self._claims.keys() - self._ending - self._disrupted
        total = sum(size for one, (of, size) in self._claims.items() if of == pool and one in left)
        message = f"{pool}: {name} with {cores} cores makes {total} of {limit}"
        self._require(total <= whole_value(limit), Law.POOL_LIMIT, message)

    def _require(self, holds: bool, law: Law, message: str) -> None:  # noqa: FBT001
        self._checked[law.name] += 1
        if not holds:
            raise LawBrokenError(law, message)


def _is_protected(pod: Pod) -> bool:
    is_marked = pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true"
    return is_marked and not is_terminal(pod) and not is_terminating(pod)


def _count(text: str, nodes: int) -> int:
    """Return the number of nodes that the budget `text` allows, out of `nodes`.

    A percentage is rounded up.
    """
    return -(-nodes * int(text[:-1]) // 100) if text.endswith("%") else int(text)

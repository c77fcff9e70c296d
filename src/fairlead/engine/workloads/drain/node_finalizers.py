"""NodeFinalizers: removes the finalizers of nodes that are being deleted.

The programs that add finalizers to nodes, such as Karpenter and Rancher, also remove them after a
deletion request. A simulation has none of these programs, except possibly a simulated Karpenter.
If this controller did not run, a deletion of a node would never end, and the node's pods would not
be replaced on other nodes. The action depends on the finalizer:

    karpenter.sh/termination   is removed after a drain like Karpenter's (`drain.controller`)
    others                     are removed immediately if the deletion is requested in the
                               simulation

If a node is already being deleted when the objects are loaded, its finalizers stay, except
Karpenter's. The programs that added these finalizers have not removed them since the deletion
request, and may never remove them. As in a real cluster, the node then keeps its pods, and the
scheduler places more pods on it.

A simulated Karpenter drains its nodes and removes its finalizer itself.

upstream: sigs.k8s.io/karpenter pkg/controllers/node/termination/controller.go:finalize
"""

from __future__ import annotations

from typing import ClassVar

from fairlead.api.finalizer import TERMINATION
from fairlead.api.objects import Node
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.controller import NoDeadlines
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded, Stimulus
from fairlead.engine.workloads.node_annotation import DONE, DRAIN, REQUESTED


class NodeFinalizers(NoDeadlines):
    """Removes finalizers of terminating nodes; first drains nodes that Karpenter would drain."""

    issuer: ClassVar[Issuer] = controller_account("node-controller")
    interest: ClassVar[Interest] = Interest(changed=(Node,), deleted=(), succeeded=(), failed=())

    def __init__(self, *, drains: bool) -> None:
        """`drains` determines what happens to a terminating node with Karpenter's finalizer.

        If `drains` is True, the node is drained and then loses this finalizer. If `drains` is
        False, the node keeps the finalizer.
        """
        self._drains = drains
        # {uid of a node that was being deleted when it was loaded: its finalizers that stay}
        self._held: dict[str, frozenset[str]] = {}

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for each node in `stimulus` that is being deleted."""
        if type(stimulus) is ObjectChanged:
            changed = stimulus.object
            return self._observe(changed) if type(changed) is Node else []
        match stimulus:
            case ObjectsLoaded():
                nodes = [one for one in stimulus.others if isinstance(one, Node)]
                for meta in (one.metadata for one in nodes if one.metadata.deletion_timestamp):
                    self._held[meta.uid] = frozenset(meta.finalizers) - {TERMINATION}
                return [command for node in nodes for command in self._observe(node)]
            case _:
                return []

    def _observe(self, node: Node) -> list[Command]:
        meta = node.metadata
        if not meta.deletion_timestamp or not meta.finalizers:
            return []
        drain = meta.annotations.get(DRAIN)
        is_drained = self._drains and drain == DONE
        held = self._held.get(meta.uid, frozenset())
        kept = [
            one for one in meta.finalizers if one in held or (one == TERMINATION and not is_drained)
        ]
        change: dict[str, object] = {}
        if len(kept) < len(meta.finalizers):
            change["finalizers"] = kept or None
        if TERMINATION in kept and self._drains and drain is None:
            change["annotations"] = {DRAIN: REQUESTED}
        ref = ObjectRef("Node", "", meta.name, meta.uid)
        return [PatchObject(ref, {"metadata": change})] if change else []

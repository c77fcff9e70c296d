"""Nodes that were being removed when the dump was taken, so their pods will need other nodes soon.

    being deleted            the Node has a deletionTimestamp
    by Cluster Autoscaler    a taint with the time at which the removal began
    by Karpenter             the taint karpenter.sh/disrupted. When Karpenter deletes the NodeClaim,
                             the Node is being deleted, too (first line)
    by the cloud provider    a taint that announces the end of the machine, for example the
                             interruption of a spot machine (STOPPED_BY_PROVIDER)

A taint of Cluster Autoscaler that is older than five minutes does not count. Such a taint is left
over from a failed removal.

upstream: cluster-autoscaler core/scaledown/actuation/delete_in_batch.go: IsNodeBeingDeleted,
karpenter pkg/controllers/disruption/queue.go: StartCommand,
aws-node-termination-handler pkg/node/node.go
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.finalizer import TERMINATION
from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT, TO_BE_DELETED
from fairlead.api.objects import Node
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import Instant
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_lifecycle.starting_node import nodes_of, valid_node

STOPPED_BY_PROVIDER: Final = frozenset(
    {
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "cloud.google.com/impending-node-termination",
    }
)
"""The keys of taints that announce that the cloud provider stops the machine in a few minutes."""
_NAMED_MAX: Final = 3


def leaving_nodes(manifests: Iterable[Manifest], at: Instant) -> list[str]:
    """Return the nodes that were being removed at `at`."""
    return [
        one.metadata.name
        for one in _nodes(manifests)
        if one.metadata.deletion_timestamp
        or _is_removed(one, at, by_cluster_autoscaler=True, by_karpenter=True)
    ]


def nodes_to_be_deleted(
    manifests: Iterable[Manifest], at: Instant, *, by_cluster_autoscaler: bool, by_karpenter: bool
) -> list[str]:
    """Return the nodes that were being removed at `at`, but that a simulation does not remove.

    Nodes that are being deleted by Karpenter are left out, because a simulation continues the
    deletion. Other nodes with a deletionTimestamp are included, because a simulation does not
    remove their finalizers.

    If `by_cluster_autoscaler` or `by_karpenter` is False, the nodes that this autoscaler tainted
    for removal are left out. Callers pass False for a simulated autoscaler, because it removes its
    taints at the start and decides again.
    """
    return [
        one.metadata.name
        for one in _nodes(manifests)
        if not _is_deleted_by_karpenter(one)
        and (
            one.metadata.deletion_timestamp
            or _is_removed(
                one, at, by_cluster_autoscaler=by_cluster_autoscaler, by_karpenter=by_karpenter
            )
        )
    ]


def leaving_note(names: Sequence[str], deleted: Container[str] = ()) -> tuple[str, ...]:
    """Return notes about the nodes `names`, which were being removed.

    The notes say that the nodes stay in the answer. A separate note about the nodes in `deleted`
    says that these nodes stay in the run without the change.
    """
    staying = [name for name in names if name not in deleted]
    gone = [name for name in names if name in deleted]
    notes = []
    if staying:
        stay = "it stays, with its taints" if len(staying) == 1 else "they stay, with their taints"
        notes.append(f"{_removed(staying)}; the answer assumes that {stay}.")
    if gone:
        stay = "it stays" if len(gone) == 1 else "they stay"
        notes.append(f"{_removed(gone)}; without the change, the answer assumes that {stay}.")
    return tuple(notes)


def _removed(names: Sequence[str]) -> str:
    was = "was" if len(names) == 1 else "were"
    return f"{listed(names, _NAMED_MAX)} {was} being removed when the dump was taken"


def leaving_notes(
    manifests: Iterable[Manifest],
    at: Instant,
    *,
    by_cluster_autoscaler: bool,
    by_karpenter: bool,
    deleted: Container[str] = (),
) -> tuple[str, ...]:
    """Return the notes of a simulation about the nodes that were being removed or deleted at `at`.

    If `by_cluster_autoscaler` or `by_karpenter` is False, the nodes that this autoscaler tainted
    for removal are left out. `deleted` are the nodes that the change deletes.
    """
    names = nodes_to_be_deleted(
        manifests, at, by_cluster_autoscaler=by_cluster_autoscaler, by_karpenter=by_karpenter
    )
    return (*leaving_note(names, deleted), *drained_notes(manifests))


def drained_notes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note about the nodes that Karpenter was deleting, if any.

    A simulation drains these nodes, and then `engine.workloads.drain.node_finalizers` removes the
    finalizer of Karpenter.
    """
    drained = [one.metadata.name for one in _nodes(manifests) if _is_deleted_by_karpenter(one)]
    if drained:
        was, it = ("was", "it") if len(drained) == 1 else ("were", "them")
        yield (
            f"{listed(drained, _NAMED_MAX)} {was} being deleted when the dump was taken; the "
            f"simulation continues Karpenter's drain of {it}."
        )


def _is_deleted_by_karpenter(node: Node) -> bool:
    """Return whether `node` has a deletionTimestamp and the finalizer of Karpenter."""
    return bool(node.metadata.deletion_timestamp) and TERMINATION in node.metadata.finalizers


def _is_removed(
    node: Node, at: Instant, *, by_cluster_autoscaler: bool, by_karpenter: bool
) -> bool:
    """Return whether `node` was being removed at `at`; see `nodes_to_be_deleted`."""
    keys = {one.key for one in node.spec.taints}
    if not keys.isdisjoint(STOPPED_BY_PROVIDER):
        return True
    if by_cluster_autoscaler and TO_BE_DELETED in keys:
        # Imported only if it is needed.
        from fairlead.engine.autoscaling.cluster_autoscaler.taint import (  # noqa: PLC0415
            is_being_deleted,
        )

        return is_being_deleted(node, at)
    return by_karpenter and DISRUPTED_TAINT in keys


def _nodes(manifests: Iterable[Manifest]) -> Iterator[Node]:
    yield from filter(None, map(valid_node, nodes_of(manifests)))

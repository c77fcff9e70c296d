"""Nodes that were starting when the dump was taken; answers assume that they have started.

A node is starting if it is younger than STARTING_MAX, and its Ready condition

    has been False since the node registered, so the node has never been Ready
    is True or absent, but the node has a taint that is removed at the end of a start

Such nodes are rewritten once, after the dump is read (`started_node`). A node that was Ready
before, or whose Ready condition is Unknown, has failed. It stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from fairlead.api.kubelet_behaviour import KUBELET
from fairlead.api.objects import Node
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.nodelifecycle.well_known import FALSE, READY, TRUE, ready_status
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest, entries_of

# upstream: cluster-autoscaler/config/flags/flags.go: max-node-provision-time,
# karpenter pkg/controllers/nodeclaim/lifecycle/liveness.go: registrationTimeout
STARTING_MAX: Final[DurationNs] = seconds(15 * 60)
# A kubelet posts its first conditions when it registers. Its clock may differ from that of the
# API server, which sets the creationTimestamp.
_REGISTRATION_MAX: Final[DurationNs] = seconds(10)


def starting_nodes(manifests: Iterable[Manifest], taken_at: Instant) -> dict[str, Node]:
    """Return the nodes in `manifests` that may be starting at `taken_at`, by name.

    A node whose Ready condition is True or absent is starting only if one of its taints is a
    startup taint; this is not checked here.
    """
    found = (
        node
        for one in nodes_of(manifests)
        if (node := _unfinished(one)) is not None and _may_be_starting(node, taken_at)
    )
    return {node.metadata.name: node for node in found}


def nodes_of(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """Yield the Nodes in `manifests`."""
    for one in entries_of(manifests):
        if isinstance(one, Manifest) and one.kind is NODE:
            yield one


def _unfinished(manifest: Manifest) -> Node | None:
    """Return the node in `manifest`; None if it is Ready and has no taints, or is not valid.

    Nodes of a YAML dump have no view. Most of them are Ready and are not decoded.
    """
    node = manifest.view
    if isinstance(node, Node):
        return node if node.spec.taints or ready_status(node) != TRUE else None
    match manifest.value:
        case {"spec": {"taints": [_, *_]}}:
            return valid_node(manifest)
        case {"status": {"conditions": [*conditions]}} if any(map(_is_ready, conditions)):
            return None
    return valid_node(manifest)


def _is_ready(posted: object) -> bool:
    match posted:
        case {"type": "Ready", "status": "True"}:
            return True
    return False


def valid_node(manifest: Manifest) -> Node | None:
    """Return the node in `manifest`; None if it is not valid, which is reported later."""
    with suppress(InputError):
        return manifest.node
    return None


def _may_be_starting(node: Node, now: Instant) -> bool:
    """Return whether the age of `node` and its Ready condition are those of a starting node.

    A node that sets the state of its simulated kubelet in an annotation is not starting.
    """
    meta = node.metadata
    if not meta.creation_timestamp or meta.deletion_timestamp or KUBELET in meta.annotations:
        return False
    created = parse_timestamp(meta.creation_timestamp)
    if now - created >= STARTING_MAX:
        return False
    ready = condition(node, READY)
    if ready is None or ready.status == TRUE:
        return True
    since = ready.last_transition_time
    is_first = bool(since) and parse_timestamp(since) <= created + _REGISTRATION_MAX
    return ready.status == FALSE and is_first

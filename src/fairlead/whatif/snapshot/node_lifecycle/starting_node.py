"""Nodes that were starting when the dump was taken; answers assume that they have started.

A node is starting if it is younger than STARTING_MAX, and one of these lines is true:

    its Ready condition has been False since it registered, so it has never been Ready
    its Ready condition is True, but it has startup taints, or its devices are not reported yet
    its Ready condition is absent, and it has startup taints

Starting nodes are rewritten once, after the dump is read (`started_node`). Failed nodes are not
rewritten: their Ready condition is Unknown, or became False only after the node had registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.nodes.readiness import FALSE, READY, TRUE
from fairlead.api.objects import Node
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.instant import DurationNs, Instant, seconds
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

    Some of these nodes may have started already: `with_started_nodes` checks their startup taints
    and devices later.
    """
    young = (one for one in nodes_of(manifests) if _is_young(one, taken_at))
    found = [one for one in filter(None, map(valid_node, young)) if _may_be_starting(one)]
    if all(map(_is_unfinished, found)):
        return {node.metadata.name: node for node in found}
    devices = _devices(manifests)
    return {
        node.metadata.name: node
        for node in found
        if _is_unfinished(node) or devices - _names_of_devices(node.status.allocatable)
    }


def _is_unfinished(node: Node) -> bool:
    """Return whether `node` has taints, or a Ready condition that is not True."""
    ready = condition(node, READY)
    return bool(node.spec.taints) or (ready is not None and ready.status != TRUE)


def _devices(manifests: Iterable[Manifest]) -> set[str]:
    """Return the names of the extended resources of all nodes and NodeClaims in `manifests`."""
    found: set[str] = set()
    for one in entries_of(manifests):
        if isinstance(one, Manifest) and isinstance(one.view, Node):
            found |= _names_of_devices(one.view.status.allocatable)
        elif isinstance(one, Manifest) and one.kind.kind in ("Node", "NodeClaim"):
            match one.value:
                case {"status": {"allocatable": dict(allocatable)}}:
                    found |= _names_of_devices(allocatable)
    return found


def _names_of_devices(amounts: Mapping[str, Any]) -> set[str]:
    """Return the names of the extended resources with an amount in `amounts`."""
    return {name for name, amount in amounts.items() if "/" in name and str(amount) != "0"}


def nodes_of(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """Yield the Nodes in `manifests`."""
    for one in entries_of(manifests):
        if isinstance(one, Manifest) and one.kind is NODE:
            yield one


def valid_node(manifest: Manifest) -> Node | None:
    """Return the node in `manifest`; None if it is not valid, which is reported later."""
    with suppress(InputError):
        return manifest.node
    return None


def _is_young(node: Manifest, now: Instant) -> bool:
    """Return whether `node` is younger than STARTING_MAX.

    The creation time is read from the view of `node`. If `node` has no view, for example because
    it comes from a YAML dump, the time is read from its JSON value.
    """
    view = node.view
    created = (
        node.value["metadata"].get("creationTimestamp")
        if view is None
        else view.metadata.creation_timestamp
    )
    at = _instant(created)
    return at is not None and now - at < STARTING_MAX


def _instant(text: Any) -> Instant | None:
    """Return the time `text`; None if it is not valid, which is reported later."""
    with suppress(ValueError):
        return parse_timestamp(text) if isinstance(text, str) else None
    return None


def _may_be_starting(node: Node) -> bool:
    """Return whether the young node `node` has the Ready condition of a starting node.

    A node with an annotation that sets the state of its simulated kubelet is not starting.
    """
    meta, ready = node.metadata, condition(node, READY)
    if meta.deletion_timestamp or KUBELET in meta.annotations:
        return False
    if ready is None or ready.status == TRUE:
        return True
    created, since = _instant(meta.creation_timestamp), _instant(ready.last_transition_time)
    is_first = created is not None and since is not None and since <= created + _REGISTRATION_MAX
    return ready.status == FALSE and is_first

"""NodeViews: typed views of the nodes in a store; views of successive versions share equal parts.

Most writes change either the taints or the conditions of a node. As in `pod_views`, only the
changed parts are decoded. A node's status contains the list of its images, so decoding the whole
status takes most of the time that it takes to decode a node.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.api.codec import decode
from fairlead.api.objects import ApiObject, Node, NodeCondition, NodeSpec
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.worlds.pod_views import (
    VERSION,
    HasConditions,
    decoded_part,
    next_metadata,
    next_status,
)


class _Conditions(HasConditions):
    conditions: tuple[NodeCondition, ...]


class NodeViews:
    """The newest views of existing nodes."""

    def __init__(self) -> None:
        """Start without nodes."""
        self._newest: dict[str, Node] = {}  # by uid

    def load(self, objects: Iterable[ApiObject]) -> None:
        """Add the views of the nodes among `objects`, the initial objects of a store."""
        nodes = (one for one in objects if isinstance(one, Node))
        self._newest.update((node.metadata.uid, node) for node in nodes)

    def newest(self, uid: str) -> Node | None:
        """Return the newest view of the node with this uid, or None if no node has this uid."""
        return self._newest.get(uid)

    def put(self, view: Node) -> None:
        """Replace the newest view of a node by `view`."""
        self._newest[view.metadata.uid] = view

    def forget(self, view: Node) -> None:
        """Remove `view`, the newest view of a deleted node."""
        self._newest.pop(view.metadata.uid, None)

    def view_of(self, change: StoredChange) -> ApiObject:
        """Return the view of the node in `change`. Raises DecodeError."""
        uid = change.object["metadata"]["uid"]
        before = self._newest.get(uid)
        made = None if before is None else _successor(before, change)
        view = decode(change.object) if made is None else made
        if change.type is ChangeType.DELETED:
            self._newest.pop(uid, None)
        elif isinstance(view, Node):
            self._newest[uid] = view
        return view


def _successor(before: Node, change: StoredChange) -> Node | None:
    """Return the view of a node after `change`; None if the whole node must be decoded.

    The view is made from `before`, an earlier view of the node.
    """
    old, new = change.previous, change.object
    if old is None or old["metadata"][VERSION] != before.metadata.resource_version:
        return None
    spec, is_same_spec = before.spec, new.get("spec") is old.get("spec")
    return Node(
        metadata=next_metadata(before.metadata, old["metadata"], new["metadata"]),
        spec=spec if is_same_spec else decoded_part(NodeSpec, new.get("spec", {})),
        status=next_status(
            before.status, _Conditions, old.get("status", {}), new.get("status", {})
        ),
    )

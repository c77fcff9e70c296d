"""NodeViews: typed views of the nodes in a store; views of successive versions share equal parts.

Most writes change either the taints or the conditions of a node. As in `pod_views`, only the
changed parts are decoded. A node's status contains the list of its images, so decoding all of it
takes most of the time.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import force_setattr

from fairlead.api.codec import decode
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Node, NodeCondition, NodeSpec, NodeStatus
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.worlds.pod_views import (
    CONDITIONS,
    VERSION,
    decoded_part,
    differs_only_in,
    next_metadata,
)


class _Conditions(Struct):
    """The conditions of a node, which change more often than the rest of its status."""

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
        status=_next_status(before.status, old.get("status", {}), new.get("status", {})),
    )


def _next_status(before: NodeStatus, old: Json, new: Json) -> NodeStatus:
    """Return the view of the status `new`; `before` is the view of the previous status `old`."""
    if old is new:
        return before
    if "conditions" not in new or not differs_only_in(CONDITIONS, old, new):
        return decoded_part(NodeStatus, new)
    status: NodeStatus = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
    force_setattr(status, "conditions", decoded_part(_Conditions, new).conditions)
    return status

"""How long a kubelet may keep what it has read of ConfigMaps and Secrets: a note on each node.

The more nodes there are, the longer; so that the number is not always changed where it stands on a
border, going down takes fewer nodes than going up.

upstream: pkg/controller/ttl/ttl_controller.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.kind import NODE
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import Instant
from fairlead.worlds.local.field_manager import controllers_write

ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"
# From how many nodes on, up to how many, how many seconds.
_STEPS: Final = (
    (0, 100, 0),
    (90, 500, 15),
    (450, 1_000, 30),
    (900, 2_000, 60),
    (1_800, 1 << 62, 300),
)


class NodeTtl:
    """Sees to all nodes."""

    def __init__(self) -> None:
        """There is none."""
        self._count = 0
        self._step = 0

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant; a node that changes learns what holds now."""
        if change.kind is not NODE:
            return
        self._count += (change.type is ChangeType.ADDED) - (change.type is ChangeType.DELETED)
        while self._count > _STEPS[self._step][1]:
            self._step += 1
        while self._count < _STEPS[self._step][0]:
            self._step -= 1
        if change.type is not ChangeType.DELETED:
            self._note(change.object["metadata"]["name"], store, now)

    def _note(self, name: str, store: Store, now: Instant) -> None:
        node, ttl = store.find(NODE, "", name), str(_STEPS[self._step][2])
        if node is None or (node["metadata"].get("annotations") or {}).get(ANNOTATION) == ttl:
            return
        patch = {"metadata": {"annotations": {ANNOTATION: ttl}}}
        store.patch(NODE, "", name, patch, now, write=controllers_write(NODE, "", now))

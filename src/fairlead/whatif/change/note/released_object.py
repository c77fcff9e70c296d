"""Notes about pods and ReplicaSets that their controllers would release because of new labels.

A controller releases an object that its selector no longer selects: it removes the owner reference
from the object, and creates another object in its place. What-ifs do not simulate this.

upstream: pkg/controller/controller_ref_manager.go: ClaimObject
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.objects import (
    DaemonSet,
    Deployment,
    LabelSelector,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import map_selector, selector_matches
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Kind,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

Owner = DaemonSet | Deployment | ReplicaSet | ReplicationController | StatefulSet

_RELEASED: Final = (POD, REPLICA_SET)
_OWNERS: Final[dict[str, tuple[Kind, type[Owner]]]] = {
    kind.kind: (kind, view)
    for kind, view in (
        (DAEMON_SET, DaemonSet),
        (DEPLOYMENT, Deployment),
        (REPLICA_SET, ReplicaSet),
        (REPLICATION_CONTROLLER, ReplicationController),
        (STATEFUL_SET, StatefulSet),
    )
}


def release_notes(
    writes: Iterable[tuple[Manifest | None, Manifest]], inventory: Inventory
) -> Iterator[str]:
    """Yield a note for each written object that its controller would release.

    `writes` contains pairs: the object before the change (or None), and the object after the
    change. `inventory` contains the objects after the change. Raises InputError for a controller
    with an invalid field.
    """
    for before, after in writes:
        owner = after.controller
        if before is None or after.kind not in _RELEASED or owner is None:
            continue
        kind, view = _OWNERS.get(owner.kind, (None, None))
        found = kind and inventory.get(kind, after.ref.namespace, owner.name)
        if not found or view is None or found.ref.uid not in ("", owner.uid):
            continue
        spec = found.as_view(view).spec
        if _selects(spec.selector, before) and not _selects(spec.selector, after):
            one = after.kind.kind
            yield (
                f"{found.title} no longer selects {after.title}, so in a cluster it releases the "
                f"{one} and creates another {one}; this is not simulated."
            )


def _selects(selector: LabelSelector | dict[str, str] | None, one: Manifest) -> bool:
    found = map_selector(selector) if isinstance(selector, dict) else selector
    return selector_matches(found, one.labels)

"""What an API server writes by itself before it answers anybody, signed as upstream's signs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.registry.write import Write

# upstream: the server writes through a client of its own, under the name of its program.
MANAGER: Final = "kube-apiserver"


def begin(store: Store, manifests: Iterable[Mapping[str, Any]], now: int) -> None:
    """Create `manifests` in `store`. Raises ApiError where one cannot be."""
    for manifest in manifests:
        note = track(kind_of(dict(manifest)), MANAGER, "Update", "", now)
        store.create(manifest, now, write=Write(track=note))

"""Stores the endpoints of the Service `kubernetes` without validation.

A local API server may listen on a loopback address. Validation refuses these in Endpoints and
EndpointSlices, because clients must not direct a Service to the server's own machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.kind import Kind, kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import Command, CreateObject, Issued, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component

ENDPOINTS: Final = kind_of({"apiVersion": "v1", "kind": "Endpoints"})
ENDPOINT_SLICE: Final = kind_of({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"})
_KINDS: Final = {one.kind: one for one in (ENDPOINTS, ENDPOINT_SLICE)}


def is_own_endpoints(issued: Issued) -> bool:
    """Whether the command is the API server's write to its own endpoints."""
    command = issued.command
    return (
        issued.issuer.component is Component.API_SERVER
        and isinstance(command, CreateObject | PatchObject)
        and command.target.kind in _KINDS
    )


def store_own_endpoints(
    store: Store, command: Command, now: Instant, write_of: Callable[[Kind, str], Write]
) -> None:
    """Create or update the endpoints of `command`. Raises ApiError."""
    assert isinstance(command, CreateObject | PatchObject)
    target, kind = command.target, _KINDS[command.target.kind]
    write = write_of(kind, "")
    if isinstance(command, CreateObject):
        new = write.tracked(None, dict(command.manifest))
        store.put_as_is(_with_generation(kind, new, 1), now)
        return
    old = store.get(kind, target.namespace, target.name)
    new = write.tracked(old, {**old, **command.patch})
    store.write(kind, old, _with_generation(kind, new, old["metadata"].get("generation", 0) + 1))


def _with_generation(kind: Kind, obj: Json, generation: int) -> Json:
    """`obj` with its generation; Endpoints have none."""
    if kind is not ENDPOINT_SLICE:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "generation": generation}}

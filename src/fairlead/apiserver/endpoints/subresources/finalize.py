"""finalize: a namespace whose content is gone may go.

upstream: pkg/registry/core/namespace/storage/storage.go:FinalizeREST
"""

from __future__ import annotations

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.handlers.get import found
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.update import written
from fairlead.apiserver.request import Response


def finalize(call: Call) -> Response:
    """The namespace; a write changes spec.finalizers."""
    change = written(call, call.kind, found)
    old = found(call)
    spec = {key: value for key, value in old.get("spec", {}).items() if key != "finalizers"}
    finalizers = change.view.get("spec", {}).get("finalizers")
    if finalizers:
        spec["finalizers"] = finalizers
    store, part, write = call.parts.store, call.target.subresource, change.write
    new = {**old, "spec": spec}
    new = store.stations.admitted(
        Operation.UPDATE, call.kind, new, old=old, subresource=part, write=write
    )
    return call.shown(store.commit(call.kind, old, new, write=write))

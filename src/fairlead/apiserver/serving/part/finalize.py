"""finalize: a namespace whose content is gone may go.

upstream: pkg/registry/core/namespace/storage/storage.go:FinalizeREST
"""

from __future__ import annotations

from fairlead.apiserver.request import Response
from fairlead.apiserver.serving.call import Call
from fairlead.apiserver.serving.part.view import written
from fairlead.apiserver.serving.reading import found


def finalize(call: Call) -> Response:
    """The namespace; a write changes spec.finalizers."""
    change = written(call, call.kind, found)
    old = found(call)
    spec = {key: value for key, value in old.get("spec", {}).items() if key != "finalizers"}
    finalizers = change.view.get("spec", {}).get("finalizers")
    if finalizers:
        spec["finalizers"] = finalizers
    new = {**old, "spec": spec}
    return call.shown(call.parts.store.commit(call.kind, old, new, write=change.write))

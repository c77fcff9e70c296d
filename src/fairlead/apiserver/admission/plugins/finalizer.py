"""with_finalizer: adds the finalizer of a protection controller to a new object."""

from __future__ import annotations

from fairlead.api.json import Json


def with_finalizer(obj: Json, name: str) -> Json:
    """Return `obj` with the finalizer `name`, added last if it lacks it."""
    meta = obj["metadata"]
    finalizers = meta.get("finalizers") or []
    if name in finalizers:
        return obj
    return {**obj, "metadata": {**meta, "finalizers": [*finalizers, name]}}

"""Query and path parameters of operations, by verb.

upstream: apimachinery/pkg/apis/meta/v1/types.go:ListOptions, CreateOptions, DeleteOptions, ...
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json

_TYPES: Final = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "boolean",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WORDS: Final = {
    "allowWatchBookmarks": "Whether the watch may send bookmarks.",
    "continue": "The continue token of the previous page.",
    "dryRun": "With All, the request is checked but nothing is stored.",
    "fieldManager": "The name of the writer in managedFields.",
    "fieldSelector": "Selects objects by their fields.",
    "fieldValidation": "How unknown and repeated fields are treated: Ignore, Warn or Strict.",
    "force": "Whether an apply takes over fields that other managers own.",
    "gracePeriodSeconds": "The time in seconds in which the object must end.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "This parameter has no effect.",
    "labelSelector": "Selects objects by their labels.",
    "limit": "The maximum number of objects in a page.",
    "name": "The name of the object.",
    "namespace": "The namespace of the objects.",
    "orphanDependents": "Deprecated: use propagationPolicy.",
    "pretty": "Whether the output is indented.",
    "propagationPolicy": "How dependents are treated: Orphan, Background or Foreground.",
    "resourceVersion": "The resource version of the list, or the one at which the watch starts.",
    "resourceVersionMatch": "How resourceVersion is applied: Exact or NotOlderThan.",
    "sendInitialEvents": "Whether the watch first sends the existing objects.",
    "shardSelector": "This parameter has no effect.",
    "timeoutSeconds": "The maximum duration of the list or watch in seconds.",
    "watch": "Whether to watch for changes instead of listing the objects.",
}

LIST: Final = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
PATCH: Final = (*WRITE, "force")
DELETE: Final = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
DELETE_COLLECTION: Final = (
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
)
_IN_PATH: Final = ("name", "namespace", "path")


def parameter(name: str) -> Json:
    """Return the description of the path or query parameter `name`."""
    described = {"description": _WORDS[name]} if name in _WORDS else {}
    kind = _TYPES.get(name, "string")
    place = {"in": "path", "required": True} if name in _IN_PATH else {"in": "query"}
    return {"name": name, **place, **described, "schema": {"type": kind, "uniqueItems": True}}


def parameters(*names: str) -> list[Json]:
    """Return the descriptions of the parameters `names`, in order."""
    return [parameter(name) for name in names]

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
    "allowWatchBookmarks": "whether a watch may send bookmarks",
    "continue": "where the page before ended",
    "dryRun": "All: do everything but store",
    "fieldManager": "who writes, as managedFields name it",
    "fieldSelector": "which objects are wanted, by their fields",
    "fieldValidation": "Ignore, Warn or Strict: what becomes of unknown and repeated fields",
    "force": "whether an apply takes over what others own",
    "gracePeriodSeconds": "how long an object may take to go",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "has no effect here",
    "labelSelector": "which objects are wanted, by their labels",
    "limit": "how many objects make a page",
    "name": "name of the object",
    "namespace": "namespace of the objects",
    "orphanDependents": "the old way to say propagationPolicy: Orphan",
    "pretty": "lays the answer out over several lines",
    "propagationPolicy": "Orphan, Background or Foreground: what becomes of dependents",
    "resourceVersion": "which version of the list is wanted",
    "resourceVersionMatch": "Exact or NotOlderThan: how that is meant",
    "sendInitialEvents": "whether a watch begins with what is there",
    "shardSelector": "has no effect here",
    "timeoutSeconds": "how long a list or a watch may last",
    "watch": "whether the list goes on as a stream of changes",
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

"""Operations: each verb of a kind as OpenAPI 3 describes it.

upstream: apiserver/pkg/endpoints/installer.go:registerResourceHandlers,
kube-openapi/pkg/builder3/openapi.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.apiserver.openapi.definition import META, REFERENCE

Json = dict[str, Any]

MEDIA_TYPES: Final = (
    "application/json", "application/vnd.kubernetes.protobuf", "application/yaml",
)  # fmt: skip
STREAMED: Final = (
    "application/json", "application/json;stream=watch", "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch", "application/yaml",
)  # fmt: skip
PATCHES: Final = (
    "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)  # fmt: skip
STATUS: Final = f"{META}.Status"
WATCH_EVENT: Final = f"{META}.WatchEvent"
DELETE_OPTIONS: Final = f"{META}.DeleteOptions"
PATCH: Final = f"{META}.Patch"
RESOURCE_LIST: Final = f"{META}.APIResourceList"

# What query parameters mean, in short.
_MEANINGS: Final[Mapping[str, str]] = {
    "allowWatchBookmarks": 'events of type "BOOKMARK" may be sent, which carry a version only',
    "continue": "where the list goes on, from a list that a limit cut off",
    "dryRun": 'with "All", do everything but store the result',
    "fieldManager": "who makes these changes",
    "fieldSelector": "select objects by their fields",
    "fieldValidation": "what to do about fields that are unknown or repeated: Ignore, Warn, Strict",
    "force": "take over fields that others manage (apply only)",
    "gracePeriodSeconds": "how many seconds the object has before it goes; 0 deletes at once",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "delete what cannot be read any more",
    "labelSelector": "select objects by their labels",
    "limit": "how many objects to list at most",
    "name": "name of the object",
    "namespace": "object name and auth scope, such as for teams and projects",
    "orphanDependents": "keep dependents; superseded by propagationPolicy",
    "pretty": "write for people",
    "propagationPolicy": "what becomes of dependents: Orphan, Background, Foreground",
    "resourceVersion": "which versions of objects will do",
    "resourceVersionMatch": "how resourceVersion is meant: Exact, NotOlderThan",
    "sendInitialEvents": "begin a watch with all objects there are",
    "shardSelector": "select a part of all objects",
    "timeoutSeconds": "how long a list or watch may take",
    "watch": "be told what changes",
}
_TYPES: Final[Mapping[str, str]] = {
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
IN_PATH: Final = ("name", "namespace", "path")
LISTING: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "shardSelector",
    "timeoutSeconds", "watch",
)  # fmt: skip
WRITING: Final = ("dryRun", "fieldManager", "fieldValidation")
PATCHING: Final = (*WRITING, "force")
DELETING: Final = (
    "dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents", "propagationPolicy",
)  # fmt: skip
DELETING_MANY: Final = tuple(sorted({*DELETING, *LISTING} - {"allowWatchBookmarks", "watch"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: `answer` and `body` are the definitions of what goes out and comes in."""

    identity: str
    action: str
    gvk: Json
    tag: str
    answer: str
    body: str = ""
    codes: tuple[str, ...] = ("200",)
    parameters: Sequence[str] = ()
    streamed: bool = False
    patch: bool = False

    def document(self) -> Json:
        """The operation's own."""
        made: Json = {"tags": [self.tag], "operationId": self.identity}
        if self.parameters:
            made["parameters"] = [parameter(name) for name in self.parameters]
        if self.body:
            medias = PATCHES if self.patch else ("*/*",)
            made["requestBody"] = {"content": _content(medias, self.body), "required": True}
        medias = STREAMED if self.streamed else MEDIA_TYPES
        made["responses"] = responses(self.codes, _content(medias, self.answer))
        if self.action:
            made["x-kubernetes-action"] = self.action
            made["x-kubernetes-group-version-kind"] = self.gvk
        return made


def parameter(name: str) -> Json:
    """A parameter of a path or a query."""
    made: Json = {"name": name, "in": "path" if name in IN_PATH else "query"}
    meaning = _MEANINGS.get(name)
    if meaning:
        made["description"] = meaning
    if name in IN_PATH:
        made["required"] = True
    made["schema"] = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return made


def responses(codes: Sequence[str], content: Json) -> Json:
    """The answers of an operation; anyone may turn out to be nobody."""
    said = {"200": "OK", "201": "Created", "202": "Accepted"}
    made: Json = {code: {"description": said[code], "content": content} for code in codes}
    made["401"] = {"description": "Unauthorized"}
    return made


def _content(medias: Sequence[str], name: str) -> Json:
    return {media: {"schema": {"$ref": f"{REFERENCE}{name}"}} for media in medias}

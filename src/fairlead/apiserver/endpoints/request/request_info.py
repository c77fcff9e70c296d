"""RequestInfo: the resource that a path names, regardless of whether the server serves it.

    /api/v1/...                  the core group       /apis/GROUP/VERSION/...   any other group
    .../RESOURCE                 all objects, in all namespaces
    .../namespaces/NS/RESOURCE   the objects in one namespace
    .../NAME                     one object           .../NAME/SUBRESOURCE      a part of an object
    /VERSION/watch/...           a deprecated way to watch

upstream: apiserver/pkg/endpoints/request/requestinfo.go:NewRequestInfo
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.text.text_cache import text_cache

CACHE_SIZE: Final = 8_192
_NAMESPACE_PARTS: Final = ("status", "finalize")  # upstream: namespaceSubresources
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RequestInfo(Struct, frozen=True):
    """The resource that a path names. Parts that the path lacks are "".

    `rest` is the part of the path after the subresource. `is_watch` means that the path has the
    deprecated form `/VERSION/watch/...`.
    """

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    is_watch: bool = False

    @property
    def is_namespaced(self) -> bool:
        """True if the path contains a namespace and names a resource other than `namespaces`."""
        return bool(self.namespace) and self.resource != "namespaces"


@text_cache(maxsize=CACHE_SIZE)
def request_info_of(path: str) -> RequestInfo | None:
    """Return the RequestInfo of `path`; None for a path without a resource, such as `/healthz`."""
    parts = path[1:].rstrip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    is_watch = rest[0] == "watch" and len(rest) > 1
    if is_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_PARTS:
            rest = rest[2:]
    resource, name, subresource = (*rest[:3], "", "")[:3]
    more = "/".join(rest[3:])
    return RequestInfo(group, version, resource, namespace, name, subresource, more, is_watch)


@text_cache(maxsize=CACHE_SIZE)
def ends_without_resource(path: str) -> bool:
    """Return whether `path` ends in `watch` or `proxy` and names no resource.

    An example is `/api/v1/watch`.
    """
    # upstream: requestinfo.go:NewRequestInfo, specialVerbs
    parts = path[1:].rstrip("/").split("/")
    within = {"api": 2, "apis": 3}.get(parts[0])
    return within is not None and len(parts) == within + 1 and parts[-1] in ("proxy", "watch")


def without_namespace(info: RequestInfo) -> RequestInfo:
    """Return `info` without a namespace if its resource is `namespaces`; otherwise `info` itself.

    For the path of a Namespace object, `request_info_of` sets the namespace to the object's name,
    although the object is cluster-scoped.
    """
    return replace(info, namespace="") if info.resource == "namespaces" else info


def verb_of(method: str, info: RequestInfo, *, is_watch: bool) -> str:
    """Return the RBAC verb; "" for an unknown method. `is_watch` is the query parameter `watch`."""
    if info.is_watch:
        return "watch"
    if method in ("GET", "HEAD"):
        if is_watch and not info.name:
            return "watch"
        return "get" if info.name else "list"
    verb = _VERBS.get(method, "")
    return "deletecollection" if verb == "delete" and not info.name else verb

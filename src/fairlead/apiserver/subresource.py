"""Parts of objects that have paths of their own, and what bodies these speak.

upstream: pkg/registry/*/rest/storage_*.go, and New of each subresource's REST
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_READ_WRITE: Final = ("get", "patch", "update")
_POSTED: Final = ("create",)
_STREAM: Final = ("create", "get")
_PROXY: Final = ("create", "delete", "get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with a path of its own, and the kind of body that it speaks.

    `group` and `version` are "" where the body is of the same group and version as the object.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


# {} is the kind of the object.
_TABLE: Final = (
    Subresource("approval", "{}", _READ_WRITE),
    Subresource("attach", "{}AttachOptions", _STREAM),
    Subresource("binding", "Binding", _POSTED),
    Subresource("ephemeralcontainers", "{}", _READ_WRITE),
    Subresource("eviction", "Eviction", _POSTED, "policy", "v1"),
    Subresource("exec", "{}ExecOptions", _STREAM),
    Subresource("finalize", "{}", ("update",)),
    Subresource("log", "{}", ("get",)),
    Subresource("portforward", "{}PortForwardOptions", _STREAM),
    Subresource("proxy", "{}ProxyOptions", _PROXY),
    Subresource("resize", "{}", _READ_WRITE),
    Subresource("scale", "Scale", _READ_WRITE, "autoscaling", "v1"),
    Subresource("status", "{}", _READ_WRITE),
    Subresource("token", "TokenRequest", _POSTED, "authentication.k8s.io", "v1"),
)
_BY_NAME: Final = {row.name: row for row in _TABLE}


def subresource(name: str, kind: str) -> Subresource:
    """The subresource `name` of a `kind`. Raises KeyError when there is no such thing."""
    row = _BY_NAME[name]
    return Subresource(name, row.kind.format(kind), row.verbs, row.group, row.version)

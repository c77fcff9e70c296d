"""Messages between a scheduler and its extenders, as JSON.

Field names are capitalised, as in Go's structs. Pods and nodes in messages are ordinary API
objects. `encode` writes a message. `decode` reads a message as Go's decoder does: names are
case-insensitive, null counts as absent, and unknown fields are ignored.

upstream: staging/src/k8s.io/kube-scheduler/extender/v1/types.go
"""

from __future__ import annotations

import typing
from types import UnionType
from typing import Any, Final, TypeVar

import msgspec

PRIORITY_MAX: Final = 10
INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1

Message = TypeVar("Message")
Int64 = typing.Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]


class ProtocolError(ValueError):
    """Raised if a message is malformed; the text is the reason, in one line."""


class NodeList(msgspec.Struct, frozen=True, rename="camel"):
    """v1.NodeList; `items` are whole nodes as JSON values."""

    items: tuple[dict[str, Any], ...] = ()


class FilterOrPrioritize(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderArgs: a pod and its candidate nodes, as objects or (if nodeCacheCapable) as names."""

    pod: dict[str, Any] | None = None
    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None


class FilterResult(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderFilterResult: the nodes that remain, and the nodes that the extender rejects.

    If the request contains Node objects, the remaining nodes are Node objects too. If the request
    contains names, the remaining nodes are names. On nodes in `failed_and_unresolvable_nodes`,
    preemption cannot help. If `error` is set, the other fields have no meaning.
    """

    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class HostPriority(msgspec.Struct, frozen=True, rename="pascal"):
    """A node's score, from 0 to PRIORITY_MAX."""

    host: str = ""
    score: Int64 = 0


class MetaPod(msgspec.Struct, frozen=True):
    """A pod, identified only by its UID."""

    uid: str = msgspec.field(name="UID", default="")


class MetaVictims(msgspec.Struct, frozen=True, rename="pascal"):
    """The victims on a node, given as UIDs."""

    pods: tuple[MetaPod, ...] = ()
    num_pdb_violations: Int64 = msgspec.field(name="NumPDBViolations", default=0)


class Victims(msgspec.Struct, frozen=True, rename="pascal"):
    """The victims on a node, as whole pods."""

    pods: tuple[dict[str, Any], ...] = ()
    num_pdb_violations: Int64 = msgspec.field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderPreemptionArgs: a pod, and the victims on each candidate node."""

    pod: dict[str, Any] | None = None
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class PreemptResult(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderPreemptionResult: the candidate nodes that remain, and their victims."""

    node_name_to_meta_victims: dict[str, MetaVictims] = {}


class ExtenderBindingArgs(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderBindingArgs: a pod, and the node to which the extender must bind it."""

    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = msgspec.field(name="PodUID", default="")
    node: str = ""


class BindingResult(msgspec.Struct, frozen=True, rename="pascal"):
    """ExtenderBindingResult; an empty `error` means that the pod is bound."""

    error: str = ""


def encode(message: object) -> bytes:
    """Encode `message` as JSON."""
    return msgspec.json.encode(message)


def decode(body: bytes, form: type[Message]) -> Message:
    """Decode `body` as a message of type `form`. Raises ProtocolError if `body` is malformed."""
    try:
        value = _parsed(body)
    except RecursionError:
        raise ProtocolError("nested too deeply") from None
    except msgspec.DecodeError as cause:
        raise ProtocolError(_malformed(body, cause)) from None
    try:
        return msgspec.convert(_renamed(value, form), form)
    except msgspec.ValidationError as cause:
        raise ProtocolError(f"json: {cause}".replace("`", "")) from None


def _parsed(body: bytes) -> Any:
    """Parse `body` as JSON; invalid UTF-8 is replaced by U+FFFD, as in Go."""
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError:
        return msgspec.json.decode(body.decode("utf-8", "replace"))


def _malformed(body: bytes, cause: Exception) -> str:
    """Return the error message for `body`, in the words of Go's decoder where possible."""
    text = body.strip()
    if not text:
        return "EOF"
    first = chr(text[0])
    if first not in '{["-0123456789tfn':
        return f"invalid character {first!r} looking for beginning of value"
    return "unexpected EOF" if "truncated" in str(cause) else f"json: {cause}"


def _renamed(value: Any, form: Any) -> Any:
    """Return `value` with its field names spelled as in `form`, and without nulls.

    Field names match regardless of case. Fields that `form` does not have are left out.
    """
    form = _without_none(form)
    origin = typing.get_origin(form)
    if value is None:
        return _zero(form, origin)
    if isinstance(value, list) and origin in (list, tuple):
        inner = typing.get_args(form)[0]
        return [_renamed(item, inner) for item in value]
    if not isinstance(value, dict):
        return value
    if origin is dict:
        inner = typing.get_args(form)[1]
        return {key: _renamed(item, inner) for key, item in value.items()}
    if not isinstance(form, type) or not issubclass(form, msgspec.Struct):
        return value
    return _renamed_fields(value, form)


def _renamed_fields(value: dict[str, Any], form: type[msgspec.Struct]) -> dict[str, Any]:
    fields = {field.encode_name.lower(): field for field in msgspec.structs.fields(form)}
    renamed = {}
    for key, item in value.items():
        field = fields.get(key.lower())
        if field is not None and item is not None:
            renamed[field.encode_name] = _renamed(item, field.type)
    return renamed


def _zero(form: Any, origin: Any) -> Any:
    """Return the zero value of the type `form`, as JSON; `origin` is `typing.get_origin(form)`.

    Go decodes null as this value if null is the whole body, a list item or a map value.
    """
    if form is str:
        return ""
    return [] if origin in (list, tuple) else {}


def _without_none(form: Any) -> Any:
    if isinstance(form, UnionType):
        return next(part for part in typing.get_args(form) if part is not type(None))
    return form

"""Selection: which objects a list or a watch is about, by labels and by fields.

Fields are few: every kind has metadata.name and metadata.namespace, some have more, each written
as text the way upstream writes it. A selector that pins the namespace of an object pins the list.

upstream: apimachinery/pkg/fields/selector.go, and each kind's SelectableFields in
pkg/registry/*/strategy.go and pkg/apis/*/v1/conversion.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.api.objects import LabelSelector
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.api.text_cache import text_cache
from fairlead.apiserver.custom.json_path import json_path
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage import Json, Kept, value_of
from fairlead.apiserver.validation.metadata import path_segment_problems

Read = Callable[[Json], str]

CACHE_SIZE: Final = 2_048
NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
_ALWAYS: Final = (NAME, NAMESPACE)
# What fields read that are not there.
_UNSAID: Final = ("", "false", "0")

_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Term:
    """One demand on a field."""

    field: str
    value: str
    is_equal: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """What is wanted of the objects of a kind; None and () want nothing in particular.

    `words` stand somewhere in the text of every object that is wanted.
    """

    labels: LabelSelector | None = None
    terms: tuple[Term, ...] = ()
    reads: tuple[Read, ...] = ()
    words: tuple[bytes, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether every object matches."""
        return self.labels is None and not self.terms

    def selects(self, kept: Kept) -> bool:
        """Whether an object is wanted; most texts of others need not be read to tell."""
        if isinstance(kept, bytes) and not all(word in kept for word in self.words):
            return False
        return self.matches(value_of(kept))

    def matches(self, obj: Json) -> bool:
        """Whether `obj` is wanted."""
        if self.labels is not None:
            carried: Mapping[str, str] = obj["metadata"].get("labels") or {}
            if not selector_matches(self.labels, carried):
                return False
        return all(
            (read(obj) == term.value) == term.is_equal
            for term, read in zip(self.terms, self.reads, strict=True)
        )


EVERYTHING: Final = Selection()


@text_cache(maxsize=CACHE_SIZE)
def selection(kind: Kind, labels: str, fields: str, name: str = "") -> Selection:
    """The objects of `kind` that two selectors, as they were sent, ask for; `name` pins one.

    Raises ApiError 400.
    """
    terms = _terms(fields)
    if name:
        terms = (Term(NAME, name, is_equal=True), *terms)
    reads = tuple(_read(kind, term.field) for term in terms)
    try:
        wanted = parse_selector(labels)
    except SelectorError as cause:
        raise bad_request(str(cause)) from None
    is_any = not wanted.match_labels and not wanted.match_expressions
    words = () if kind.custom else tuple(_words(wanted, terms))
    return Selection(None if is_any else wanted, terms, reads, words)


def pinned_name(fields: str) -> str:
    """The name that objects must have which a selector of fields, as it was sent, asks for.

    "" where they may have any, or where the selector cannot be read.
    """
    try:
        terms = _terms(fields)
    except ApiError:
        return ""
    names = (term.value for term in terms if term.field == NAME and term.is_equal)
    name = next(names, "")
    return "" if path_segment_problems(name) else name


def _words(labels: LabelSelector, terms: tuple[Term, ...]) -> Iterator[bytes]:
    """What an object must say to be selected, as it stands in its text."""
    for key, value in labels.match_labels.items():
        yield from (_encode(key), _encode(value))
    for one in labels.match_expressions:
        if one.operator == "In" and len(one.values) == 1:
            yield from (_encode(one.key), _encode(one.values[0]))
    for term in terms:
        if term.is_equal and term.value not in _UNSAID:
            yield _encode(term.value)[1:-1]


def _terms(text: str) -> tuple[Term, ...]:
    # upstream: apimachinery/pkg/fields/selector.go:parseSelector
    terms = []
    for part in filter(None, _split(text)):
        for operator in ("!=", "==", "="):
            field, found, value = part.partition(operator)
            if found:
                break
        else:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        if field or value:
            terms.append(Term(field, _unescaped(value), is_equal=operator != "!="))
    return tuple(terms)


def _split(text: str) -> list[str]:
    """At commas without a backslash before them."""
    parts, current, escaped = [], "", False
    for mark in text:
        if mark == "," and not escaped:
            parts.append(current)
            current = ""
            continue
        escaped = mark == "\\" and not escaped
        current += mark
    return [*parts, current]


def _unescaped(value: str) -> str:
    text, escaped = "", False
    for mark in value:
        if mark == "\\" and not escaped:
            escaped = True
            continue
        text += mark
        escaped = False
    return text


def _read(kind: Kind, field: str) -> Read:
    if field == NAME or (field == NAMESPACE and not _is_named_only(kind)):
        return _metadata(field.removeprefix("metadata."))
    if kind.custom is not None:
        return _selectable(kind.custom.selectable, field)
    is_newer = kind.group == "events.k8s.io"
    read = (_NEWER_EVENT if is_newer else _FIELDS.get(kind.resource, {})).get(field)
    if read is not None:
        return read
    if kind.resource in _FIELDS:
        raise bad_request(_UNSUPPORTED.get(kind.resource, _UNKNOWN_FIELD).format(field))
    known = ", ".join(f'"{name}"' for name in _ALWAYS)
    raise bad_request(f'"{field}" is not a known field selector: only {known}')


def _is_named_only(kind: Kind) -> bool:
    """Whether a kind without a namespace knows so."""
    # upstream: AddFieldLabelConversionFunc in conversion.go of core, certificates and resource;
    # apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    return kind.resource in _NAMED_ONLY or (kind.custom is not None and not kind.namespaced)


def _selectable(paths: tuple[str, ...], field: str) -> Read:
    """A field that the definition of a custom resource lets lists select."""
    # upstream: apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    if f".{field}" not in paths:
        raise bad_request(f"field label not supported: {field}")
    path = json_path(f".{field}")

    def read(obj: Json) -> str:
        value = next(iter(path.find(obj)), "")
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _metadata(field: str) -> Read:
    def read(obj: Json) -> str:
        text: str = obj["metadata"].get(field, "")
        return text

    return read


def _text(*path: str, absent: str = "") -> Read:
    """A field as text; `absent` where it is not there."""

    def read(obj: Json) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return absent
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _pod_ip(obj: Json) -> str:
    # upstream: pkg/registry/core/pod/strategy.go:ToSelectableFields
    ips = obj.get("status", {}).get("podIPs", ())
    return str(ips[0].get("ip", "")) if ips else ""


def _source(obj: Json) -> str:
    # upstream: pkg/registry/core/event/strategy.go:ToSelectableFields
    return str(obj.get("source", {}).get("component", "") or obj.get("reportingComponent", ""))


_INVOLVED: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)
_EVENT: Final[dict[str, Read]] = {
    **{f"involvedObject.{key}": _text("involvedObject", key) for key in _INVOLVED},
    "reason": _text("reason"),
    "reportingComponent": _text("reportingComponent"),
    "source": _source,
    "type": _text("type"),
}
# upstream: pkg/apis/events/v1/conversion.go:AddFieldLabelConversionsForEvent
_NEWER_EVENT: Final[dict[str, Read]] = {
    **{f"regarding.{key}": _text("involvedObject", key) for key in _INVOLVED},
    "reason": _text("reason"),
    "reportingController": _text("reportingComponent"),
    "type": _text("type"),
}
_UNKNOWN_FIELD: Final = "field label not supported: {}"
_UNSUPPORTED: Final[Mapping[str, str]] = {
    "jobs.batch": 'field label "{}" not supported for Job',
    "resourceslices.resource.k8s.io": (
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}"
    ),
}
# By Kind.resource.
_FIELDS: Final[Mapping[str, Mapping[str, Read]]] = {
    "pods": {
        "spec.nodeName": _text("spec", "nodeName"),
        "spec.restartPolicy": _text("spec", "restartPolicy"),
        "spec.schedulerName": _text("spec", "schedulerName"),
        "spec.serviceAccountName": _text("spec", "serviceAccountName"),
        "spec.hostNetwork": _text("spec", "hostNetwork", absent="false"),
        "status.phase": _text("status", "phase"),
        "status.podIP": _pod_ip,
        "status.podIPs": _pod_ip,
        "status.nominatedNodeName": _text("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": _text("spec", "unschedulable", absent="false")},
    "namespaces": {"status.phase": _text("status", "phase")},
    "secrets": {"type": _text("type")},
    "services": {
        "spec.clusterIP": _text("spec", "clusterIP"),
        "spec.type": _text("spec", "type"),
    },
    "jobs.batch": {"status.successful": _text("status", "succeeded", absent="0")},
    "replicationcontrollers": {"status.replicas": _text("status", "replicas", absent="0")},
    "certificatesigningrequests.certificates.k8s.io": {
        "spec.signerName": _text("spec", "signerName")
    },
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": _text("spec", "nodeName"),
        "spec.driver": _text("spec", "driver"),
    },
    "events": _EVENT,
}
_NAMED_ONLY: Final = (
    "namespaces", "nodes", "certificatesigningrequests.certificates.k8s.io",
    "resourceslices.resource.k8s.io",
)  # fmt: skip

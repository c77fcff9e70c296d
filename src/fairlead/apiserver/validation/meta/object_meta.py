"""Validates ObjectMeta: names, labels, annotations, owners, finalizers.

upstream: apimachinery/pkg/api/validation/{generic,objectmeta}.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.finalizer import FOREGROUND, ORPHAN
from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.api.objects import ObjectMeta
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.validation.meta.field import Causes, invalid, non_negative, required
from fairlead.apiserver.validation.meta.format import (
    check_unchanged,
    dns_label_problems,
    too_long,
)
from fairlead.apiserver.validation.meta.kind_rules import KindRules


def check_metadata(rules: KindRules, meta: ObjectMeta) -> Causes:
    """Yield the errors of an object's name, namespace, labels and timestamps."""
    if not meta.name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for problem in rules.name(meta.name):
            yield invalid("metadata.name", meta.name, problem)
    if meta.namespace:
        for problem in dns_label_problems(meta.namespace):
            yield invalid("metadata.namespace", meta.namespace, problem)
    yield from check_labels("metadata.labels", meta.labels)
    yield from check_timestamp("metadata.creationTimestamp", meta.creation_timestamp)
    yield from check_timestamp("metadata.deletionTimestamp", meta.deletion_timestamp)


def check_owners(meta: ObjectMeta) -> Causes:
    """Yield the errors of owner references: a missing kind, name or uid, and a second controller.

    upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateOwnerReferences
    """
    owners = meta.owner_references
    called = [f"{one.kind}/{one.name}" if one.controller else "" for one in owners]
    for owner, other, problem in zip(owners, called, _controller_problems(called), strict=True):
        for name, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
            if not value:
                yield invalid(f"metadata.ownerReferences.{name}", "", "must not be empty")
        if problem:
            yield invalid("metadata.ownerReferences", other, problem)


def _controller_problems(controllers: Iterable[str]) -> Iterator[str]:
    """Yield a text for each owner: an error if it is a second or later controller, otherwise "".

    `controllers` contains a text for each owner: its kind and name if the owner is a controller,
    and "" if it is not.
    """
    first = ""
    for one in controllers:
        why = f'Found "true" in references for {first} and {one}'
        is_second = bool(first and one)
        yield f"Only one reference can have Controller set to true. {why}" if is_second else ""
        first = first or one


def check_labels(field: str, labels: Mapping[str, str]) -> Causes:
    """Yield the errors of label keys and values; `field` is the path of the map."""
    for key, value in labels.items():
        for problem in label_key_problems(key):
            yield invalid(field, key, problem)
        for problem in label_value_problems(value):
            yield invalid(field, value, problem)


def check_timestamp(field: str, text: str) -> Causes:
    """Yield an error if `text` is neither a timestamp nor ""."""
    if text:
        try:
            parse_timestamp(text)
        except ValueError as cause:
            yield invalid(field, text, str(cause))


_UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
STANDARD_FINALIZERS: Final = ("kubernetes", ORPHAN, FOREGROUND)
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024
_IMMUTABLE_KEYS: Final = (
    "name",
    "namespace",
    "uid",
)  # The server restores all other metadata that clients cannot change.


def check_generate_name(rules: KindRules, meta: Json) -> Causes:
    """Yield the errors of generateName."""
    beginning = meta.get("generateName", "")
    if beginning:
        # upstream: apimachinery/pkg/api/validation/generic.go:maskTrailingDash, which replaces the
        # last two characters
        is_masked = len(beginning) > 1 and beginning.endswith("-")
        masked = f"{beginning[:-2]}a" if is_masked else beginning
        for problem in rules.name(masked):
            yield invalid("metadata.generateName", beginning, problem)


def check_generation(kind: Kind, meta: Json) -> Causes:
    """Yield an error for a negative generation.

    Nothing is checked if the server sets the generation of objects of this kind.
    """
    if not kind.has_generation:  # The server sets the generation of all other kinds.
        yield from non_negative("metadata.generation", meta.get("generation") or 0)


def check_annotations_owners_and_finalizers(rules: KindRules, meta: Json) -> Causes:
    """Yield the errors of a new object's annotations, owners and finalizers."""
    finalizers = meta.get("finalizers") or []
    yield from _check_details(meta)
    yield from _check_finalizers(finalizers)
    if rules.accepts_any_finalizer:
        return
    # upstream: pkg/apis/core/validation/validation.go:ValidateObjectMeta
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid(f"metadata.finalizers[{index}]", name, _UNQUALIFIED)


def _check_details(meta: Json) -> Causes:
    yield from check_annotation_keys("metadata.annotations", meta.get("annotations") or {})
    yield from _check_owners(meta.get("ownerReferences") or [])


def _check_finalizers(finalizers: list[str]) -> Causes:
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateFinalizers
    for name in finalizers:
        for problem in label_key_problems(name):
            yield invalid("metadata.finalizers", name, problem)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid("metadata.finalizers", finalizers, why)


def check_finalizer_names(field: str, names: list[str] | None) -> Causes:
    """Yield the errors of the finalizers in a Namespace's spec.

    As in upstream, the errors do not contain the index of the invalid finalizer.
    """
    # upstream: pkg/apis/core/validation/validation.go:validateFinalizerName
    for name in names or ():
        for problem in label_key_problems(name):
            yield invalid(field, name, problem)
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid(field, name, _UNQUALIFIED)


def check_annotation_keys(field: str, annotations: Json) -> Causes:
    """Yield the errors of annotation keys and of the annotations' total size.

    `field` is the path of the annotations.
    """
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        for problem in label_key_problems(key.lower()):
            yield invalid(field, key, problem)
    if size > ANNOTATIONS_BYTES_MAX:
        yield too_long(field, ANNOTATIONS_BYTES_MAX)


def _check_owners(owners: list[Json]) -> Causes:
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateOwnerReferences
    field = "metadata.ownerReferences"
    called = (
        f"{one.get('kind')}/{one.get('name')}" if one.get("controller") else "" for one in owners
    )
    for owner, problem in zip(owners, _controller_problems(called), strict=True):
        yield from _check_owner(field, owner)
        if problem:
            yield invalid(field, owners, problem)


def _check_owner(field: str, owner: Json) -> Causes:
    stated = owner.get("apiVersion", "")
    group, _, version = stated.rpartition("/")
    if not version or "/" in group:
        yield invalid(f"{field}.apiVersion", stated, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            yield invalid(f"{field}.{name}", "", "must not be empty")
    if (group, version, owner.get("kind")) == ("", "v1", "Event"):
        yield invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")


def check_metadata_update(rules: KindRules, old: Json, new: Json) -> Causes:
    """Yield the errors of an update of metadata. Name, namespace and uid are immutable.

    As in upstream, most errors are yielded several times (see `rules.metadata_comparisons`).
    """
    # upstream: apiserver/pkg/registry/rest/update.go:validateCommonFields, after which the kind's
    # own validation calls ValidateObjectMetaUpdate
    before, after = old["metadata"], new["metadata"]
    yield from check_labels("metadata.labels", after.get("labels") or {})
    yield from _check_details(after)
    yield from _check_finalizers(after.get("finalizers") or [])
    for _ in range(rules.metadata_comparisons):
        for name in _IMMUTABLE_KEYS:
            if name in after:
                yield from check_unchanged(f"metadata.{name}", before.get(name), after[name])
        yield from check_labels("metadata.labels", after.get("labels") or {})
        yield from _check_details(after)

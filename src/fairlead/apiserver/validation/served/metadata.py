"""metadata, as far as it is not looked at everywhere: annotations, owners, and what may not change.

upstream: apimachinery/pkg/api/validation/objectmeta.go, apiserver/pkg/registry/rest/update.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.label import label_key_problems
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.validation.field import Causes, invalid
from fairlead.apiserver.validation.metadata import check_labels, name_rule
from fairlead.apiserver.validation.served.form import check_unchanged, too_long

Json = dict[str, Any]

_UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024
_FIXED: Final = ("name", "namespace", "uid")  # the server sets the others itself


def check_generate_name(kind: Kind, meta: Json) -> Causes:
    """The beginning of a name, which a suffix follows."""
    beginning = meta.get("generateName", "")
    if beginning:
        masked = f"{beginning[:-1]}a" if beginning.endswith("-") else beginning
        for problem in name_rule(kind)(masked):
            yield invalid("metadata.generateName", beginning, problem)


def check_details(meta: Json) -> Causes:
    """Annotations, owners, and finalizers that contradict each other."""
    yield from check_annotation_keys("metadata.annotations", meta.get("annotations") or {})
    yield from _check_owners(meta.get("ownerReferences") or [])
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateFinalizers
    finalizers = meta.get("finalizers") or []
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid("metadata.finalizers", finalizers, why)


def check_finalizers(meta: Json) -> Causes:
    """Finalizers of built-in kinds: a few well-known ones, all others with a prefix."""
    # upstream: pkg/apis/core/validation/validation.go:validateKubeFinalizerName
    for place, name in enumerate(meta.get("finalizers") or ()):
        for problem in label_key_problems(name):
            yield invalid("metadata.finalizers", name, problem)
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid(f"metadata.finalizers[{place}]", name, _UNQUALIFIED)


def check_finalizer_names(field: str, names: list[str] | None) -> Causes:
    """Finalizers of a namespace's content: the causes do not say which of them it is."""
    # upstream: pkg/apis/core/validation/validation.go:validateFinalizerName
    for name in names or ():
        for problem in label_key_problems(name):
            yield invalid(field, name, problem)
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid(field, name, _UNQUALIFIED)


def check_annotation_keys(field: str, annotations: Json) -> Causes:
    """Annotations whose keys are keys, and which are not too many; `field` is where they stand."""
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        for problem in label_key_problems(key.lower()):
            yield invalid(field, key, problem)
    if size > ANNOTATIONS_BYTES_MAX:
        yield too_long(field, ANNOTATIONS_BYTES_MAX)


def _check_owners(owners: list[Json]) -> Causes:
    field = "metadata.ownerReferences"
    controllers = []
    for owner in owners:
        group, _, version = owner.get("apiVersion", "").rpartition("/")
        if (group, version, owner.get("kind")) == ("", "v1", "Event"):
            yield invalid(field, owner, "/v1, Kind=Event is disallowed from being an owner")
        for name in ("apiVersion", "kind", "name"):
            if not owner.get(name):
                what = "version" if name == "apiVersion" else name
                yield invalid(f"{field}.{name}", "", f"{what} must not be empty")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        yield invalid(
            field,
            owners,
            "Only one reference can have Controller set to true. Found "
            f'"true" in references for {controllers[0]} and {controllers[1]}',
        )


def check_metadata_update(old: Json, new: Json) -> Causes:
    """What the server gave an object, it keeps; every update is looked at from two sides."""
    before, after = old["metadata"], new["metadata"]
    for _ in range(2):
        for name in _FIXED:
            if name in after:
                yield from check_unchanged(f"metadata.{name}", before.get(name), after[name])
        yield from check_labels("metadata.labels", after.get("labels") or {})
        yield from check_details(after)

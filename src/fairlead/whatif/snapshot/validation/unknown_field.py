"""Finds values of a wrong type, and unknown fields, such as misspelled fields.

If kubectl apply sends such fields, the API server refuses the object (fieldValidation=Strict). A
snapshot may come from a newer cluster, so unknown fields in a snapshot cause only notes.

upstream: apiserver/pkg/endpoints/handlers/create.go:createHandler, kubectl/pkg/cmd/apply/apply.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_NAMED_MAX: Final = 3


def unknown_fields(manifest: Manifest) -> list[tuple[str, str]]:
    """Return (path, nearest known name or "") of each unknown field, in the order of the object.

    Returns [] for a kind without a schema. Of custom resources, only batch workloads have schemas
    (`batch_field`). `refuse_wrong_types` reports fields of a wrong type.
    """
    from fairlead.apiserver.schema import unknown_field as schema  # noqa: PLC0415 - hand-written only
    from fairlead.whatif.snapshot.validation.batch_field import batch_schema  # noqa: PLC0415 - as above

    value = manifest.value
    if (batch := batch_schema(manifest.kind)) is not None:
        return schema.unknown_fields_of(batch, value)
    return schema.unknown_fields(value["apiVersion"], manifest.kind.kind, value)


def refuse_malformed_fields(
    manifests: Iterable[Manifest],
    before: Manifest | None = None,
    inventory: Inventory | None = None,
) -> None:
    """Raise InputError for a field that is unknown or has a wrong type, as kubectl apply does.

    Fields and values that are also in `before`, the object that a manifest replaces, are accepted.
    Unknown fields of a custom resource are also accepted if its definition is in `inventory` or in
    `manifests`, because the definition may be newer than the fields that Fairlead knows.
    """
    manifests = list(manifests)
    known = [] if before is None else unknown_fields(before)
    existing = [] if inventory is None else inventory.of_kind(CUSTOM_RESOURCE_DEFINITION)
    defined = _defined_kinds([*existing, *manifests])
    for manifest in manifests:
        refuse_wrong_types(manifest, before)
        if (manifest.kind.group, manifest.kind.kind) in defined:
            continue
        for path, near in [one for one in unknown_fields(manifest) if one not in known]:
            hint = f"; did you mean {near}?" if near else ""
            raise manifest.refuse(f"unknown field{hint}", field=path)


def _defined_kinds(manifests: Iterable[Manifest]) -> set[tuple[str, str]]:
    """Return (group, kind) of each custom resource whose definition is in `manifests`."""
    found = Inventory([one for one in manifests if one.kind is CUSTOM_RESOURCE_DEFINITION])
    return {(spec.group, spec.names.kind) for _, spec in found.definitions()}


def refuse_wrong_types(written: Manifest, before: Manifest | None = None) -> None:
    """Raise InputError if a value in `written` has a type with which the API server refuses it.

    The simulation reads only some fields; this function also checks all other fields, such as
    env[].value. If `before`, the object that `written` replaces, has the same value, the value is
    accepted.
    """
    written.require_right_types()
    path, problem = found = _wrong_type(written)
    if problem and (before is None or found != _wrong_type(before)):
        raise written.refuse(problem, field=path)


def _wrong_type(manifest: Manifest) -> tuple[str, str]:
    from fairlead.apiserver.schema import unknown_field as schema  # noqa: PLC0415 - as above

    value = manifest.value
    return schema.wrong_type(value["apiVersion"], manifest.kind.kind, value)


def unknown_field_notes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note about the unknown fields of hand-written objects, if there are any.

    An object without uid counts as hand-written. Objects with a uid come from a dump. They are not
    checked, because the cluster of the dump may have a newer version with more fields. Custom
    resources whose definition is in `manifests` are not checked either. If `manifests` contains
    several versions of an object, each unknown field is named only once.
    """
    manifests = list(manifests)
    defined = _defined_kinds(manifests)
    written = [
        one
        for one in samples(one for one in manifests if not one.ref.uid)
        if (one.kind.group, one.kind.kind) not in defined
    ]
    found = list(
        dict.fromkeys(
            f"{path} of {one.title}{f' (did you mean {near}?)' if near else ''}"
            for one in written
            for path, near in unknown_fields(one)
        )
    )
    if found:
        are = "An unknown field has" if len(found) == 1 else "Unknown fields have"
        yield f"{are} no effect: {listed(found, _NAMED_MAX)}."

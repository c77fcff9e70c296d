"""Turns errors of the API server into input errors that name file, object and field."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest


def as_input_error(source: str, manifests: Sequence[Manifest], refused: ApiError) -> InputError:
    """Return an InputError about the manifest in `manifests` that the API server refused.

    The API server's error about a value of a wrong type names no object. In this case, the
    InputError names the first of `manifests` that has a value of a wrong type. If `refused` is
    about no object in `manifests`, the InputError names only `source`.
    """
    if refused.kind is None:
        return _first_wrong_type(manifests) or InputError(source, refused.message)
    identity = (refused.kind.resource, refused.namespace, refused.name)
    for manifest in manifests:
        if manifest.identity == identity:
            return refusal_of(manifest.source, manifest.title, refused)
    return InputError(source, refused.message)


def malformed_object(
    source: str, manifests: Sequence[Manifest], kind: Kind, obj: Json, refused: ApiError
) -> InputError:
    """Return an InputError about a value of a wrong type in `obj`, an object of a simulated store.

    `refused` is the API server's error about the value, which names no object. The InputError names
    the manifest from which `obj` was loaded. If a simulated controller created `obj`, the
    InputError names the first of `manifests` that has a value of a wrong type, because the value in
    `obj` probably comes from a template.
    """
    meta = obj.get("metadata") or {}
    identity = (kind.resource, meta.get("namespace") or "", meta.get("name") or "")
    named = [one for one in manifests if one.identity == identity]
    return _first_wrong_type(named) or as_input_error(source, manifests, refused)


def _first_wrong_type(manifests: Sequence[Manifest]) -> InputError | None:
    """Return an error about the first value of a wrong type in `manifests`, or None."""
    # Imported only if it is needed.
    from fairlead.apiserver.schema.unknown_field import wrong_type  # noqa: PLC0415

    for manifest in manifests:
        value = manifest.value
        path, problem = wrong_type(value["apiVersion"], manifest.kind.kind, value)
        if problem:
            return manifest.refuse(problem, field=path)
    return None


def refusal_of(source: str, title: str, refused: ApiError) -> InputError:
    """Return `refused`, the API server's refusal of the object `title`, as an InputError."""
    if not refused.causes:
        return InputError(source, refused.message, object_name=title)
    cause = refused.causes[0]
    return InputError(source, cause.message, object_name=title, field=cause.field)

"""Refusals of the API server as input errors: which file, which object, which field."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.apiserver.error import ApiError
from fairlead.whatif.input_error import InputError
from fairlead.whatif.manifest import Manifest


def as_input_error(source: str, manifests: Sequence[Manifest], refused: ApiError) -> InputError:
    """`refused` in the name of that of `manifests` which it is about, else of `source`."""
    if refused.kind is not None:
        identity = (refused.kind.resource, refused.namespace, refused.name)
        for manifest in manifests:
            if manifest.identity == identity:
                return refusal_of(manifest.source, manifest.title, refused)
    return InputError(source, refused.message)


def refusal_of(source: str, title: str, refused: ApiError) -> InputError:
    """`refused` as a refusal of the object called `title`."""
    if not refused.causes:
        return InputError(source, refused.message, object_name=title)
    cause = refused.causes[0]
    return InputError(source, cause.message, object_name=title, field=cause.field)

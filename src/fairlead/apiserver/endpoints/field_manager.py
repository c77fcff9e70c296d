"""Updates managedFields when clients write objects.

upstream: apiserver/pkg/endpoints/handlers/{create,update,patch}.go,
GetResetFields of each kind's strategies
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.write import Track
from fairlead.apiserver.apiextensions.conversion.conversions import Conversions
from fairlead.apiserver.apiextensions.conversion.converter import ConversionFailedError
from fairlead.apiserver.conversion.kind_conversion import internal, is_converted, shown
from fairlead.apiserver.endpoints.request.typed_object import schema_of_kind
from fairlead.apiserver.kind import KINDS, Kind
from fairlead.apiserver.patch.managedfields.field_set import FieldSet, set_of_paths
from fairlead.apiserver.patch.managedfields.managed_fields import (
    APPLY,
    ManagerIdentifier,
    TrackedResource,
    entries_of,
    updated,
    with_managed_fields,
    without_managed_fields,
)
from fairlead.apiserver.patch.managedfields.updater import OwnedVersion
from fairlead.apiserver.registry.strategies.table import strategy_of

CACHE_SIZE: Final = 512
_STATUS: Final = ("status",)
_SPEC: Final = ("spec",)


def tracking_of(
    kind: Kind, subresource: str, conversions: Conversions | None = None
) -> TrackedResource | None:
    """Return the tracking rules for writes to `subresource` of `kind`.

    If `subresource` is "", the writes are to the object itself. `conversions` converts custom
    resources to the API versions in their managedFields. If `conversions` is None, only the
    apiVersion of the custom resources is changed. Return None if the kind has no schema.
    """
    # Not cached for custom resources, because each change of a definition creates a new Kind.
    if kind.is_custom:
        return _tracking(kind, subresource, conversions)
    return _known_tracking(kind, subresource)


def _tracking(
    kind: Kind, subresource: str, conversions: Conversions | None = None
) -> TrackedResource | None:
    schema = schema_of_kind(kind)
    if schema is None:
        return None
    ignored = set_of_paths(*_reset(kind, subresource))
    if kind.is_custom and not kind.all_types:
        return TrackedResource(schema=schema, reset_fields=ignored)
    return TrackedResource(
        schema=schema,
        reset_fields=ignored,
        api_version=kind.api_version,
        other_versions=dict(
            _custom_versions(kind, conversions) if kind.is_custom else _versions(kind, ignored)
        ),
        rejects_unknown_versions=kind.is_custom,
    )


def _reset(kind: Kind, subresource: str) -> tuple[tuple[str, ...], ...]:
    """Return the paths of fields that the server resets on a write.

    The writer does not become the owner of these fields.
    """
    strategy = strategy_of(kind)
    if not strategy.resets_fields:
        return ()
    if subresource in ("status", "approval"):
        return _SPEC, *strategy.reset_fields.get(subresource, ())
    return (_STATUS,) if kind.has_status else ()


def _versions(kind: Kind, ignored: FieldSet) -> Iterator[tuple[str, OwnedVersion]]:
    """Yield (apiVersion, OwnedVersion) for each version of a built-in kind.

    The version `kind.api_version` is left out. `ignored` are the fields that the server resets on a
    write.
    """
    for one in KINDS:
        is_same = (one.kind, one.stored_as) == (kind.kind, kind.stored_as) and not one.is_custom
        schema = schema_of_kind(one) if is_same and one.api_version != kind.api_version else None
        if schema is not None:
            form, back = partial(_shown_as, kind, one), partial(_shown_as, one, kind)
            yield one.api_version, OwnedVersion(schema, ignored, form, back)


def _custom_versions(
    kind: Kind, conversions: Conversions | None
) -> Iterator[tuple[str, OwnedVersion]]:
    """Yield (apiVersion, OwnedVersion) for the versions of a custom resource.

    The version of `kind` itself is left out.
    """
    in_version = _named if conversions is None else conversions.in_version
    for api_version, one in kind.all_types:
        if api_version != kind.api_version:
            form, back = partial(in_version, api_version), partial(in_version, kind.api_version)
            yield api_version, OwnedVersion(one.fields, {}, form, back)


def _shown_as(source: Kind, target: Kind, obj: Json) -> Json:
    """Return `obj` converted from the version of `source` to the version of `target`."""
    return shown(target, internal(source, obj))


def _named(api_version: str, obj: Json) -> Json:
    return {**obj, "apiVersion": api_version}


_known_tracking: Final = lru_cache(maxsize=CACHE_SIZE)(_tracking)


def track(
    kind: Kind,
    manager: str,
    operation: str,
    subresource: str,
    now: int,
    conversions: Conversions | None = None,
) -> Track:
    """Return a function of (old, new) that returns `new` with managedFields updated for a write.

    The function returns `new` unchanged for the operation Apply, and for kinds without a schema. If
    the objects cannot be converted to the API versions in managedFields, the result has no
    managedFields.
    """
    tracking = tracking_of(kind, subresource, conversions)
    writer = ManagerIdentifier(manager, operation, kind.api_version, subresource)
    # Entries of the scale subresource have no time.
    timestamp = "" if subresource == "scale" else format_timestamp(now)

    def noted(old: Json | None, new: Json) -> Json:
        if tracking is None or operation == APPLY:  # apply has already set managedFields
            return new
        if conversions is not None or not is_converted(kind):
            try:
                return updated(tracking, old, new, writer, timestamp)
            except ConversionFailedError:
                # upstream: managedfields/internal/fieldmanager.go:UpdateNoErrors
                return without_managed_fields(new)
        before = None if old is None else shown(kind, old)
        tracked = updated(tracking, before, shown(kind, new), writer, timestamp)
        return with_managed_fields(new, entries_of(tracked))

    return noted

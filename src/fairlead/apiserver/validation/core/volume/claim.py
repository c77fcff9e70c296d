"""Validates the specs of PersistentVolumeClaims, including those embedded in ephemeral volumes.

upstream: pkg/apis/core/validation/validation.go:ValidatePersistentVolumeClaimSpec,
ValidatePersistentVolumeClaimTemplate
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.facts import items_of
from fairlead.api.json import Json
from fairlead.api.objects import PersistentVolumeClaim
from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.core.resource import check_quantities
from fairlead.apiserver.validation.meta.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_subdomain,
    dns_label_problems,
    label_selector,
)
from fairlead.apiserver.validation.meta.object_meta import check_labels
from fairlead.apiserver.validation.meta.selector import check_label_selector

_SPEC: Final = "core.v1.PersistentVolumeClaimSpec"
_ACCESS_MODES: Final = items_of(_SPEC, "accessModes")
CLAIM: Final = "PersistentVolumeClaim"
_SOURCES: Final = (("", CLAIM), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
# The metadata fields that a claim template may have.
_TEMPLATE_METADATA: Final = ("annotations", "labels")


def check_claim_spec(field: str, spec: Json) -> Causes:
    """Yield the errors of a claim's spec; `field` is its path."""
    modes = spec.get("accessModes") or []
    yield from check_fields(field, _SPEC, spec, "accessModes")
    yield from check_label_selector(f"{field}.selector", label_selector(spec.get("selector")))
    yield from check_modes(field, modes)
    yield from _check_size(f"{field}.resources[storage]", spec)
    yield from check_fields(field, _SPEC, spec, "storageClassName", "volumeMode")
    yield from _check_data(field, spec)
    yield from check_fields(field, _SPEC, spec, "volumeAttributesClassName")


def check_modes(field: str, modes: Sequence[str]) -> Causes:
    """Yield the errors of the access modes of a claim or PersistentVolume."""
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(f"{field}.accessModes", mode, _ACCESS_MODES)
    known = {mode for mode in modes if mode in _ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        yield forbidden(f"{field}.accessModes", why)


def _check_size(field: str, spec: Json) -> Causes:
    text = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if text is None:
        yield required(field)
    elif parse_quantity(text).nano <= 0:
        yield invalid(field, canonical(parse_quantity(text)), "must be greater than zero")


def is_kept_source(source: Json | None) -> bool:
    """Return whether the API server keeps `source`, the dataSource of a claim.

    The API server keeps a dataSource that refers to a PersistentVolumeClaim or VolumeSnapshot. The
    server silently drops any other dataSource.
    """
    # upstream: pkg/api/persistentvolumeclaim/util.go:dataSourceIsPvcOrSnapshot
    named = source or {}
    return (named.get("apiGroup") or "", named.get("kind")) in _SOURCES


def _check_data(field: str, spec: Json) -> Causes:
    """Yield the errors of dataSource and dataSourceRef."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if not is_kept_source(source):
        source = None
    for key, data in (("dataSource", source), ("dataSourceRef", reference)):
        if data is not None:
            yield from _check_source(f"{field}.{key}", data)
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        why = "may not be specified when dataSourceRef.namespace is specified"
        yield invalid(field, f"{field}.dataSource", why)
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        yield invalid(field, f"{field}.dataSource", "must match dataSourceRef")


def _check_source(field: str, data: Json) -> Causes:
    for key in ("name", "kind"):
        if not data.get(key):
            yield required(f"{field}.{key}")
    group, kind = data.get("apiGroup") or "", data.get("kind", "")
    if not group and kind != CLAIM:
        why = f"must be '{CLAIM}' when referencing the default apiGroup"
        yield invalid(field, kind, why)
    if group:
        yield from check_subdomain(f"{field}.apiGroup", group)
    namespace = data.get("namespace")
    for problem in dns_label_problems(namespace) if namespace else ():
        yield invalid(f"{field}.namespace", namespace, problem)


def check_scheduled_claim(field: str, template: Json) -> Causes:
    """Yield the errors in those fields of a claim template that the scheduler reads."""
    try:
        claim = decode_as(PersistentVolumeClaim, without_nulls(template))
    except DecodeError as cause:
        yield Cause("FieldValueInvalid", cause.problem, f"{field}.{cause.field}")
        return
    yield from check_quantities(f"{field}.spec.resources.requests", claim.spec.resources.requests)


def check_embedded_claim(field: str, template: Json) -> Causes:
    """Yield the errors of the claim template of an ephemeral volume."""
    meta = template.get("metadata") or {}
    yield from check_labels(f"{field}.metadata.labels", meta.get("labels") or {})
    for key in meta:
        if key not in _TEMPLATE_METADATA and meta[key]:
            yield forbidden(f"{field}.metadata.{key}", "cannot be set")
    yield from check_claim_spec(f"{field}.spec", template.get("spec") or {})

"""New and changed objects that the API server refuses: a field is missing or has an invalid value.

The simulation checks only the rules that affect decisions, because hand-written objects in a dump
or scenario often lack fields that other rules require. But an object of --apply, or one that --set
changes, would be sent to the API server, which checks every rule. This module uses the validation
of Fairlead's own API server. Only the changed fields of an existing object are checked.

upstream: Validate of the strategies in pkg/registry
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, Cause
from fairlead.apiserver.kind import HORIZONTAL_POD_AUTOSCALER, SERVICE
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.strategies.core.service import with_kept_values
from fairlead.apiserver.validation.validator import check_changed_fields
from fairlead.whatif.snapshot.api_refusal import refusal_of
from fairlead.whatif.snapshot.manifest import Manifest

# Fields with values that are valid only with a feature gate, which the cluster may have although
# Fairlead's own API server does not. The simulation checks these fields itself.
_GATED: Final = ((HORIZONTAL_POD_AUTOSCALER, "spec.minReplicas"),)  # HPAScaleToZero


def refuse_invalid_object(new: Manifest, value: Json) -> None:
    """Raise InputError if the API server refuses to create the object `new`.

    `value` is the object as in its file, where a list may contain null. Custom resources are not
    checked. If Fairlead reads the object in another version, the converted object is checked.
    """
    kind = new.kind
    if kind.is_custom:
        return
    whole = value if value["apiVersion"] == new.value["apiVersion"] else new.value
    metadata = {**whole["metadata"], "namespace": new.ref.namespace}
    try:
        obj = API_SERVER.default(kind, API_SERVER.decode(kind, {**whole, "metadata": metadata}))
        API_SERVER.validator.validate(kind, API_SERVER.rules(kind), obj)
    except ApiError as refused:
        _refuse(new, refused.causes)
        if not refused.causes:
            raise refusal_of(new.source, new.title, refused) from None


def refuse_invalid_change(existing: Manifest, changed: Manifest) -> None:
    """Raise InputError if a field is invalid in `changed`, but valid in `existing`.

    Both objects get all defaults before they are compared. Custom resources are not checked. The
    simulation reports fields of a wrong type when it loads the objects.
    """
    kind = existing.kind
    if kind.is_custom:
        return
    with suppress(ApiError):
        old, new = (
            API_SERVER.default(kind, API_SERVER.decode(kind, one.value))
            for one in (existing, changed)
        )
        new = with_kept_values(old, new) if kind is SERVICE else new
        _refuse(changed, check_changed_fields(kind, API_SERVER.rules(kind), old, new))


def _refuse(wrong: Manifest, causes: Sequence[Cause]) -> None:
    """Raise InputError for the first of `causes` that does not depend on a feature gate."""
    for cause in causes:
        if (wrong.kind, cause.field) not in _GATED:
            raise wrong.refuse(cause.message, field=cause.field) from None

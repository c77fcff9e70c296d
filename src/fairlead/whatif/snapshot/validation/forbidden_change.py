"""Changes of existing objects that the API server refuses, such as changes of immutable fields.

The simulation itself refuses such changes if the kind of the object is in
`_COMPARED_BY_SIMULATION`. In a simulation, objects of other kinds have only some of the API
server's defaults, so their fields cannot be compared. So this module gives all defaults to the old
and the new version of the object before it compares them.

upstream: ValidateUpdate of the strategies in pkg/registry
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import JOB, NODE, POD, PRIORITY_CLASS, SERVICE, Kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.strategies.core.service import moved_address, with_kept_values
from fairlead.apiserver.validation.validator import check_changes
from fairlead.whatif.snapshot.manifest import Manifest

# The simulation compares all immutable fields of these kinds itself.
_COMPARED_BY_SIMULATION: Final = (JOB, POD, PRIORITY_CLASS)
# --set may change the status of a Node.
_NOT_COMPARED: Final[tuple[Kind, ...]] = (*_COMPARED_BY_SIMULATION, NODE)


def refuse_forbidden_change(existing: Manifest, changed: Manifest) -> None:
    """Raise InputError if the API server refuses the change of `existing` to `changed`.

    Only the rules that compare both objects apply. An object is not compared if it is not valid as
    a stored object, for example because it is hand-written and lacks a required field.
    """
    kind = existing.kind
    if kind is PRIORITY_CLASS:
        _refuse_new_value(existing, changed)
    if kind.is_custom or kind in _NOT_COMPARED:
        return
    rules = API_SERVER.rules(kind)
    if kind is SERVICE and "spec" in existing.value and "spec" in changed.value:
        # A new clusterIP and the old clusterIPs contradict each other, so this rule comes first.
        for cause in moved_address(existing.value, with_kept_values(existing.value, changed.value)):
            raise changed.refuse(cause.message, field=cause.field)
    with suppress(ApiError):  # the simulation reports malformed fields when it loads the objects
        old, new = _stored(existing), _stored(changed)
        new = with_kept_values(old, new) if kind is SERVICE else new
        for cause in check_changes(kind, rules, old, new):
            raise changed.refuse(cause.message, field=cause.field)


def _refuse_new_value(existing: Manifest, changed: Manifest) -> None:
    """Raise InputError if the value of a PriorityClass differs; the message names the option."""
    value = changed.value.get("value")
    if isinstance(value, int) and value != existing.value.get("value"):
        problem = (
            "cannot be updated, only deleted and created again: "
            f"--priority-class {changed.ref.name}={value}"
        )
        raise changed.refuse(problem, field="value")


def _stored(manifest: Manifest) -> Json:
    """Return the object in the form in which an API server stores it. Raises ApiError."""
    kind = manifest.kind
    stored = API_SERVER.default(kind, API_SERVER.decode(kind, manifest.value))
    API_SERVER.validator.validate_loaded(kind, stored)
    return stored

"""Finds name conflicts between CustomResourceDefinitions of the same API group.

upstream: apiextensions-apiserver/pkg/controller/status/naming_controller.go:
calculateNamesAndConditions
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions

# The fields of spec.names that may conflict with names in use. A row is (field, reason of the
# condition if its name is in use, whether the field contains the name of a kind). The other fields
# contain names of resources.
_NAMES: Final = (
    ("plural", "PluralConflict", False),
    ("singular", "SingularConflict", False),
    ("shortNames", "ShortNamesConflict", False),
    ("kind", "KindConflict", True),
    ("listKind", "ListKindConflict", True),
)
_NOT_ESTABLISHED: Final = {
    "type": "Established",
    "status": "False",
    "reason": "NotAccepted",
    "message": "not all names are accepted",
}


def with_name_conflict(definition: Json, others: Iterable[Json], now: int) -> Json | None:
    """Return `definition` with the condition NamesAccepted=False if a name is already in use.

    Return None if no name of `definition` is in use. `others` are other definitions. A name is in
    use if another definition of the same group has the name in its acceptedNames, and `definition`
    does not have the name there. The names that are not in use are added to the acceptedNames of
    the result. If the status does not change, return `definition` itself. `now` is in ns since
    1970.
    """
    spec, status = definition["spec"], definition.get("status") or {}
    requested, accepted_before = spec["names"], status.get("acceptedNames") or {}
    resources, kinds = _names_in_use(others, spec["group"])
    accepted, condition = dict(accepted_before), None
    for key, reason, is_kind in _NAMES:
        problem = _conflict_message(
            requested.get(key), accepted_before.get(key), kinds if is_kind else resources
        )
        if problem:
            condition = {
                "type": "NamesAccepted",
                "status": "False",
                "reason": reason,
                "message": problem,
            }
        elif requested.get(key):
            accepted[key] = requested[key]
    if condition is None:
        return None
    if requested.get("categories"):
        accepted["categories"] = requested["categories"]
    conditions = status.get("conditions") or []
    has_established = any(one.get("type") == "Established" for one in conditions)
    changes = (condition,) if has_established else (condition, _NOT_ESTABLISHED)
    updated = with_conditions(conditions, changes, format_timestamp(now))
    status_after = {**status, "conditions": updated, "acceptedNames": accepted}
    return definition if status_after == status else {**definition, "status": status_after}


def holder_of_own_plural(definition: Json) -> Json:
    """Return an artificial definition that has the plural name of `definition`.

    A caller that refuses a plural name passes the result to `with_name_conflict` as one of
    `others`. The plural name of `definition` then counts as in use, unless it is in the
    acceptedNames of `definition`.
    """
    spec = definition["spec"]
    names = {"plural": spec["names"].get("plural", "")}
    return {"spec": {"group": spec["group"]}, "status": {"acceptedNames": names}}


def _names_in_use(others: Iterable[Json], group: str) -> tuple[set[str], set[str]]:
    """Return (accepted resource names, accepted kind names) of the definitions in `group`."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"].get("group") != group:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural", ""), names.get("singular", "")}
        resources |= set(names.get("shortNames") or ())
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return resources - {""}, kinds - {""}


def _conflict_message(requested: Any, accepted_before: Any, accepted: set[str]) -> str:
    if requested == accepted_before:
        return ""
    if not isinstance(requested, list):
        return f'"{requested}" is already in use' if requested in accepted else ""
    accepted_list = accepted_before or ()
    messages = [
        f'"{name}" is already in use'
        for name in requested
        if name in accepted and name not in accepted_list
    ]
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]" if messages else ""

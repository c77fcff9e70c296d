"""Whether a definition gets the names it asks for: in a group each is given once.

upstream: apiextensions-apiserver/pkg/controller/status/naming_controller.go:
calculateNamesAndConditions
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions

# The names, what a conflict over them is called, and whether kinds are called so.
_NAMES: Final = (
    ("plural", "PluralConflict", False),
    ("singular", "SingularConflict", False),
    ("shortNames", "ShortNamesConflict", False),
    ("kind", "KindConflict", True),
    ("listKind", "ListKindConflict", True),
)
_UNSERVED: Final = {
    "type": "Established",
    "status": "False",
    "reason": "NotAccepted",
    "message": "not all names are accepted",
}


def refused(definition: Json, others: Iterable[Json], now: int) -> Json | None:
    """`definition` as it says that names of it belong to `others` of its group; None: they do not.

    It is `definition` itself that says so already.
    """
    spec, status = definition["spec"], definition.get("status") or {}
    wanted, had = spec["names"], status.get("acceptedNames") or {}
    resources, kinds = _given(others, spec["group"])
    given, condition = dict(had), None
    for key, reason, is_kind in _NAMES:
        problem = _conflict(wanted.get(key), had.get(key), kinds if is_kind else resources)
        if problem:
            condition = _unaccepted(reason, problem)
        elif wanted.get(key):
            given[key] = wanted[key]
    if condition is None:
        return None
    if wanted.get("categories"):
        given["categories"] = wanted["categories"]
    conditions = status.get("conditions") or []
    served = any(one.get("type") == "Established" for one in conditions)
    changes = (condition,) if served else (condition, _UNSERVED)
    made = with_conditions(conditions, changes, format_timestamp(now))
    after = {**status, "conditions": made, "acceptedNames": given}
    return definition if after == status else {**definition, "status": after}


def own_name(definition: Json) -> Json:
    """Somebody who has the plural of `definition` already."""
    spec = definition["spec"]
    names = {"plural": spec["names"].get("plural", "")}
    return {"spec": {"group": spec["group"]}, "status": {"acceptedNames": names}}


def _given(others: Iterable[Json], group: str) -> tuple[set[str], set[str]]:
    """The names of resources and of kinds that a group has given away."""
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


def _conflict(wanted: Any, had: Any, given: set[str]) -> str:
    if wanted == had:
        return ""
    if not isinstance(wanted, list):
        return f'"{wanted}" is already in use' if wanted in given else ""
    own = had or ()
    taken = [f'"{name}" is already in use' for name in wanted if name in given and name not in own]
    return taken[0] if len(taken) == 1 else f"[{', '.join(taken)}]" if taken else ""


def _unaccepted(reason: str, message: str) -> Json:
    return {"type": "NamesAccepted", "status": "False", "reason": reason, "message": message}

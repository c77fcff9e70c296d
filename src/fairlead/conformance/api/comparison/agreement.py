"""Agreement: compares a response with the recorded response, which may have placeholders.

Details that differ between servers or runs are ignored or compared loosely. Examples are the order
of causes, randomly chosen nodes, and parts that the recording omits (`$omitted`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.well_known_label import ZONE
from fairlead.conformance.api.comparison.variable_text import (
    PLACE,
    as_generated,
    is_generated,
    same_problem_list,
    same_typed_errors,
    with_generated_values_of,
    with_nodes_of,
    without_absent_pods,
    without_generated,
)
from fairlead.conformance.api.placeholder import PlaceholderValues, has_placeholder, same_form
from fairlead.conformance.comparison import ABSENT, Mismatch

_GO_DECODER: Final = ("json: cannot unmarshal", "Go struct field", "Go value of type", "scheme.go:")
# How a binary was built; upstream: apimachinery/pkg/version/types.go:Info
_BUILD: Final = (
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
)
_SIGNED: Final = ("id_token_signing_alg_values_supported",)  # depends on the signing keys
_SLICES: Final = "endpointslice.kubernetes.io/managed-by"
_COLUMNS: Final = "columnDefinitions["
_PRINTED: Final = "stdout."


class Agreement(Struct, frozen=True):
    """Compares responses.

    The fields `encodings` and `structure` are read by the callers of `mismatch`.
    """

    bindings: PlaceholderValues  # the values of placeholders
    managed_fields: bool = False  # whether managed fields are compared
    encodings: bool = True  # whether content encodings are compared
    # Whether the values and the order of resource versions are compared. Set this only if no
    # controller writes objects.
    versions: bool = True
    # Whether only status classes and kinds are compared. Set this if the recording depends on
    # unknown initial objects.
    structure: bool = False
    # Returns whether the server can have an object with this name. If it cannot, the name is
    # ignored in a recorded list of names (`$names`).
    holds: Callable[[str], bool] = lambda _: True

    def mismatch(self, recorded: object, found: object, path: str = "") -> Mismatch | None:
        """Return the first mismatch in the order of the recording; None if there is no mismatch.

        `recorded` is the JSON value at `path` in the recording, and `found` is the value at the
        same path in the response. A placeholder in `recorded` that has no value yet gets its value
        from `found`.
        """
        match recorded:
            case {"$omitted": _}:
                return None
            case dict() if isinstance(found, dict):
                return self._of_objects(recorded, found, path)
            case list() if isinstance(found, list):
                return self._of_lists(recorded, found, path)
            case str() if self._same_text(recorded, found, path):
                return None
            case _:
                same = type(recorded) is type(found) and recorded == found
                return None if same else Mismatch(path, recorded, found)

    def _same_text(self, recorded: str, found: object, path: str) -> bool:
        if path.endswith("spec.holderIdentity"):  # name and uid of a machine, without placeholders
            return bool(found)
        if _is_place(path) and PLACE.fullmatch(recorded) and PLACE.fullmatch(str(found)):
            return True  # upstream chooses randomly among equal nodes
        if isinstance(found, str) and (path.endswith((".message", ".note")) or ".cells[" in path):
            recorded = without_absent_pods(with_nodes_of(recorded, found))
        if isinstance(found, str) and "," in recorded and "<podip:" in recorded:
            return self._same_addresses(recorded.split(","), found.split(","))
        if isinstance(found, str):
            if path.startswith(_PRINTED) and is_generated(path, recorded, found):
                return True
            recorded, found = without_generated(recorded, found)
        is_version = path.endswith("metadata.resourceVersion") and not _is_of_list(path)
        exact = is_version and self.versions
        if self.bindings.matches(recorded, found, exact_version=exact):
            return True
        # Events are sorted by their random names, so the pods in their rows are in random order.
        return ".cells[" in path and self.bindings.names_another(recorded, str(found))

    def _same_addresses(self, recorded: list[str], found: list[str]) -> bool:
        """Return whether both lists contain the same addresses, in any order."""
        left = list(found)
        for one in recorded:
            same = next((other for other in left if self.bindings.matches(one, other)), None)
            if same is None:
                return False
            left.remove(same)
        return not left

    # --- objects ---------------------------------------------------------------------------

    def _of_objects(self, recorded: Json, found: Json, path: str) -> Mismatch | None:
        if recorded.get("status") == "Failure" and recorded.get("kind") == "Status":
            return self._of_refusals(recorded, found, path)
        names = recorded.get("$names")
        if names is not None:
            items = found.get("items") or ()
            shown = [item["metadata"]["name"] for item in items]
            names = [name for name in names if has_placeholder(name) or self.holds(name)]
            names = [as_generated(a, b) for a, b in zip_longest(names, shown, fillvalue="")]
            names = [name for name in names if name]
            return self.mismatch(names, shown, f"{path}.items[].metadata.name".lstrip("."))
        return self._of_members(recorded, found, path)

    def _of_members(self, recorded: Json, found: Json, path: str) -> Mismatch | None:
        recorded, left = _shortened(recorded, found, path)
        found = dict(left)
        for key, value in recorded.items():
            if key.startswith("$omitted"):
                continue
            name = self._name_in(found, key)
            other = left.pop(name, ABSENT)
            inner = self._of_member(name, value, other, f"{path}.{name}".lstrip("."))
            if inner is not None:
                return inner
        for key, value in left.items():
            if key == "managedFields" and not self.managed_fields:
                continue
            return Mismatch(f"{path}.{key}".lstrip("."), ABSENT, value)
        return None

    def _of_member(self, key: str, value: Any, other: Any, path: str) -> Mismatch | None:
        if key == "managedFields" and path.endswith("metadata.managedFields"):
            return self._of_managers(value, other, path) if self.managed_fields else None
        return self.mismatch(value, other, path)

    def _name_in(self, found: Json, key: str) -> str:
        """Return the key of `found` that matches `key`, which may contain placeholders.

        If no key matches, return `key`.
        """
        if key in found or not has_placeholder(key):
            return key
        for name in found:
            if self.bindings.matches(key, name):
                return name
        return key

    # --- lists -----------------------------------------------------------------------------

    def _of_lists(self, recorded: list[Any], found: list[Any], path: str) -> Mismatch | None:
        for i, (a, b) in enumerate(zip_longest(recorded, found, fillvalue=ABSENT)):
            inner = self.mismatch(a, b, f"{path}[{i}]")
            if inner is not None:
                return inner
        return None

    def _of_managers(self, recorded: Any, found: Any, path: str) -> Mismatch | None:
        """Return the first mismatch of two lists of managedFields, or None.

        The entries may be in any order. If an entry has a time, the matching entry of the other
        list must also have a time, but the two times may differ.
        """
        if not isinstance(recorded, list) or not isinstance(found, list):
            return self.mismatch(recorded, found, path)
        by_key = {_manager(entry): entry for entry in found}
        for entry in recorded:
            key = _manager(entry)
            if key not in by_key:
                return Mismatch(f"{path}{list(key)}", entry, ABSENT)
            inner = self.mismatch(entry, by_key.pop(key), f"{path}{list(key)}")
            if inner is not None:
                return inner
        for key, entry in by_key.items():
            return Mismatch(f"{path}{list(key)}", ABSENT, entry)
        return None

    # --- refusals --------------------------------------------------------------------------

    def _of_refusals(self, recorded: Json, found: Json, path: str) -> Mismatch | None:
        recorded = with_generated_values_of(recorded, found)
        message, causes = recorded.get("message", ""), _causes(recorded)
        is_go = any(words in message for words in _GO_DECODER)
        message_found = str(found.get("message"))
        if (
            is_go
            or same_problem_list(message, message_found)
            or same_typed_errors(message, message_found)
        ):
            recorded = {**recorded, "message": found.get("message")}
        if is_go:
            causes = _causes(found)
            recorded = _with_causes(recorded, causes)
        elif len(causes) > 1:
            recorded = _with_causes(recorded, _in_order_of(causes, _causes(found)))
        return self._of_members(recorded, found, path)


def _is_place(path: str) -> bool:
    """Return whether the field at `path` may contain the name of a node or zone."""
    return path.endswith((".zone", "nodeName", "nominatedNodeName", ZONE)) or ".cells[" in path


def _is_of_list(path: str) -> bool:
    """Return whether `path` is in the metadata of a list, table or bookmark."""
    return path.startswith(("list.metadata.", "bookmark.metadata."))


def _shortened(recorded: Json, found: Json, path: str) -> tuple[Json, Json]:
    """Return (recorded, found) without parts that differ between servers or were truncated."""
    if _COLUMNS in path:
        return _without(recorded, "description"), _without(found, "description")
    if "gitVersion" in recorded:
        return _without(recorded, *_BUILD), _without(found, *_BUILD)
    if "jwks_uri" in recorded:
        return _without(recorded, *_SIGNED), _without(found, *_SIGNED)
    if _SLICES in (recorded.get("labels") or {}):
        # The number of writes of an EndpointSlice depends on the timing of its pods.
        return _without(recorded, "generation"), _without(found, "generation")
    if "$omitted_items" in recorded and isinstance(found.get("items"), list):
        found = {**found, "items": found["items"][: len(recorded["items"])]}
    return recorded, dict(found)


def _without(obj: Json, *names: str) -> Json:
    return {key: value for key, value in obj.items() if key not in names}


def _manager(entry: Json) -> tuple[str, ...]:
    keys = ("manager", "operation", "apiVersion", "subresource")
    return tuple(str(entry.get(key, "")) for key in keys)


def _causes(status: Json) -> list[Any]:
    found: list[Any] = (status.get("details") or {}).get("causes") or []
    return found


def _with_causes(status: Json, causes: Sequence[Any]) -> Json:
    details = {**(status.get("details") or {}), "causes": list(causes)}
    if not causes:
        details.pop("causes")
    return {**status, "details": details} if status.get("details") is not None else status


def _in_order_of(recorded: list[Any], found: list[Any]) -> list[Any]:
    """Return the causes `recorded` in the order of the causes `found`.

    If `found` contains a cause that was not recorded, return `recorded` unchanged.
    """
    left, ordered = list(recorded), []
    for cause in found:
        same = next((c for c in left if _same_cause(c, cause)), None)
        if same is None:
            return recorded
        left.remove(same)
        ordered.append(same)
    return [*ordered, *left]


def _same_cause(recorded: Json, found: Any) -> bool:
    return isinstance(found, dict) and all(
        same_form(str(recorded.get(key)), str(found.get(key)))
        for key in ("reason", "message", "field")
    )

"""Determines which manager owns which fields after an update or an apply.

`owners` maps each manager to its field set. The rules:

- After an **update**, the updater is the only owner of each field that it added or modified. No
  manager owns a field that the updater removed.
- An **apply** claims all fields of the applied configuration. A field whose value stays the same is
  shared with its other owners. A field whose value changes causes a conflict with its other owners;
  with `force`, they lose the field instead.
- A field that a manager applied before and no longer applies is removed from the object if no other
  manager owns it (`_pruned`).

Worked example, with spec = {replicas, image}:

    ann applies {replicas: 1, image: a}    ann owns {replicas, image}
    bob updates replicas to 5              ann owns {image}, bob owns {replicas}
    ann applies {replicas: 1, image: a}    conflict with bob over replicas
    ann applies it with force              ann owns {replicas, image}, bob owns nothing
    cat applies {image: a}                 cat shares image with ann
    ann applies {replicas: 1}              image stays in the object: cat owns it
    cat applies {}                         image is removed: only cat owned it

Invariant: `owners` never contains an empty set, and no manager owns a field in the `reset_fields`
of its version.

upstream: sigs.k8s.io/structured-merge-diff/merge/{update,conflict}.go
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.patch.managedfields.field_set import (
    EMPTY,
    FieldSet,
    difference,
    intersection,
    recursive_difference,
    union,
)
from fairlead.apiserver.patch.managedfields.typed import (
    compare,
    field_set,
    merged,
    with_named_fields,
    without,
)
from fairlead.apiserver.schema.model import Schema

Name = TypeVar("Name", bound=Hashable)
Owners = Mapping[Name, FieldSet]


def _unconverted(obj: Any) -> Any:
    return obj


class OwnedVersion(Struct, frozen=True, eq=False):
    """An API version of a resource: its schema, and the fields that cannot be owned in it.

    `reset_fields` are the fields that the resource's strategy always resets, such as .status on the
    main resource. `convert` converts an object from the version of the current write to this
    version; `convert_back` does the reverse.
    """

    schema: Schema
    reset_fields: FieldSet = field(default_factory=dict)
    convert: Callable[[Any], Any] = _unconverted
    convert_back: Callable[[Any], Any] = _unconverted


# The version of each manager whose set is not recorded in the version of the current write.
OwnerVersions = Mapping[Name, OwnedVersion]
_NO_OTHER_VERSIONS: Final[Mapping[Any, OwnedVersion]] = MappingProxyType({})


class OwnershipConflictError(Exception, Generic[Name]):
    """An apply changes fields that other managers own."""

    def __init__(self, conflicts: dict[Name, FieldSet]) -> None:
        """`conflicts` maps each manager to its fields that the apply would change."""
        super().__init__(", ".join(map(str, conflicts)))
        self.conflicts = conflicts


def after_update(
    version: OwnedVersion,
    old: Any,
    new: Any,
    owners: Owners[Name],
    *,
    manager: Name,
    other_versions: OwnerVersions[Name] = _NO_OTHER_VERSIONS,
) -> dict[Name, FieldSet]:
    """Return the owners after `manager` updates `old` to `new` in `version`.

    `other_versions` contains the API version of each manager whose field set is recorded in a
    version other than `version`. Raises ItemKeyError.
    """
    # upstream: update.go:Update
    changes = _Changes(version, old, new)
    # Updates never conflict: they take fields as a forced apply does.
    kept = _release_changed(changes, owners, manager, other_versions, force=True)
    taken = difference(kept.pop(manager, EMPTY), changes.removed)
    taken = recursive_difference(union(taken, changes.written), version.reset_fields)
    return {**kept, manager: taken} if taken else kept


def after_apply(  # noqa: PLR0913 - the parts of one request
    version: OwnedVersion,
    live: Any,
    applied: Any,
    owners: Owners[Name],
    *,
    manager: Name,
    force: bool,
    other_versions: OwnerVersions[Name] = _NO_OTHER_VERSIONS,
) -> tuple[Any, dict[Name, FieldSet]]:
    """Return (object, owners) after `manager` applies a configuration.

    The object is None if it is unchanged. `other_versions` contains the API version of each manager
    whose field set is recorded in a version other than `version`. For `manager`, this is the
    version of the manager's last apply. Raises ItemKeyError. Raises OwnershipConflictError if there
    is a conflict and `force` is False.
    """
    # upstream: update.go:Apply
    # 1. The applier claims all fields of its configuration, even if they do not change.
    claim = recursive_difference(field_set(version.schema, applied), version.reset_fields)
    before = owners.get(manager, EMPTY)
    claimed = {**owners, manager: claim}
    # 2. Merge the configuration into the object.
    new = merged(version.schema, live, applied)
    # 3. Remove the fields that the applier owned before, if no manager owns them now. There are no
    #    such fields if the claim covers all fields that it owned in the same version.
    last_version = other_versions.get(manager, version)
    if before and (last_version is not version or difference(before, claim)):
        by_version = _owned_by_version(claimed, {**other_versions, manager: version}, version)
        new = _pruned(new, before, last_version, by_version)
    # 4. Take the changed fields from their other owners, or refuse.
    changes = _Changes(version, live, new)
    kept = _release_changed(changes, claimed, manager, other_versions, force=force)
    is_same = changes.is_empty and json_equal(live, new)
    return (None if is_same else new), kept


class _Changes:
    """The fields that a write changes, in the API version of the write and in other versions."""

    def __init__(self, version: OwnedVersion, old: Any, new: Any) -> None:
        self.version = version
        self._old, self._new = old, new
        found = compare(version.schema, old, new)
        self.is_empty = found.is_same
        self.written = union(found.modified, found.added)
        self.removed = found.removed
        self._by_version: list[tuple[OwnedVersion, FieldSet, FieldSet]] = []

    def in_version(self, version: OwnedVersion) -> tuple[FieldSet, FieldSet]:
        """Return (written fields, removed fields) in `version`, except `version.reset_fields`."""
        for known, written, removed in self._by_version:
            if known is version:
                return written, removed
        written, removed = self.written, self.removed
        if version is not self.version:
            old, new = version.convert(self._old), version.convert(self._new)
            found = compare(version.schema, old, new)
            written, removed = union(found.modified, found.added), found.removed
        written = recursive_difference(written, version.reset_fields)
        removed = recursive_difference(removed, version.reset_fields)
        self._by_version.append((version, written, removed))
        return written, removed


def _release_changed(
    changes: _Changes,
    owners: Owners[Name],
    manager: Name,
    other_versions: OwnerVersions[Name],
    *,
    force: bool,
) -> dict[Name, FieldSet]:
    """Return `owners` without the changed fields; only `manager` keeps these fields.

    Raises OwnershipConflictError if another manager owns an added or modified field and `force` is
    False. Removed fields never conflict.
    """
    conflicts, kept = {}, {}
    for name, fields in owners.items():
        rest = fields
        if name != manager:
            written, removed = changes.in_version(other_versions.get(name, changes.version))
            contested = intersection(fields, written)
            if contested:
                conflicts[name] = contested
            rest = difference(difference(fields, contested), removed)
        if rest:
            kept[name] = rest
    if conflicts and not force:
        raise OwnershipConflictError(conflicts)
    return kept


def _owned_by_version(
    owners: Owners[Name], other_versions: OwnerVersions[Name], version: OwnedVersion
) -> list[tuple[OwnedVersion, FieldSet]]:
    """Return (version, fields that managers of this version own) for each version in use.

    A manager that is not in `other_versions` uses `version`.
    """
    found: list[tuple[OwnedVersion, FieldSet]] = []
    for name, fields in owners.items():
        its_version = other_versions.get(name, version)
        for index, (known, owned) in enumerate(found):
            if known is its_version:
                found[index] = (its_version, union(owned, fields))
                break
        else:
            found.append((its_version, fields))
    return found


def _pruned(
    new: Any,
    before: FieldSet,
    last_version: OwnedVersion,
    owned: list[tuple[OwnedVersion, FieldSet]],
) -> Any:
    """Return `new` without the fields in `before` that no manager owns any more.

    `before` are the fields that the applier owned before, recorded in `last_version`. `owned`
    already includes the fields that the applier claims now.
    """
    # upstream: update.go:prune
    # Removing a member removes everything below it, and `with_named_fields` makes every struct on
    # the way a member. So too much is removed first. Then the fields that a manager owns are
    # restored from the full object, and then the fields that the applier did not own:
    #
    #   full object {labels: {a: 1, b: 2, c: 3}}, before {labels["a"], labels["b"]}
    #   without `before`      {}
    #   owned restored        {labels: {b: 2}}          another manager owns labels["b"]
    #   unowned restored      {labels: {b: 2, c: 3}}    no one owned c, so it is not pruned
    #
    # Invariant: left <= result <= full, and only members of `before` are in full but not in result.
    full = last_version.convert(new)
    left = without(last_version.schema, full, with_named_fields(last_version.schema, before))
    # The fields of owners in `last_version` are restored first. Without these fields, the object
    # may not be convertible to the versions of the other owners.
    order = sorted(owned, key=lambda one: one[0] is not last_version)
    left = _with_owned(full, left, last_version, order)
    return last_version.convert_back(_with_unowned(last_version.schema, full, left, before))


def _with_owned(
    full: Any, left: Any, last_version: OwnedVersion, owned: list[tuple[OwnedVersion, FieldSet]]
) -> Any:
    """Return `left` plus those fields of `full` that a manager owns.

    `full` is the merged object. `left` is the rest of `full` after the removal of the fields that
    the applier owned before this apply.
    """
    # upstream: update.go:addBackOwnedItems
    current = last_version
    for version, fields in owned:
        if version is not current:
            full = version.convert(current.convert_back(full))
            left = version.convert(current.convert_back(left))
            current = version
        schema = version.schema
        everything = with_named_fields(schema, field_set(schema, full))
        rest = with_named_fields(schema, field_set(schema, left))
        kept = union(rest, with_named_fields(schema, fields))
        left = without(schema, full, difference(everything, kept))
    return left if current is last_version else last_version.convert(current.convert_back(left))


def _with_unowned(schema: Schema, full: Any, left: Any, before: FieldSet) -> Any:
    """Return `full` without those fields in `before` that are missing from `left`.

    `full` is the merged object, and `left` is the part of it that `_with_owned` has kept. `before`
    are the fields that the applier owned before this apply.
    """
    # upstream: update.go:addBackDanglingItems
    rest = with_named_fields(schema, field_set(schema, left))
    everything = with_named_fields(schema, field_set(schema, full))
    last = with_named_fields(schema, before)
    return without(schema, full, intersection(difference(everything, rest), last))

"""Ownership: which manager owns which fields after somebody wrote.

Whoever changes a field owns it, and no one else does any longer; whoever applies owns what they
apply, with others if they agree. Applying what another manager set otherwise is a conflict, which
force decides for the applier. What an applier no longer mentions goes, unless others own it.

Managers are named by whatever the caller names them by. Sets are of the API version that is
written, but for those of managers who wrote in another `Version`: what a write changes for them is
what it changes of the object in their form.

upstream: sigs.k8s.io/structured-merge-diff/merge/{update,conflict}.go
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.patch.managedfields.field_set import (
    NOTHING,
    FieldSet,
    difference,
    intersection,
    union,
    without_subtrees,
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


def _as_it_is(obj: Any) -> Any:
    return obj


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version of a resource: its type, and what nobody comes to own in it.

    `form` and `back` give an object of the version that is written the form of this one, and the
    other way round.
    """

    schema: Schema
    ignored: FieldSet = field(default_factory=dict)
    form: Callable[[Any], Any] = _as_it_is
    back: Callable[[Any], Any] = _as_it_is


# The versions of owners who wrote in another one than is written.
Others = Mapping[Name, Version]
_NO_OTHERS: Final[Mapping[Any, Version]] = MappingProxyType({})


class OwnershipConflictError(Exception, Generic[Name]):
    """Others own what is to be changed: `conflicts` has the fields of each."""

    def __init__(self, conflicts: dict[Name, FieldSet]) -> None:
        """`conflicts` is by manager."""
        super().__init__(", ".join(map(str, conflicts)))
        self.conflicts = conflicts


def after_update(
    own: Version,
    old: Any,
    new: Any,
    owners: Owners[Name],
    *,
    manager: Name,
    others: Others[Name] = _NO_OTHERS,
) -> dict[Name, FieldSet]:
    """The owners once `manager` made `new` of `old`, in the version `own`."""
    changes = _Changes(own, old, new)
    kept = _yielding(changes, owners, manager, others, force=True)
    taken = difference(kept.pop(manager, NOTHING), changes.removed)
    taken = without_subtrees(union(taken, changes.set), own.ignored)
    return {**kept, manager: taken} if taken else kept


def after_apply(  # noqa: PLR0913 - the parts of one request
    own: Version,
    live: Any,
    applied: Any,
    owners: Owners[Name],
    *,
    manager: Name,
    force: bool,
    others: Others[Name] = _NO_OTHERS,
) -> tuple[Any, dict[Name, FieldSet]]:
    """The object with what `manager` applies (None: it is so already), and its owners.

    `others` says of `manager` in which version it applied before. Raises OwnershipConflictError
    unless `force`.
    """
    claim = without_subtrees(field_set(own.schema, applied), own.ignored)
    before = owners.get(manager, NOTHING)
    claimed = {**owners, manager: claim}
    new = merged(own.schema, live, applied)
    last = others.get(manager, own)
    if before and (last is not own or difference(before, claim)):
        # it may no longer mention all that it did
        groups = _by_version(claimed, {**others, manager: own}, own)
        new = _pruned(new, before, last, groups)
    changes = _Changes(own, live, new)
    kept = _yielding(changes, claimed, manager, others, force=force)
    is_same = changes.is_none and json_equal(live, new)
    return (None if is_same else new), kept


class _Changes:
    """What a write changes, in the version `own` and in others."""

    def __init__(self, own: Version, old: Any, new: Any) -> None:
        self.own = own
        self._old, self._new = old, new
        found = compare(own.schema, old, new)
        self.is_none = found.same
        self.set = union(found.modified, found.added)
        self.removed = found.removed
        self._seen: list[tuple[Version, FieldSet, FieldSet]] = []

    def seen_in(self, version: Version) -> tuple[FieldSet, FieldSet]:
        """What was set there, and what has gone, as far as anybody can own it."""
        for known, touched, gone in self._seen:
            if known is version:
                return touched, gone
        touched, gone = self.set, self.removed
        if version is not self.own:
            found = compare(version.schema, version.form(self._old), version.form(self._new))
            touched, gone = union(found.modified, found.added), found.removed
        touched = without_subtrees(touched, version.ignored)
        gone = without_subtrees(gone, version.ignored)
        self._seen.append((version, touched, gone))
        return touched, gone


def _yielding(
    changes: _Changes,
    owners: Owners[Name],
    manager: Name,
    others: Others[Name],
    *,
    force: bool,
) -> dict[Name, FieldSet]:
    """`owners` but for `manager`, each without what the changes took from them."""
    conflicts, kept = {}, {}
    for name, fields in owners.items():
        rest = fields
        if name != manager:
            touched, gone = changes.seen_in(others.get(name, changes.own))
            contested = intersection(fields, touched)
            if contested:
                conflicts[name] = contested
            rest = difference(difference(fields, contested), gone)
        if rest:
            kept[name] = rest
    if conflicts and not force:
        raise OwnershipConflictError(conflicts)
    return kept


def _by_version(
    owners: Owners[Name], others: Others[Name], own: Version
) -> list[tuple[Version, FieldSet]]:
    """What is owned in each version."""
    found: list[tuple[Version, FieldSet]] = []
    for name, fields in owners.items():
        version = others.get(name, own)
        for at, (known, owned) in enumerate(found):
            if known is version:
                found[at] = (version, union(owned, fields))
                break
        else:
            found.append((version, fields))
    return found


def _pruned(
    new: Any, before: FieldSet, last: Version, owned: list[tuple[Version, FieldSet]]
) -> Any:
    """`new` without what its applier owned in the version `last` and nobody owns now."""
    whole = last.form(new)
    left = without(last.schema, whole, with_named_fields(last.schema, before))
    # First what is owned in that version, without which it may have no other form.
    order = sorted(owned, key=lambda one: one[0] is not last)
    left = _with_owned(whole, left, last, order)
    return last.back(_with_dangling(last.schema, whole, left, before))


def _with_owned(whole: Any, left: Any, last: Version, owned: list[tuple[Version, FieldSet]]) -> Any:
    """What was taken away comes back where anybody owns it."""
    now = last
    for version, fields in owned:
        if version is not now:
            whole, left = version.form(now.back(whole)), version.form(now.back(left))
            now = version
        schema = version.schema
        everything = with_named_fields(schema, field_set(schema, whole))
        rest = with_named_fields(schema, field_set(schema, left))
        kept = union(rest, with_named_fields(schema, fields))
        left = without(schema, whole, difference(everything, kept))
    return left if now is last else last.form(now.back(left))


def _with_dangling(schema: Schema, new: Any, left: Any, before: FieldSet) -> Any:
    """What nobody owned, and its applier did not either, comes back."""
    rest = with_named_fields(schema, field_set(schema, left))
    everything = with_named_fields(schema, field_set(schema, new))
    last = with_named_fields(schema, before)
    return without(schema, new, intersection(difference(everything, rest), last))

"""Ownership: which manager owns which fields after somebody wrote.

Whoever changes a field owns it, and no one else does any longer; whoever applies owns what they
apply, with others if they agree. Applying what another manager set otherwise is a conflict, which
force decides for the applier. What an applier no longer mentions goes, unless others own it.

Managers are named by whatever the caller names them by; all sets are of one API version.

upstream: sigs.k8s.io/structured-merge-diff/merge/{update,conflict}.go
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

from fairlead.apiserver.likeness import is_alike
from fairlead.apiserver.patch.field_set import (
    NOTHING,
    FieldSet,
    difference,
    intersection,
    union,
    without_subtrees,
)
from fairlead.apiserver.patch.typed import (
    Comparison,
    compare,
    field_set,
    merged,
    with_named_fields,
    without,
)
from fairlead.apiserver.schema.model import Schema

Name = TypeVar("Name", bound=Hashable)
Owners = Mapping[Name, FieldSet]


class OwnershipConflictError(Exception, Generic[Name]):
    """Others own what is to be changed: `conflicts` has the fields of each."""

    def __init__(self, conflicts: dict[Name, FieldSet]) -> None:
        """`conflicts` is by manager."""
        super().__init__(", ".join(map(str, conflicts)))
        self.conflicts = conflicts


def after_update(
    schema: Schema, old: Any, new: Any, owners: Owners[Name], *, manager: Name, ignored: FieldSet
) -> dict[Name, FieldSet]:
    """The owners once `manager` made `new` of `old`; nobody comes to own what is `ignored`."""
    changes = compare(schema, old, new)
    kept = _yielding(changes, owners, manager, ignored, force=True)
    own = kept.pop(manager, NOTHING)
    own = union(union(difference(own, changes.removed), changes.modified), changes.added)
    own = without_subtrees(own, ignored)
    return {**kept, manager: own} if own else kept


def after_apply(  # noqa: PLR0913 - the parts of one request
    schema: Schema,
    live: Any,
    applied: Any,
    owners: Owners[Name],
    *,
    manager: Name,
    force: bool,
    ignored: FieldSet,
) -> tuple[Any, dict[Name, FieldSet]]:
    """The object with what `manager` applies (None: it is so already), and its owners.

    Raises OwnershipConflictError unless `force`.
    """
    own = without_subtrees(field_set(schema, applied), ignored)
    before = owners.get(manager, NOTHING)
    claimed = {**owners, manager: own}
    new = merged(schema, live, applied)
    if difference(before, own):  # it no longer mentions all that it did
        new = _pruned(schema, new, claimed, before)
    changes = compare(schema, live, new)
    kept = _yielding(changes, claimed, manager, ignored, force=force)
    is_same = changes.same and is_alike(live, new)
    return (None if is_same else new), kept


def _yielding(
    changes: Comparison, owners: Owners[Name], manager: Name, ignored: FieldSet, *, force: bool
) -> dict[Name, FieldSet]:
    """`owners` but for `manager`, each without what the changes took from them."""
    if owners.keys() <= {manager}:
        return {name: fields for name, fields in owners.items() if fields}
    touched = without_subtrees(union(changes.modified, changes.added), ignored)
    gone = without_subtrees(changes.removed, ignored)
    conflicts = {}
    for name, fields in owners.items():
        contested = intersection(fields, touched) if name != manager else NOTHING
        if contested:
            conflicts[name] = contested
    if conflicts and not force:
        raise OwnershipConflictError(conflicts)
    kept = {}
    for name, fields in owners.items():
        rest = fields
        if name != manager:
            rest = difference(difference(fields, conflicts.get(name, NOTHING)), gone)
        if rest:
            kept[name] = rest
    return kept


def _pruned(schema: Schema, new: Any, owners: Owners[Name], before: FieldSet) -> Any:
    """`new` without what its applier once owned and nobody owns now."""
    left = without(schema, new, with_named_fields(schema, before))
    left = _with_owned(schema, new, left, owners)
    return _with_dangling(schema, new, left, before)


def _with_owned(schema: Schema, new: Any, left: Any, owners: Owners[Name]) -> Any:
    """What was taken away comes back where anybody owns it."""
    owned: FieldSet = {}
    for fields in owners.values():
        owned = union(owned, fields)
    everything = with_named_fields(schema, field_set(schema, new))
    rest = with_named_fields(schema, field_set(schema, left))
    kept = union(rest, with_named_fields(schema, owned))
    return without(schema, new, difference(everything, kept))


def _with_dangling(schema: Schema, new: Any, left: Any, before: FieldSet) -> Any:
    """What nobody owned, and its applier did not either, comes back."""
    rest = with_named_fields(schema, field_set(schema, left))
    everything = with_named_fields(schema, field_set(schema, new))
    last = with_named_fields(schema, before)
    return without(schema, new, intersection(difference(everything, rest), last))

"""KindRules: how objects of one kind are validated; part of the kind's strategy.

What holds for a new object, what for a changed one, how an update may differ from what was there,
and what a status must keep to. `validator` applies them.

upstream: Validate, ValidateUpdate and the status strategies of pkg/registry/*/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import path_segment_problems

NameRule = Callable[[str], tuple[str, ...]]
Check = Callable[[Json], Causes]
CheckWithView = Callable[[Json, Any], Causes]
CheckUpdate = Callable[[Json, Json], Causes]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRules:
    """The rules of one kind; checks take the object's JSON and its typed view.

    A kind without rules has only those that all kinds share.
    """

    # --- metadata ----------------------------------------------------------------------------

    # The problems of a name. upstream: ValidateObjectMeta's nameFn
    name: NameRule = path_segment_problems
    # Whether finalizers need not be qualified names.
    accepts_any_finalizer: bool = False
    # How often an update validates metadata as that of a new object, and compares it with the old.
    metadata_validations: int = 1
    metadata_comparisons: int = 2

    # --- the object --------------------------------------------------------------------------

    # What holds for new objects, and for what an update leads to (the same unless stated).
    new: CheckWithView | None = None
    changed: CheckWithView | None = None
    # Compares the old object with the new one.
    update: CheckUpdate | None = None
    # Whether immutable fields (rows of `schema/data/facts`) are compared.
    has_immutable_fields: bool = True
    # Whether upstream reports the causes of `update` before the others.
    reports_update_first: bool = False
    # Whether upstream reports the causes of `changed` twice.
    # upstream: ValidateUpdate of pkg/registry/{apps,batch,core}/*/strategy.go
    reports_changed_twice: bool = False

    # --- subresources ------------------------------------------------------------------------

    # What an update by way of a subresource may lead to.
    subresources: Mapping[str, CheckUpdate] = field(default_factory=dict)


def json_check(check: Check) -> CheckWithView:
    """Returns a check for `KindRules` that ignores the typed view."""
    return lambda obj, _: check(obj)


def view_check(check: Callable[[Any], Causes]) -> CheckWithView:
    """Returns a check for `KindRules` that uses only the typed view."""
    return lambda _, view: check(view)

"""KindRules: the validation rules of one kind, which are part of the kind's strategy.

The module `validator` applies the rules.

upstream: Validate, ValidateUpdate and the status strategies of pkg/registry/*/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import path_segment_problems

NameRule = Callable[[str], tuple[str, ...]]
Check = Callable[[Json], Causes]
CheckWithView = Callable[[Json, Any], Causes]
CheckUpdate = Callable[[Json, Json], Causes]


class KindRules(Struct, frozen=True, kw_only=True):
    """The validation rules of one kind. The default values are for a kind without special rules.

    The check `new` is for new objects, and the check `changed` is for the results of updates. `new`
    and `changed` take the object's JSON and its typed view. The check `update` compares the JSON of
    the old and the new object.
    """

    # --- metadata ----------------------------------------------------------------------------

    # Returns the error texts of a name (upstream: the argument nameFn of ValidateObjectMeta).
    name: NameRule = path_segment_problems
    # Whether finalizers may be unqualified names.
    accepts_any_finalizer: bool = False
    # `metadata_validations` is how often an update checks the new metadata as if the object were
    # new. `metadata_comparisons` is how often it compares the new metadata with the old. As in
    # upstream, an error is reported once for each check or comparison that finds it.
    metadata_validations: int = 1
    metadata_comparisons: int = 2

    # --- the object --------------------------------------------------------------------------

    # The rules for new objects.
    new: CheckWithView | None = None
    # The rules for the results of updates; if this is None, `new` applies to them.
    changed: CheckWithView | None = None
    # A top-level field whose errors do not count if an update leaves the field unchanged; or "".
    ratcheted: str = ""
    # The rules for the difference between the old object and the new one.
    update: CheckUpdate | None = None
    # Whether immutable fields (rows of `api/data/facts`) are compared.
    has_immutable_fields: bool = True
    # Whether upstream reports the causes of `update` before all other causes.
    reports_update_first: bool = False
    # Whether upstream reports the causes of `changed` twice.
    # upstream: ValidateUpdate of pkg/registry/{apps,batch,core}/*/strategy.go
    reports_changed_twice: bool = False

    # --- subresources ------------------------------------------------------------------------

    # The rules for updates through subresources, by the name of the subresource.
    subresources: Mapping[str, CheckUpdate] = field(default_factory=dict)


def json_check(check: Check) -> CheckWithView:
    """Return a check for `KindRules` that calls `check` with the JSON only."""
    return lambda obj, _: check(obj)


def view_check(check: Callable[[Any], Causes]) -> CheckWithView:
    """Return a check for `KindRules` that calls `check` with the typed view only."""
    return lambda _, view: check(view)

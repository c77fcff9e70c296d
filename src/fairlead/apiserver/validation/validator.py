"""Validators, which a store calls before it writes an object.

`ApiValidator` is for API servers. `SimulationValidator` checks less (see `simulation`). Both
classes raise an ApiError that contains the object's name and all invalid fields. The code of the
error is 400 for a field of the wrong type, otherwise 422.

upstream: apiserver/pkg/registry/rest/{create,update}.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Protocol

from fairlead.api.codec import DecodeError, decode, decode_stored
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject
from fairlead.api.quantity import QuantityError
from fairlead.apiserver.defaulting.simulation import with_defaults
from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.kind import NODE, POD, Kind
from fairlead.apiserver.schema.model import Schema, Type, Zero, schema_of
from fairlead.apiserver.validation import simulation
from fairlead.apiserver.validation.core.pod.status import CHECKED_FIELDS, check_pod_status
from fairlead.apiserver.validation.meta.field import Causes, bounded, required
from fairlead.apiserver.validation.meta.field_facts import check_immutable
from fairlead.apiserver.validation.meta.kind_rules import KindRules
from fairlead.apiserver.validation.meta.object_meta import (
    check_annotations_owners_and_finalizers,
    check_generate_name,
    check_generation,
    check_metadata,
    check_metadata_update,
    check_owners,
)

Decoder = Callable[[Json], ApiObject]

# The members of metadata that `_stored_metadata` checks.
_METADATA_CHECKED: Final = (
    "name",
    "namespace",
    "labels",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
)


class Validator(Protocol):
    """The checks that a store makes before a write.

    Every method raises ApiError for an invalid object. `rules` are the rules of `kind`.
    """

    def validate(self, kind: Kind, rules: KindRules, obj: Json) -> None:
        """Refuse an invalid new object. `obj` already has its defaults."""
        ...

    def validate_update(self, kind: Kind, rules: KindRules, old: Json, new: Json) -> None:
        """Refuse an invalid update of `old` to `new`. `new` already has its defaults."""
        ...

    def validate_part(
        self, kind: Kind, rules: KindRules, old: Json, new: Json, causes: Causes
    ) -> None:
        """Refuse an invalid update of a part of the spec through a subresource.

        `causes` are the errors that the subresource's own rules found.
        """
        ...

    def validate_status_update(
        self, kind: Kind, rules: KindRules, old: Json, new: Json, subresource: str = "status"
    ) -> None:
        """Refuse an invalid status update. `new` is `old` with a different status and metadata.

        `subresource` is the subresource that the request updates.
        """
        ...

    def validate_status(self, kind: Kind, obj: Json, fields: Mapping[str, Any]) -> None:
        """Refuse `obj` if a write has merged invalid `fields` into its status."""
        ...

    def validate_loaded(self, kind: Kind, obj: Json) -> None:
        """Refuse the snapshot object `obj` if later writes to it could not be validated.

        Raises ApiError.
        """
        ...


class ApiValidator:
    """Applies every rule of an API server. Objects are in stored form, which may contain nulls."""

    def validate(self, kind: Kind, rules: KindRules, obj: Json) -> None:
        """Refuse an invalid new object. `obj` already has its defaults. Raises ApiError."""
        view = _decoded(kind, obj, decode_stored)
        causes = [*bounded(_metadata_as_new(kind, rules, obj, view))]
        if rules.new is not None:
            causes += bounded(rules.new(obj, view))
        _refuse(kind, obj, [*causes, *_custom(kind, obj, None)])

    def validate_update(self, kind: Kind, rules: KindRules, old: Json, new: Json) -> None:
        """Refuse an invalid update of `old` to `new`. `new` already has its defaults.

        Raises ApiError.
        """
        view = _decoded(kind, new, decode_stored)
        check = rules.changed or rules.new
        fields = [*bounded(check(new, view) if check else ()), *_custom(kind, new, old)]
        if fields:
            # An object from a snapshot may break rules for new objects. An update need not correct
            # these errors.
            old_errors = set(_new_object_errors(old, _decoded(kind, old, decode_stored)))
            fields = [cause for cause in fields if cause not in old_errors]
            if rules.ratcheted and old.get(rules.ratcheted) == new.get(rules.ratcheted):
                fields = [one for one in fields if not one.field.startswith(rules.ratcheted)]
        kept = list(check_metadata_update(rules, old, new))
        meta = list(_metadata_as_new(kind, rules, new, view)) * rules.metadata_validations
        changed = list(check_changes(kind, rules, old, new))
        if rules.reports_update_first:
            _refuse(kind, new, [*kept, *changed, *meta, *fields])
        again = fields if rules.reports_changed_twice else ()
        _refuse(kind, new, [*kept, *meta, *fields, *again, *changed])

    def validate_part(
        self, kind: Kind, rules: KindRules, old: Json, new: Json, causes: Causes
    ) -> None:
        """Refuse an invalid update of `old` to `new` through a subresource.

        `causes` are the errors that the subresource's own rules found. Raises ApiError.
        """
        view = _decoded(kind, new, decode_stored)
        kept = check_metadata_update(rules, old, new)
        as_new = chain(check_metadata(rules, view.metadata), simulation.check_stored(new, view))
        _refuse(kind, new, chain(kept, as_new, causes))

    def validate_status_update(
        self, kind: Kind, rules: KindRules, old: Json, new: Json, subresource: str = "status"
    ) -> None:
        """Refuse an invalid status update. `new` is `old` with a different status and metadata.

        The rules of `subresource` apply. Raises ApiError.
        """
        kept = check_metadata_update(rules, old, new)
        if kind.custom is not None:
            _refuse(kind, new, chain(kept, kind.custom.causes(new, old)))
            return
        form = _status_form(kind, new, new.get("status", {}), decode_stored)
        check = rules.subresources.get(subresource)
        _refuse(kind, new, chain(kept, form, check(old, new) if check else ()))

    def validate_status(self, kind: Kind, obj: Json, fields: Mapping[str, Any]) -> None:
        """Refuse `obj` if the status fields `fields`, which a write has set, are invalid.

        Raises ApiError.
        """
        _validate_status(kind, obj, fields, decode_stored)

    def validate_loaded(self, kind: Kind, obj: Json) -> None:
        """Refuse the snapshot object `obj` if it lacks a field that every stored object has.

        The rules for updates read such fields without a check. Raises ApiError.
        """
        schema = schema_of(kind.stored_as, kind.kind)
        if schema is not None:
            described = {**obj, "status": None}  # a hand-written status may be partial
            _refuse(kind, obj, _missing_fields(schema, described))


class SimulationValidator:
    """Applies the rules that affect decisions. The objects must not contain nulls.

    Containers may lack names and images.
    """

    def validate(self, kind: Kind, rules: KindRules, obj: Json) -> None:
        """Refuse an invalid new object. `obj` already has its defaults. Raises ApiError."""
        view = _decoded(kind, obj, decode)
        causes = [*bounded(_stored_metadata(rules, view))]
        causes += bounded(simulation.check_simulated(obj, view))
        causes += [*bounded(simulation.check_created(obj, view)), *_custom(kind, obj, None)]
        _refuse(kind, obj, causes)

    def validate_update(self, kind: Kind, rules: KindRules, old: Json, new: Json) -> None:
        """Refuse an invalid update of `old` to `new`. `new` already has its defaults.

        Raises ApiError.
        """
        view = _decoded(kind, _without_known_status(kind, old, new), decode)
        checked = _shares(_METADATA_CHECKED, old["metadata"], new["metadata"])
        meta = [] if checked else list(_stored_metadata(rules, view))
        causes = [*bounded(simulation.check_simulated(new, view)), *_custom(kind, new, old)]
        new_errors = list(_new_object_errors(new, view))
        if new_errors:
            old_errors = set(_new_object_errors(old, _decoded(kind, old, decode)))
            causes += [cause for cause in new_errors if cause not in old_errors]
        if rules.reports_changed_twice:
            causes *= 2
        if rules.update is not None:
            causes += rules.update(old, new)
        causes += simulation.check_fixed_fields(kind, old, new)
        _refuse(kind, new, [*meta, *causes])

    def validate_part(
        self, kind: Kind, rules: KindRules, old: Json, new: Json, causes: Causes
    ) -> None:
        """Refuse an invalid update of `old` to `new` through a subresource.

        `causes` are the errors that the subresource's own rules found. Raises ApiError.
        """
        del rules, old
        view = _decoded(kind, new, decode)
        _refuse(kind, new, chain(bounded(simulation.check_simulated(new, view)), causes))

    def validate_status_update(
        self, kind: Kind, rules: KindRules, old: Json, new: Json, subresource: str = "status"
    ) -> None:
        """Refuse an invalid status update. `new` is `old` with a different status.

        `subresource` has no effect. Raises ApiError.
        """
        del rules, old, subresource
        self.validate_status(kind, new, new.get("status", {}))

    def validate_status(self, kind: Kind, obj: Json, fields: Mapping[str, Any]) -> None:
        """Refuse `obj` if the status fields `fields`, which a write has set, are invalid.

        Raises ApiError.
        """
        _validate_status(kind, obj, fields, decode)

    def validate_loaded(self, kind: Kind, obj: Json) -> None:
        """Accept every object: `validated_stored` already checks all that controllers need."""
        del kind, obj


def defaulted(kind: Kind, obj: Json) -> Json:
    """Return `obj` with the defaults that simulations need. `obj` must be JSON without nulls.

    Raises ApiError 400 for a field of the wrong type.
    """
    return _defaulted(kind, obj)[0]


def defaulted_update(kind: Kind, old: Json, new: Json) -> Json:
    """Return `new`, an update of the stored object `old`, with the defaults that simulations need.

    If `new` is a Node with the same status as `old`, it is returned unchanged, because all defaults
    of a Node are in its status. Raises ApiError 400 for a field of the wrong type.
    """
    changed = _without_known_status(kind, old, new)
    if changed is new:
        return defaulted(kind, new)
    _decoded(kind, changed, decode)
    return new


def validated_stored(kind: Kind, rules: KindRules, obj: Json) -> Json:
    """Return the snapshot object `obj` with the defaults that simulations need.

    `obj` must be JSON without nulls. Raises ApiError for an object that controllers cannot process.
    """
    obj, view = _defaulted(kind, obj)
    _refuse(kind, obj, stored_problems(rules, obj, view))
    return obj


def stored_problems(rules: KindRules, obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Yield the errors of `obj`, which was loaded from a snapshot.

    `obj` already has its defaults; `view` is its typed view.
    """
    yield from _stored_metadata(rules, view)
    yield from simulation.check_simulated(obj, view)


def _defaulted(kind: Kind, obj: Json) -> tuple[Json, ApiObject]:
    """Return (`obj` with its defaults, its typed view).

    If a quantity in `obj` is malformed, the returned object is `obj` itself, unchanged.
    """
    view = _decoded(kind, obj, decode)
    try:
        made = with_defaults(kind, obj)
    except QuantityError:
        return obj, view  # Validation reports the malformed amount with its field.
    except DecodeError as cause:
        raise _wrong_type(kind, obj, cause) from None
    return made, view if made is obj else _decoded(kind, made, decode)


def _metadata_as_new(kind: Kind, rules: KindRules, obj: Json, view: ApiObject) -> Iterator[Cause]:
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateObjectMetaAccessor
    meta = obj["metadata"]
    yield from check_generate_name(rules, meta)
    yield from check_metadata(rules, view.metadata)
    yield from check_generation(kind, meta)
    yield from check_annotations_owners_and_finalizers(rules, meta)


def check_changes(kind: Kind, rules: KindRules, old: Json, new: Json) -> Iterator[Cause]:
    """Yield the errors of the rules that compare an updated object `new` with `old`.

    Both objects are in stored form.
    """
    schema = schema_of(kind.stored_as, kind.kind)
    if rules.has_immutable_fields and schema is not None:
        yield from check_immutable(schema.long_name, old, new)
    if rules.update is not None:
        yield from rules.update(old, new)


def check_changed_fields(kind: Kind, rules: KindRules, old: Json, new: Json) -> list[Cause]:
    """Return the errors of an updated object `new`, except those of fields that are wrong in `old`.

    Both objects are in stored form. Raises ApiError 400 for a field of the wrong type.
    """
    check = rules.changed or rules.new
    if check is None:
        return []
    known = {one.field for one in bounded(check(old, _decoded(kind, old, decode_stored)))}
    found = bounded(check(new, _decoded(kind, new, decode_stored)))
    return [one for one in found if one.field not in known]


def _stored_metadata(rules: KindRules, view: ApiObject) -> Iterator[Cause]:
    yield from check_metadata(rules, view.metadata)
    yield from check_owners(view.metadata)


def _missing_fields(schema: Schema, value: Any, path: str = "") -> Iterator[Cause]:
    """Yield an error for each required field that is missing in `value`, at any depth.

    Values of the wrong type are skipped; decoding refuses them.
    """
    if schema.type is Type.LIST and schema.items is not None and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _missing_fields(schema.items, item, f"{path}[{index}]")
    if schema.type is not Type.OBJECT or not isinstance(value, dict):
        return
    for name, member in schema.fields.items():
        below = f"{path}.{name}" if path else name
        if name in value:
            yield from _missing_fields(member.schema, value[name], below)
        elif member.schema.type is Type.OBJECT and member.zero is Zero.EMIT:
            yield from _missing_fields(member.schema, {}, below)  # stored as an empty object
        elif member.required:
            yield required(below)


def _without_known_status(kind: Kind, old: Json, new: Json) -> Json:
    """Return `new`; if it is a Node with the same status as `old`, leave out the status.

    The status of `old` is valid. The rules of Nodes check a status without the other parts of the
    Node. Therefore the same status is also valid in `new`. A Node's status has dozens of images,
    which take long to decode.
    """
    if kind is not NODE or new.get("status") is not old.get("status"):
        return new
    return {**new, "status": {}}


def _shares(members: Iterable[str], old: Json, new: Json) -> bool:
    """Return whether each of `members` is the same Python object in `old` and `new`."""
    return all(new.get(member) is old.get(member) for member in members)


def _new_object_errors(obj: Json, view: ApiObject) -> Iterator[Cause]:
    """Check the rules that apply only to new objects; yield the errors."""
    yield from bounded(simulation.check_new(obj, view))
    yield from bounded(simulation.check_runnable(view))


def _custom(kind: Kind, obj: Json, old: Json | None) -> Iterator[Cause]:
    """Check a custom resource against its CustomResourceDefinition; yield the errors."""
    if kind.custom is not None:
        yield from bounded(kind.custom.causes(obj, old))


def _validate_status(kind: Kind, obj: Json, fields: Mapping[str, Any], decoder: Decoder) -> None:
    if kind.custom is not None:
        _refuse(kind, obj, kind.custom.causes(obj, None))
    else:
        _refuse(kind, obj, _status_form(kind, obj, fields, decoder))


def _status_form(kind: Kind, obj: Json, fields: Mapping[str, Any], decoder: Decoder) -> list[Cause]:
    """Return the validation errors of the status of `obj` after a write of the fields `fields`."""
    if kind is POD:
        wrong = list(check_pod_status(obj["spec"], fields))
        if not wrong and not fields.keys() <= CHECKED_FIELDS:
            _decoded(kind, obj, decoder)
        return wrong
    return [*simulation.check_stored(obj, _decoded(kind, obj, decoder))] if fields else []


def _decoded(kind: Kind, obj: Json, decoder: Decoder) -> ApiObject:
    try:
        return decoder(obj)
    except DecodeError as cause:
        raise _wrong_type(kind, obj, cause) from None


def _wrong_type(kind: Kind, obj: Json, cause: DecodeError) -> ApiError:
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:transformDecodeError
    stated = f"{cause.field}: {cause.problem}" if cause.field else cause.problem
    meta = obj.get("metadata")
    named = meta if isinstance(meta, dict) else {}
    return ApiError(
        "BadRequest",
        400,
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {stated}',
        kind=kind,
        namespace=str(named.get("namespace", "")),
        name=str(named.get("name", "")),
        causes=(Cause("FieldValueInvalid", cause.problem, cause.field),),
    )


def _refuse(kind: Kind, obj: Json, causes: Iterable[Cause]) -> None:
    found = tuple(bounded(causes))
    if found:
        meta = obj.get("metadata", {})
        raise invalid(kind, meta.get("namespace", ""), meta.get("name", ""), found)

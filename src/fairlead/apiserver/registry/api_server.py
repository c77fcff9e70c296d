"""API_SERVER: the registry of an API server's store (a simulation has another registry)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.defaulting.defaulter import completed
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.preparation import with_mirrored_field
from fairlead.apiserver.registry.registry import Registry
from fairlead.apiserver.registry.strategies.table import STRATEGIES, strategy_of
from fairlead.apiserver.schema.decoder import decoded, empty
from fairlead.apiserver.schema.incremental_decoder import changed
from fairlead.apiserver.schema.model import Schema, schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError
from fairlead.apiserver.validation.validator import ApiValidator


def _schema(kind: Kind) -> Schema | None:
    return None if kind.is_custom else schema_of(kind.stored_as, kind.kind)


def decode(kind: Kind, obj: Json) -> Json:
    """Return `obj` decoded according to the schema of its kind.

    An object of a custom kind is returned unchanged. Raises ApiError 400 for a value of the wrong
    type.
    """
    schema = _schema(kind)
    if schema is None:
        return obj
    try:
        made: Json = decoded(schema, obj)[0]
    except TypeMismatchError as cause:
        raise _wrong_type(kind, cause) from None
    return made


def default(kind: Kind, obj: Json) -> Json:
    """Return `obj`, which is already decoded, with its defaults.

    Raises ApiError 400 for a value of the wrong type.
    """
    schema = _schema(kind)
    if schema is not None:
        try:
            obj = completed(schema, obj)
        except TypeMismatchError as cause:
            raise _wrong_type(kind, cause) from None
        obj = with_mirrored_field(strategy_of(kind).mirrored, obj)
    return obj


def read(kind: Kind, obj: Json) -> Json:
    """Return `obj`, an object of a snapshot, decoded and with its defaults.

    Upstream also sets defaults when it reads an object from etcd. If the immutable fields of an
    object had no defaults, an update would add the defaults and be refused.
    """
    return default(kind, decode(kind, obj))


def normalize(kind: Kind, old: Json | None, new: Json) -> Json:
    """Return `new` with the fields that its kind always encodes, even if they are empty.

    `old` is the stored object that `new` replaces. `old` is None if `new` is a new object.
    """
    schema = _schema(kind)
    if schema is None:
        return new
    try:
        return with_mirrored_field(strategy_of(kind).mirrored, changed(schema, old, new))
    except TypeMismatchError:
        return new


@lru_cache(maxsize=256)
def zero_status(kind: Kind) -> Any:
    """Return the default status of a new object of `kind`.

    Return None if `kind` is custom or has no status.
    """
    schema = _schema(kind)
    return None if schema is None else completed(schema, empty(schema)).get("status")


def _wrong_type(kind: Kind, cause: TypeMismatchError) -> ApiError:
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {cause}'
    )


API_SERVER: Final = Registry(
    strategies=STRATEGIES,
    decode=decode,
    default=default,
    default_update=lambda kind, _, new: default(kind, new),
    read=read,
    normalize=normalize,
    zero_status=zero_status,
    validator=ApiValidator(),
)

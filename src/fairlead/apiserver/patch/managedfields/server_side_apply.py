"""Server-side apply: make it so, and remember who asked.

An applier sends what it cares about; fields it no longer sends go if nobody else owns them. Fields
that others set to something else are conflicts unless it forces.

kubectl's own manager gets two favours, for objects that were applied client-side before: conflicts
over fields that are as its annotation last had them are waived, and the annotation is kept up.

upstream: apimachinery/pkg/util/managedfields/internal/{structuredmerge,lastappliedmanager,
lastappliedupdater,skipnonapplied,conflict}.go,
apiserver/pkg/endpoints/handlers/patch.go:applyPatcher
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.field_problem import quoted
from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, Cause, bad_request
from fairlead.apiserver.patch.managedfields.field_set import (
    NOTHING,
    FieldSet,
    difference,
    paths,
    union,
)
from fairlead.apiserver.patch.managedfields.managed_fields import (
    APPLY,
    STRIPPED,
    UPDATE,
    Entry,
    Managed,
    Tracking,
    UnknownVersionError,
    Writer,
    after_write,
    applier,
    entries_of,
    of_today,
    with_managed,
)
from fairlead.apiserver.patch.managedfields.path_element import NamelessItemError
from fairlead.apiserver.patch.managedfields.typed import compare, field_set
from fairlead.apiserver.patch.managedfields.typed_validation import stated_problems
from fairlead.apiserver.patch.managedfields.updater import OwnershipConflictError, after_apply
from fairlead.apiserver.schema.decoding import empty
from fairlead.apiserver.schema.json_text import parse_json

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
_BEFORE: Final = "before-first-apply"
_PATCH_OBJECT: Final = "failed to create typed patch object ({})"
_LIVE_OBJECT: Final = "failed to create typed live object ({})"
_NEW_OBJECT: Final = (
    "failed to create manager for existing fields: failed to convert new object ({}) to smd typed"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One apply: `config` as it was sent, by `manager`, to a resource or its `subresource`."""

    config: Json
    manager: str
    force: bool
    subresource: str = ""


def server_side_apply(
    tracking: Tracking, live: Json | None, application: Application, timestamp: str
) -> Json:
    """`live` (None: there is none yet) with what the application says, and its managedFields.

    The result is not completed with defaults. Raises ApiError: 400 the configuration makes no
    sense, 409 conflicts, 500 it is not of its type.
    """
    config = application.config
    found = entries_of(live)
    bare = _bare(live) if live else {}
    if live and not found:
        _require_type(tracking, bare, _NEW_OBJECT, may_repeat=True)
        found = _everybody_else(tracking, bare, application, timestamp)
    if "managedFields" in _metadata(config):
        raise bad_request("metadata.managedFields must be nil")
    _require_type(tracking, config, _PATCH_OBJECT, may_repeat=False)
    if live:
        # A definition may have changed since its objects were stored.
        _require_type(tracking, bare, _LIVE_OBJECT, may_repeat=True)
    try:
        managed = of_today(tracking, found)
    except UnknownVersionError as cause:
        raise ApiError("", 500, str(cause)) from None
    new, managed = _applied(tracking, bare, managed, application, timestamp)
    if application.manager == KUBECTL:
        new = _with_last_applied(new, config)
    return with_managed(new, managed)


def _require_type(tracking: Tracking, obj: Json, failed: str, *, may_repeat: bool) -> None:
    wrong = stated_problems(tracking.schema, obj, may_repeat=may_repeat)
    if wrong:
        raise ApiError("", 500, f"{failed.format(object_name(obj))}: {wrong}")


def _metadata(config: Json) -> Json:
    meta = config.get("metadata")
    return meta if isinstance(meta, dict) else {}


def object_name(obj: Json) -> str:
    """As upstream names an object: `namespace/name; group/version, Kind=…`."""
    # upstream: structuredmerge.go:objectGVKNN
    meta = _metadata(obj)
    namespace, name = (_text(meta.get(key)) for key in ("namespace", "name"))
    return f"{namespace}/{name}; {type_name(obj)}"


def type_name(obj: Json) -> str:
    """`group/version, Kind=…`, with nothing before the stroke for the core group."""
    api_version = obj["apiVersion"]
    return f"{api_version if '/' in api_version else f'/{api_version}'}, Kind={obj['kind']}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _applied(
    tracking: Tracking, live: Json, managed: Managed, application: Application, timestamp: str
) -> tuple[Json, Managed]:
    try:
        return _merged(tracking, live, managed, application, timestamp)
    except NamelessItemError as cause:
        raise ApiError("", 500, f"failed to compare objects: {cause}") from None
    except OwnershipConflictError as cause:
        conflicts: dict[Writer, FieldSet] = cause.conflicts
        if application.manager == KUBECTL:
            waived = _as_last_applied(tracking, live)
            rest = {one: difference(own, waived) for one, own in conflicts.items()}
            conflicts = {one: own for one, own in rest.items() if own}
        if conflicts:
            raise _conflict(conflicts) from None
    return _merged(tracking, live, managed, replace(application, force=True), timestamp)


def _merged(
    tracking: Tracking, live: Json, managed: Managed, application: Application, timestamp: str
) -> tuple[Json, Managed]:
    config = application.config
    writer = _applier(managed, application)
    owners = {one: entry.fields for one, entry in managed.items()}
    new, kept = after_apply(
        tracking.own,
        live or empty(tracking.schema),
        config,
        owners,
        manager=writer,
        force=application.force,
        others=tracking.others_of(managed),
    )
    own = difference(kept.pop(writer, NOTHING), STRIPPED)
    made = {one: replace(managed[one], fields=fields) for one, fields in kept.items()}
    before = managed.get(writer)
    if own or new is not None:
        since = timestamp if new is not None else (before.time if before else "")
        current = replace(writer, api_version=config["apiVersion"])
        if own:
            made[current] = Entry(own, since)
    return (live if new is None else new), made


def _applier(managed: Managed, application: Application) -> Writer:
    """The applier's entry, whatever version it last applied in."""
    known = applier(managed, application.manager, application.subresource)
    if known is not None:
        return known
    version = application.config["apiVersion"]
    return Writer(application.manager, APPLY, version, application.subresource)


def _everybody_else(
    tracking: Tracking, live: Json, application: Application, timestamp: str
) -> Managed:
    """Whoever wrote what is there before anybody applied."""
    writer = Writer(_BEFORE, UPDATE, application.config["apiVersion"], application.subresource)
    return after_write(tracking, empty(tracking.schema), live, {}, writer, timestamp)


def _conflict(conflicts: dict[Writer, FieldSet]) -> ApiError:
    """409 with who owns what; managers in the order of their names."""
    owners = sorted(conflicts, key=lambda writer: writer.identity)
    stated = {_stated(writer): list(paths(conflicts[writer])) for writer in owners}
    causes = tuple(
        Cause("FieldManagerConflict", f"conflict with {who}", path)
        for who, fields in stated.items()
        for path in fields
    )
    if len(causes) == 1:
        message = f"{causes[0].message}: {causes[0].field}"
        return _refused(f"Apply failed with 1 conflict: {message}", causes)
    lines = [f"Apply failed with {len(causes)} conflicts: "]
    for who, fields in stated.items():
        lines += [f"conflicts with {who}:\n", *(f"- {path}\n" for path in fields)]
    return _refused("".join(lines).rstrip("\n"), causes)


def _refused(message: str, causes: tuple[Cause, ...]) -> ApiError:
    return ApiError("Conflict", 409, message, causes=causes)


def _stated(writer: Writer) -> str:
    # upstream: conflict.go:printManager
    through = f" with subresource {quoted(writer.subresource)}" if writer.subresource else ""
    version = "" if writer.operation == APPLY else f" using {writer.api_version}"
    return f"{quoted(writer.manager)}{through}{version}"


def _as_last_applied(tracking: Tracking, live: Json) -> FieldSet:
    """The fields that are as kubectl's annotation last had them."""
    try:
        last = parse_json(live["metadata"]["annotations"][LAST_APPLIED])
    except (KeyError, ValueError):
        return NOTHING
    if not isinstance(last, dict) or stated_problems(tracking.schema, last):
        return NOTHING
    changes = compare(tracking.schema, last, live)
    differing = union(union(changes.modified, changes.added), changes.removed)
    return difference(field_set(tracking.schema, last), differing)


def _with_last_applied(obj: Json, config: Json) -> Json:
    """`obj`, if it has kubectl's annotation, with the configuration that is applied now."""
    meta = obj.get("metadata") or {}
    if LAST_APPLIED not in (meta.get("annotations") or {}):
        return obj
    text = json.dumps(_own_words(config), sort_keys=True, separators=(",", ":")) + "\n"
    annotations = {**meta["annotations"], LAST_APPLIED: text}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def _own_words(config: Json) -> Json:
    meta = config.get("metadata") or {}
    annotations = dict(meta.get("annotations") or {})
    annotations.pop(LAST_APPLIED, None)
    rest = {key: value for key, value in meta.items() if key != "annotations"}
    if annotations:
        rest["annotations"] = annotations
    return {**config, "metadata": rest}


def _bare(obj: Json) -> Json:
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": meta}

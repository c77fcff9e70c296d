"""Steps that create, update and patch share, such as decoding the body and looking up the object.

upstream: apiserver/pkg/endpoints/handlers/rest.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.apiextensions.conversion.conversions import Conversions
from fairlead.apiserver.apiextensions.conversion.converter import from_storage
from fairlead.apiserver.conversion.kind_conversion import internal, is_converted
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.request.body import decoded, media_type_of
from fairlead.apiserver.endpoints.request.body_type import require_type
from fairlead.apiserver.endpoints.request.options import WriteOptions, unsigned_problem
from fairlead.apiserver.endpoints.request.typed_object import of_another_version, typed, warnings_of
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import Cause, bad_request, invalid
from fairlead.apiserver.json_equality import canonical_key
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import JSON
from fairlead.apiserver.negotiation.request_error import unreadable
from fairlead.apiserver.schema.raw_extension import with_raw_data
from fairlead.apiserver.storage.storage import StoredObject
from fairlead.apiserver.suspension import LARGE_BYTES, PAUSE, WebhookCalls
from fairlead.apiserver.validation.meta.format import path_segment_problems

OTHER_NAMESPACE: Final = (
    "the namespace of the provided object does not match the namespace sent on the request"
)
CONTROLLER_REVISIONS: Final = "controllerrevisions.apps"
_DUPLICATE_OWNERS: Final = ".metadata.ownerReferences contains duplicate entries"
_DUPLICATE_OWNERS_ADMITTED: Final = f"{_DUPLICATE_OWNERS} after mutating admission happens"
_DUPLICATE_OWNERS_ADVICE: Final = (
    "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; "
    "please fix your requests; duplicate UID(s) observed: "
)


# --- lookup --------------------------------------------------------------------------------


def existing_object(scope: RequestScope) -> Json:
    """Return the stored object that the path names, in its stored version.

    Raises ApiError 400 if the name is invalid, and 404 if the object does not exist.
    """
    require_key(scope.info.name)
    return scope.deps.store.get(scope.kind, scope.info.namespace, scope.info.name)


def find_existing(scope: RequestScope) -> WebhookCalls[Json | None]:
    """Return the object that the path names, in the version of the request; None if it is missing.

    Raises ApiError 500 if it cannot be converted to this version.
    """
    store, info = scope.deps.store, scope.info
    found = store.find(scope.kind, info.namespace, info.name)
    return None if found is None else (yield from in_request_version(scope, found))


def in_request_version(scope: RequestScope, stored: StoredObject) -> WebhookCalls[Json]:
    """Return the object `stored`, converted to the version of the request.

    Raises ApiError 500 if it cannot be converted to this version.
    """
    return (yield from from_storage(scope.kind, [stored], scope.deps.store.storage))[0]


def require_key(name: str) -> None:
    """Reject a name that cannot be part of a storage key. Raises ApiError 400."""
    # upstream: apiserver/pkg/registry/generic/registry/store.go:NamespaceKeyFunc
    problems = path_segment_problems(name)
    if problems:
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")


# --- body ----------------------------------------------------------------------------------


def paused_if_large(scope: RequestScope) -> WebhookCalls[None]:
    """Let other requests run if the body is large.

    Handlers call this function after they have decoded the body, and before they read or write the
    store.
    """
    if len(scope.request.body) > LARGE_BYTES:
        yield PAUSE


def decoded_object(scope: RequestScope, options: WriteOptions, kind: Kind | None = None) -> Json:
    """Return the body, decoded into the internal version of `kind` (default: the kind of the path).

    Depending on fieldValidation, unknown and duplicate fields become warnings or an error. Raises
    ApiError.
    """
    kind, request = kind or scope.kind, scope.request
    content_type = request.headers.get("content-type", "")
    # upstream does not read custom resources from protobuf either
    protobuf = None if kind.is_custom else scope.deps.protobuf
    repeats: list[str] = []
    obj = decoded(request.body, content_type, kind.kind, protobuf, kind.api_version, repeats)
    scope.warnings.extend(warnings_of(of_another_version(kind, obj), options.validation))
    obj, warnings = typed(kind, require_type(obj, kind, request.body), options.validation, repeats)
    scope.warnings.extend(warnings)
    if kind.resource == CONTROLLER_REVISIONS and media_type_of(content_type) == JSON:
        obj = with_raw_data(obj, request.body)
    return in_internal_version(scope, kind, obj)


def in_internal_version(scope: RequestScope, kind: Kind, obj: Json) -> Json:
    """Return `obj`, a decoded object of `kind`, in the internal version of `kind`.

    Raises ApiError 400.
    """
    if not is_converted(kind):
        return obj
    return scope.deps.store.registry.decode(kind, internal(kind, obj))


def in_request_namespace(scope: RequestScope, obj: Json) -> Json:
    """Return `obj` with the path's namespace; a cluster-scoped object loses its namespace.

    Raises ApiError 400 if a namespaced object states another namespace.
    """
    # upstream: apiserver/pkg/registry/rest/meta.go:EnsureObjectNamespaceMatchesRequestNamespace
    meta = obj["metadata"]
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    if not scope.kind.namespaced:
        rest = {key: value for key, value in meta.items() if key != "namespace"}
        return {**obj, "metadata": rest} if "namespace" in meta else obj
    namespace = meta.get("namespace")
    if namespace and namespace != scope.info.namespace:
        raise bad_request(OTHER_NAMESPACE)
    return {**obj, "metadata": {**meta, "namespace": scope.info.namespace}}


def require_request_name(scope: RequestScope, obj: Json) -> Json:
    """Return `obj` unchanged. Raises ApiError 400 if its name differs from the name in the path."""
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:checkName
    name, path_name = obj["metadata"].get("name", ""), scope.info.name
    if not name:
        why = f"the name of the object ({path_name} based on URL) was undeterminable: "
        raise bad_request(f"{why}name must be provided")
    if name != path_name:
        why = f"the name of the object ({name}) does not match the name on the URL ({path_name})"
        raise bad_request(why)
    return obj


def without_duplicate_owners(
    obj: Json, warn: Callable[[str], None], *, is_admitted: bool = False
) -> Json:
    """Return `obj` without repeated owner references, and warn the client about them.

    `is_admitted` is False if `obj` is the body of the request. `is_admitted` is True if `obj` is
    the result of a patch or of mutating admission; the warning then mentions mutating admission.

    upstream: apiserver/pkg/endpoints/handlers/rest.go:dedupOwnerReferencesAndAddWarning
    """
    meta = obj["metadata"]
    owners = meta.get("ownerReferences") if isinstance(meta, dict) else None
    if not isinstance(owners, list) or len(owners) < 2:
        return obj
    unique: dict[str | bytes, Json] = {}
    repeated_uids = [
        owner.get("uid", "")
        for owner in owners
        if unique.setdefault(canonical_key(owner), owner) is not owner
    ]
    if not repeated_uids:
        return obj
    found = _DUPLICATE_OWNERS_ADMITTED if is_admitted else _DUPLICATE_OWNERS
    warn(f"{found}; {_DUPLICATE_OWNERS_ADVICE}{', '.join(repeated_uids)}")
    return {**obj, "metadata": {**meta, "ownerReferences": list(unique.values())}}


def require_same_uid(kind: Kind, old: Json, new: Json) -> None:
    """Reject a patch that changes the uid. Raises ApiError 422."""
    uid = new["metadata"].get("uid", "")
    if uid not in ("", old["metadata"]["uid"]):
        text = f'Invalid value: "{uid}": field is immutable'
        cause = Cause("FieldValueInvalid", text, "metadata.uid")
        causes = (cause, cause)  # upstream checks the uid twice
        raise invalid(kind, old["metadata"].get("namespace", ""), old["metadata"]["name"], causes)


# --- store ---------------------------------------------------------------------------------


def write_of(
    scope: RequestScope, options: WriteOptions, operation: str = "Update", subresource: str = ""
) -> Write:
    """Return the Write for a request: user, options and callbacks that the store needs.

    `operation` and `subresource` ("" for the object itself) are recorded in managedFields.
    """
    manager, conversions = scope.manager(options), conversions_of(scope)
    track_fields = track(scope.kind, manager, operation, subresource, scope.now, conversions)

    def tracked(old: Json | None, new: Json) -> Json:
        # Fields are tracked first, so that the client owns all that it sent, even duplicates.
        return without_duplicate_owners(
            track_fields(old, new), scope.warnings.append, is_admitted=True
        )

    return Write(
        dry_run=options.dry_run,
        track=tracked,
        manager=f"{operation} {subresource} {manager}",
        user=scope.request.user,
        warn=scope.warnings.append,
        annotate=scope.request.notes.__setitem__,
        rights=scope.deps.identity.rights if scope.deps.identity else None,
        options=_admission_options(options),
        conversions=conversions,
    )


def conversions_of(scope: RequestScope) -> Conversions | None:
    """Return the conversions for a write of a custom resource; None for built-in kinds."""
    return None if scope.kind.custom is None else Conversions(scope.kind, scope.deps.store.storage)


def _admission_options(options: WriteOptions) -> Json:
    """Return the options as admission plugins and webhooks receive them."""
    shown: Json = {"dryRun": ["All"]} if options.dry_run else {}
    if options.manager:
        shown["fieldManager"] = options.manager
    if options.requested_validation:
        shown["fieldValidation"] = options.requested_validation
    return shown


def without_resource_version(obj: Json) -> Json:
    """Return `obj` without metadata.resourceVersion."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": meta}


def with_canonical_resource_version(obj: Json) -> Json:
    """Return `obj` without leading zeros in its resourceVersion.

    Raises ApiError 500 if the resourceVersion is not a number.
    """
    # upstream: apiserver/pkg/storage/api_object_versioner.go:ObjectResourceVersion
    text = obj["metadata"].get("resourceVersion", "")
    problem = unsigned_problem(text) if text else ""
    if problem:
        raise unreadable(problem)
    if not text.startswith("0") or text == "0":
        return obj
    meta = {**obj["metadata"], "resourceVersion": text.lstrip("0") or "0"}
    return {**obj, "metadata": meta}

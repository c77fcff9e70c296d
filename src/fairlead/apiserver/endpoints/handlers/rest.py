"""create, update and patch of whole objects.

upstream: apiserver/pkg/endpoints/handlers/{create,update,patch}.go
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.handlers.get import found, require_key
from fairlead.apiserver.endpoints.handlers.owner_references import with_each_owner_once
from fairlead.apiserver.endpoints.handlers.patcher import patch_of
from fairlead.apiserver.endpoints.request.body import decoded, media_type_of, parsed_yaml
from fairlead.apiserver.endpoints.request.body_type import require_type
from fairlead.apiserver.endpoints.request.options import (
    WriteOptions,
    unsigned_problem,
    write_options,
)
from fairlead.apiserver.endpoints.request.typed_object import of_another_version, told, typed
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.error import Cause, bad_request, conflict, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import JSON, YAML
from fairlead.apiserver.negotiation.request_error import unreadable
from fairlead.apiserver.registry.conversion import is_converted
from fairlead.apiserver.registry.conversion import stored as as_stored
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.write import Write
from fairlead.apiserver.request import Response
from fairlead.apiserver.schema.spelled import with_spelled_data

OTHER_NAMESPACE: Final = (
    "the namespace of the provided object does not match the namespace sent on the request"
)
CONTROLLER_REVISIONS: Final = "controllerrevisions.apps"
# Kinds whose PUT creates what is not there.
# upstream: AllowCreateOnUpdate in pkg/registry/*/strategy.go
CREATED_BY_UPDATE: Final = frozenset(
    {
        "leases.coordination.k8s.io",
        "endpoints",
        "events",
        "events.events.k8s.io",
        "services",
        "limitranges",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "runtimeclasses.node.k8s.io",
    }
)
# Kinds whose PUT must say which version it replaces.
# upstream: AllowUnconditionalUpdate, likewise
VERSIONED_UPDATES: Final = frozenset(
    {
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "customresourcedefinitions.apiextensions.k8s.io",
        "apiservices.apiregistration.k8s.io",
        "runtimeclasses.node.k8s.io",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    }
)
_OF_THE_END: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
# What is written as a whole object: as it was read, with the rest of what is there.
_WHOLE: Final = ("", "status")


def create(call: Call) -> Response:
    """Store the object in the body."""
    call.form()
    options = write_options(call.request, "CreateOptions")
    obj = wiped(in_namespace(call, sent(call, options)))
    obj = with_each_owner_once(obj, call.warnings.append)
    write = write_of(call, options)
    stored = call.parts.store.create(obj, call.now, kind=call.kind, write=write)
    return call.shown(stored, 201)


def update(call: Call) -> Response:
    """Put the object in the body in place of the one that the path names."""
    call.form()
    options = write_options(call.request, "UpdateOptions")
    new = named(call, in_namespace(call, sent(call, options)))
    new = with_each_owner_once(new, call.warnings.append)
    store, target = call.parts.store, call.target
    require_key(target.name)
    old = store.find(call.kind, target.namespace, target.name)
    uid = new["metadata"].get("uid", "")
    if old is None and call.kind.resource in CREATED_BY_UPDATE:
        place = {"namespace": target.namespace, "name": target.name}
        require_uid(call.kind, {"metadata": place}, uid)
        new = without_version(new)
        stored = store.create(new, call.now, kind=call.kind, write=write_of(call, options))
        return call.shown(stored, 201)
    old = store.get(call.kind, target.namespace, target.name)
    new = with_number(new)
    require_uid(call.kind, old, uid)
    require_version(call.kind, new)
    return call.shown(store.replace(call.kind, old, new, write=write_of(call, options)))


def patch(call: Call) -> Response:
    """Change the object that the path names."""
    call.form()
    options = write_options(call.request, "PatchOptions")
    change = patch_of(call, options)
    store, target, write = call.parts.store, call.target, write_of(call, options, change.operation)
    old = store.find(call.kind, target.namespace, target.name)
    if old is None and change.is_apply:
        new = named(call, in_namespace(call, change.created()))
        require_new(call.kind, new)
        stored = store.create(without_version(new), call.now, kind=call.kind, write=write)
        return call.shown(stored, 201)
    old = found(call)
    new = with_number(named(call, in_namespace(call, change.of(old))))
    require_same(call.kind, old, new)
    return call.shown(store.replace(call.kind, old, new, write=write))


def sent(call: Call, options: WriteOptions, kind: Kind | None = None) -> Json:
    """The object in the body, of the call's kind unless another is meant, as it is stored.

    Raises ApiError.
    """
    kind, request = kind or call.kind, call.request
    content_type = request.headers.get("content-type", "")
    # upstream reads no custom resource from protobuf either
    protobuf = None if kind.is_custom else call.parts.protobuf
    obj = decoded(request.body, content_type, kind.kind, protobuf, kind.api_version)
    repeats = parsed_yaml(request.body)[1] if media_type_of(content_type) == YAML else []
    call.warnings.extend(told(of_another_version(kind, obj), options.validation))
    obj, warnings = typed(kind, require_type(obj, kind, request.body), options.validation, repeats)
    call.warnings.extend(warnings)
    if kind.resource == CONTROLLER_REVISIONS and media_type_of(content_type) == JSON:
        obj = with_spelled_data(obj, request.body)
    return as_stored(kind, obj)


def write_of(
    call: Call, options: WriteOptions, operation: str = "Update", subresource: str = ""
) -> Write:
    """How the store is to carry out a request with these options."""
    track_it = track(call.kind, call.manager(options), operation, subresource, call.now)

    def noted(old: Json | None, new: Json) -> Json:
        # What a patch made belongs to who sent it, twice or not.
        return with_each_owner_once(track_it(old, new), call.warnings.append, is_made=True)

    user, warn = call.request.user, call.warnings.append
    return Write(
        is_read=subresource in _WHOLE and not is_converted(call.kind),
        dry_run=options.dry_run,
        track=noted,
        user=user,
        warn=warn,
        annotate=call.request.notes.__setitem__,
        webhooks=call.request.webhooks,
        rights=call.parts.identity.rights if call.parts.identity else None,
        options=_said(options),
    )


def _said(options: WriteOptions) -> Json:
    """Options as those are told who have a say in the request."""
    said: Json = {"dryRun": ["All"]} if options.dry_run else {}
    if options.manager:
        said["fieldManager"] = options.manager
    if options.asked_validation:
        said["fieldValidation"] = options.asked_validation
    return said


def in_namespace(call: Call, obj: Json) -> Json:
    """`obj` in the namespace of the path. Raises ApiError 400 for an object of another."""
    meta = obj["metadata"]
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    if not call.kind.namespaced:
        rest = {key: value for key, value in meta.items() if key != "namespace"}
        return {**obj, "metadata": rest} if "namespace" in meta else obj
    namespace = meta.get("namespace")
    if namespace and namespace != call.target.namespace:
        raise bad_request(OTHER_NAMESPACE)
    return {**obj, "metadata": {**meta, "namespace": call.target.namespace}}


def named(call: Call, obj: Json) -> Json:
    """`obj`, if it has the name of the path. Raises ApiError 400 otherwise."""
    # upstream: apiserver/pkg/endpoints/handlers/rest.go:checkName
    name, asked = obj["metadata"].get("name", ""), call.target.name
    if not name:
        why = f"the name of the object ({asked} based on URL) was undeterminable: "
        raise bad_request(f"{why}name must be provided")
    if name != asked:
        why = f"the name of the object ({name}) does not match the name on the URL ({asked})"
        raise bad_request(why)
    return obj


def without_version(obj: Json) -> Json:
    """`obj` as if nobody had read it before."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
    return {**obj, "metadata": meta}


def require_version(kind: Kind, obj: Json) -> None:
    """Refuse to replace an object of some kinds whatever its version. Raises ApiError 422."""
    if kind.resource not in VERSIONED_UPDATES and not kind.is_custom:
        return
    if obj["metadata"].get("resourceVersion", "0") == "0":
        text = "Invalid value: 0: must be specified for an update"
        cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
        # Here upstream names the resource where it names the kind elsewhere.
        resource = replace(kind, kind=kind.plural)
        raise invalid(resource, "", obj["metadata"]["name"], (cause,))


def require_new(kind: Kind, new: Json) -> None:
    """Refuse to create what was meant to be there already. Raises ApiError 409."""
    meta = new["metadata"]
    if meta.get("uid"):
        why = (
            f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing "
            "object was found"
        )
        raise conflict(kind, meta.get("namespace", ""), meta["name"], why)


def require_same(kind: Kind, old: Json, new: Json) -> None:
    """Refuse a patch that makes another object of an object. Raises ApiError 422."""
    uid = new["metadata"].get("uid", "")
    if uid not in ("", old["metadata"]["uid"]):
        text = f'Invalid value: "{uid}": field is immutable'
        cause = Cause("FieldValueInvalid", text, "metadata.uid")
        causes = (cause, cause)  # upstream looks twice
        raise invalid(kind, old["metadata"].get("namespace", ""), old["metadata"]["name"], causes)


def with_number(obj: Json) -> Json:
    """`obj`, whose version is a number written like any other. Raises ApiError 500."""
    # upstream: apiserver/pkg/storage/api_object_versioner.go:ObjectResourceVersion
    text = obj["metadata"].get("resourceVersion", "")
    problem = unsigned_problem(text) if text else ""
    if problem:
        raise unreadable(problem)
    if not text.startswith("0") or text == "0":
        return obj
    meta = {**obj["metadata"], "resourceVersion": text.lstrip("0") or "0"}
    return {**obj, "metadata": meta}


def wiped(obj: Json) -> Json:
    """`obj` without what says that it is on its way out, as no new object is."""
    # upstream: apiserver/pkg/registry/rest/meta.go:WipeObjectMetaSystemFields
    meta = obj["metadata"]
    if meta.keys().isdisjoint(_OF_THE_END):
        return obj
    return {**obj, "metadata": {key: meta[key] for key in meta if key not in _OF_THE_END}}

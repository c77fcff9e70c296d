"""The AdmissionRequest: the content of a webhook's review, and the CEL variable `request`.

upstream: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go,
plugin/cel/condition.go:CreateAdmissionRequest
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.conversion.kind_conversion import internal, shown
from fairlead.apiserver.kind import NAMESPACE, Kind
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookCalls

_OPTIONS: Final = {
    Operation.CREATE: "CreateOptions",
    Operation.UPDATE: "UpdateOptions",
    Operation.DELETE: "DeleteOptions",
}


def converted_object(attributes: AdmissionAttributes, matched: Kind) -> Json | None:
    """Return the object in the version of the kind `matched`; None for DELETE."""
    return (
        None
        if attributes.operation is Operation.DELETE
        else _converted(attributes, matched, attributes.obj)
    )


def converted_old_object(attributes: AdmissionAttributes, matched: Kind) -> Json | None:
    """Return the stored object in the version of the kind `matched`; None for CREATE."""
    before = attributes.obj if attributes.operation is Operation.DELETE else attributes.old
    return None if before is None else _converted(attributes, matched, before)


def _converted(attributes: AdmissionAttributes, matched: Kind, obj: Json) -> Json:
    view, subresource = attributes.write.view, matched.part(attributes.subresource)
    if view is not None:
        return view(obj)
    if subresource is None or subresource.kind == matched.kind:
        return {**_in_version(attributes, matched, obj), **_type(matched, "")}
    return {**_type(matched, attributes.subresource), **obj}


def _in_version(attributes: AdmissionAttributes, matched: Kind, obj: Json) -> Json:
    conversions = attributes.write.conversions
    if conversions is None:
        return shown(matched, obj)
    return conversions.in_version(matched.api_version, obj)


def convert_objects(attributes: AdmissionAttributes, matched: Kind) -> WebhookCalls[None]:
    """Convert the objects that `converted_object` and `converted_old_object` will return.

    Call `convert_objects` before those two functions if the objects are custom resources and the
    version of `matched` may differ from the version of the request. Raises ApiError 500 if the
    objects cannot be converted.
    """
    conversions = attributes.write.conversions
    if conversions is not None and matched.api_version != attributes.kind.api_version:
        yield from conversions.run(partial(converted_object, attributes, matched))
        yield from conversions.run(partial(converted_old_object, attributes, matched))


def in_request_version(
    attributes: AdmissionAttributes, matched: Kind, obj: Json
) -> WebhookCalls[Json]:
    """Return the changed object `obj`, converted for the next plugin.

    `obj` has the version of `matched`; the result has the version of `attributes.obj`. Raises
    ApiError 500 if the object cannot be converted.
    """
    conversions = attributes.write.conversions
    if conversions is None:
        return internal(matched, obj)
    api_version = attributes.kind.api_version
    return (yield from conversions.run(partial(conversions.in_version, api_version, obj)))


def admission_request(attributes: AdmissionAttributes, matched: Kind) -> Json:
    """Return the AdmissionRequest of a request, without objects and uid.

    Its fields `kind` and `resource` describe `matched`, the kind that a rule of the webhook or
    policy matches. `requestKind` and `requestResource` describe the kind that the client used.
    """
    write, subresource = attributes.write, attributes.subresource
    request: Json = {
        "kind": _kind(matched, subresource),
        "resource": _resource(matched),
        "subResource": subresource,
        "requestKind": _kind(attributes.kind, subresource),
        "requestResource": _resource(attributes.kind),
        "requestSubResource": subresource,
        "name": attributes.requested_name,
        "namespace": attributes.namespace,
        "operation": attributes.operation.value,
        "userInfo": _user_info(write.user),
        "dryRun": write.dry_run,
        "options": _options(attributes),
    }
    return {key: value for key, value in request.items() if value != ""}


def _options(attributes: AdmissionAttributes) -> Json | None:
    """Return the options of the request; None for CONNECT, where `object` contains the options."""
    if attributes.operation is Operation.CONNECT:
        return None
    kind = _OPTIONS[attributes.operation]
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **attributes.write.options}


def namespace_of(attributes: AdmissionAttributes, storage: Storage) -> Json | None:
    """Return the Namespace of the object.

    Return None if the object is cluster-scoped or a Namespace, or if its Namespace does not exist.
    """
    if attributes.kind is NAMESPACE or not attributes.kind.namespaced:
        return None
    return storage.find(NAMESPACE, "", attributes.namespace)


def _kind(kind: Kind, subresource: str) -> Json:
    part_kind = kind.part(subresource)
    if part_kind is None:
        return {"group": kind.group, "version": kind.version, "kind": kind.kind}
    group, version = (
        (part_kind.group, part_kind.version) if part_kind.version else (kind.group, kind.version)
    )
    return {"group": group, "version": version, "kind": part_kind.kind}


def _type(kind: Kind, subresource: str) -> Json:
    named = _kind(kind, subresource)
    group = f"{named['group']}/" if named["group"] else ""
    return {"kind": named["kind"], "apiVersion": f"{group}{named['version']}"}


def _resource(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _user_info(user: User | None) -> Mapping[str, Any]:
    if user is None:
        return {}
    info: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info

"""AdmissionRequest: what those outside who judge requests are told about one.

upstream: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go,
plugin/cel/condition.go:CreateAdmissionRequest
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.conversion.kind_conversion import shown
from fairlead.apiserver.kind import NAMESPACE, Kind
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.storage import Storage

_OPTIONS: Final = {
    Operation.CREATE: "CreateOptions",
    Operation.UPDATE: "UpdateOptions",
    Operation.DELETE: "DeleteOptions",
}


def new_of(asked: Asked, matched: Kind) -> Json | None:
    """The object in the form of `matched`; None where it is to go."""
    return None if asked.operation is Operation.DELETE else _shown(asked, matched, asked.obj)


def old_of(asked: Asked, matched: Kind) -> Json | None:
    """What is there, in the form of `matched`; None where nothing is."""
    before = asked.obj if asked.operation is Operation.DELETE else asked.about.old
    return None if before is None else _shown(asked, matched, before)


def _shown(asked: Asked, matched: Kind, obj: Json) -> Json:
    view, part = asked.about.write.view, matched.part(asked.about.subresource)
    if view is not None:
        return view(obj)
    if part is None or part.kind == matched.kind:
        return {**shown(matched, obj), **_type(matched, "")}
    return {**_type(matched, asked.about.subresource), **obj}


def request_of(asked: Asked, matched: Kind) -> Json:
    """The request without its objects and its uid, to one who is asked about `matched`."""
    write, part = asked.about.write, asked.about.subresource
    request: Json = {
        "kind": _kind(matched, part),
        "resource": _resource(matched),
        "subResource": part,
        "requestKind": _kind(asked.kind, part),
        "requestResource": _resource(asked.kind),
        "requestSubResource": part,
        "name": asked.name,
        "namespace": asked.namespace,
        "operation": asked.operation.value,
        "userInfo": _user_info(write.user),
        "dryRun": write.dry_run,
        "options": {
            "kind": _OPTIONS[asked.operation],
            "apiVersion": "meta.k8s.io/v1",
            **write.options,
        },
    }
    return {key: value for key, value in request.items() if value != ""}


def namespace_of(asked: Asked, storage: Storage) -> Json | None:
    """The namespace that the object is in, None where it is in none."""
    if asked.kind is NAMESPACE or not asked.kind.namespaced:
        return None
    return storage.find(NAMESPACE, "", asked.namespace)


def _kind(kind: Kind, part: str) -> Json:
    found = kind.part(part)
    if found is None:
        return {"group": kind.group, "version": kind.version, "kind": kind.kind}
    group, version = (found.group, found.version) if found.version else (kind.group, kind.version)
    return {"group": group, "version": version, "kind": found.kind}


def _type(kind: Kind, part: str) -> Json:
    named = _kind(kind, part)
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

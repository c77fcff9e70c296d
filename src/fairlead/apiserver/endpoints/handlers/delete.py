"""delete and deletecollection.

upstream: apiserver/pkg/endpoints/handlers/delete.go, registry/generic/registry/store.go:
Delete, DeleteCollection
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fairlead.api.field_problem import quoted
from fairlead.api.json import Json
from fairlead.apiserver.admission.webhooks.plugin import WebhookNeeded
from fairlead.apiserver.endpoints.collection.delete_collection_progress import Sweep
from fairlead.apiserver.endpoints.collection.list_page import listed
from fairlead.apiserver.endpoints.collection.selector import selection
from fairlead.apiserver.endpoints.handlers.get import require_key
from fairlead.apiserver.endpoints.request.body import decoded
from fairlead.apiserver.endpoints.request.body_type import stated_type
from fairlead.apiserver.endpoints.request.options import (
    dry_run_causes,
    integer,
    is_true,
    list_options,
)
from fairlead.apiserver.endpoints.request.typed_object import read_by_type
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.error import Cause, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.request_error import bad_option
from fairlead.apiserver.negotiation.status import success
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.write import Write
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.schema.single import TypeMismatchError
from fairlead.apiserver.storage.storage import value_of
from fairlead.apiserver.validation.meta.field import invalid, not_supported

DELETE_OPTIONS: Final = Kind("", "v1", "DeleteOptions", "deleteoptions")
_OPTIONS_VERSION: Final = "meta.k8s.io/v1"
_UNKNOWN_OPTIONS: Final = (
    "no kind {} is registered for version {} in scheme "
    '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
)
_NO_END: Final = sys.maxsize
POLICIES: Final = ("Foreground", "Background", "Orphan")
# Kinds whose deletion gives the object; that of the others tells that it is done.
# upstream: ReturnDeletedObject in pkg/registry/*/storage
SHOWN: Final = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "persistentvolumeclaims",
        "persistentvolumes",
        "namespaces",
        "storageclasses.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csidrivers.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourceslices.resource.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
ORPHANED_JOBS: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True)
class _Options:
    deletion: Deletion
    dry_run: bool
    cascades: bool = False
    said: Json = field(default_factory=dict)


def delete(call: Call) -> Response:
    """Let the object that the path names go."""
    call.form()
    options = _options(call)
    _warn(call, options.deletion)
    target, kind = call.target, call.kind
    require_key(target.name)
    last = call.parts.store.let_go(
        kind, target.namespace, target.name, call.now, options.deletion, write=_write(call, options)
    )
    stays = call.parts.store.find(kind, target.namespace, target.name) is not None
    holds = bool(last["metadata"].get("finalizers"))
    if kind.resource in SHOWN or holds or (stays and not options.dry_run):
        return call.shown(last, 202 if stays and options.cascades else 200)
    return call.told(success(kind, last["metadata"]))


def delete_collection(call: Call) -> Response:
    """Let all objects go that are asked for; the answer shows them as they were."""
    form = call.form()
    options = _options(call)
    chosen = list_options(call.request, is_watch=False)
    if not chosen.limit:
        # Upstream lists in pages, which are of the very version that is asked for.
        chosen = replace(chosen, limit=_NO_END)
    wanted = selection(call.kind, chosen.label_selector, chosen.field_selector)
    storage, kind = call.parts.store.storage, call.kind
    sweep = call.request.sweep
    if sweep is None:
        sweep = Sweep(listed(storage, kind, call.target.namespace, wanted, chosen))
    _let_go(call, options, sweep)
    _warn(call, options.deletion)
    body = call.parts.renderer.list(form, kind, sweep.page, call.now)
    return Response(200, body, form.media_type, warnings=tuple(call.warnings))


def _let_go(call: Call, options: _Options, sweep: Sweep) -> None:
    """Let all objects go that nobody has seen to yet. Raises ApiError, WebhookNeeded."""
    store, kind, first = call.parts.store, call.kind, sweep.done
    call.warnings.extend(sweep.warnings)
    for kept in sweep.page.objects[first:]:
        meta = value_of(kept)["metadata"]
        place = (meta.get("namespace", ""), meta["name"])
        warned = len(call.warnings)
        if store.find(kind, *place) is not None:
            try:
                store.let_go(kind, *place, call.now, options.deletion, write=_write(call, options))
            except WebhookNeeded as needed:
                needed.sweep, needed.is_further = sweep, sweep.done > first
                raise
        sweep.warnings.extend(call.warnings[warned:])
        sweep.done += 1


def _write(call: Call, options: _Options) -> Write:
    return Write(
        dry_run=options.dry_run,
        user=call.request.user,
        warn=call.warnings.append,
        annotate=call.request.notes.__setitem__,
        webhooks=call.request.webhooks,
        rights=call.parts.identity.rights if call.parts.identity else None,
        options=options.said,
    )


def _warn(call: Call, deletion: Deletion) -> None:
    # upstream: pkg/registry/batch/job/strategy.go:WarningsOnDelete
    if call.kind.resource == "jobs.batch" and not deletion.policy:
        call.warnings.append(ORPHANED_JOBS)


def _options(call: Call) -> _Options:
    """DeleteOptions from the body, else from the query. Raises ApiError."""
    body = _body_options(call) if call.request.body else _query_options(call.request)
    causes = (*_causes(body), *dry_run_causes(tuple(body.get("dryRun") or ())))
    if causes:
        raise bad_option("DeleteOptions", *causes)
    wanted = body.get("preconditions") or {}
    policy = body.get("propagationPolicy") or ""
    if body.get("orphanDependents") is not None:
        policy = "Orphan" if body["orphanDependents"] else "Background"
    deletion = Deletion(
        grace_period_s=body.get("gracePeriodSeconds"),
        policy=policy,
        uid=wanted.get("uid"),
        resource_version=wanted.get("resourceVersion"),
    )
    # Who asks in the old way to wait for nobody is told that the object is still there.
    cascades = body.get("orphanDependents") is False
    named = ("apiVersion", "kind")
    said = {key: value for key, value in body.items() if key not in named and value is not None}
    return _Options(deletion, bool(body.get("dryRun")), cascades, said)


def _body_options(call: Call) -> Json:
    """The options in the body, which need not say what they are; the query's dryRun counts too."""
    request = call.request
    content_type = request.headers.get("content-type", "")
    body = decoded(request.body, content_type, "", call.parts.protobuf)
    version, kind = stated_type(body)
    if kind not in ("", DELETE_OPTIONS.kind):
        known = quoted(kind), quoted(version or _OPTIONS_VERSION)
        raise bad_request(_UNKNOWN_OPTIONS.format(*known))
    try:
        options, _ = read_by_type(DELETE_OPTIONS, body)
    except TypeMismatchError as cause:
        raise bad_request(str(cause)) from None
    return options


def _query_options(request: Request) -> Json:
    options: dict[str, Any] = {}
    grace_period_s = integer(request, "gracePeriodSeconds")
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    if request.has("propagationPolicy"):
        options["propagationPolicy"] = request.parameter("propagationPolicy")
    if request.has("orphanDependents"):
        options["orphanDependents"] = is_true(request, "orphanDependents")
    dry_run = [value for key, value in request.query if key == "dryRun"]
    if dry_run:
        options["dryRun"] = dry_run
    # upstream: apimachinery/pkg/apis/meta/v1/conversion.go:Convert_url_Values_To_v1_DeleteOptions
    said = {name: request.parameter(name) for name in ("uid", "resourceVersion")}
    if any(said.values()):
        options["preconditions"] = {name: text for name, text in said.items() if text}
    return options


def _causes(options: Json) -> Iterator[Cause]:
    # upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidateDeleteOptions
    policy, orphans = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is not None and orphans is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid("propagationPolicy", policy, why)
    if policy is not None and policy not in POLICIES:
        yield not_supported("propagationPolicy", policy, (*POLICIES, "nil"))

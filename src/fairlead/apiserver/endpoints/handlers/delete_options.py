"""DeleteOptions of a request, from its body or its query.

upstream: apimachinery/pkg/apis/meta/v1/types.go:DeleteOptions,
apiserver/pkg/endpoints/handlers/delete.go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.request.body import decoded
from fairlead.apiserver.endpoints.request.body_type import stated_type
from fairlead.apiserver.endpoints.request.options import dry_run_causes, integer, is_true
from fairlead.apiserver.endpoints.request.typed_object import read_by_type
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import Cause, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.request_error import bad_option
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.request import Request
from fairlead.apiserver.schema.scalar import TypeMismatchError
from fairlead.apiserver.validation.meta.field import invalid, not_supported

DELETE_OPTIONS: Final = Kind("", "v1", "DeleteOptions", "deleteoptions")
POLICIES: Final = ("Foreground", "Background", "Orphan")
_OPTIONS_VERSION: Final = "meta.k8s.io/v1"
_UNKNOWN_OPTIONS: Final = (
    "no kind {} is registered for version {} in scheme "
    '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How to delete.

    `is_legacy_cascade`: orphanDependents is false, the old way to ask for background deletion; it
    is answered with 202 while the object remains. `raw` are the options as the client sent
    them, for admission.
    """

    deletion: Deletion
    dry_run: bool
    is_legacy_cascade: bool = False
    raw: Json = field(default_factory=dict)


def delete_options(scope: RequestScope) -> DeleteOptions:
    """Reads DeleteOptions from the body, else from the query. Raises ApiError."""
    raw = _body_options(scope) if scope.request.body else _query_options(scope.request)
    causes = (*_causes(raw), *dry_run_causes(tuple(raw.get("dryRun") or ())))
    if causes:
        raise bad_option("DeleteOptions", *causes)
    preconditions = raw.get("preconditions") or {}
    policy = raw.get("propagationPolicy") or ""
    if raw.get("orphanDependents") is not None:
        policy = "Orphan" if raw["orphanDependents"] else "Background"
    deletion = Deletion(
        grace_period_s=raw.get("gracePeriodSeconds"),
        policy=policy,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )
    type_fields = ("apiVersion", "kind")
    return DeleteOptions(
        deletion,
        dry_run=bool(raw.get("dryRun")),
        is_legacy_cascade=raw.get("orphanDependents") is False,
        raw={
            key: value for key, value in raw.items() if key not in type_fields and value is not None
        },
    )


def warn_of_orphans(scope: RequestScope, options: DeleteOptions) -> None:
    """Warns that dependents stay, where a deletion without a propagation policy orphans them."""
    warning = strategy_of(scope.kind).warning_without_policy
    if warning and not options.deletion.policy:
        scope.warnings.append(warning)


def delete_write(scope: RequestScope, options: DeleteOptions) -> Write:
    """Everything that the store needs to know about a deletion besides the object."""
    return Write(
        dry_run=options.dry_run,
        user=scope.request.user,
        warn=scope.warnings.append,
        annotate=scope.request.notes.__setitem__,
        rights=scope.deps.identity.rights if scope.deps.identity else None,
        options=options.raw,
    )


def _body_options(scope: RequestScope) -> Json:
    """The options in the body, whose apiVersion and kind may be missing."""
    request = scope.request
    content_type = request.headers.get("content-type", "")
    body = decoded(request.body, content_type, "", scope.deps.protobuf)
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
    preconditions = {name: request.parameter(name) for name in ("uid", "resourceVersion")}
    if any(preconditions.values()):
        options["preconditions"] = {name: text for name, text in preconditions.items() if text}
    return options


def _causes(options: Json) -> Iterator[Cause]:
    # upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidateDeleteOptions
    policy, orphans = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is not None and orphans is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid("propagationPolicy", policy, why)
    if policy is not None and policy not in POLICIES:
        yield not_supported("propagationPolicy", policy, (*POLICIES, "nil"))

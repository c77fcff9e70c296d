"""The subresource `binding`, which binds a pod to a node.

upstream: pkg/registry/core/pod/storage/storage.go:BindingREST.Create
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.rest import write_of
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.endpoints.subresources.request_body import object_member, posted_body
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.request_error import unreadable
from fairlead.apiserver.negotiation.status import done
from fairlead.apiserver.registry.subresource.binding import bind
from fairlead.apiserver.request import Response
from fairlead.apiserver.suspension import WebhookCalls

BINDING: Final = Kind("", "v1", "Binding", "bindings")


def binding(scope: RequestScope) -> WebhookCalls[Response]:
    """Bind the pod that the path names. For a POST to `bindings`, the body names the pod."""
    body = posted_body(scope, BINDING)
    options = write_options(scope.request, "CreateOptions")
    meta, target = object_member(body, "metadata"), object_member(body, "target")
    name = scope.info.name or meta.get("name", "")
    if meta.get("name", "") != name or not name:
        raise bad_request("name in URL does not match name in Binding object")
    _require_node(target)
    yield from bind.steps(
        scope.deps.store,
        scope.info.namespace,
        name,
        target["name"],
        scope.now,
        uid=meta.get("uid", ""),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        dry_run=options.dry_run,
        write=write_of(scope, options, subresource=scope.info.subresource),
    )
    return scope.respond_json(done(201), 201)


def _require_node(target: Json) -> None:
    """Reject a target that is not a node. As in upstream, raises ApiError 500."""
    # upstream: pkg/apis/core/validation/validation.go:ValidatePodBinding
    problems, kind = [], target.get("kind", "")
    if kind not in ("", "Node"):
        supported = '"Node", "<empty>"'
        problems.append(f'target.kind: Unsupported value: "{kind}": supported values: {supported}')
    if not target.get("name"):
        problems.append("target.name: Required value")
    if problems:
        raise unreadable(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

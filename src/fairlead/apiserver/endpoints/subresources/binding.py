"""binding: a scheduler's decision.

upstream: pkg/registry/core/pod/storage/storage.go:BindingREST.Create
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.rest import write_of
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.endpoints.subresources.posted_body import member, posted
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.request_error import unreadable
from fairlead.apiserver.negotiation.status import done
from fairlead.apiserver.registry.binding import bind
from fairlead.apiserver.request import Response

BINDING: Final = Kind("", "v1", "Binding", "bindings")


def binding(call: Call) -> Response:
    """Put a pod on a node; its name stands in the path, or in the body alone."""
    body = posted(call, BINDING)
    options = write_options(call.request, "CreateOptions")
    meta, target = member(body, "metadata"), member(body, "target")
    name = call.target.name or meta.get("name", "")
    if meta.get("name", "") != name or not name:
        raise bad_request("name in URL does not match name in Binding object")
    _require_node(target)
    bind(
        call.parts.store,
        call.target.namespace,
        name,
        target["name"],
        call.now,
        uid=meta.get("uid", ""),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        dry_run=options.dry_run,
        write=write_of(call, options, subresource=call.target.subresource),
    )
    return call.told(done(201), 201)


def _require_node(target: Json) -> None:
    """Raises ApiError 500 where a pod cannot be put there: upstream has no better code."""
    # upstream: pkg/apis/core/validation/validation.go:ValidatePodBinding
    problems, kind = [], target.get("kind", "")
    if kind not in ("", "Node"):
        supported = '"Node", "<empty>"'
        problems.append(f'target.kind: Unsupported value: "{kind}": supported values: {supported}')
    if not target.get("name"):
        problems.append("target.name: Required value")
    if problems:
        raise unreadable(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

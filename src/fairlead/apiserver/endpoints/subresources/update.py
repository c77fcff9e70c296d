"""A view that is written: what a PUT or a PATCH to a subresource makes of what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.owner_references import with_each_owner_once
from fairlead.apiserver.endpoints.handlers.patcher import patch_of
from fairlead.apiserver.endpoints.handlers.rest import in_namespace, named, sent, write_of
from fairlead.apiserver.endpoints.request.options import WriteOptions, write_options
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.write import Write


@dataclass(frozen=True, slots=True)
class Written:
    """The view as it shall be, and how to store what follows from it.

    `is_applied`: it says itself who owns what of it.
    """

    view: Json
    options: WriteOptions
    write: Write
    is_applied: bool = False


def written(call: Call, kind: Kind, view: Callable[[Call], Json]) -> Written:
    """What the body of a write makes of the view of a call, an object of `kind`.

    What is wrong with the body is said first; only then it is looked for the object. Raises
    ApiError.
    """
    call.form()
    part, is_applied = call.target.subresource, False
    if call.verb == "patch":
        options = write_options(call.request, "PatchOptions")
        change = patch_of(call, options, kind, part)
        new = named(call, in_namespace(call, change.of(view(call))))
        operation, is_applied = change.operation, change.is_apply
    else:
        options = write_options(call.request, "UpdateOptions")
        new, operation = in_namespace(call, sent(call, options, kind)), "Update"
        new = with_each_owner_once(new, call.warnings.append)
        if new["metadata"].get("name"):
            view(call)  # who names another object is told of one that is not there first
        new = named(call, new)
    return Written(new, options, write_of(call, options, operation, part), is_applied)

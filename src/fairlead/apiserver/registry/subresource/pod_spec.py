"""The subresources `resize` and `ephemeralcontainers`, which change parts of a running pod's spec.

upstream: pkg/registry/core/pod/storage/storage.go:EphemeralContainersREST, ResizeREST,
pkg/registry/core/pod/strategy.go:dropNonEphemeralContainerUpdates, dropNonResizeUpdates
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.preparation import with_spec
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.suspension import Suspendable, WebhookCalls
from fairlead.apiserver.validation.core.pod.update import check_debugging, check_resize
from fairlead.apiserver.validation.meta.field import Causes

RESIZE: Final = "resize"
EPHEMERAL_CONTAINERS: Final = "ephemeralcontainers"
_CONTAINERS: Final = ("containers", "initContainers")


class _SpecChange(Struct, frozen=True):
    """An update of some spec fields of the pod `old` through `subresource`.

    `spec` contains the new values of these fields. `view` is the whole pod as the client wants it.
    `check` takes the old and the new pod, and returns the errors of the change.
    """

    subresource: str
    old: Json
    view: Json
    spec: Json
    check: Callable[[Json, Json], Causes]


@Suspendable
def resize(store: Store, old: Json, view: Json, *, write: Write = PLAIN) -> WebhookCalls[Json]:
    """Give the containers of the pod `old` the resources that they have in `view`.

    `view` is the whole pod as the client wants it; its other fields are ignored. Returns the stored
    pod. Raises ApiError 422 for an invalid resize, 403 if admission refuses it, and 409 if the pod
    changes while a webhook is called.
    """
    wanted = {one.get("name"): one for one in _containers(view["spec"])}
    spec = {
        field: [_resized(one, wanted.get(one.get("name"))) for one in old["spec"][field]]
        for field in _CONTAINERS
        if field in old["spec"]
    }
    return (yield from _update(store, _SpecChange(RESIZE, old, view, spec, check_resize), write))


@Suspendable
def change_ephemeral_containers(
    store: Store, old: Json, view: Json, *, write: Write = PLAIN
) -> WebhookCalls[Json]:
    """Give the pod `old` the ephemeral containers that it has in `view`.

    The other arguments, the result and the errors are those of `resize`.
    """
    spec = {"ephemeralContainers": view.get("spec", {}).get("ephemeralContainers", [])}
    change = _SpecChange(EPHEMERAL_CONTAINERS, old, view, spec, check_debugging)
    return (yield from _update(store, change, write))


def _update(store: Store, change: _SpecChange, write: Write) -> WebhookCalls[Json]:
    """Store the pod with its new fields and return it.

    As in upstream, the managedFields are computed from all fields of `change.view`, even those that
    are not stored.
    """
    old, rules, validator = change.old, store.registry.rules(POD), store.registry.validator
    new = store.completed(POD, with_spec(old, {**old["spec"], **change.spec}))
    validator.validate_part(POD, rules, old, new, change.check(old, new))
    tracked = write.tracked(old, change.view)["metadata"]
    if "managedFields" in tracked:
        meta = {**new["metadata"], "managedFields": tracked["managedFields"]}
        new = {**new, "metadata": meta}
    admitted = yield from store.admission.admit.steps(
        Operation.UPDATE, POD, new, old=old, subresource=change.subresource, write=write
    )
    if admitted is not new:  # mutating admission may have made the pod invalid
        validator.validate_part(POD, rules, old, admitted, change.check(old, admitted))
        new = admitted
    return (yield from store.commit.steps(POD, old, new, write=write))


def _containers(spec: Json) -> Iterator[Json]:
    for field in _CONTAINERS:
        yield from spec.get(field) or ()


def _resized(container: Json, wanted: Json | None) -> Json:
    return container if wanted is None else {**container, "resources": wanted.get("resources", {})}

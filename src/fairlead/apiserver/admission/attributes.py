"""The interface of admission plugins: a request's attributes, and the plugin itself.

upstream: apiserver/pkg/admission/{interfaces,attributes,reinvocation}.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.suspension import WebhookCalls
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.storage.storage import Storage


class Operation(StrEnum):
    """The operation of a request; LOAD reads an object of a snapshot."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    LOAD = "LOAD"


@dataclass(slots=True)
class ReinvocationContext:
    """Decides which mutating plugins run a second time on one request.

    All mutating plugins run once. If a webhook or policy changed the object (`is_requested`), they
    run again (`round` 1): built-in plugins always, a webhook or policy only if its reinvocation
    policy is IfNeeded and the object has changed since it ran.

    `previously_invoked` are the keys of the webhooks and policies with reinvocation policy IfNeeded
    that have run. `due` are the keys of the webhooks and policies to run again, because the object
    has changed since they ran. `last_output` is the object after the last webhook. `apply_defaults`
    sets the defaults of a changed object.

    upstream: apiserver/pkg/admission/reinvocation.go,
    plugin/webhook/mutating/reinvocationcontext.go
    """

    apply_defaults: Callable[[Json], Json]
    round: int = 0
    is_requested: bool = False
    previously_invoked: list[str] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    last_output: Json | None = None

    def record_change(self) -> None:
        """Records that a webhook or policy changed the object, so that all plugins run again."""
        self.is_requested = True
        self.require_previously_invoked()

    def require_previously_invoked(self) -> None:
        """Records that the webhooks and policies that ran before the change must run again."""
        self.due += self.previously_invoked
        self.previously_invoked = []


class AdmissionAttributes(Struct, frozen=True):
    """The attributes of a request, which admission plugins read.

    `obj` is the object to store; for DELETE, the stored object. For a subresource it is the body (a
    Binding, an Eviction) or, for status, the whole object. `old` is the stored object of an update.
    `reinvocation` is None if no plugin runs twice.
    """

    operation: Operation
    kind: Kind
    obj: Json
    old: Json | None = None
    subresource: str = ""
    write: Write = PLAIN
    reinvocation: ReinvocationContext | None = None

    @property
    def is_new(self) -> bool:
        """True if the request creates a whole object, not a subresource."""
        return self.operation is Operation.CREATE and not self.subresource

    @property
    def is_resize(self) -> bool:
        """True if the request changes the resources of an existing pod in place."""
        is_part = self.subresource == "resize"
        return is_part and self.kind is POD and self.operation is Operation.UPDATE

    @property
    def name(self) -> str:
        """The name of the object; "" if it has none yet."""
        return str((self.obj.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace of the object; for a Namespace, its own name."""
        # upstream: endpoints/handlers/create.go:createHandler
        if self.kind is NAMESPACE:
            return self.name
        return str((self.obj.get("metadata") or {}).get("namespace") or "")

    def with_object(self, obj: Json) -> AdmissionAttributes:
        """Return the same request with `obj` as its object."""
        if obj is self.obj:
            return self
        return AdmissionAttributes(
            self.operation,
            self.kind,
            obj,
            self.old,
            self.subresource,
            self.write,
            self.reinvocation,
        )


class AdmissionPlugin(Protocol):
    """Admits an object, changed or unchanged, or refuses it.

    A plugin that never changes objects sets `CHECKS_ONLY = True`. It runs after all others, on a
    complete and valid object, as upstream's validating plugins do. A plugin whose answer for a new
    pod depends on how many pods exist sets `COUNTS_PODS = True`.
    """

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json | WebhookCalls[Json]:
        """Return the object for the next plugin. Raises ApiError.

        The result is used for CREATE, for UPDATE, and for pods on LOAD. On LOAD, `storage` has all
        objects of the snapshot except its pods. A plugin that calls webhooks returns a generator,
        which returns the object.
        """
        ...

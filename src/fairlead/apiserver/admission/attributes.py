"""The interface of admission plugins: the attributes of a request, and the plugin protocol.

upstream: apiserver/pkg/admission/{interfaces,attributes,reinvocation}.go
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookCalls


class Operation(StrEnum):
    """The operation of a request.

    `CONNECT` opens a connection, such as `kubectl exec`. `LOAD` does not exist upstream: it stores
    an object of a snapshot.
    """

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"
    LOAD = "LOAD"


# Members that are read often (STYLE.md, rule 19).
_CREATE: Final = Operation.CREATE
_UPDATE: Final = Operation.UPDATE


class ReinvocationContext(Struct):
    """The state that decides which mutating plugins run a second time on one request.

    All mutating plugins run once (`round` 0). If a webhook or policy changed the object,
    `is_requested` is set and a second round (`round` 1) follows. In the second round, all built-in
    plugins run again. A webhook or policy runs again only if its reinvocationPolicy is IfNeeded and
    the object has changed since the webhook or policy first ran.

    `previously_invoked` contains the keys of the webhooks and policies that have run and whose
    reinvocationPolicy is IfNeeded. `due` contains the keys of the webhooks and policies that run in
    the second round. `last_output` is the object after the webhooks of the latest round.

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
        """Record that a webhook or policy changed the object, so that a second round follows."""
        self.is_requested = True
        self.require_previously_invoked()

    def require_previously_invoked(self) -> None:
        """Let the webhooks and policies in `previously_invoked` run again in the next round."""
        self.due += self.previously_invoked
        self.previously_invoked = []


class AdmissionAttributes(Struct, frozen=True):
    """The attributes of a request, which admission plugins read."""

    operation: Operation
    kind: Kind
    # The object to store; for DELETE, the stored object. When a subresource is updated (`status`,
    # `resize`, `scale`), the whole object. When a subresource is created (`binding`, `eviction`,
    # `token`), the request's body. For CONNECT, the options of the connection.
    obj: Json
    old: Json | None = None  # the stored object that an update replaces
    subresource: str = ""
    write: Write = PLAIN
    reinvocation: ReinvocationContext | None = None  # None if no plugin can run twice

    @property
    def is_new(self) -> bool:
        """True if the request creates a whole object rather than a subresource."""
        return self.operation is _CREATE and not self.subresource

    @property
    def is_resize(self) -> bool:
        """True if the request changes the resources of an existing pod in place."""
        is_part = self.subresource == "resize"
        return is_part and self.kind is POD and self.operation is _UPDATE

    @property
    def name(self) -> str:
        """The name of the object; "" if the object has no name yet."""
        return str((self.obj.get("metadata") or {}).get("name") or "")

    @property
    def requested_name(self) -> str:
        """The name in the request; "" if a new object's name is generated."""
        return "" if self._has_generated_name else self.name

    @property
    def _has_generated_name(self) -> bool:
        generated = self.write.generated_name
        return bool(generated) and self.is_new and self.name == generated

    @property
    def namespace(self) -> str:
        """The namespace of the object; "" if it is cluster-scoped.

        For a Namespace object, this is the name of the object.
        """
        # upstream: endpoints/handlers/create.go:createHandler
        if self.kind is NAMESPACE:
            return self.name
        return str((self.obj.get("metadata") or {}).get("namespace") or "")

    def without_generated_name(self) -> AdmissionAttributes:
        """Return this request; if the object's name was generated, the object loses its name.

        Upstream generates the name after the mutating webhooks and policies have run.
        """
        # upstream: apiserver/pkg/registry/generic/registry/store.go:create
        if not self._has_generated_name:
            return self
        meta = {key: value for key, value in self.obj["metadata"].items() if key != "name"}
        return self.with_object({**self.obj, "metadata": meta})

    def with_generated_name(self) -> AdmissionAttributes:
        """Return this request; a new object without a name gets the name `write.generated_name`.

        This is the inverse of `without_generated_name`.
        """
        generated, meta = self.write.generated_name, self.obj.get("metadata") or {}
        if not generated or not self.is_new or meta.get("name"):
            return self
        return self.with_object({**self.obj, "metadata": {"name": generated, **meta}})

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
    """An admission plugin: changes an object, leaves it unchanged, or refuses it.

    Plugins with `CHECKS_ONLY = True` must not change objects. Such plugins run after all other
    plugins, on a complete and valid object, like upstream's validating plugins. A plugin must set
    `COUNTS_PODS = True` if the number of existing pods decides whether it admits a new pod. Only
    plugins with `HANDLES_CONNECT = True` run for CONNECT.
    """

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json | WebhookCalls[Json]:
        """Return the object for the next plugin. Raises ApiError if the plugin refuses the request.

        For DELETE, the returned object is ignored. The operation LOAD stores an object of a
        snapshot. For LOAD, `storage` contains all objects of the snapshot except the pods, and the
        returned object is used only if it is a pod. A plugin that calls webhooks returns a
        generator, and the generator returns the object.
        """
        ...

"""AdmissionControl: runs the admission plugins of one store for each request.

Mutating plugins run first. If a webhook or policy changed the object, the mutating plugins run once
more (reinvocation). Validating plugins receive the object that will be stored.

upstream: apiserver/pkg/admission/{chain,reinvocation}.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import (
    AdmissionAttributes,
    AdmissionPlugin,
    Operation,
    ReinvocationContext,
)
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import (
    MUTATING_ADMISSION_POLICY_BINDING,
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_ADMISSION_POLICY_BINDING,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import SuspendableMethod, WebhookCalls

ROUNDS_MAX: Final = 2  # upstream: apiserver/pkg/admission/reinvocation.go
# The resources of the objects that `has_dynamic_admission` looks for.
DYNAMIC_ADMISSION_RESOURCES: Final = frozenset(
    kind.resource
    for kind in (
        MUTATING_ADMISSION_POLICY_BINDING,
        MUTATING_WEBHOOK_CONFIGURATION,
        VALIDATING_ADMISSION_POLICY_BINDING,
        VALIDATING_WEBHOOK_CONFIGURATION,
    )
)


class AdmissionControl:
    """The admission plugins of one store, in the order in which they run.

    `complete` sets the defaults of an object that a plugin has changed.
    """

    def __init__(
        self,
        plugins: Sequence[AdmissionPlugin],
        storage: Storage,
        complete: Callable[[Kind, Json], Json],
    ) -> None:
        """`plugins` run in the given order, except that the plugins that only validate run last."""
        self._storage = storage
        self._complete = complete
        self._validating = tuple(one for one in plugins if getattr(one, "CHECKS_ONLY", False))
        self._mutating = tuple(one for one in plugins if one not in self._validating)
        self._counting = tuple(one for one in plugins if getattr(one, "COUNTS_PODS", False))
        ordered = (*self._mutating, *self._validating)
        self._connecting = tuple(one for one in ordered if getattr(one, "HANDLES_CONNECT", False))

    def attributes(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        *,
        old: Json | None = None,
        subresource: str = "",
        write: Write = PLAIN,
    ) -> AdmissionAttributes:
        """Return the admission attributes of a request.

        `old` is the stored object that an update replaces. `subresource` is "" for the object
        itself, and `write` is the context of the request. The mutating plugins may run twice if
        `write` has a user. Requests of API clients have a user, unlike those of controllers.
        """
        if kind.conversion_webhook is not None and write.conversions is None:
            # A controller's object is in the storage version, but a plugin may need another
            # version. Imported here because simulations convert nothing, and start sooner without
            # it.
            from fairlead.apiserver.apiextensions.conversion.conversions import (  # noqa: PLC0415
                Conversions,
            )

            write = replace(write, conversions=Conversions(kind, self._storage))
        reinvocation = None
        if write.user is not None:
            reinvocation = ReinvocationContext(partial(self._complete, kind))
        return AdmissionAttributes(operation, kind, obj, old, subresource, write, reinvocation)

    def mutate(self, attributes: AdmissionAttributes) -> WebhookCalls[AdmissionAttributes]:
        """Return `attributes` with the changes that the mutating plugins make to the object.

        Raises ApiError if a plugin refuses the object.
        """
        reinvocation = attributes.reinvocation
        for number in range(ROUNDS_MAX):
            if reinvocation is not None:
                reinvocation.round = number
            for plugin in self._mutating:
                obj = plugin.admit(attributes, self._storage)
                if not isinstance(obj, dict):
                    obj = yield from obj
                if obj is not attributes.obj:
                    attributes = attributes.with_object(obj)
            if reinvocation is None or not reinvocation.is_requested:
                break
        return attributes

    def validate(self, attributes: AdmissionAttributes) -> WebhookCalls[None]:
        """Run the validating plugins. Raises ApiError if one of them refuses the object."""
        for plugin in self._validating:
            checked = plugin.admit(attributes, self._storage)
            if not isinstance(checked, dict):
                yield from checked

    def check_count(self, attributes: AdmissionAttributes) -> None:
        """Run the plugins that count pods, and no other plugins, for a new pod.

        Raises ApiError if one of them refuses the pod.
        """
        for plugin in self._counting:
            plugin.admit(attributes, self._storage)

    @SuspendableMethod
    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        *,
        old: Json | None = None,
        subresource: str = "",
        write: Write = PLAIN,
    ) -> WebhookCalls[Json]:
        """Run all plugins, and return the object with the changes of the mutating plugins.

        The arguments are those of `attributes`. Raises ApiError if a plugin refuses the object.
        """
        attributes = self.attributes(
            operation, kind, obj, old=old, subresource=subresource, write=write
        )
        attributes = yield from self.mutate(attributes)
        yield from self.validate(attributes)
        return attributes.obj

    def admit_connection(
        self, kind: Kind, options: Json, subresource: str, write: Write
    ) -> WebhookCalls[None]:
        """Run the plugins that handle CONNECT. Raises ApiError if one refuses the connection.

        `options` are the options of the connection, and `subresource` is the subresource of `kind`
        to which the client connects. Changes that webhooks make to the options are dropped.
        """
        # upstream: apiserver/pkg/endpoints/handlers/rest.go:ConnectResource
        attributes = self.attributes(
            Operation.CONNECT, kind, options, subresource=subresource, write=write
        )
        for plugin in self._connecting:
            checked = plugin.admit(attributes, self._storage)
            if not isinstance(checked, dict):
                yield from checked


def has_dynamic_admission(storage: Storage) -> bool:
    """Return whether a webhook configuration or a policy binding exists.

    If one exists, the result of a write may depend on the user.
    """
    return storage.has_any(DYNAMIC_ADMISSION_RESOURCES)

"""Stations: what an API server makes of an object, or refuses of it, before it is stored.

    named -> completed (its kind's form, defaults) -> changed (admission) -> validated -> checked

Each is asked by itself, by whoever leads an object through them (`passage`).

upstream: apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/admission
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import (
    AdmissionAttributes,
    AdmissionPlugin,
    Operation,
    ReinvocationContext,
)
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.id_source import (
    ATTEMPTS_MAX,
    NAMED_BY_THE_BASE,
    ReplayedIds,
    generated_name,
)
from fairlead.apiserver.registry.strategy import Strategies
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.validator import (
    ApiValidator,
    SimulationValidator,
    Validator,
    defaulted,
)

ROUNDS_MAX: Final = 2  # upstream: apiserver/pkg/admission/reinvocation.go


class Stations:
    """Those of one store; nothing here changes but the ids that were given."""

    def __init__(
        self,
        storage: Storage,
        ids: ReplayedIds,
        admission: Sequence[AdmissionPlugin],
        *,
        runnable: bool,
        strategies: Strategies | None,
    ) -> None:
        """See Store."""
        self.storage = storage
        self.ids = ids
        self.strategies = strategies
        # Objects that were read by their schemas say null where upstream's types do.
        self.nullable = strategies is not None
        self.validator: Validator = (
            SimulationValidator(runnable=runnable) if strategies is None else ApiValidator()
        )
        self._checking = tuple(one for one in admission if getattr(one, "CHECKS_ONLY", False))
        self._changing = tuple(one for one in admission if one not in self._checking)

    def completed(self, kind: Kind, obj: Json, *, is_read: bool = False) -> Json:
        """`obj` in its kind's form (`is_read`: it is), with its defaults. Raises ApiError 400."""
        if self.strategies is None:
            return defaulted(kind, obj)
        return self.strategies.completed(kind, obj, is_read=is_read)

    def named(self, kind: Kind, obj: Json) -> Json:
        """`obj` with a generated name if it asks for one."""
        meta = obj.get("metadata", {})
        if not isinstance(meta, dict) or meta.get("name") or not meta.get("generateName"):
            return obj
        if kind.resource in NAMED_BY_THE_BASE:
            return {**obj, "metadata": {**meta, "name": meta["generateName"]}}
        namespace = meta.get("namespace", "")
        for _ in range(ATTEMPTS_MAX):
            name = generated_name(str(meta["generateName"]), self.ids.new_suffix())
            if self.storage.find(kind, namespace, name) is None:
                break
        return {**obj, "metadata": {**meta, "name": name}}

    def admitted(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        *,
        old: Json | None = None,
        subresource: str = "",
        write: Write = PLAIN,
    ) -> Json:
        """What the plugins make of `obj`; `old` is what is there. Raises ApiError.

        Every verb here asks by itself; subresources written from elsewhere ask through this.
        """
        attributes = self.attributes(operation, kind, obj, write, old, subresource)
        attributes = self.changed(attributes)
        self.check(attributes)
        return attributes.obj

    def attributes(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        write: Write,
        old: Json | None = None,
        subresource: str = "",
    ) -> AdmissionAttributes:
        """The admission attributes of a request; only a client's request is reinvoked."""
        reinvocation = None
        if write.user is not None:
            reinvocation = ReinvocationContext(partial(self.completed, kind))
        return AdmissionAttributes(operation, kind, obj, old, subresource, write, reinvocation)

    def changed(self, attributes: AdmissionAttributes) -> AdmissionAttributes:
        """`attributes` after those plugins that may change its object. Raises ApiError."""
        reinvocation = attributes.reinvocation
        for number in range(ROUNDS_MAX):
            if reinvocation is not None:
                reinvocation.round = number
            for plugin in self._changing:
                attributes = attributes.with_object(plugin.admit(attributes, self.storage))
            if reinvocation is None or not reinvocation.is_requested:
                break
        return attributes

    def check(self, attributes: AdmissionAttributes) -> None:
        """Ask those plugins that change nothing. Raises ApiError."""
        for plugin in self._checking:
            plugin.admit(attributes, self.storage)

    def shaped(self, kind: Kind, old: Json | None, new: Json) -> Json:
        """`new`, made of `old` by the server itself, in its kind's form."""
        return new if self.strategies is None else self.strategies.shaped(kind, old, new)

    def validate_new(self, kind: Kind, obj: Json) -> None:
        """Refuse a new object that breaks the rules of its kind. Raises ApiError."""
        self.validator.validate(kind, obj)

    def validate_update(self, kind: Kind, old: Json, new: Json) -> None:
        """Refuse what may not become of an object. Raises ApiError."""
        self.validator.validate_update(kind, old, new)

    def warn(self, kind: Kind, old: Json | None, new: Json, write: Write) -> None:
        """Tell the client what it should know about `new`, which is valid."""
        if self.strategies is not None:
            for text in self.strategies.warnings(kind, old, new):
                write.warn(text)

"""The shape of an admission plugin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.storage.storage import Storage


class Operation(StrEnum):
    """What the request does; LOAD is an object of a snapshot, which a server let in before."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    LOAD = "LOAD"


@dataclass(slots=True)
class Rounds:
    """How often plugins that change objects are asked about one.

    Once, and once more if somebody from outside has changed it (`again`). `complete` fills in
    defaults; `asked` are those from outside who want to see what others made of it, `due` those
    of them who have not seen it, and `last` what it was when the last of them was asked.

    upstream: apiserver/pkg/admission/reinvocation.go,
    plugin/webhook/mutating/reinvocationcontext.go
    """

    complete: Callable[[Json], Json]
    number: int = 0
    again: bool = False
    asked: list[str] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    last: Json | None = None

    def note_change(self) -> None:
        """Somebody from outside has changed it."""
        self.again = True
        self.call_again()

    def call_again(self) -> None:
        """Whoever was asked before may look once more."""
        self.due += self.asked
        self.asked = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What else a plugin may want to know.

    What was there, which part is written, by whom, and, while it may change, how often that is.
    """

    old: Json | None = None
    subresource: str = ""
    write: Write = PLAIN
    rounds: Rounds | None = None


ALONE: Final = Circumstances()


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as admission sees it; `obj` is what is to be stored, for DELETE what is to go.

    With a subresource `obj` is what was sent to it (a Binding, an Eviction) or, where it is the
    object itself, that (status).
    """

    operation: Operation
    kind: Kind
    obj: Json
    about: Circumstances = ALONE

    @property
    def is_new(self) -> bool:
        """Whether an object is to come into being, and not a part of one."""
        return self.operation is Operation.CREATE and not self.about.subresource

    @property
    def is_resized(self) -> bool:
        """Whether a running pod is to have other resources."""
        is_part = self.about.subresource == "resize"
        return is_part and self.kind is POD and self.operation is Operation.UPDATE

    @property
    def name(self) -> str:
        """Of the object, "" while it has none."""
        return str((self.obj.get("metadata") or {}).get("name") or "")

    @property
    def namespace(self) -> str:
        """Of the object; a namespace is in itself."""
        # as upstream's handlers/create.go has it
        if self.kind is NAMESPACE:
            return self.name
        return str((self.obj.get("metadata") or {}).get("namespace") or "")

    def become(self, obj: Json) -> Asked:
        """The same request after somebody has made `obj` of its object."""
        return self if obj is self.obj else Asked(self.operation, self.kind, obj, self.about)


class AdmissionPlugin(Protocol):
    """Lets objects in, changed or not, or refuses them.

    One that never changes any may say so (`CHECKS_ONLY = True`): it is asked about objects that
    are complete and valid.
    """

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """The object as it may pass. Raises ApiError.

        On LOAD everything of the snapshot but its pods is in storage already. The result counts
        for CREATE, for UPDATE, and for pods on LOAD.
        """
        ...

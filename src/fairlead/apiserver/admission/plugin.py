"""The shape of an admission plugin."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage import Json, Storage
from fairlead.apiserver.write import PLAIN, Write


class Operation(StrEnum):
    """What the request does; LOAD is an object of a snapshot, which a server let in before."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    LOAD = "LOAD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What else a plugin may want to know: what was there, which part is written, and by whom."""

    old: Json | None = None
    subresource: str = ""
    write: Write = PLAIN


ALONE: Final = Circumstances()


class AdmissionPlugin(Protocol):
    """Lets objects in, changed or not, or refuses them."""

    def admit(
        self,
        operation: Operation,
        kind: Kind,
        obj: Json,
        storage: Storage,
        circumstances: Circumstances = ALONE,
    ) -> Json:
        """`obj` (for DELETE: what is to go) as it may pass. Raises ApiError.

        On LOAD everything of the snapshot but its pods is in storage already. The result counts
        for CREATE, for UPDATE, and for pods on LOAD. With a subresource `obj` is what was sent to
        it (a Binding, an Eviction) or, where it is the object itself, that (status).
        """
        ...

"""The shape of an admission plugin."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.storage import Json, Storage


class Operation(StrEnum):
    """What the request does; LOAD is an object of a snapshot, which a server let in before."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    LOAD = "LOAD"


class AdmissionPlugin(Protocol):
    """Lets objects in, changed or not, or refuses them."""

    def admit(self, operation: Operation, kind: Kind, obj: Json, storage: Storage) -> Json:
        """`obj` (for DELETE: what is to go) as it may pass. Raises ApiError.

        On LOAD everything of the snapshot but its pods is in storage already. The result counts
        for CREATE, for UPDATE, and for pods on LOAD.
        """
        ...

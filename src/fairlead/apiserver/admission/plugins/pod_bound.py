"""PodBound: how many pods a server holds at most, whoever asks for more.

Somebody may want a billion replicas, which controllers make for as long as nobody stops them. A
cluster has that many pods neither: here a controller is refused the next one, says so in an event,
and tries again later and later. Pods that are there already may stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class PodBound:
    """The admission plugin; there may be `pods_max`."""

    CHECKS_ONLY: ClassVar[bool] = True

    pods_max: int

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse a new pod where there are enough of them. Raises ApiError 403."""
        if asked.kind is POD and asked.is_new and storage.count(POD) >= self.pods_max:
            why = f"there may be {self.pods_max} pods in this cluster at most"
            raise forbidden(POD, asked.namespace, asked.name, why)
        return asked.obj

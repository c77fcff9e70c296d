"""PodCountLimit: limits the number of pods of a local server (no upstream plugin).

The limit protects the server from a workload that requests a billion replicas by mistake. In a real
cluster, etcd and the nodes limit the number of pods.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import POD
from fairlead.apiserver.storage.storage import Storage


class PodCountLimit(Struct, frozen=True):
    """The admission plugin `PodCountLimit`; the cluster may have at most `pods_max` pods."""

    CHECKS_ONLY: ClassVar[bool] = True
    COUNTS_PODS: ClassVar[bool] = True

    pods_max: int

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a new pod if the cluster already has `pods_max` pods. Raises ApiError 403."""
        if attributes.kind is POD and attributes.is_new and storage.count(POD) >= self.pods_max:
            why = f"there may be {self.pods_max} pods in this cluster at most"
            raise forbidden(POD, attributes.namespace, attributes.name, why)
        return attributes.obj

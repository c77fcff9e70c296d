"""QuotaRoom: whether the ResourceQuotas allow a controller to replace an evicted pod.

A quota counts an evicted pod until the pod has stopped. If the quota has no room for this pod and
its replacement together, it refuses the replacement until the evicted pod has stopped. Until then,
the controller retries. The quota refuses the replacement for good in two cases. In the first case,
there is no room even after the evicted pod has gone, for example because the quota was lowered. In
the second case, the quota limits a resource that the containers do not specify.

upstream: pkg/quota/v1/evaluator/core/pods.go:QuotaV1Pod;
pkg/controller/replicaset/replica_set.go:manageReplicas
"""

from __future__ import annotations

from msgspec import to_builtins

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.quota.resource_quota import ResourceQuota
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.cluster_model import ClusterModel


class QuotaRoom:
    """Checks whether quotas admit the replacements of pods.

    The quotas count the pods in the store of `model`.
    """

    def __init__(self, model: ClusterModel) -> None:
        """Use the quotas and pods in the store of `model`."""
        self._model = model

    def refusal(self, pod: PodInfo) -> str:
        """Return the message of the quota that refuses the replacement of `pod` for good.

        Returns "" if the quotas admit the replacement after `pod` has stopped.
        """
        storage, namespace = self._model.store.storage, pod.namespace
        old = storage.find(POD, namespace, pod.pod.metadata.name)
        if old is None or not self._model.count_quotas(namespace):
            return ""
        new = AdmissionAttributes(
            Operation.CREATE, POD, self._replacement(old, pod), write=Write(dry_run=True)
        )
        storage.remove(POD, namespace, pod.pod.metadata.name)
        self._model.count_quotas(namespace)
        try:
            ResourceQuota().admit(new, storage)
        except ApiError as refused:
            return refused.message
        finally:
            storage.put(POD, old)
        return ""

    def refusal_of_another(self, pod: PodInfo) -> str:
        """Return the message of the quota that refuses another pod like `pod`; "" if none does."""
        storage, namespace = self._model.store.storage, pod.namespace
        old = storage.find(POD, namespace, pod.pod.metadata.name)
        if old is None or not self._model.count_quotas(namespace):
            return ""
        new = self._replacement(old, pod)
        new = {**new, "metadata": {**new["metadata"], "name": f"{new['metadata']['name']}-more"}}
        try:
            ResourceQuota().admit(
                AdmissionAttributes(Operation.CREATE, POD, new, write=Write(dry_run=True)), storage
            )
        except ApiError as refused:
            return refused.message
        return ""

    def replace(self, pod: PodInfo) -> None:
        """Let the quotas count the replacement of `pod`, and no longer `pod` itself."""
        storage = self._model.store.storage
        old = storage.find(POD, pod.namespace, pod.pod.metadata.name)
        if old is not None:
            storage.put(POD, self._replacement(old, pod))

    def _replacement(self, old: Json, pod: PodInfo) -> Json:
        """Return `old`, the stored object of `pod`, with the spec of the replacement of `pod`."""
        spec = to_builtins(self._model.as_replacement(pod).pod.spec)
        return {**old, "spec": {**old["spec"], **spec}, "status": {}}

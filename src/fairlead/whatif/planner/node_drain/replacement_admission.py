"""ReplacementAdmission: whether the API server lets a controller replace an evicted pod.

The controller of an evicted pod creates a new pod from its template. The API server may refuse the
new pod although it once admitted the old pod, for example because of Pod Security, a LimitRange, a
policy, or a deleted ServiceAccount. The controller then retries without success, and the workload
lacks a pod. To find out, the new pod of each controller is created in a dry run (`refusal_of`).

A ResourceQuota counts an evicted pod until the pod has stopped. If the quota has no room for this
pod and its replacement together, it refuses the replacement until the evicted pod has stopped. The
quota refuses the replacement for good in two cases. In the first case, there is no room even after
the evicted pod has gone, for example because the quota was lowered. In the second case, the quota
limits a resource that the containers do not specify.

If the snapshot lacks the controller, or if the controller is a custom resource, the template is
unknown. Only quotas are then checked, with the spec of the old pod.

upstream: pkg/quota/v1/evaluator/core/pods.go:QuotaV1Pod;
pkg/controller/replicaset/replica_set.go:manageReplicas
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import to_builtins

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess, ResourceQuota
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, is_placed_anew
from fairlead.whatif.run.next_pod import without_pod_name

_NOTES_MAX: Final = 3


class ReplacementAdmission:
    """Checks whether the API server admits the replacements of pods.

    The quotas count the pods in the store of `model`.
    """

    def __init__(self, model: ClusterModel) -> None:
        """Use the objects in the store of `model`."""
        self._model = model
        # By the key of `ClusterModel.next_pod`: the message for the first pod with this key.
        self._known: dict[str, str] = {}
        # Whether a namespace has quotas; their usage is counted when the namespace is added.
        self._limited: dict[str, bool] = {}

    def refused(self, pods: Iterable[PodInfo]) -> dict[str, str]:
        """Return {pod: message} for the replacements that are refused if all `pods` are evicted.

        Each replacement is created after all `pods` have stopped.
        """
        found: dict[str, str] = {}
        full: dict[str, list[PodInfo]] = defaultdict(list)  # by namespace
        for pod in filter(is_placed_anew, pods):
            if message := self._refusal_of_first(pod):
                if QuotaExcess.read(message) is None:
                    found[pod.key] = message
                else:
                    full[pod.namespace].append(pod)
        for namespace, own in full.items():
            found |= self._refused_together(namespace, own)
        return found

    def _refusal_of_first(self, pod: PodInfo) -> str:
        """Return the message for the first tried pod that has the same controller as `pod`.

        The API server gives the same message for `pod`, except if the message is about a quota.
        """
        new = self._model.next_pod(pod)
        if new is None:
            # The spec of the old pod is checked against quotas only.
            return self._tried(pod, is_another=False) if self._has_quotas(pod.namespace) else ""
        key, _ = new
        if key not in self._known:
            self._has_quotas(pod.namespace)
            self._known[key] = self._tried(pod, is_another=False)
        return self._known[key]

    def _refused_together(self, namespace: str, pods: Iterable[PodInfo]) -> dict[str, str]:
        """Return {pod: message of a quota} for the replacements that quotas of `namespace` refuse.

        All `pods` stop before the first replacement is created. As soon as some of `pods` have
        stopped, a quota that was exceeded may have room for some of the replacements.
        """
        storage, found = self._model.store.storage, dict[str, str]()
        old = {
            pod.key: known
            for pod in pods
            if (known := storage.find(POD, namespace, pod.pod.metadata.name)) is not None
        }
        try:
            for known in old.values():
                storage.remove(POD, namespace, known["metadata"]["name"])
            for pod in pods:
                if pod.key not in old:
                    continue
                self._model.count_quotas(namespace)
                if message := self._refusal(pod, old[pod.key], replaced=None):
                    found[pod.key] = message
                else:
                    storage.put(POD, self._replacement(old[pod.key], pod))
        finally:
            for known in old.values():
                storage.put(POD, known)
            self._model.count_quotas(namespace)
        return found

    def refusal(self, pod: PodInfo) -> str:
        """Return why the API server refuses the replacement of `pod` for good.

        Returns "" if it admits the replacement after `pod` has stopped.
        """
        if not self._has_quotas(pod.namespace):
            return self._refusal_of_first(pod)
        return self._tried(pod, is_another=False)

    def refusal_of_another(self, pod: PodInfo) -> str:
        """Return why the API server refuses another pod like `pod`; "" if it does not."""
        if not self._has_quotas(pod.namespace):
            return self._refusal_of_first(pod)
        return self._tried(pod, is_another=True)

    def replace(self, pod: PodInfo) -> None:
        """Let the quotas count the replacement of `pod`, and no longer `pod` itself."""
        old = self._model.store.storage.find(POD, pod.namespace, pod.pod.metadata.name)
        if old is not None and self._has_quotas(pod.namespace):
            self._model.store.storage.put(POD, self._replacement(old, pod))
            self._model.count_quotas(pod.namespace)
            self._known.clear()

    def _has_quotas(self, namespace: str) -> bool:
        """Return whether `namespace` has quotas, whose usage is then known."""
        if namespace not in self._limited:
            self._limited[namespace] = self._model.count_quotas(namespace)
        return self._limited[namespace]

    def _tried(self, pod: PodInfo, *, is_another: bool) -> str:
        """Try a new pod of the controller of `pod` (`_refusal`); return why it is refused, or "".

        `is_another` is set if `pod` stays. The quotas must have their usage (`_has_quotas`).
        """
        old = self._model.store.storage.find(POD, pod.namespace, pod.pod.metadata.name)
        if old is None:
            return ""
        return self._refusal(pod, old, replaced=None if is_another else old)

    def _refusal(self, pod: PodInfo, old: Json, replaced: Json | None) -> str:
        """Return why a new pod of the controller of `pod` is refused; "" if it is admitted.

        `old` is `pod` as it was in the store. Quotas do not count the pod `replaced`.
        """
        new = self._model.next_pod(pod)
        if new is not None:
            return self._model.refusal_of(new[1], replaced)
        made = self._replacement(old, pod)
        made = {**made, "metadata": {**made["metadata"], "name": f"{pod.pod.metadata.name}-next"}}
        write = Write(dry_run=True, replaced=replaced)
        try:
            ResourceQuota().admit(
                AdmissionAttributes(Operation.CREATE, POD, made, write=write),
                self._model.store.storage,
            )
        except ApiError as refused:
            return without_pod_name(refused.message)
        return ""

    def _replacement(self, old: Json, pod: PodInfo) -> Json:
        """Return `old`, the stored object of `pod`, with the spec of the replacement of `pod`."""
        spec = to_builtins(self._model.as_replacement(pod).pod.spec)
        return {**old, "spec": {**old["spec"], **spec}, "status": {}}


def edit_of_refusal(namespace: str, refusal: str) -> str:
    """Return `raise quota NAMESPACE/NAME` if a quota refuses the pods of `namespace`, else "".

    `refusal` is the message of the API server.
    """
    excess = QuotaExcess.read(refusal)
    return f"raise quota {namespace}/{excess.quota}" if excess else ""


def refused_pod_notes(model: ClusterModel, nodes: Iterable[str]) -> Iterator[str]:
    """Yield notes about the pods of `nodes` that the API server would not admit on other nodes.

    There is a note for each reason, at most _NOTES_MAX in all.
    """
    pods = [pod for name in nodes for pod in model.node(name).pods.values()]
    refused = ReplacementAdmission(model).refused(pods)
    by_reason: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in sorted(pods, key=lambda one: one.key):
        if pod.key in refused:
            by_reason[refused[pod.key]].append(pod)
    for why, found in islice(by_reason.items(), _NOTES_MAX):
        names = sorted({str(workload_of(pod.pod)) for pod in found})
        owners = joined(names) if len(names) == 2 else listed(names)
        are, them = ("is", "it") if len(found) == 1 else ("are", "them")
        yield (
            f"{counted(len(found), 'pod')} of {owners} {are} counted here, but the API server "
            f"would refuse to create {them} again on other nodes ({why})."
        )

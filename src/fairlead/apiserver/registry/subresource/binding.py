"""The subresource `binding` of pods, which assigns an unassigned pod to a node.

upstream: pkg/registry/core/pod/storage/storage.go:BindingREST
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.error import conflict, internal_error
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.suspension import Suspendable, WebhookCalls

NOTHING: Final[Mapping[str, str]] = {}
RESOURCE: Final = "pods/binding"
_SCHEDULED: Final = {"type": "PodScheduled", "status": "True"}


@Suspendable
def bind(  # noqa: PLR0913 - the parts of one request
    store: Store,
    namespace: str,
    name: str,
    node: str,
    now: int,
    *,
    uid: str = "",
    labels: Mapping[str, str] = NOTHING,
    annotations: Mapping[str, str] = NOTHING,
    dry_run: bool = False,
    write: Write = PLAIN,
) -> WebhookCalls[Json]:
    """Assign the pod `name` to `node`, and return the stored pod. The node need not exist.

    `labels` and `annotations` are added to the pod. A non-empty `uid` is a precondition. A
    `dry_run` runs all checks but stores nothing. `write` is the context of the request. Raises
    ApiError 404 if the pod does not exist, and 500 if `node` is "". Raises ApiError 409 if the uid
    differs, or if the pod is already assigned, terminating or gated.
    """
    if not node:
        raise internal_error("target.name: Required value")
    # Admission gets the Binding, as in upstream's BindingREST.Create.
    body = yield from store.admission.admit.steps(
        Operation.CREATE,
        POD,
        binding(namespace, name, node, labels),
        subresource="binding",
        write=write,
    )
    labels = body["metadata"].get("labels", {})
    pod = store.get(POD, namespace, name)
    require_uid(POD, pod, uid)
    refusal = _refusal(pod, name)
    if refusal:
        raise conflict(POD, namespace, name, refusal, resource=RESOURCE)
    changed = bound(pod, node, format_timestamp(now))
    if labels or annotations:
        changed["metadata"] = _with(pod["metadata"], labels=labels, annotations=annotations)
    return changed if dry_run else store.write(POD, pod, changed)


def bound(pod: Json, node: str, timestamp: str) -> Json:
    """Return `pod` as it is after its binding to `node` at `timestamp`."""
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    status["conditions"] = with_conditions(status.get("conditions", ()), (_SCHEDULED,), timestamp)
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def binding(namespace: str, name: str, node: str, labels: Mapping[str, str] = NOTHING) -> Json:
    """Return the body of a request that binds a pod to `node`, as admission gets it."""
    meta = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"metadata": meta, "target": {"kind": "Node", "name": node}}


def _with(meta: Json, **added: Mapping[str, str]) -> Json:
    more = {key: {**meta.get(key, {}), **pairs} for key, pairs in added.items() if pairs}
    return {**meta, **more}


def _refusal(pod: Json, name: str) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""

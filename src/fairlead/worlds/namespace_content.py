"""Deletes the content of a namespace, and then the namespace itself.

upstream: pkg/controller/namespace/deletion/namespaced_resources_deleter.go, which lists the
remaining objects after each DELETE of a collection;
pkg/registry/core/namespace/storage/storage.go:FinalizeREST
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.suspension import WebhookCalls
from fairlead.engine.core.command import DeleteCollection
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import CollectionDeleted, RemainingObjects


def delete_collection(
    store: Store, command: DeleteCollection, now: Instant, write_of: Callable[[Kind, str], Write]
) -> WebhookCalls[CollectionDeleted]:
    """Delete the objects that `command` selects.

    Return which objects remain: their number and finalizers, for each kind. An object remains if
    its deletion is refused, or must wait, for example for a finalizer. The result also has the
    longest grace period of the pods that were unfinished before the deletion.
    """
    namespace, grace_period_s = command.namespace, _grace_period_s(store, command.namespace)
    remaining = []
    for kind in store.storage.kinds():
        if not kind.namespaced or command.kind not in ("", kind.kind):
            continue
        for obj in store.list(kind, namespace):
            with suppress(ApiError):  # already deleted with another object, or refused
                name, write = obj["metadata"]["name"], write_of(kind, "")
                deletion = Deletion(policy="Background")
                yield from store.delete.steps(kind, namespace, name, now, deletion, write=write)
        left = store.list(kind, namespace)
        if left:
            finalizers = Counter(
                finalizer for obj in left for finalizer in obj["metadata"].get("finalizers") or ()
            )
            remaining.append(RemainingObjects(f"{kind.plural}.{kind.group}", len(left), finalizers))
    return CollectionDeleted(command, tuple(remaining), grace_period_s)


def _grace_period_s(store: Store, namespace: str) -> int:
    """Return the longest grace period of the namespace's unfinished pods, in seconds."""
    return max(
        (
            pod["spec"].get("terminationGracePeriodSeconds") or 0
            for pod in store.list(POD, namespace)
            if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        ),
        default=0,
    )


def finalize_namespace(store: Store, name: str) -> None:
    """Remove `kubernetes` from spec.finalizers; delete the namespace if no finalizer is left."""
    namespace = store.find(NAMESPACE, "", name)
    if namespace is None or not namespace.get("spec", {}).get("finalizers"):
        return
    left = [one for one in namespace["spec"]["finalizers"] if one != "kubernetes"]
    spec = {key: value for key, value in namespace["spec"].items() if key != "finalizers"}
    spec |= {"finalizers": left} if left else {}
    store.commit(NAMESPACE, namespace, {**namespace, "spec": spec})

"""PodBindings: bindings that change a pod's view immediately and its JSON value later.

Each binding passes through the same admission as in the store. A binding is left to the store if
the store would refuse it, or if admission refuses or changes it. `ViewedObjects.find` lists other
cases that are left to the store.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.json import Json
from fairlead.api.objects import Pod, PodSpec, PodStatus
from fairlead.api.pods.facts import is_terminating
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, POD
from fairlead.apiserver.registry.admission_control import AdmissionControl
from fairlead.apiserver.registry.subresource.binding import binding, bound
from fairlead.apiserver.storage.storage import Storage, StoredChange
from fairlead.engine.core.command import Bind, Condition
from fairlead.engine.core.instant import Instant
from fairlead.worlds.simulation.pod_status_write import next_conditions
from fairlead.worlds.simulation.viewed_object import ViewedObjects

_SCHEDULED: Final = (Condition("PodScheduled", "True"),)


class _BindingWrite(msgspec.Struct, frozen=True, gc=False):
    """The binding of a pod to `node` at `timestamp`."""

    node: str
    timestamp: str

    def applied_to(self, pod: Json, /) -> Json:
        return bound(pod, self.node, self.timestamp)


class PodBindings:
    """Performs bindings of pods."""

    def __init__(
        self, pods: ViewedObjects[Pod], admission: AdmissionControl, storage: Storage
    ) -> None:
        """`storage` has the objects that `admission` reads."""
        self._pods = pods
        self._admission = admission
        # The namespaces in which admission admits bindings as they are. For a binding, the plugins
        # of a simulation read only Namespaces, so the set is valid until a Namespace changes.
        self._admitted: set[str] = set()
        storage.subscribe(self._forget_admitted, lambda resource: resource == NAMESPACE.resource)

    def perform(self, command: Bind, now: Instant) -> Pod | None:
        """Perform `command` and return the new view of the pod.

        Returns None and changes nothing if the store must perform `command` instead.
        """
        stored = self._pods.find(command.pod) if command.node else None
        if stored is None or not _can_be_bound(stored.view):
            return None
        namespace = command.pod.namespace
        if namespace not in self._admitted:
            if not self._is_admitted_as_it_is(command):
                return None
            self._admitted.add(namespace)
        before, node = stored.view, command.node
        timestamp = format_timestamp(now)
        conditions = next_conditions(before.status.conditions, _SCHEDULED, timestamp)
        spec: PodSpec = before.spec.__copy__()  # type: ignore[attr-defined] # msgspec's stubs
        force_setattr(spec, "node_name", node)
        status: PodStatus = before.status.__copy__()  # type: ignore[attr-defined]
        force_setattr(status, "conditions", conditions)
        force_setattr(status, "nominated_node_name", "")
        meta = self._pods.next_metadata(before.metadata)
        view = Pod(metadata=meta, spec=spec, status=status)
        return view if self._pods.replace(stored, _BindingWrite(node, timestamp), view) else None

    def _is_admitted_as_it_is(self, command: Bind) -> bool:
        """Return whether admission neither refuses nor changes the binding."""
        body = binding(command.pod.namespace, command.pod.name, command.node)
        try:
            return self._admission.admit(Operation.CREATE, POD, body, subresource="binding") is body
        except ApiError:
            return False

    def _forget_admitted(self, _: StoredChange) -> None:
        self._admitted.clear()


def _can_be_bound(pod: Pod) -> bool:
    # The store refuses to bind other pods: registry/subresource/binding.py: _refusal
    return not (pod.spec.node_name or pod.spec.scheduling_gates or is_terminating(pod))

"""Explains why a pod is not ready, from its status in the dump and the state of its node.

If `kubectl get pods` shows the cause as the pod's status, the explanation begins with this status.
For example:

    CrashLoopBackOff (container app): the last exit code is 137 (OOMKilled)
    CreateContainerConfigError (container app): secret "db" not found
    its node is not Ready
    its node does not exist
    container app is not ready
    readiness gate example.com/lb is not True
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json, at, items, number, text
from fairlead.api.objects import Node
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import POD
from fairlead.apiserver.printers.field import has_condition
from fairlead.apiserver.printers.pod import status_word
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.planner.node.readiness import takes_pods
from fairlead.whatif.snapshot.inventory import Inventory

# For this reason, the message of the container's status is of no use: it names the pod, and says
# only how long the kubelet waits.
_CRASH_LOOP: Final = "CrashLoopBackOff"
_RUNS: Final = frozenset({"Running", "NotReady", "Unknown"})


def why_unready(inventory: Inventory, pod: ObjectRef, node: Node | None) -> str:
    """Return why `pod` is not ready; `node` is its node, None if the pod has no node."""
    found = inventory.get(POD, pod.namespace, pod.name)
    if found is None or (node is None and not found.pod.spec.node_name):
        return "pending"
    if node is None:
        return "its node does not exist"
    value = found.value
    if not takes_pods(node) and not _is_false(value, "ContainersReady"):
        return "its node is not Ready"
    word = status_word(value)
    if word in _RUNS:
        return _why_running(value)
    status = next((one for one in _statuses(value) if _is_cause(one, word)), None)
    if status is None:
        return word
    container = f"{word} (container {text(status, 'name')})"
    message = text(status, "state", "waiting", "message")
    if message and _CRASH_LOOP not in word:
        return f"{container}: {message}"
    return f"{container}{_last_end(status)}"


def _why_running(pod: Json) -> str:
    """Return why a pod whose containers run is not ready."""
    unready = [text(one, "name") for one in _statuses(pod) if at(one, "ready") is False]
    if unready:
        what = "container" if len(unready) == 1 else "containers"
        return f"{what} {listed(unready)} {'is' if len(unready) == 1 else 'are'} not ready"
    gates = [text(one, "conditionType") for one in items(pod, "spec", "readinessGates")]
    missing = [gate for gate in gates if not has_condition(pod, gate)]
    if missing:
        what = "readiness gate" if len(missing) == 1 else "readiness gates"
        return f"{what} {listed(missing)} {'is' if len(missing) == 1 else 'are'} not True"
    return "its condition Ready is not True"


def _last_end(status: Json) -> str:
    """Return how a restarted container ended the last time."""
    last = at(status, "lastState", "terminated")
    if last is None:
        return ""
    reason = f" ({text(last, 'reason')})" if text(last, "reason") else ""
    return f": the last exit code is {number(last, 'exitCode')}{reason}"


def _is_cause(status: Json, word: str) -> bool:
    """Return whether the container with `status` gives its pod the status `word`."""
    states = (at(status, "state", "waiting"), at(status, "state", "terminated"))
    return any(text(one, "reason") == word.removeprefix("Init:") for one in states if one)


def _statuses(pod: Json) -> Iterable[Json]:
    """Yield the status of each container of `pod`, except init containers that have succeeded."""
    for one in items(pod, "status", "initContainerStatuses"):
        if at(one, "state", "terminated", "exitCode") != 0:
            yield one
    yield from items(pod, "status", "containerStatuses")


def _is_false(pod: Json, kind: str) -> bool:
    conditions = items(pod, "status", "conditions")
    return any((text(one, "type"), text(one, "status")) == (kind, "False") for one in conditions)

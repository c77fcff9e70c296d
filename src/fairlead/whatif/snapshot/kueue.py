"""Kueue: what a dump says about the admission of Jobs and pods, which is not simulated.

Kueue suspends a Job, or gates a pod, until the quota of its queue allows it. A Workload of Kueue,
which the Job or the pods own, has the conditions QuotaReserved and Admitted.

upstream: sigs.k8s.io/kueue pkg/controller/constants/constants.go: QueueLabel;
pkg/controller/jobs/pod/constants/constants.go: SchedulingGateName;
apis/kueue/v1beta2/workload_types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import full_kind

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
_GROUP: Final = "kueue.x-k8s.io"


def admission_sentence(owner: Manifest, inventory: Inventory) -> str:
    """Return why Kueue has not admitted `owner`, as a sentence.

    The result is "" if Kueue has admitted it or does not manage it.
    """
    if (workload := _workload_of(owner, inventory)) is None:
        queue = (owner.labels or {}).get(QUEUE_LABEL)
        if not queue:
            return ""
        return f"Kueue starts it when the quota of LocalQueue {owner.ref.namespace}/{queue} allows."
    spec, name = workload.get("spec") or {}, workload["metadata"]["name"]
    if spec.get("active") is False:
        return f"Kueue does not admit it, because its Workload {name} is not active (spec.active)."
    conditions = {
        one["type"]: one for one in (workload.get("status") or {}).get("conditions") or ()
    }
    for kind in ("QuotaReserved", "Admitted"):
        found = conditions.get(kind)
        if found is None or found.get("status") != "True":
            why = str((found or {}).get("message") or "").rstrip(". ")
            return f"Kueue has not admitted it: {why}." if why else "Kueue has not admitted it yet."
    return ""


def _workload_of(owner: Manifest, inventory: Inventory) -> Json | None:
    """Return the Workload of Kueue that `owner` owns, perhaps with other pods; None without one."""
    kinds = (one for one in inventory.kinds if (one.group, one.kind) == (_GROUP, "Workload"))
    for manifest in (one for kind in kinds for one in inventory.of_kind(kind)):
        value = manifest.value
        references = value["metadata"].get("ownerReferences") or ()
        if manifest.ref.namespace == owner.ref.namespace and any(
            _refers_to(one, owner) for one in references
        ):
            return value
    return None


def _refers_to(reference: Json, owner: Manifest) -> bool:
    kind = full_kind(reference.get("kind", ""), reference.get("apiVersion", ""))
    return (kind, reference.get("name")) == (owner.full_kind, owner.ref.name)


def admission_notes(writes: Iterable[tuple[Manifest | None, Manifest]]) -> Iterator[str]:
    """Yield a note about new or resumed objects that Kueue would hold back at first.

    `writes` are pairs of an object before the change (None if it is new) and after the change.
    """
    held = [
        after
        for before, after in writes
        if (after.labels or {}).get(QUEUE_LABEL)
        and (before is None or (after.kind is JOB and _is_suspended(before)))
        and not _is_suspended(after)
    ]
    if held:
        queues = sorted({f"{one.ref.namespace}/{one.labels[QUEUE_LABEL]}" for one in held})
        start = "it starts" if len(held) == 1 else "they start"
        yield (
            f"Kueue starts {listed([one.title for one in held], 2)} only when the quota of "
            f"LocalQueue {listed(queues, 2)} allows; here {start} at once, because Kueue is not "
            "simulated."
        )


def _is_suspended(one: Manifest) -> bool:
    spec: Any = one.value.get("spec") or {}
    return spec.get("suspend") is True

"""Kueue: what a dump says about the admission of Jobs and pods, which is not simulated.

Kueue suspends a Job, or gates a pod, until the quota of its queue allows it. A Workload of Kueue,
which the Job or the pods own, has the conditions QuotaReserved and Admitted.

upstream: sigs.k8s.io/kueue pkg/controller/constants/constants.go: QueueLabel;
pkg/controller/jobs/pod/constants/constants.go: SchedulingGateName;
apis/kueue/v1beta2/workload_types.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import is_custom

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
_GROUP: Final = "kueue.x-k8s.io"


class _OwnerForm(Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    name: str = ""


class _MetadataForm(Struct, rename="camel"):
    name: str
    namespace: str = ""
    owner_references: tuple[_OwnerForm, ...] = ()


class _SpecForm(Struct):
    active: bool = True


class _ConditionForm(Struct):
    type: str = ""
    status: str = ""
    message: str = ""


class _StatusForm(Struct):
    conditions: tuple[_ConditionForm, ...] = ()


class _WorkloadForm(Struct):
    """The fields of a Workload that this module reads; a dump may contain any values."""

    metadata: _MetadataForm
    spec: _SpecForm = field(default_factory=_SpecForm)
    status: _StatusForm = field(default_factory=_StatusForm)


def admission_sentence(owner: Manifest, inventory: Inventory) -> str:
    """Return why Kueue has not admitted `owner`, as a sentence.

    The result is "" if Kueue has admitted it or does not manage it.
    """
    if (workload := _workload_of(owner, inventory)) is None:
        queue = _queue_of(owner)
        if not queue:
            return ""
        return f"Kueue starts it when the quota of LocalQueue {owner.ref.namespace}/{queue} allows."
    if not workload.spec.active:
        name = workload.metadata.name
        return f"Kueue does not admit it, because its Workload {name} is not active (spec.active)."
    conditions = {one.type: one for one in workload.status.conditions}
    for kind in ("QuotaReserved", "Admitted"):
        found = conditions.get(kind)
        if found is None or found.status != "True":
            why = found.message.rstrip(". ") if found else ""
            return f"Kueue has not admitted it: {why}." if why else "Kueue has not admitted it yet."
    return ""


def _workload_of(owner: Manifest, inventory: Inventory) -> _WorkloadForm | None:
    """Return the Workload of Kueue with an ownerReference to `owner`; None if there is none.

    A Workload can have several owners. Malformed Workloads are skipped.
    """
    kinds = (one for one in inventory.kinds if (one.group, one.kind) == (_GROUP, "Workload"))
    for manifest in (one for kind in kinds for one in inventory.of_kind(kind)):
        if manifest.ref.namespace != owner.ref.namespace:
            continue
        form = _workload_form(manifest)
        if form is not None and any(
            owner.is_named_by(one.kind, one.api_version, one.name)
            for one in form.metadata.owner_references
        ):
            return form
    return None


def _workload_form(one: Manifest) -> _WorkloadForm | None:
    """Return the fields of `one`; None if it is not a Workload of Kueue, or is malformed."""
    if (one.kind.group, one.kind.kind) != (_GROUP, "Workload"):
        return None
    try:
        return msgspec.convert(one.value, _WorkloadForm)
    except msgspec.ValidationError:
        return None


def waiting_notes(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield a note about the objects of a dump that Kueue has not admitted.

    If the dump has no Workloads of Kueue, the note names only suspended Jobs that have a queue.
    """
    workloads = [form for one in manifests if (form := _workload_form(one)) is not None]
    waiting = [_title_of_owner(form) for form in workloads if _is_waiting(form)]
    if not workloads:
        waiting = [one.title for one in manifests if _waits_for_kueue(one)]
    if waiting:
        count, them = counted(len(waiting), "workload"), "it" if len(waiting) == 1 else "them"
        yield (
            f"Kueue has not admitted {count} of the dump: {listed(waiting, 2)}. Kueue is not "
            f"simulated, so this answer does not start {them} even if there is enough quota."
        )


def admission_notes(writes: Iterable[tuple[Manifest | None, Manifest]]) -> Iterator[str]:
    """Yield notes about written objects on which Kueue, which is not simulated, would act.

    `writes` are pairs of an object before the change (None if it is new) and after the change.
    """
    writes = list(writes)
    if settings := [after.title for _, after in writes if after.kind.group == _GROUP]:
        has = "has" if len(settings) == 1 else "have"
        yield f"Kueue is not simulated, so {listed(settings, 2)} {has} no effect."
    queued = [
        (before, after)
        for before, after in writes
        # no pods are created for custom resources
        if not is_custom(after.kind.api_version) and _queue_of(after)
    ]
    held = [
        after
        for before, after in queued
        if (before is None or (after.kind is JOB and _is_suspended(before)))
        and not _is_suspended(after)
    ]
    if held:
        start = "it starts" if len(held) == 1 else "they start"
        yield (
            f"Kueue starts {listed([one.title for one in held], 2)} only when the quota of "
            f"LocalQueue {_queues_of(held)} allows; here {start} at once, because Kueue is not "
            "simulated."
        )
    if suspended := [new for before, new in queued if before is None and _is_suspended(new)]:
        stay = "stays" if len(suspended) == 1 else "stay"
        yield (
            f"{listed([one.title for one in suspended], 2)} {stay} suspended here, because Kueue, "
            f"which starts Jobs of LocalQueue {_queues_of(suspended)}, is not simulated. Without "
            "spec.suspend, the answer shows the start."
        )


def _queues_of(owners: Iterable[Manifest]) -> str:
    return listed(sorted({f"{one.ref.namespace}/{_queue_of(one)}" for one in owners}), 2)


def _is_waiting(workload: _WorkloadForm) -> bool:
    true = {one.type for one in workload.status.conditions if one.status == "True"}
    return true.isdisjoint(("Admitted", "Finished"))


def _title_of_owner(workload: _WorkloadForm) -> str:
    meta = workload.metadata
    kind, name = "Workload", meta.name
    if meta.owner_references:
        kind, name = meta.owner_references[0].kind, meta.owner_references[0].name
    return f"{kind} {meta.namespace}/{name}"


def _waits_for_kueue(one: Manifest) -> bool:
    return one.kind is JOB and bool(_queue_of(one)) and _is_suspended(one)


def _queue_of(one: Manifest) -> str:
    """Return the name of the LocalQueue of `one`; "" if it has none."""
    return one.labels.get(QUEUE_LABEL, "")


def _is_suspended(one: Manifest) -> bool:
    spec = one.value.get("spec")
    return isinstance(spec, dict) and spec.get("suspend") is True

"""Kueue: what a dump says about the admission of Jobs and pods, which is not simulated.

Kueue suspends a Job, or gates a pod, until the quota of its queue allows it. A Workload of Kueue,
which the Job or the pods own, has the conditions QuotaReserved and Admitted.

upstream: sigs.k8s.io/kueue pkg/controller/constants/constants.go: QueueLabel;
pkg/controller/jobs/pod/constants/constants.go: SchedulingGateName;
apis/kueue/v1beta2/workload_types.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

import msgspec
from msgspec import Struct, field

from fairlead.api.codec import without_nulls
from fairlead.api.objects import QuantityText
from fairlead.api.quantity import QuantityError, canonical
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.admission.quota.amounts import Amounts, add, amounts
from fairlead.apiserver.kind import JOB
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import Form, decode_strictly
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import full_kind, is_custom

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
KUEUE: Final = "kueue.x-k8s.io"
_JOB_SET: Final = ("jobset.x-k8s.io", "JobSet")


class _OwnerForm(Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    name: str = ""


class _MetadataForm(Struct, rename="camel"):
    name: str
    namespace: str = ""
    creation_timestamp: str | None = None
    owner_references: tuple[_OwnerForm, ...] = ()


class _PodSetForm(Struct):
    count: int = 1


class _SpecForm(Struct, rename="camel"):
    active: bool = True
    queue_name: str = ""
    priority: int | None = None
    pod_sets: tuple[_PodSetForm, ...] = ()


class _ConditionForm(Struct):
    type: str = ""
    status: str = ""
    message: str = ""


class _AssignmentForm(Struct, rename="camel"):
    resource_usage: dict[str, QuantityText] = field(default_factory=dict)


class _AdmissionForm(Struct, rename="camel"):
    cluster_queue: str = ""
    pod_set_assignments: tuple[_AssignmentForm, ...] = ()


class _StatusForm(Struct):
    conditions: tuple[_ConditionForm, ...] = ()
    admission: _AdmissionForm | None = None


class _WorkloadForm(Struct):
    """The fields of a Workload that this module reads; a dump may contain any values."""

    metadata: _MetadataForm
    spec: _SpecForm = field(default_factory=_SpecForm)
    status: _StatusForm = field(default_factory=_StatusForm)


class QueuedWorkload(Struct, frozen=True):
    """A Workload of Kueue that has not finished."""

    title: str  # names the object that the Workload stands for
    namespace: str
    name: str
    queue: str  # its LocalQueue
    cluster_queue: str  # the ClusterQueue in which it has quota, "" if it has no quota
    priority: int
    created: str
    pods: int  # the number of its pods
    reserves: Mapping[str, str]  # the amounts of its quota, as quantities
    is_admitted: bool
    why: str  # why the Workload is not admitted; "" if `is_admitted` is set

    @property
    def key(self) -> str:
        """The key of the Workload: namespace/name."""
        return f"{self.namespace}/{self.name}"


def queued_workloads(inventory: Inventory) -> Iterator[QueuedWorkload]:
    """Yield the Workloads of Kueue in `inventory` that have not finished.

    Raises InputError for a malformed Workload.
    """
    for manifest in _workload_manifests(inventory):
        form = decode_object(manifest, _WorkloadForm)
        if _is_true(form, "Finished"):
            continue
        admission = form.status.admission or _AdmissionForm()
        try:
            usages = [amounts(one.resource_usage) for one in admission.pod_set_assignments]
            reserved: Amounts = reduce(add, usages, {})
        except QuantityError:
            reserved = {}
        unmet = _unmet_condition(form)
        yield QueuedWorkload(
            title=_title_of_owner(form),
            namespace=form.metadata.namespace,
            name=form.metadata.name,
            queue=form.spec.queue_name,
            cluster_queue=admission.cluster_queue,
            priority=form.spec.priority or 0,
            created=form.metadata.creation_timestamp or "",
            pods=sum(one.count for one in form.spec.pod_sets),
            reserves={name: canonical(amount) for name, amount in reserved.items()},
            is_admitted=unmet is None,
            why="" if unmet is None else _why(form, unmet),
        )


def decode_object(manifest: Manifest, form: type[Form]) -> Form:
    """Decode `manifest` into the class `form`, which has only some of the object's fields.

    Raises InputError if a field of `form` has a wrong type or is missing.
    """
    try:
        return decode_strictly(Document(manifest.source, without_nulls(manifest.value)), form)
    except InputError as cause:
        raise manifest.refuse(cause.problem, field=cause.field) from None


def _why(workload: _WorkloadForm, unmet: str) -> str:
    if not workload.spec.active:
        return "it is not active (spec.active)"
    return unmet or "Kueue has not written a reason yet"


def admission_sentence(owner: Manifest, inventory: Inventory) -> str:
    """Return why Kueue has not admitted `owner`, as a sentence.

    If `owner` has no Workload, but its controller, such as a JobSet, has a Workload, the sentence
    is about the controller. The result is "" if Kueue has admitted the object or does not manage
    it.
    """
    who = "it"
    workload = _workload_of(owner, inventory)
    if workload is None and (controller := _controller_of(owner, inventory)) is not None:
        who, workload = controller.title, _workload_of(controller, inventory)
    if workload is None:
        queue = _queue_of(owner)
        if not queue:
            return ""
        return f"Kueue starts it when the quota of LocalQueue {owner.ref.namespace}/{queue} allows."
    if not workload.spec.active:
        name = workload.metadata.name
        return (
            f"Kueue does not admit {who}, because its Workload {name} is not active (spec.active)."
        )
    if (why := _unmet_condition(workload)) is None:
        return ""
    return f"Kueue has not admitted {who}: {why}." if why else f"Kueue has not admitted {who} yet."


def _unmet_condition(workload: _WorkloadForm) -> str | None:
    """Return the message of the first condition that is missing for the admission of `workload`.

    The message has no full stop. Return "" if Kueue has written no message. Return None if
    `workload` is admitted.
    """
    conditions = {one.type: one for one in workload.status.conditions}
    for kind in ("QuotaReserved", "Admitted"):
        found = conditions.get(kind)
        if found is None or found.status != "True":
            return found.message.rstrip(". ") if found else ""
    return None


def _controller_of(manifest: Manifest, inventory: Inventory) -> Manifest | None:
    """Return the controller of `manifest`; None if it has none, or if `inventory` lacks it."""
    owner = manifest.controller
    if owner is None:
        return None
    found = (inventory.get(kind, manifest.ref.namespace, owner.name) for kind in inventory.kinds)
    return next(
        (each for each in found if each is not None and manifest.is_controlled_by(each)), None
    )


def _workload_of(owner: Manifest, inventory: Inventory) -> _WorkloadForm | None:
    """Return the Workload of Kueue with an ownerReference to `owner`; None if there is none.

    A Workload can have several owners. Malformed Workloads are skipped.
    """
    for manifest in _workload_manifests(inventory):
        if manifest.ref.namespace != owner.ref.namespace:
            continue
        form = _workload_form(manifest)
        if form is not None and any(
            owner.is_named_by(one.kind, one.api_version, one.name)
            for one in form.metadata.owner_references
        ):
            return form
    return None


def _workload_manifests(inventory: Inventory) -> Iterator[Manifest]:
    """Yield the Workloads of Kueue in `inventory`."""
    for kind in inventory.kinds:
        if (kind.group, kind.kind) == (KUEUE, "Workload"):
            yield from inventory.of_kind(kind)


def _workload_form(manifest: Manifest) -> _WorkloadForm | None:
    """Return the fields of `manifest`; None if it is not a Workload of Kueue, or is malformed."""
    if (manifest.kind.group, manifest.kind.kind) != (KUEUE, "Workload"):
        return None
    try:
        return msgspec.convert(manifest.value, _WorkloadForm)
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
        count = counted(len(waiting), "workload")
        yield (
            f"Kueue has not admitted {count} of the dump: {listed(waiting, 2)}. Kueue is not "
            "simulated, so it admits no workload here, even if there is enough quota."
        )


def manages_any(manifests: Iterable[Manifest], keys: Collection[tuple[str, str, str]]) -> bool:
    """Return whether Kueue manages an object in `keys`, or the controller of such an object.

    Each key is (kind, namespace, name); the kind is a result of `full_kind`. Kueue manages an
    object with a queue, and an object that owns a Workload of Kueue.
    """
    managed: set[tuple[str, str, str]] = set()
    controllers: set[tuple[str, str, str]] = set()
    for one in manifests:
        namespace, key = one.ref.namespace, (one.full_kind, one.ref.namespace, one.ref.name)
        if _queue_of(one):
            managed.add(key)
        if (form := _workload_form(one)) is not None:
            managed.update(
                (full_kind(owner.kind, owner.api_version), namespace, owner.name)
                for owner in form.metadata.owner_references
            )
        if key in keys and (owner := one.controller) is not None:
            controllers.add((full_kind(owner.kind, owner.api_version), namespace, owner.name))
    return not managed.isdisjoint(controllers) or any(key in managed for key in keys)


def admission_notes(writes: Iterable[tuple[Manifest | None, Manifest]]) -> Iterator[str]:
    """Yield notes about written objects on which Kueue, which is not simulated, would act.

    `writes` are pairs of an object before the change (None if it is new) and after the change.
    """
    writes = list(writes)
    if settings := [after.title for _, after in writes if after.kind.group == KUEUE]:
        has = "has" if len(settings) == 1 else "have"
        yield f"Kueue is not simulated, so {listed(settings, 2)} {has} no effect."
    queued = [
        (before, after) for before, after in writes if _creates_pods(after) and _queue_of(after)
    ]
    held = [
        after
        for before, after in queued
        if (before is None or (_is_job(after) and _is_suspended(before)))
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


def _creates_pods(manifest: Manifest) -> bool:
    """Return whether pods are created for `manifest`, a JobSet or an object of a built-in kind."""
    return not is_custom(manifest.kind.api_version) or _is_job(manifest)


def _is_job(manifest: Manifest) -> bool:
    return manifest.kind is JOB or (manifest.kind.group, manifest.kind.kind) == _JOB_SET


def _queues_of(owners: Iterable[Manifest]) -> str:
    return listed(sorted({f"{one.ref.namespace}/{_queue_of(one)}" for one in owners}), 2)


def _is_waiting(workload: _WorkloadForm) -> bool:
    return not (_is_true(workload, "Admitted") or _is_true(workload, "Finished"))


def _is_true(workload: _WorkloadForm, condition: str) -> bool:
    return any(one.type == condition and one.status == "True" for one in workload.status.conditions)


def _title_of_owner(workload: _WorkloadForm) -> str:
    meta = workload.metadata
    kind, name = "Workload", meta.name
    if meta.owner_references:
        kind, name = meta.owner_references[0].kind, meta.owner_references[0].name
    return f"{kind} {meta.namespace}/{name}"


def _waits_for_kueue(one: Manifest) -> bool:
    return one.kind is JOB and bool(_queue_of(one)) and _is_suspended(one)


def _queue_of(manifest: Manifest) -> str:
    """Return the name of the LocalQueue of `manifest`; "" if `manifest` has no queue."""
    return manifest.labels.get(QUEUE_LABEL, "")


def _is_suspended(manifest: Manifest) -> bool:
    spec = manifest.value.get("spec")
    return isinstance(spec, dict) and spec.get("suspend") is True

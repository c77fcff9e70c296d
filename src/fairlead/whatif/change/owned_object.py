"""The objects that controllers of custom resources would create for a new custom resource.

These controllers are not simulated. For a Job of Volcano and for a JobSet, the change creates the
objects itself: a PodGroup, Jobs and a Service. The controller of Jobs is simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import JOB, SERVICE
from fairlead.whatif.change.job_set import GROUP as JOB_SET_GROUP
from fairlead.whatif.change.job_set import KIND as JOB_SET
from fairlead.whatif.change.job_set import job_set_notes, jobs_of, refuse_immutable_change
from fairlead.whatif.change.pod_priority import PodPriorities
from fairlead.whatif.change.volcano_job import GROUP as VOLCANO_GROUP
from fairlead.whatif.change.volcano_job import gang_notes, gang_of, refuse_immutable_field
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

_OWNERS: Final = frozenset({(JOB_SET_GROUP, JOB_SET), (VOLCANO_GROUP, JOB.kind)})


def owned_by(
    one: Manifest,
    value: Json | None = None,
    *,
    name: str = "",
    priorities: PodPriorities | None = None,
) -> list[Document]:
    """Return the objects to create in addition to the object `one`; [] for most kinds.

    `value` is the object as its file states it, so lists may contain null. `value` is None if `one`
    is not from a file. If `name` is given, the objects belong to a copy of `one` with this name;
    the name is not checked. `priorities` are needed if pods are created from the objects. Raises
    InputError if `one` is invalid.
    """
    if not is_owner(one):
        return []
    for field in islice(_null_items(value, ""), 1):
        # The API server checks this before the webhooks check the object.
        raise one.refuse("expected a value, got null", field=field)
    set_name = name or one.ref.name
    return [*gang_of(one, set_name), *jobs_of(one, set_name, priorities)]


def refuse_invalid_owner(existing: Manifest, changed: Manifest, first: Manifest | None) -> None:
    """Raise InputError if `changed` is invalid, but its earlier version is valid.

    `existing` is the object before this change. `first` is the object before all changes; None if a
    change has created it. The earlier version is `first`, or `existing` if `first` is None. Also
    raises InputError if an immutable field of `first` changes. Only kinds for which `owned_by`
    returns objects are checked.
    """
    if not is_owner(existing):
        return
    try:
        owned_by(existing if first is None else first)
    except InputError:  # a dump may lack fields
        return
    owned_by(changed)
    if first is not None:
        refuse_immutable_change(first, changed)
        refuse_immutable_field(first, changed)


def is_owner(one: Manifest) -> bool:
    """Return whether `one` is a Volcano Job or a JobSet, for which `owned_by` returns objects."""
    return (one.kind.group, one.kind.kind) in _OWNERS


def may_exist(part: Manifest) -> bool:
    """Return whether the controller uses an existing object instead of creating `part` again."""
    # upstream: jobset: pkg/controllers/jobset_controller.go: createHeadlessSvcIfNecessary
    return part.kind is SERVICE


def without_repeated_services(parts: Iterable[Document]) -> Iterator[Document]:
    """Yield the objects `parts`; leave out a Service if an earlier part is the same Service.

    Several JobSets can create the same Service, because they can have the same subdomain.
    """
    services = set[tuple[str, str]]()
    for part in parts:
        key = part.value["metadata"].get("namespace", ""), part.value["metadata"]["name"]
        if part.value["kind"] == SERVICE.kind:
            if key in services:
                continue
            services.add(key)
        yield part


def _null_items(value: Any, path: str) -> Iterator[str]:
    """Yield the path of each null that is an item of a list in `value`, the value at `path`."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _null_items(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            if each is None:
                yield f"{path}[{index}]"
            yield from _null_items(each, f"{path}[{index}]")


def owner_notes(owners: Iterable[Manifest]) -> Iterator[str]:
    """Yield notes about the new `owners`, for which `owned_by` returns objects."""
    found = list(owners)
    yield from gang_notes([one for one in found if one.kind.kind != JOB_SET])
    yield from job_set_notes([one for one in found if one.kind.kind == JOB_SET])

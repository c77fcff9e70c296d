"""The objects that controllers of custom resources would create for a new custom resource.

These controllers are not simulated. For a Job of Volcano and for a JobSet, the change creates the
objects itself: a PodGroup and Jobs, whose own controllers are simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.whatif.change.job_set import KIND as JOB_SET
from fairlead.whatif.change.job_set import job_set_notes, jobs_of
from fairlead.whatif.change.volcano_job import gang_notes, gang_of
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.manifest import Manifest


def owned_by(one: Manifest) -> list[Document]:
    """Return the objects to create in addition to `one`; [] for most kinds.

    Raises InputError if `one` is invalid.
    """
    return [Document(one.source, value) for value in (*gang_of(one), *jobs_of(one))]


def owner_notes(owners: Iterable[Manifest]) -> Iterator[str]:
    """Yield notes about the new `owners`, for which `owned_by` returns objects."""
    found = list(owners)
    yield from gang_notes([one for one in found if one.kind.kind != JOB_SET])
    yield from job_set_notes([one for one in found if one.kind.kind == JOB_SET])

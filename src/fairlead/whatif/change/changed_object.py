"""The step that changes an existing object, with the checks of the API server."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.kind import KINDS
from fairlead.whatif.change.change_steps import ChangeSteps
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import refuse_invalid_annotations
from fairlead.whatif.snapshot.validation.forbidden_change import refuse_forbidden_change
from fairlead.whatif.snapshot.validation.unknown_field import refuse_malformed_fields

_JOB_SET: Final = "JobSet"
_QUEUE: Final = "Queue"


def change_to(collected: ChangeSteps, existing: Manifest, result: Json, source: str) -> Manifest:
    """Add the step that changes `existing` to `result`; return the changed manifest.

    Raises InputError that names `source` if a field of `result` is malformed, or if the API server
    refuses the change.
    """
    changed = replace(existing, content=result, source=source)
    refuse_malformed_fields([changed], existing, collected.inventory)
    refuse_invalid_annotations(changed)
    refuse_forbidden_change(existing, changed)
    if existing.kind not in KINDS:
        from fairlead.whatif.change.owned_object import refuse_invalid_owner  # noqa: PLC0415 - rare

        refuse_invalid_owner(existing, changed, collected.before(existing))
    collected.custom_resources.refuse_invalid([changed], existing)
    collected.written[changed.ref] = changed
    collected.inventory.add(replace(changed, source=existing.source))
    collected.write(existing, changed, source)
    _resume_jobs(collected, existing, changed, source)
    return changed


def _resume_jobs(collected: ChangeSteps, before: Manifest, after: Manifest, source: str) -> None:
    """Add the steps that suspend or resume the Jobs of a JobSet, as the JobSet controller does."""
    if after.kind.kind != _JOB_SET:
        return
    from fairlead.whatif.change.job_set import resumed_jobs  # noqa: PLC0415 - rarely needed

    for job in resumed_jobs(before, after, collected.inventory):
        collected.resumed.update((after.identity, job.identity))
        known = collected.inventory.get(job.kind, job.ref.namespace, job.ref.name)
        if known is not None:
            change_to(collected, known, job.value, source)


def refuse_invalid_queues(collected: ChangeSteps) -> None:
    """Raise InputError if Volcano refuses a Queue that the change has written so far."""
    queues = [one for one in collected.written.values() if one.kind.kind == _QUEUE]
    if not queues:
        return
    from fairlead.whatif.snapshot.validation.volcano_queue import (  # noqa: PLC0415 - rarely needed
        refuse_invalid_queue,
    )

    for queue in queues:
        refuse_invalid_queue(
            queue, collected.before(queue), collected.inventory.of_kind(queue.kind)
        )

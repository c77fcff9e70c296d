"""Notes about Volcano's PodGroups in a dump: groups without pods, and fields without effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead.api.codec import without_nulls
from fairlead.api.json import Json, mapping
from fairlead.api.objects import Pod
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import CRON_JOB, POD, kind_of
from fairlead.apiserver.validation.core.pod.spec import template_view
from fairlead.engine.batch.info.group import KIND, VOLCANO_API, group_name
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_IGNORED: Final = ("minTaskMember", "networkTopology", "subGroupPolicy")


def group_notes(
    initial: Collection[Manifest],
    created: Iterable[Mapping[str, Any]] = (),
    *,
    runs_cron_jobs: bool = False,
) -> Iterator[str]:
    """Yield notes about the PodGroups of Volcano in `initial` that have not started.

    `created` are the objects that are created during the simulation, among them pods of groups. The
    pods that workloads in `initial` or `created` will create count as pods of their groups.
    `runs_cron_jobs` means that CronJobs create pods.

    upstream: volcano: docs/design/delay-pod-creation.md
    """
    of_volcano = [one for one in samples(initial) if _is_of_volcano(one)]
    if not of_volcano:
        return
    # Imported only when needed, because most clusters have no Volcano.
    from fairlead.engine.batch.info.job import INQUEUE  # noqa: PLC0415

    waiting = [one for one in of_volcano if _phase(one) in (None, "", "Pending", INQUEUE)]
    if not waiting:
        return
    objects = (*samples(initial), *map(_manifest, created))
    named = set(_named_groups(objects, runs_cron_jobs=runs_cron_jobs))
    if empty := [one for one in waiting if (one.ref.namespace, one.ref.name) not in named]:
        groups = "1 PodGroup has" if len(empty) == 1 else f"{len(empty)} PodGroups have"
        yield (
            f"{groups} no pods yet ({_listed(empty)}). Volcano creates the pods of a Job after it "
            "has admitted the Job's PodGroup, so the requests of these pods are not counted here."
        )
    sizes = _sizes(initial) if any("minTaskMember" in _spec(one) for one in waiting) else Counter()
    ignored = {
        field: [one for one in waiting if _restricts(field, one, sizes)] for field in _IGNORED
    }
    if fields := [f"{field} ({_listed(found)})" for field, found in ignored.items() if found]:
        yield f"These fields of PodGroups have no effect here: {joined(fields)}."


def _manifest(created: Mapping[str, Any]) -> Manifest:
    """Return `created`, an object that is created during the simulation, as a Manifest."""
    value, meta = without_nulls(dict(created)), mapping(created, "metadata")
    kind = kind_of(value)
    ref = ObjectRef(kind.kind, meta.get("namespace") or "", meta.get("name") or "")
    return Manifest("", kind, ref, value)


def _named_groups(
    objects: Iterable[Manifest], *, runs_cron_jobs: bool
) -> Iterator[tuple[str, str]]:
    """Yield (namespace, group) for each pod, and for each pod template, in `objects`.

    The templates of CronJobs are included only if `runs_cron_jobs` is set.
    """
    for one in objects:
        if one.kind is CRON_JOB and not runs_cron_jobs:
            continue
        pod: object = one.view
        if not isinstance(pod, Pod):
            template = one.value if one.kind is POD else one.pod_template
            pod = template_view("", template) if isinstance(template, dict) else None
        if isinstance(pod, Pod):
            yield one.ref.namespace, group_name(pod)


def _is_of_volcano(one: Manifest) -> bool:
    return one.kind.kind == KIND and one.kind.group == VOLCANO_API


def _spec(one: Manifest) -> Json:
    return mapping(one.value, "spec")


def _phase(one: Manifest) -> object:
    return mapping(one.value, "status").get("phase")


def _sizes(initial: Iterable[Manifest]) -> Counter[tuple[str, str]]:
    """Return the number of pods of each group, by namespace and name of the group."""
    return Counter((one.ref.namespace, group_name(one.pod)) for one in initial if one.kind is POD)


def _restricts(field: str, group: Manifest, sizes: Counter[tuple[str, str]]) -> bool:
    """Return whether `field` restricts the start of `group` in Volcano.

    If a group starts only with all its pods, minTaskMember adds nothing to minMember.
    """
    found = _spec(group).get(field)
    if field != "minTaskMember":
        return bool(found)
    size, minimum = sizes[group.ref.namespace, group.ref.name], _spec(group).get("minMember")
    return len(mapping(found)) > 1 and isinstance(minimum, int) and size > minimum


def _listed(groups: Iterable[Manifest]) -> str:
    return listed([one.ref.key for one in groups], 2)

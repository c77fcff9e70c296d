"""Makes running pods pending before both runs of a what-if, so that their placements can differ.

A changed scheduler configuration does not affect running pods. If `--reschedule` is set, the
scheduler places the selected pods in both runs. One run uses the old configuration, and the other
run uses the new configuration.

By default all these pods wait from the start, and the scheduler takes them by priority, then by
age. If `--reschedule-order` is `scheduled`, the pods arrive one by one, in the order in which the
cluster scheduled them. A scheduling gate keeps each pod out of the queue until the pod arrives.
Pods of DaemonSets, static pods, and finished or terminating pods stay on their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_daemon_pod, is_static, is_terminal, is_terminating
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.apiserver.kind import POD
from fairlead.whatif.change.commands import patch
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

OPTION: Final = "--reschedule"
ALL: Final = "all"
ORDER_OPTION: Final = "--reschedule-order"
BY_PRIORITY: Final = "priority"
AS_SCHEDULED: Final = "scheduled"
ORDER: Final = "The rescheduled pods were placed by priority, then by age, in both runs."
RECORDED_ORDER: Final = (
    "The rescheduled pods were placed one by one in both runs, in the order in which the cluster "
    "had scheduled them."
)
_GATE: Final = "fairlead.dev/reschedule"
_UNGATED: Final[Json] = {"spec": {"schedulingGates": None}}
# 1 ms between arrivals: as in a burst, no pod becomes ready in so short a time.
_PAUSE: Final = 1_000_000
_LABEL_SIGNS: Final = frozenset("=!()")


class DescheduledPods(Struct, frozen=True):
    """The objects of a snapshot (`initial`), after the selected pods were made pending.

    `arrivals` are the steps that remove the scheduling gates of these pods. `arrivals` is () if
    the pods are ordered by priority, because the pods then have no gates. `note` is a sentence
    about the order of the selected pods.
    """

    initial: tuple[Manifest, ...]
    arrivals: tuple[ScriptedStep, ...]
    note: str


def deschedule(
    found: Iterable[Manifest], text: str, namespace: str, order: str = BY_PRIORITY
) -> DescheduledPods:
    """Return the objects `found`; the running pods that `text` selects become pending.

    `text` is `all` or a label selector; `namespace` "" means every namespace. `order` is
    `BY_PRIORITY` or `scheduled`. Raises InputError if `text` is invalid or selects no running pod.
    """
    manifests = list(found)
    chosen = _chosen(manifests, text, namespace)
    if order == BY_PRIORITY:
        initial = (_pending(one) if one.identity in chosen else one for one in manifests)
        return DescheduledPods(tuple(initial), (), ORDER)
    initial = (_gated(one) if one.identity in chosen else one for one in manifests)
    pods = sorted((one for one in manifests if one.identity in chosen), key=_scheduled_at)
    arrivals = (
        ScriptedStep(number * _PAUSE, tuple(patch(pod.ref, _UNGATED)), ORDER_OPTION, pod.title)
        for number, pod in enumerate(pods, 1)
    )
    return DescheduledPods(tuple(initial), tuple(arrivals), RECORDED_ORDER)


def _chosen(manifests: Iterable[Manifest], text: str, namespace: str) -> set[tuple[str, str, str]]:
    """Return the identities of the running pods that `text` selects. Raises InputError."""
    try:
        selector = parse_selector("" if text == ALL else text)
    except SelectorError as cause:
        raise InputError(OPTION, str(cause)) from None
    if text != ALL and not _LABEL_SIGNS & set(text):
        raise InputError(OPTION, f"{text!r} is neither {ALL} nor a selector, such as app=web")
    chosen = {
        manifest.identity
        for manifest in manifests
        if manifest.kind is POD
        and namespace in ("", manifest.ref.namespace)
        and _can_move(pod := manifest.pod)
        and selector_matches(selector, pod.metadata.labels)
    }
    if not chosen:
        raise InputError(OPTION, f"{text} selects no running pod that can move")
    return chosen


def _can_move(pod: Pod) -> bool:
    is_here = bool(pod.spec.node_name) and not is_terminal(pod) and not is_terminating(pod)
    return is_here and not is_daemon_pod(pod) and not is_static(pod)


def _pending(manifest: Manifest) -> Manifest:
    value = manifest.value
    spec = {key: part for key, part in value["spec"].items() if key != "nodeName"}
    return replace(manifest, content={**value, "spec": spec, "status": {"phase": "Pending"}})


def _gated(manifest: Manifest) -> Manifest:
    """Return the pod as pending, with a scheduling gate that a later step removes."""
    pending = _pending(manifest)
    value = pending.value
    spec = {**value["spec"], "schedulingGates": [{"name": _GATE}]}
    return replace(pending, content={**value, "spec": spec})


def _scheduled_at(manifest: Manifest) -> tuple[str, str, str]:
    """Return a sort key: the time at which the pod was scheduled, its creation time, and its title.

    If the time of scheduling is unknown, the start time of the pod is used instead. If the pod has
    no start time either, the creation time is used.
    """
    status, meta = manifest.value.get("status") or {}, manifest.value["metadata"]
    created = str(meta.get("creationTimestamp") or "")
    bound = [
        one.get("lastTransitionTime")
        for one in status.get("conditions") or ()
        if one.get("type") == "PodScheduled" and one.get("status") == "True"
    ]
    at = next((str(time) for time in (*bound, status.get("startTime")) if time), created)
    return at, created, manifest.title

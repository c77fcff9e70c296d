"""Makes running pods pending before both runs of a what-if, so that it compares placements.

Running pods are not moved, so a changed scheduler configuration would have no effect. With
`--reschedule` both runs start with the selected pods pending; the scheduler places them by
priority, then by age, with the old configuration in one run and the new one in the other. Pods of
DaemonSets, static pods, and finished or terminating pods stay on their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_daemon_pod, is_static, is_terminal, is_terminating
from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.apiserver.kind import POD
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

OPTION: Final = "--reschedule"
ALL: Final = "all"
_LABEL_SIGNS: Final = frozenset("=!()")


def deschedule(found: Iterable[Manifest], text: str, namespace: str) -> tuple[Manifest, ...]:
    """Return `found`, in which the running pods that `text` selects are pending.

    `text` is `all` or a label selector; `namespace` "" means every namespace. Raises InputError if
    no running pod is selected.
    """
    try:
        selector = parse_selector("" if text == ALL else text)
    except SelectorError as cause:
        raise InputError(OPTION, str(cause)) from None
    if text != ALL and not _LABEL_SIGNS & set(text):
        raise InputError(OPTION, f"{text!r} is neither {ALL} nor a selector, such as app=web")
    manifests = list(found)
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
    return tuple(_pending(one) if one.identity in chosen else one for one in manifests)


ORDER: Final = "The rescheduled pods were placed by priority, then by age, in both runs."


def _can_move(pod: Pod) -> bool:
    is_here = bool(pod.spec.node_name) and not is_terminal(pod) and not is_terminating(pod)
    return is_here and not is_daemon_pod(pod) and not is_static(pod)


def _pending(manifest: Manifest) -> Manifest:
    value = manifest.value
    spec = {key: part for key, part in value["spec"].items() if key != "nodeName"}
    return replace(manifest, content={**value, "spec": spec, "status": {"phase": "Pending"}})

"""The list of all `fairlead.dev/` annotations, and checks of their values.

The annotations of a Node set how its simulated kubelet misbehaves, set the resource usage of its
system daemons, and request drains. The annotations of a Pod or pod template set the pod's resource
usage, and the times that it takes to become ready, to run and to stop. An annotation of a workload
sets the total resource usage of its pods. Each key is defined beside the code that reads it. A key
that is missing here is reported as unknown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.lease import RENEWED_EVERY
from fairlead.api.nodes.kubelet_behaviour import KUBELET, parse_kubelet_behaviour
from fairlead.api.objects import ObjectMeta, Pod
from fairlead.api.pods.original import REPLACES
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.pods.usage import USAGE, usage_problem
from fairlead.engine.kubelet.annotation import READY_DELAY, STOP_DURATION, annotation_problems
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import LOAD, parse_load
from fairlead.engine.workloads.node_annotation import DRAIN, IN_TURN

FAIRLEAD_PREFIX: Final = "fairlead.dev/"
FIELD: Final = f"metadata.annotations[{KUBELET}]"
# Annotations that users set; a note about an unknown annotation suggests the most similar of them.
_SETTINGS: Final = (KUBELET, LOAD, READY_DELAY, RUN_DURATION, STOP_DURATION, USAGE)
# These annotations, and those that Fairlead sets itself. No note is made about any of them.
_KNOWN: Final = frozenset((*_SETTINGS, DRAIN, IN_TURN, RENEWED_EVERY, REPLACES))


def node_annotation_problem(value: Any) -> str:
    """Return the problem with the kubelet annotation in a Node or its patch; "" if it is valid."""
    text = _below(_below(_below(value, "metadata"), "annotations"), KUBELET)
    if not isinstance(text, str):
        return ""  # missing, or malformed; a malformed value is reported when the object is loaded
    try:
        parse_kubelet_behaviour(text)
    except ValueError as cause:
        return str(cause)
    return ""


def pod_annotation_problem(value: Any) -> str:
    """Return the first problem with Fairlead's annotations of a Pod or workload.

    The result begins with the path of the annotation. Returns "" if there is no problem.
    """
    load = _below(_below(_below(value, "metadata"), "annotations"), LOAD)
    if isinstance(load, str):
        try:
            parse_load(load)
        except ValueError as cause:
            return f"metadata.annotations[{LOAD}]: {cause}"
    for path, pod in (("", value), *_templates(value)):
        for problem in _pod_problems(pod):
            return f"{path}{problem}"
    return ""


def unknown_annotation_notes(objects: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield a note for each annotation key that has Fairlead's prefix but no effect.

    `objects` are pairs of (title, object as JSON).
    """
    titles: dict[str, set[str]] = {}
    for title, value in objects:
        for part in (value, *(template for _, template in _templates(value))):
            for key in _own_annotations(part).keys() - _KNOWN:
                titles.setdefault(key, set()).add(title)
    for key, found in sorted(titles.items()):
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        hint = _nearest(key) or "."
        yield f"The annotation {key} of {min(found)}{more} is unknown and has no effect{hint}"


def annotation_warnings(obj: Json, old: Json | None) -> Iterator[str]:
    """Yield a warning for each new annotation that has Fairlead's prefix but no effect.

    An annotation is new if `old`, the object that `obj` replaces, lacks it or has another value for
    it. Annotations of the pod template, and of a CronJob's Job template, are included.
    """
    for path, part, before in (
        ("", obj, old),
        *((path, one, dict(_templates(old)).get(path)) for path, one in _templates(obj)),
    ):
        own, earlier = _own_annotations(part), _own_annotations(before)
        changed = [key for key in own if own[key] != earlier.get(key)]
        for key in changed:
            if key not in _KNOWN:
                problem = f"unknown, so it has no effect{_nearest(key)}"
                yield f"{path}metadata.annotations[{key}]: {problem}"
        if not changed:
            continue
        kept = {"metadata": {"annotations": {key: own[key] for key in changed}}}
        if problem := node_annotation_problem(kept) if not path else "":
            yield f"{FIELD}: {problem}"
        if problem := pod_annotation_problem(kept):
            yield f"{path}{problem}"


def _nearest(key: str) -> str:
    """Return a hint that names the known annotation that is most similar to `key`.

    Returns "" if no known annotation is similar.
    """
    names = [one.removeprefix(FAIRLEAD_PREFIX) for one in _SETTINGS]
    nearest = difflib.get_close_matches(key.removeprefix(FAIRLEAD_PREFIX), names, n=1)
    return f"; did you mean {FAIRLEAD_PREFIX}{nearest[0]}?" if nearest else ""


def _templates(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, template) for each field in which `value` may have a pod or Job template.

    The template is None if the field is missing.
    """
    spec = _below(value, "spec")
    yield "spec.template.", _below(spec, "template")
    job = _below(spec, "jobTemplate")
    yield "spec.jobTemplate.", job
    yield "spec.jobTemplate.spec.template.", _below(_below(job, "spec"), "template")


def _own_annotations(value: Any) -> dict[str, str]:
    """Return the annotations of an object or template whose keys have Fairlead's prefix."""
    annotations = _below(_below(value, "metadata"), "annotations")
    if not isinstance(annotations, dict):
        return {}
    return {
        key: text
        for key, text in annotations.items()
        if key.startswith(FAIRLEAD_PREFIX) and isinstance(text, str)
    }


def _pod_problems(value: Any) -> Iterator[str]:
    ours = _own_annotations(value)
    if ours:
        pod = Pod(metadata=ObjectMeta(name="", annotations=ours))
        yield from filter(None, (*annotation_problems(pod), usage_problem(pod)))


def _below(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None

"""KWOK Stages: the times that simulated pods take to start, to complete and to be deleted.

The role of a Stage follows from its effect on the objects that it selects:

    kind   effect                          role        the delay begins
    Pod    sets a startTime and no phase   create      at the binding
           sets phase Running              ready       at the end of create, else at the binding
           sets phase Succeeded            complete    when the pod starts to run
           deletes the pod                 delete      when the deletion is requested
    Node   sets the NodeConditions         none: simulated nodes always set their conditions

Stages with another effect are refused. If several stages of one role select a pod, one of them is
chosen by weight.

The key of a selector's requirement is a path, in jq's syntax, to a field of the pod's metadata,
spec or status. The path refers to the pod's status before the stage takes effect.

If the jitter duration of a stage is longer than its duration, the delay is a random time between
these durations. All these times are equally likely. If the jitter duration is shorter, it is itself
the delay.

upstream: kwok pkg/apis/v1alpha1/stage_types.go, pkg/utils/lifecycle/lifecycle.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Final, Literal
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND, parse_duration
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.pod_lifecycle import grace_period
from fairlead.whatif.input.document import Document, read
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.seeded_choice import draws
from fairlead.whatif.input.strict_form import decode_strictly
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests

API_VERSION: Final = "kwok.x-k8s.io/v1alpha1"
_KIND: Final = "Stage"
_NAMES_MAX: Final = 4
_MS_MAX: Final = 10**12
_DELETED_AT: Final = ".metadata.deletionTimestamp"
_PATH_MAX: Final = 1000
_SHORTEST_RESTARTED: Final = seconds(1)
# `\s` instead of `[ \t]` would also match line breaks. The time of the search would then be
# quadratic in the number of empty lines.
_PHASE: Final = re.compile(r"^[ \t]*phase:\s*[\"']?(\w+)[\"']?\s*$", re.MULTILINE)
_STEP: Final = re.compile(r"\.?\[\]|\.?\[\"([^\"]*)\"\]|\.([A-Za-z_]\w*)")
_SELECT: Final = re.compile(r"\s*\|\s*select\(\s*(\S+)\s*==\s*\"([^\"]*)\"\s*\)\s*\|\s*")
_KNOWN: Final = {
    "metadata": ("name", "namespace", "labels", "annotations", "ownerReferences",
                 "deletionTimestamp", "finalizers"),
    "spec": ("nodeName", "restartPolicy", "schedulerName", "priorityClassName"),
    "status": ("phase", "podIP", "hostIP", "startTime", "conditions", "containerStatuses"),
}  # fmt: skip


class StageRole(StrEnum):
    """What a stage does to a pod: the roles in the table of the module's docstring."""

    CREATE = "create"
    READY = "ready"
    COMPLETE = "complete"
    DELETE = "delete"


# --- the form of a Stage --------------------------------------------------------------------------


class _Form(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base class of the parts of a Stage; unknown fields are errors."""


class _Expression(_Form, frozen=True):
    expression: str


class _From(_Form, frozen=True):
    expression_from: str = ""
    jq: _Expression | None = None

    @property
    def path(self) -> str:
        return self.expression_from if self.jq is None else self.jq.expression


class _Requirement(_Form, frozen=True):
    key: str = ""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "In"
    values: tuple[str, ...] = ()
    jq: _Requirement | None = None


class _Selector(_Form, frozen=True):
    match_labels: dict[str, str] = {}
    match_annotations: dict[str, str] = {}
    match_expressions: tuple[_Requirement, ...] = ()


class _Delay(_Form, frozen=True):
    duration_milliseconds: int = 0
    duration_from: _From | None = None
    jitter_duration_milliseconds: int | None = None
    jitter_duration_from: _From | None = None


class _Finalizers(_Form, frozen=True):
    empty: bool = False


class _Patch(_Form, frozen=True):
    template: str = ""
    root: str = ""
    subresource: str = ""
    type: str = ""


class _Action(_Form, frozen=True):
    """The effects of a stage: its `spec.next`, or an item of the newer field `spec.steps`."""

    event: dict[str, Any] | None = None
    finalizers: _Finalizers | None = None
    delete: bool = False
    status_template: str = ""
    status_subresource: str = ""
    patches: tuple[_Patch, ...] = ()
    patch: _Patch | None = None


class _ResourceRef(_Form, frozen=True):
    kind: str
    api_group: str = "v1"


class _Spec(_Form, frozen=True):
    resource_ref: _ResourceRef
    selector: _Selector | None = None
    weight: int = 0
    weight_from: _From | None = None
    delay: _Delay = _Delay()
    next: _Action | None = None
    steps: tuple[_Action, ...] = ()
    immediate_next_stage: bool = False


# --- stages ---------------------------------------------------------------------------------------


class PodStage(Struct, frozen=True):
    """A Stage for pods; `role` is what the stage does to a pod."""

    name: str
    role: StageRole
    spec: _Spec

    def selects(self, pod: Pod) -> bool:
        """Return whether the selector of the stage matches `pod`.

        The status in `pod` is ignored. Instead, the selector is tested with each status that a pod
        can have before the stage takes effect. One match suffices. For the role `ready`, for
        example, the selector is tested with statuses of a pod that does not run yet.
        """
        labels, notes = pod.metadata.labels, pod.metadata.annotations
        selector = self.spec.selector
        if selector is None:
            return False  # upstream: a null selector matches no object
        return (
            all(labels.get(key) == value for key, value in selector.match_labels.items())
            and all(notes.get(key) == value for key, value in selector.match_annotations.items())
            and any(
                all(_holds(one, moment) for one in selector.match_expressions)
                for moment in _moments(self.role, pod)
            )
        )

    def delay(self, pod: Pod, draw: int) -> DurationNs:
        """Return the delay for `pod`; the random number `draw` selects the delay from a range."""
        form = self.spec.delay
        shortest = _time_of(
            form.duration_from, pod, form.duration_milliseconds * NANOSECONDS_PER_MILLISECOND
        )
        if form.jitter_duration_milliseconds is None and form.jitter_duration_from is None:
            return shortest
        default = (form.jitter_duration_milliseconds or 0) * NANOSECONDS_PER_MILLISECOND
        longest = _time_of(form.jitter_duration_from, pod, default)
        if longest <= shortest:
            return longest
        return shortest + draw % (longest - shortest)

    def weight(self, pod: Pod) -> int:
        """Return the weight of the stage for `pod`, in a choice among stages of the same role."""
        if self.spec.weight_from is not None:
            text = _text_at(self.spec.weight_from.path, pod)
            if text.isdecimal() and len(text) < len(str(_MS_MAX)):
                return int(text)
        return self.spec.weight


class KwokStages(Struct, frozen=True):
    """The stages for pods; `seed` determines the random delays and choices."""

    stages: tuple[PodStage, ...]
    seed: int

    def delay(self, role: StageRole, pod: Pod) -> DurationNs | None:
        """Return the delay of the stage of `role` for `pod`; None if no stage selects `pod`."""
        found = [one for one in self.stages if one.role is role and one.selects(pod)]
        if not found:
            return None
        numbers = draws(self.seed, crc32(f"{role}/{pod.key}".encode()))
        return _chosen(found, pod, next(numbers)).delay(pod, next(numbers))

    def start_delay(self, pod: Pod) -> DurationNs | None:
        """Return the time from the binding of `pod` until it runs; None if no stage sets a time."""
        ready = self.delay(StageRole.READY, pod)
        return None if ready is None else ready + (self.delay(StageRole.CREATE, pod) or 0)

    def run_duration(self, pod: Pod) -> DurationNs | None:
        """Return the time for which the started `pod` runs; None if no stage completes `pod`.

        A pod that is always restarted runs for at least a second, so that virtual time advances.
        """
        found = self.delay(StageRole.COMPLETE, pod)
        if found is None or pod.spec.restart_policy != "Always":
            return found
        return max(found, _SHORTEST_RESTARTED)

    def has(self, role: StageRole) -> bool:
        """Return whether there is a stage of `role`."""
        return any(one.role is role for one in self.stages)


class _Delays(Struct, frozen=True):
    """A function that returns the delay for a pod, None if there is none.

    `others` is called if `of_stages` returns None.
    """

    of_stages: Callable[[Pod], DurationNs | None]
    others: Callable[[Pod], DurationNs | None] | None

    def __call__(self, pod: Pod) -> DurationNs | None:
        found = self.of_stages(pod)
        return self.others(pod) if found is None and self.others is not None else found


def is_stage(manifest: Manifest) -> bool:
    """Return whether `manifest` is a KWOK Stage."""
    return manifest.kind.kind == _KIND and manifest.kind.api_version == API_VERSION


def with_stages(config: KubeletConfig, manifests: Iterable[Manifest], seed: int) -> KubeletConfig:
    """Return `config` with the delays of the Stages in `manifests`. Raises InputError."""
    pods = [stage for one in manifests if is_stage(one) and (stage := _stage(one)) is not None]
    stages = KwokStages(tuple(pods), seed)
    if stages.has(StageRole.READY):
        config = replace(config, start_delays=_Delays(stages.start_delay, config.start_delays))
    if stages.has(StageRole.COMPLETE):
        config = replace(config, run_durations=stages.run_duration)
    if stages.has(StageRole.DELETE):
        config = replace(config, removal_delays=partial(stages.delay, StageRole.DELETE))
    return config


def read_stages(paths: Iterable[str]) -> list[Manifest]:
    """Return the KWOK Stages in the files or folders `paths`, the values of --kwok-stages.

    Raises InputError, also for a file without Stages and for objects of other kinds.
    """
    found: list[Manifest] = []
    for path in paths:
        objects = manifests(read(path))
        if not objects:
            raise InputError(path, "contains no KWOK Stage")
        found += objects
    for one in found:
        if one.kind.kind == _KIND and not is_stage(one):
            raise one.refuse(f"must be {API_VERSION}", field="apiVersion")
        if not is_stage(one):
            raise one.refuse("is not a KWOK Stage, which --kwok-stages reads")
    return found


def stages_note(stages: Iterable[Manifest]) -> str:
    """Return a note that names some of the KWOK Stages `stages`."""
    names = sorted({one.ref.name for one in stages})
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return (
        f"KWOK Stages say how long the pods that they select take: {', '.join(names[:_NAMES_MAX])}"
        f"{more}."
    )


def _chosen(found: Sequence[PodStage], pod: Pod, draw: int) -> PodStage:
    """Return one of the stages `found`, chosen by weight; without weights, all are equally likely.

    `draw` is the random number that determines the choice.
    """
    # upstream: pkg/utils/lifecycle/lifecycle.go: Lifecycle.Match
    weights = [max(0, one.weight(pod)) for one in found]
    total = sum(weights)
    if not total:
        return found[draw % len(found)]
    rest = draw % total
    for stage, weight in zip(found, weights, strict=True):
        rest -= weight
        if rest < 0:
            return stage
    raise AssertionError("the weights have this sum")


# --- reading --------------------------------------------------------------------------------------


def _stage(manifest: Manifest) -> PodStage | None:
    """Return the pod stage in `manifest`; None for a node stage. Raises InputError."""
    try:
        document = Document(manifest.source, manifest.value.get("spec") or {})
        spec = decode_strictly(document, _Spec, "spec")
    except InputError as refusal:
        raise manifest.refuse(refusal.problem, field=refusal.field) from None
    actions = [*([] if spec.next is None else [spec.next]), *spec.steps]
    kind = spec.resource_ref.kind
    if kind == "Node":
        _check_node_stage(manifest, spec, actions)
        return None
    if kind != "Pod":
        raise manifest.refuse(f"{kind} is not simulated by stages", field="spec.resourceRef.kind")
    stage = PodStage(manifest.ref.name, _role(manifest, actions), spec)
    _check_pod_stage(manifest, stage)
    return stage


def _templates(actions: Iterable[_Action]) -> Iterator[str]:
    for one in actions:
        yield one.status_template
        yield from (patch.template for patch in one.patches)
        if one.patch is not None:
            yield one.patch.template


def _role(manifest: Manifest, actions: Sequence[_Action]) -> StageRole:
    """Return the role of a stage with `actions`. Raises InputError if the role is not simulated."""
    if any(one.delete for one in actions):
        return StageRole.DELETE
    where = "spec.next" if any(one.status_template for one in actions) else "spec"
    if any(one.finalizers is not None for one in actions):
        raise manifest.refuse(
            "is simulated only together with delete", field="spec.next.finalizers"
        )
    text = "\n".join(_templates(actions))
    match sorted(set(_PHASE.findall(text))):
        case ["Running"]:
            return StageRole.READY
        case ["Succeeded"]:
            return StageRole.COMPLETE
        case [] if re.search(r"^[ \t]*startTime:", text, re.MULTILINE):
            return StageRole.CREATE
        case []:
            problem = "sets no phase; only create, ready, complete and delete of pods are simulated"
        case phases:
            found = " and ".join(phases)
            problem = f"sets the phase {found}; only Running and Succeeded are simulated"
    raise manifest.refuse(problem, field=where)


def _check_node_stage(manifest: Manifest, spec: _Spec, actions: Iterable[_Action]) -> None:
    if not any("NodeConditions" in text for text in _templates(actions)):
        problem = "sets conditions that are not in NodeConditions; use an event fail-node instead"
        raise manifest.refuse(problem, field="spec.next")
    operators = [
        (one.jq or one).operator
        for one in ([] if spec.selector is None else spec.selector.match_expressions)
        if '"Ready"' in (one.jq or one).key
    ]
    if "NotIn" in operators and spec.delay != _Delay():
        problem = "nodes are Ready when they are created; provision-time delays their creation"
        raise manifest.refuse(problem, field="spec.delay")


def _check_pod_stage(manifest: Manifest, stage: PodStage) -> None:
    """Raise InputError if a part of `stage`, such as its delay, cannot be simulated."""
    spec = stage.spec
    requirements = () if spec.selector is None else spec.selector.match_expressions
    for number, one in enumerate(requirements):
        field = f"spec.selector.matchExpressions[{number}].key"
        _check_path(manifest, (one.jq or one).key, field)
    any_pod = Pod()
    of_moment = [
        one for one in requirements if (one.jq or one).key.startswith((".status", _DELETED_AT))
    ]
    moments = list(_moments(stage.role, any_pod))
    if not any(all(_holds(one, moment) for one in of_moment) for moment in moments):
        problem = f"never selects a pod, because no pod has this status before a {stage.role} stage"
        raise manifest.refuse(problem, field="spec.selector")
    for name in ("duration_milliseconds", "jitter_duration_milliseconds"):
        value = getattr(spec.delay, name)
        if value is not None and not 0 <= value <= _MS_MAX:
            field = "durationMilliseconds" if name[0] == "d" else "jitterDurationMilliseconds"
            raise manifest.refuse(
                f"{value} is not from 0 to {_MS_MAX}", field=f"spec.delay.{field}"
            )
    for field, source in (
        ("spec.delay.durationFrom", spec.delay.duration_from),
        ("spec.delay.jitterDurationFrom", spec.delay.jitter_duration_from),
        ("spec.weightFrom", spec.weight_from),
    ):
        if source is not None:
            _check_path(manifest, source.path, field)


def _check_path(manifest: Manifest, path: str, field: str) -> None:
    if len(path) > _PATH_MAX:
        problem = f"has {len(path):,} characters; at most {_PATH_MAX:,} are read"
        raise manifest.refuse(problem, field=field)
    parts = _SELECT.split(path)
    names = [key or name for key, name in _steps(parts[0]) or ()]
    is_read = all(_steps(part) for part in (parts[0], *parts[1::3], *parts[3::3]))
    if not is_read or len(names) < 2 or names[1] not in _KNOWN.get(names[0], ()):
        known = ", ".join(f".{part}.{name}" for part, ones in _KNOWN.items() for name in ones)
        raise manifest.refuse(f"{path!r} is not supported; known: {known}", field=field)


# --- paths ----------------------------------------------------------------------------------------


def _steps(path: str) -> list[tuple[str, str]] | None:
    """Return the steps of a path such as `.metadata.labels["a"]`; None if `path` is invalid."""
    found = _STEP.findall(path)
    return found if found and "".join(m[0] for m in _STEP.finditer(path)) == path else None


def _values(path: str, value: Any) -> list[Any]:
    """Return the values in `value` at `path`, without nulls."""
    parts = _SELECT.split(path)
    found = _walked(parts[0], [value])
    for at in range(1, len(parts), 3):
        key, wanted, rest = parts[at : at + 3]
        found = _walked(rest, [one for one in found if wanted in _walked(key, [one])])
    return found


def _walked(path: str, found: list[Any]) -> list[Any]:
    for key, name in _steps(path) or ():
        if key or name:
            found = [one.get(key or name) for one in found if isinstance(one, Mapping)]
        else:
            found = [item for one in found if isinstance(one, list) for item in one]
        found = [one for one in found if one is not None]
    return found


def _holds(one: _Requirement, moment: Json) -> bool:
    requirement = one.jq or one
    found = _values(requirement.key, moment)
    match requirement.operator:
        case "Exists":
            return bool(found)
        case "DoesNotExist":
            return not found
        case "In":
            return any(value in requirement.values for value in found)
        case "NotIn":
            return not any(value in requirement.values for value in found)


def _text_at(path: str, pod: Pod) -> str:
    found = _values(path, _fields(pod, {}))
    return found[0] if found and isinstance(found[0], str) else ""


def _time_of(source: _From | None, pod: Pod, default: DurationNs) -> DurationNs:
    """Return the duration that `source` refers to: a field of `pod`, or its grace period.

    Return `default` if there is no `source`, or if the field contains no duration.
    """
    if source is None:
        return default
    if source.path == _DELETED_AT:
        return grace_period(pod)
    try:
        return max(0, parse_duration(_text_at(source.path, pod)))
    except ValueError:
        return default


# --- moments --------------------------------------------------------------------------------------

_EXAMPLE_TIME: Final = "2026-01-01T00:00:00Z"
_INITIALIZED: Final = [{"type": "Initialized", "status": "True"}]
_BOUND: Final[Json] = {"phase": "Pending", "conditions": _INITIALIZED}
_CREATED: Final[Json] = {
    **_BOUND, "startTime": _EXAMPLE_TIME, "podIP": "10.0.0.1", "hostIP": "10.0.0.1",
    "containerStatuses": [{"ready": False, "state": {"waiting": {}}}],
}  # fmt: skip
_RUNNING: Final[Json] = {
    **_CREATED,
    "phase": "Running",
    "conditions": [
        *_INITIALIZED,
        {"type": "Ready", "status": "True"},
        {"type": "ContainersReady", "status": "True"},
    ],
    "containerStatuses": [{"ready": True, "state": {"running": {"startedAt": _EXAMPLE_TIME}}}],
}
_STATUSES: Final = {
    StageRole.CREATE: (_BOUND,),
    StageRole.READY: (_BOUND, _CREATED),
    StageRole.COMPLETE: (_RUNNING,),
    StageRole.DELETE: (_RUNNING, _CREATED, _BOUND),
}


def _moments(role: StageRole, pod: Pod) -> Iterator[Json]:
    """Yield one JSON copy of `pod` for each status in which a stage of `role` can apply."""
    for status in _STATUSES[role]:
        fields = _fields(pod, status)
        if role is StageRole.DELETE:
            fields["metadata"]["deletionTimestamp"] = _EXAMPLE_TIME
        yield fields


def _fields(pod: Pod, status: Json) -> Json:
    meta, spec = pod.metadata, pod.spec
    return {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": meta.labels,
            "annotations": meta.annotations,
            "ownerReferences": [
                {"kind": one.kind, "name": one.name} for one in meta.owner_references
            ],
            "finalizers": list(meta.finalizers) or None,
        },
        "spec": {
            "nodeName": spec.node_name or None,
            "restartPolicy": spec.restart_policy,
            "schedulerName": spec.scheduler_name,
            "priorityClassName": spec.priority_class_name or None,
        },
        "status": status,
    }

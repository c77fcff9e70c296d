"""SimKube traces: objects that were applied to a cluster and deleted in it, with the times.

A trace is MessagePack, or JSON with the same content:

    {version: 3, config: …, events: [{ts: 1709241485, applied_objs: […], deleted_objs: […]}, …],
     index: {apps/v1.Deployment: {shop/web: {1709241485: [{lifecycle: {Finished: [from, to]}}]}}}}

The events become steps. An object is created when it first appears. Later, a merge patch changes it
to the recorded object. The simulation starts at the first event. As in SimKube, fields that the
cluster wrote (status, owners, the node of a pod) are left out. A trace contains no nodes.

`index` (in version 2 `pod_lifecycles`) contains the times at which the pods of an object started
and ended. In a simulation, the pods of the object get the recorded runtimes in the order of their
starts. So the n-th pod to start runs as long as the n-th recorded pod. If more pods start than were
recorded, the recorded runtimes are used again, from the first one.

upstream: simkube sk-store/src/trace.rs: ExportedTrace, sk-driver/src/mutation.rs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.apiserver.kind import NAMESPACE, POD
from fairlead.engine.core.command import PatchObject
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.change import commands
from fairlead.whatif.change.kubectl_apply import merge_patch_between
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError, one_line
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests, unknown_annotations
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.whatif.snapshot.validation.unknown_field import unknown_field_notes

VERSIONS: Final = (2, 3)
_SECONDS_MAX: Final = 1 << 33
_OWNED_BY_CLUSTER: Final = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
     "deletionGracePeriodSeconds", "ownerReferences", "managedFields", "selfLink"}
)  # fmt: skip
_MESSAGE_PACK_MAP: Final = (*range(0x80, 0x90), 0xDE, 0xDF)


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[Any] = []
    deleted_objs: list[Any] = []


class _Trace(msgspec.Struct):
    version: int
    events: list[_Event]
    index: Any = None
    pod_lifecycles: Any = None


class RecordedLifecycle(Struct, frozen=True, order=True):
    """The times at which a pod started and ended, since the start of the trace.

    `ended` is None if the pod ran until the end of the trace.
    """

    started: DurationNs
    ended: DurationNs | None = None


class SimKubeTrace(Struct, frozen=True):
    """A trace as `steps`, whose times count from `start`, the instant of the first event.

    `lifecycles` contains the recorded pods of each workload, ordered by their start.
    """

    source: str
    start: Instant
    steps: tuple[ScriptedStep, ...]
    lifecycles: Mapping[WorkloadRef, Sequence[RecordedLifecycle]]
    notes: tuple[str, ...] = ()


class RecordedDurations(Struct):
    """A function for the kubelets; the n-th pod of a workload gets the n-th recorded runtime.

    For a pod of a workload that `lifecycles` does not contain, `others` returns the runtime.
    """

    lifecycles: Mapping[WorkloadRef, Sequence[RecordedLifecycle]]
    others: Callable[[Pod], DurationNs | None] | None = None
    _given: dict[str, DurationNs | None] = field(default_factory=dict)
    _pods: Counter[WorkloadRef] = field(default_factory=Counter)

    def __call__(self, pod: Pod) -> DurationNs | None:
        """Return the runtime of the started `pod`; None if it is unknown."""
        uid = pod.metadata.uid
        if uid not in self._given:
            workload = workload_of(pod)
            known = self.lifecycles.get(workload)
            self._given[uid] = None if self.others is None else self.others(pod)
            if known:
                one = known[self._pods[workload] % len(known)]
                self._pods[workload] += 1
                self._given[uid] = None if one.ended is None else one.ended - one.started
        return self._given[uid]


def is_simkube_trace(data: bytes) -> bool:
    """Return whether `data` is a MessagePack map, or JSON with the fields of a SimKube trace."""
    if data[:1] and data[0] in _MESSAGE_PACK_MAP:
        return True
    if data.lstrip()[:1] != b"{" or b'"events"' not in data:
        return False
    return b'"applied_objs"' in data or _is_json_trace(data)


def _is_json_trace(data: bytes) -> bool:
    """Return whether `data` is a SimKube trace in JSON; its list of events may be empty."""
    try:
        msgspec.json.decode(data, type=_Trace)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False
    return True


def parse_simkube_trace(source: str, data: bytes, inventory: Inventory) -> SimKubeTrace:
    """Return the trace in `data`; `source` names it in messages. Raises InputError.

    `inventory` contains the cluster at the start; the objects of the trace are added to it.
    """
    trace, notes = _decoded(source, data)
    if trace.version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        problem = f"{trace.version} is not supported; known: {known}"
        raise InputError(source, problem, field="version")
    if not trace.events:
        raise InputError(source, "contains no event", field="events")
    first = before = trace.events[0].ts
    for number, event in enumerate(trace.events):
        if not before <= event.ts < _SECONDS_MAX or first < 0:
            problem = f"{event.ts} is not a time in seconds at or after the previous event"
            raise InputError(source, problem, field=f"events[{number}].ts")
        before = event.ts
    reader = _Reader(source, inventory)
    steps = [
        step
        for number, event in enumerate(trace.events)
        for step in reader.steps(number, event, seconds(event.ts - first))
    ]
    recorded = _lifecycles(source, trace, first)
    notes += (*unknown_annotations(reader.objects), *unknown_field_notes(reader.objects))
    return SimKubeTrace(source, seconds(first), tuple(steps), recorded, notes)


def _decoded(source: str, data: bytes) -> tuple[_Trace, tuple[str, ...]]:
    """Return the trace in `data`, and notes about its unknown fields. Raises InputError."""
    is_json = data.lstrip()[:1] == b"{"
    decode = msgspec.json.decode if is_json else msgspec.msgpack.decode
    try:
        whole = decode(data)
        if isinstance(whole, list):
            raise InputError(source, "is a trace of SimKube before 2.0, which is not supported")
        return msgspec.convert(whole, _Trace), tuple(_unknown_field_notes(source, whole))
    except msgspec.ValidationError as cause:
        problem, _, path = str(cause).partition(" - at `$")
        field = path.strip("`.")
        raise InputError(source, f"is not a SimKube trace: {problem}", field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        raise InputError(source, f"is not a SimKube trace: {cause}") from None
    except RecursionError:
        raise InputError(source, "is nested too deeply") from None


def _unknown_field_notes(source: str, whole: Json) -> Iterator[str]:
    """Yield a note for each unknown field of the trace and of its events."""
    places = [("", whole, (*_Trace.__struct_fields__, "config"))]
    for number, event in enumerate(whole["events"]):
        places.append((f"events[{number}].", event, _Event.__struct_fields__))
    for where, value, known in places:
        for name in sorted(map(str, value.keys() - set(known))):
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            yield f"{source}: {where}{one_line(name)} is unknown and has no effect{hint}."


# --- events -------------------------------------------------------------------------------------


class _Reader(Struct):
    """Turns events into steps; remembers each existing object as the trace last applied it."""

    source: str
    inventory: Inventory
    objects: list[Manifest] = field(default_factory=list)  # in all versions
    # The keys contain the resource: a custom resource may have the kind and name of another object.
    _applied: dict[tuple[str, str, str], Json] = field(default_factory=dict)

    def steps(self, number: int, event: _Event, after: DurationNs) -> Iterator[ScriptedStep]:
        """Yield the steps of `event`. Raises InputError."""
        for list_name in ("applied_objs", "deleted_objs"):
            objects = getattr(event, list_name)
            for at, value in enumerate(objects):
                where = f"events[{number}].{list_name}[{at}]"
                found = self._manifest(where, value)
                if list_name == "deleted_objs":
                    yield from self._deleted(found, after, where)
                else:
                    yield from self._namespace(found, after)
                    yield self._step(found, after, where)

    def _manifest(self, where: str, value: Any) -> Manifest:
        """Return the object `value` without the fields that a cluster writes. Raises InputError."""
        try:
            # MessagePack can have keys and values that are not allowed in an object.
            plain = msgspec.json.decode(msgspec.json.encode(value))
        except TypeError:
            problem = "has keys or values that JSON does not allow"
            raise InputError(self.source, problem, field=where) from None
        except RecursionError:
            raise InputError(self.source, "is nested too deeply", field=where) from None
        try:
            (found,) = manifests([Document(self.source, _desired(plain))])
            refuse_excess([found])
        except InputError as refusal:
            title = ": ".join(filter(None, (where, refusal.object_name)))
            raise InputError(
                self.source, refusal.problem, object_name=title, field=refusal.field
            ) from None
        except ValueError:
            raise InputError(self.source, "is not one object", field=where) from None
        return found

    def _step(self, found: Manifest, after: DurationNs, where: str) -> ScriptedStep:
        ref, value = found.ref, found.value
        before = self._applied.get(found.identity)
        self._applied[found.identity] = value
        self.objects.append(found)
        known = self.inventory.get(found.kind, ref.namespace, ref.name)
        if before is None and known is None:
            self.inventory.add(found)
            return ScriptedStep.creating(after, found)
        # Fields that only the earlier recorded object has are removed. Fields that neither recorded
        # object has stay: the cluster has set them.
        change = merge_patch_between(before or {}, value)
        change.pop("status", None)
        return ScriptedStep(after, (PatchObject(ref, change),), self.source, where)

    def _deleted(self, found: Manifest, after: DurationNs, where: str) -> Iterator[ScriptedStep]:
        """Yield the step that deletes the object, if the trace or the cluster contains it."""
        ref = found.ref
        if self._applied.pop(found.identity, None) is None and not self._is_known(found):
            return
        yield ScriptedStep(after, (commands.delete(ref),), self.source, where)

    def _is_known(self, found: Manifest) -> bool:
        ref = found.ref
        return self.inventory.get(found.kind, ref.namespace, ref.name) is not None

    def _namespace(self, found: Manifest, after: DurationNs) -> Iterator[ScriptedStep]:
        """Yield a step that creates the object's namespace if the inventory lacks it."""
        name = found.ref.namespace
        if not name or self.inventory.get(NAMESPACE, "", name) is not None:
            return
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        (made,) = manifests([Document(self.source, namespace)])
        self.inventory.add(made)
        yield ScriptedStep.creating(after, made)


def _desired(value: Any) -> Any:
    """Return the object `value` without the fields that the cluster wrote."""
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        return value
    meta = {k: v for k, v in value["metadata"].items() if k not in _OWNED_BY_CLUSTER}
    kept = {k: v for k, v in value.items() if k != "status"}
    if value.get("kind") == POD.kind and isinstance(value.get("spec"), dict):
        kept["spec"] = {k: v for k, v in value["spec"].items() if k != "nodeName"}
    return {**kept, "metadata": meta}


# --- lifecycles ---------------------------------------------------------------------------------


def _lifecycles(
    source: str, trace: _Trace, first: int
) -> dict[WorkloadRef, list[RecordedLifecycle]]:
    """Return the lifecycles of all pods, by the object that they belong to. Raises InputError."""
    found: dict[WorkloadRef, list[RecordedLifecycle]] = {}
    for where, workload, recorded in _owners(trace):
        if workload is None or not isinstance(recorded, dict):
            raise InputError(source, "is not an object with recorded pods", field=where)
        lists = recorded.values()
        pods = [one for pods in lists for one in (pods if isinstance(pods, list) else [pods])]
        times = [_lifecycle(source, where, one, first) for one in pods]
        if known := sorted(
            (one for one in times if one is not None), key=lambda one: (one.started, one.ended or 0)
        ):
            found[workload] = known
    return found


def _owners(trace: _Trace) -> Iterator[tuple[str, WorkloadRef | None, Any]]:
    """Yield (place in the trace, workload, recorded pods) for each entry of recorded pods.

    The workload is None if the entry's key is malformed.
    """
    if trace.version == VERSIONS[0]:
        # {[apps/v1.Deployment, shop/web]: {hash of the pod's spec: [lifecycle, …]}}
        for key, recorded in _items(trace.pod_lifecycles):
            kind, name = key if isinstance(key, tuple | list) and len(key) == 2 else ("", "")
            yield f"pod_lifecycles.{kind}.{name}", _workload(kind, name), recorded
        return
    for kind, objects in _items(trace.index):
        for name, recorded in _items(objects):
            yield f"index.{kind}.{name}", _workload(kind, name), recorded


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()


def _workload(kind: Any, name: Any) -> WorkloadRef | None:
    """Return the object that `kind` and `name` identify; None if `kind` or `name` is malformed.

    Example: `apps/v1.Deployment` and `shop/web` identify Deployment web in namespace shop.
    """
    if not isinstance(kind, str) or not isinstance(name, str) or "." not in kind:
        return None
    namespace, _, short = name.rpartition("/")
    return WorkloadRef(kind.rpartition(".")[2], namespace, short)


def _lifecycle(source: str, where: str, value: Any, first: int) -> RecordedLifecycle | None:
    """Return the lifecycle of one pod; None if the pod never started.

    A pod that started before `first` counts as started at `first`. Raises InputError.
    """
    match value:
        case {"lifecycle": inner}:
            return _lifecycle(source, where, inner, first)
        case "Empty" | {"Empty": _}:
            return None
        case {"Running": int(started)} if abs(started) < _SECONDS_MAX:
            return RecordedLifecycle(seconds(max(started - first, 0)))
        case {"Finished": [int(started), int(ended)]} if abs(started) <= ended < _SECONDS_MAX:
            begun = max(started, first)
            return RecordedLifecycle(seconds(begun - first), seconds(max(ended, begun) - first))
    problem = "is not Empty, Running with a start, or Finished with a start and an end"
    raise InputError(source, problem, field=where)

"""Replays a recorded history, and compares each placement with the scheduler's decision.

For every pod that the history places, the scheduler makes a decision in the state before the
recorded placement. Then the recorded placement is applied, whatever the decision was. The
placements are compared as in `fairlead run --shadow` (`worlds.cluster.shadow`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from fairlead.api.objects import ApiObject
from fairlead.api.text.count import counted
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.preemption.policy import is_preempted
from fairlead.whatif.audit.audit_log import AuditedWrite, read_audit_log
from fairlead.whatif.audit.recorded_cluster import (
    RecordedCluster,
    initial_objects,
    manifest_of,
    unbound,
)
from fairlead.whatif.input.archive import unpacked_file
from fairlead.whatif.input.content import content_of, content_of_stream
from fairlead.whatif.input.document import STDIN, Document, parse_listings
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.decoder.simulator_export import is_simulator_export, selected_node
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import Snapshot, start_of_time
from fairlead.worlds.cluster.shadow import Shadow, ShadowDecision
from fairlead.worlds.cluster.shadow_record import ShadowRecord

PRESENT: Final = "present"
SCHEDULED: Final = "PodScheduled"
_PROGRESS_EVERY: Final = 256  # number of writes
_HEAD_BYTES: Final = 200


class RecordedPreemption(Struct, frozen=True):
    """The preemption of `pod` on `node`, as the history records it (condition DisruptionTarget)."""

    at: Instant
    pod: str
    node: str
    priority: int


class ReplayResult(Struct, frozen=True):
    """The decisions of a replay in the order of the history; `notes` describe omitted parts.

    `preemptions` are the recorded preemptions, in the order of the history. `unknown_nodes`
    contains the node name of each placement on an unknown node. A node is unknown if the history
    contains no Node object of that name at the time of the placement.
    """

    source: str
    decisions: Sequence[ShadowDecision]
    record: ShadowRecord
    notes: tuple[str, ...] = ()
    preemptions: Sequence[RecordedPreemption] = ()
    unknown_nodes: Sequence[str] = ()


def read_history(path: str, bytes_max: int) -> tuple[str, bytes]:
    """Return (name, content) of the file `path`, unpacked if it is compressed.

    `-` is standard input; `bytes_max` limits the size. Raises InputError.
    """
    if path == "-":
        data = content_of_stream(STDIN, sys.stdin.buffer, bytes_max, is_copied=True)
        return unpacked_file(STDIN, data, bytes_max)
    if Path(path).is_dir():
        raise InputError(path, "is a directory; expected a file")
    return unpacked_file(path, content_of(Path(path), bytes_max, is_copied=True), bytes_max)


def as_simulator_export(source: str, data: bytes) -> Document | None:
    """Return `data` as a document; None if `data` is no export of kube-scheduler-simulator."""
    if b"schedulerConfig" not in data or b"audit.k8s.io" in data[:_HEAD_BYTES]:
        return None
    found = parse_listings(source, data)
    is_export = len(found) == 1 and is_simulator_export(found[0].value)
    return found[0] if is_export else None


def replay_audit_log(
    source: str,
    data: bytes,
    snapshot: Snapshot | None,
    config: SchedulerConfig,
    progress: Progress,
) -> ReplayResult:
    """Replay the audit log `data`; `source` names the log in messages.

    `snapshot` is the cluster at an instant before or during the log. If `snapshot` is None, the
    initial objects are the objects that the log shows. Raises InputError.
    """
    writes, notes = read_audit_log(source, data)
    if snapshot is None:
        # the cluster before the first write, as far as the writes show it
        found = tuple(
            manifest_of(source, write.where, obj) for write, obj in initial_objects(writes)
        )
        snapshot = Snapshot(source, found, writes[0].at if writes else 0)
        notes.append("Without --snapshot, Fairlead knows only the objects in the log.")
    else:
        later = [one for one in writes if one.at > snapshot.taken_at]
        if writes and not later:
            taken = format_timestamp(snapshot.taken_at)
            problem = f"was taken at {taken}, after the last write of {source}"
            raise InputError(snapshot.source, problem)
        if len(later) < len(writes):
            earlier = counted(len(writes) - len(later), "write")
            notes.append(f"Not replayed: {earlier} from before the dump was taken.")
        writes = later
    return _followed(source, snapshot, writes, config, progress, notes)


def replay_simulator_export(
    document: Document, config: SchedulerConfig, progress: Progress
) -> ReplayResult:
    """Replay the placements in an export of kube-scheduler-simulator, ordered by time.

    The pods that the simulator's scheduler placed are pending at the start. The time of a placement
    is the last transition of the condition PodScheduled. Raises InputError.
    """
    source = document.source
    found = manifests([document])
    at_end = start_of_time((), found)
    initial, placed = [], []
    for manifest in found:
        node = _node_of(manifest)
        if not node:
            initial.append(manifest)
            continue
        initial.append(manifest_of(source, "", unbound(manifest.value)))
        placed.append(_placement(manifest, node, at_end))
    if not any(manifest.kind is NODE for manifest in found):
        raise InputError(source, "contains no Node", field="nodes")
    snapshot = Snapshot(source, tuple(initial), at_end)
    writes = sorted(placed, key=lambda write: write.at)
    notes = ["The export does not contain pods that were deleted before it was made."]
    return _followed(source, snapshot, writes, config, progress, notes)


def _node_of(manifest: Manifest) -> str:
    """Return the node of a pod that the simulator's scheduler placed.

    Return "" for all other pods and objects.
    """
    if manifest.kind is not POD:
        return ""
    pod = manifest.pod
    return pod.spec.node_name if selected_node(pod.metadata.annotations) else ""


def _placement(manifest: Manifest, node: str, at_end: Instant) -> AuditedWrite:
    """Return the write that binds a placed pod.

    The time of the write is the last transition of the condition PodScheduled, else the creation of
    the pod, else `at_end`.
    """
    pod, at = manifest.pod, at_end
    times = [one.last_transition_time for one in pod.status.conditions if one.type == SCHEDULED]
    for text in (*times, pod.metadata.creation_timestamp):
        if text:
            at = parse_timestamp(text)
            break
    ref, request = manifest.ref, {"target": {"kind": "Node", "name": node}}
    return AuditedWrite(
        manifest.title, at, "create", POD, "binding", ref.namespace, ref.name, request, None
    )


def _followed(
    source: str,
    snapshot: Snapshot,
    writes: Sequence[AuditedWrite],
    config: SchedulerConfig,
    progress: Progress,
    notes: Sequence[str],
) -> ReplayResult:
    """Apply `writes` to `snapshot`, and compare their placements with the scheduler's decisions.

    Raises InputError.
    """
    decisions: list[ShadowDecision] = []
    preemptions: dict[str, RecordedPreemption] = {}
    record = ShadowRecord([PRESENT])
    shadow = Shadow({PRESENT: config}, decisions.append)
    cluster = RecordedCluster(source, "name a dump that contains it with --snapshot")
    shadow.handle(cluster.load(snapshot), snapshot.taken_at)
    progress.begin("replaying", len(writes))
    for number, write in enumerate(writes):
        if number % _PROGRESS_EVERY == 0:
            progress.reach(number, 0.0)
        if write.subresource == "binding" and not shadow.cluster.table.count:
            problem = "no Node is known when the first pod is bound; name a dump with --snapshot"
            if cluster.unfollowed:
                problem += f" ({_unfollowed(cluster)})"
            raise InputError(source, problem, object_name=write.where)
        for stimulus in cluster.apply(write):
            shadow.handle(stimulus, write.at)
            if write.kind is POD and isinstance(stimulus, ObjectChanged):
                _note_preemption(preemptions, shadow, stimulus.object, write.at)
    for decision in decisions:
        record.record(decision)
    return ReplayResult(
        source,
        decisions,
        record,
        (*notes, *_gaps(cluster)),
        tuple(preemptions.values()),
        tuple(cluster.unknown_nodes),
    )


def _note_preemption(
    found: dict[str, RecordedPreemption], shadow: Shadow, changed: ApiObject, at: Instant
) -> None:
    """Add to `found`, by uid, the preemption of the pod `changed`, if it has been preempted."""
    pod = shadow.cluster.pods.get(changed.key)
    if pod is not None and is_preempted(pod) and pod.uid not in found:
        node = shadow.cluster.node_of(pod)
        found[pod.uid] = RecordedPreemption(at, pod.key, node, pod.priority)


def _gaps(cluster: RecordedCluster) -> Iterable[str]:
    """Yield notes about pods and writes that could not be compared or applied."""
    if unknown := len(cluster.unknown_bindings):
        first = cluster.unknown_bindings[0]
        pods = counted(unknown, "pod")
        yield f"Not compared: {pods} whose creation is not recorded, such as {first}."
    if cluster.unfollowed:
        yield f"{_unfollowed(cluster).capitalize()}."


def _unfollowed(cluster: RecordedCluster) -> str:
    writes, first = counted(len(cluster.unfollowed), "write"), cluster.unfollowed[0]
    return f"left out: {writes} to unknown objects or with an unknown effect, such as {first}"

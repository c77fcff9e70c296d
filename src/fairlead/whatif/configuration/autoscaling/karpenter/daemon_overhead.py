"""Notes about DaemonSets for which Karpenter keeps too little room on new nodes.

Karpenter assumes that a DaemonSet's pod on a new node requests as much as the newest existing pod
of the DaemonSet. If the template requests more, the new pod takes room that Karpenter has planned
for other pods. These other pods stay pending, so Karpenter creates another node for them, and
removes the first node, which is empty. The cycle can repeat without end.

upstream: pkg/controllers/state/cluster.go:UpdateDaemonSet
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import mapping
from fairlead.api.objects import Pod
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DAEMON_SET, POD
from fairlead.apiserver.validation.core.pod.spec import check_scheduled_spec
from fairlead.engine.autoscaling.karpenter.state.usage import requests_of
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of

_SHOWN: Final = 3


def daemon_notes(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield one note about all DaemonSets whose newest pod requests less than the template does.

    Yields nothing if there is no such DaemonSet. Raises InputError if the template or the newest
    pod of a DaemonSet with pods is invalid.
    """
    entries = list(entries_of(manifests))
    newest: dict[tuple[str, str], tuple[str, Manifest]] = {}  # (creationTimestamp, pod) by owner
    for entry in entries:
        # Replicas request the same amounts, so only their times are read.
        one = entry.sample if isinstance(entry, ReplicaManifests) else entry
        owner = one.controller if one.kind is POD else None
        if owner is not None and owner.kind == DAEMON_SET.kind:
            key, created = (one.ref.namespace, owner.name), _created(entry)
            if key not in newest or newest[key][0] < created:
                newest[key] = created, one
    smaller = []
    for entry in entries:
        if isinstance(entry, ReplicaManifests) or entry.kind is not DAEMON_SET:
            continue
        key = entry.ref.namespace, entry.ref.name
        if key in newest:
            wanted, has = _requests_of_template(entry), _requests_of_pod(newest[key][1])
            less = sorted(name for name, amount in wanted.items() if has.get(name, 0) < amount)
            if less:
                smaller.append(f"{key[0]}/{key[1]} ({', '.join(less)})")
    if smaller:
        yield (
            f"The newest pod of DaemonSet {listed(sorted(smaller), _SHOWN)} requests less than the "
            "template. On new nodes, Karpenter keeps only as much room as the newest pod requests. "
            "If pods then do not fit on the nodes that it creates for them, it can remove and "
            "create such nodes without end."
        )


def _created(entry: Manifest | ReplicaManifests) -> str:
    """Return the creationTimestamp of a pod, or of the newest pod of replicas."""
    if isinstance(entry, ReplicaManifests):
        return max(entry.replicas.created)
    return entry.pod.metadata.creation_timestamp


def _requests_of_template(one: Manifest) -> Mapping[str, int]:
    one.require_right_types()
    return requests_of((decode_as(Pod, {"spec": mapping(one.pod_template, "spec")}),))


def _requests_of_pod(one: Manifest) -> Mapping[str, int]:
    for wrong in check_scheduled_spec("spec", one.pod.spec):
        raise one.refuse(wrong.message, field=wrong.field)
    return requests_of((one.pod,))

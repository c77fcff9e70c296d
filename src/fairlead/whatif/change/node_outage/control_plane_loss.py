"""Notes about failures that a real control plane does not survive.

A simulated failure stops the kubelets of nodes; the simulated control plane always works. A real
control plane fails with the nodes on which it runs. The database of the control plane, etcd,
accepts writes only while a majority of its members works. While etcd does not work, no pod is
evicted, created or placed.

upstream: etcd documentation, op-guide/failures.md: majority failure
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.nodes.kubelet_behaviour import Mode, parse_kubelet_behaviour
from fairlead.api.nodes.readiness import FALSE, UNKNOWN, ready_status
from fairlead.api.objects import Node
from fairlead.api.pods.facts import is_static
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE, POD
from fairlead.whatif.change.node_outage.outage import Outage
from fairlead.whatif.snapshot.control_plane import is_control_plane
from fairlead.whatif.snapshot.inventory import Inventory

_ETCD_NODE: Final = "node-role.kubernetes.io/etcd"  # of k3s and RKE2
_ETCD_POD: Final = ("component", "etcd")  # kubeadm: app/phases/etcd/local.go: GetEtcdPodSpec
_SYSTEM: Final = "kube-system"  # the namespace of static pods of the control plane
_BACK: Final = (
    "back, a real cluster neither evicts nor places pods. This answer assumes that the control "
    "plane keeps working."
)


def control_plane_notes(outages: Iterable[Outage], inventory: Inventory) -> Iterator[str]:
    """Yield a note if a real control plane would fail with the nodes that `outages` stop.

    Nodes that are not Ready in `inventory` count as stopped, too. If the dump does not show where
    etcd runs, the control plane nodes are assumed to run etcd.
    """
    stopped = {
        node
        for outage in outages
        if parse_kubelet_behaviour(outage.behaviour).mode is Mode.STOPPED
        for node in outage.nodes
    }
    nodes = {one.ref.name: one.node for one in inventory.of_kind(NODE)}
    planes = [name for name, node in nodes.items() if is_control_plane(node)]
    if stopped.isdisjoint({*planes, *_labelled(nodes)}):
        return
    down = stopped | {
        name for name, node in nodes.items() if ready_status(node) in (FALSE, UNKNOWN)
    }
    members = _members(nodes, inventory)
    lost, total = sorted(down.intersection(members or planes)), len(members or planes)
    if len(planes) == 1 and planes[0] in down:
        yield f"The only control plane node fails ({planes[0]}). Until it is {_BACK}"
    elif 2 * len(lost) >= total:
        kind = "nodes with etcd" if members else "control plane nodes"
        so = "so etcd has no majority" if members else "so etcd has no majority if it runs on them"
        which = f"{len(lost):,} of {total:,} {kind} fail ({listed(lost)})"
        yield f"{which}, {so}. Until enough of them are {_BACK}"


def _labelled(nodes: Mapping[str, Node]) -> Sequence[str]:
    return [name for name, node in nodes.items() if _ETCD_NODE in node.metadata.labels]


def _members(nodes: Mapping[str, Node], inventory: Inventory) -> set[str]:
    """Return the nodes that run etcd, as far as labels and static pods show this."""
    key, value = _ETCD_POD
    pods = (one.pod for one in inventory.of_kind(POD) if one.ref.namespace == _SYSTEM)
    found = {
        pod.spec.node_name
        for pod in pods
        if pod.metadata.labels.get(key) == value and is_static(pod)
    }
    return {*_labelled(nodes), *found}

"""Bin packing: places pods on copies of a node group's template, in a fork of the snapshot.

For each equivalence group of pods, the largest pods first:

    a) place the pods one by one on any node that this estimation added; stop at the first pod that
       fits none of them
    b) place the remaining pods on the last added node; whenever it is full, add one more node

If a pod does not fit even an empty new node, the rest of its equivalence group is skipped. All pods
of the group are equal, and so are all new nodes. The rest of the equivalence group is also skipped
when the limit of nodes is reached.

As long as the pods need only free resources, the new nodes are not in the snapshot: `AddedNodes`
counts only their free resources. At the first equivalence group with other needs, the new nodes are
added to the snapshot. This group and all later groups are simulated pod by pod.

Example: a template with 4 cores, pods of 3, 3 and 1 core in three groups. The first pod gets
node 0. The second pod does not fit node 0, so step (b) adds node 1 for it. The third pod fits
node 0 or 1 in step (a). The result is two nodes.

upstream: estimator/binpacking_estimator.go
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile

from msgspec import Struct, field

from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.cluster_autoscaler.estimator.added_nodes import AddedNodes
from fairlead.engine.autoscaling.cluster_autoscaler.estimator.pod_order import (
    decreasing,
    fast_path_group,
)
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import ClusterSnapshot
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template
from fairlead.engine.plugins.pod_topology_spread.filter import SPREAD_MISMATCH
from fairlead.engine.state.pod_info import PodInfo


class BinpackingEstimate(Struct, frozen=True):
    """The result of an estimation: the placed `pods` in order, and the number of used `nodes`.

    As in upstream, `nodes` also counts an existing node on which a pod was placed.
    """

    nodes: int
    pods: tuple[PodInfo, ...]


class _Packing(Struct):
    """The state of one estimation.

    `base` is the number of nodes that the snapshot had before the estimation. `left` is the number
    of nodes that may still be added (None: any number). `helped` are the names of the nodes on
    which pods were placed.
    """

    snapshot: ClusterSnapshot
    template: Template
    base: int
    left: int | None
    placed: list[PodInfo] = field(default_factory=list)
    added: int = 0
    last: str = ""
    helped: dict[str, None] = field(default_factory=dict)
    is_at_limit: bool = False

    def pack_by_resources(self, nodes: AddedNodes, pods: Sequence[PodInfo]) -> None:
        """Do the same as `pack`, for an equivalence group whose pods need only free resources."""
        rest = pods[self._place_round_robin(nodes, pods) :]
        if self.is_at_limit:
            return
        while rest:
            if self.last and self.last not in self.helped:
                return
            if not self._may_add_node():
                return
            self._name_next()
            nodes.add()
            room = nodes.room(rest[0].shape, self.added - 1)
            if not room:
                return
            nodes.place(rest[:room], self.added - 1)
            self.helped[self.last] = None
            self.placed += rest[:room]
            rest = rest[room:]

    def _place_round_robin(self, nodes: AddedNodes, pods: Sequence[PodInfo]) -> int:
        """Place `pods` one by one on the added `nodes`; return the number of placed pods.

        Placement ends at the first pod that fits no node. This is step (a) of the module's
        docstring.
        """
        if not nodes.pods:
            return 0
        snapshot, count = self.snapshot, self.base + len(nodes.pods)
        start = (snapshot.last_index + 1) % count
        found = nodes.place_round_robin(pods, max(start - self.base, 0))
        if found:
            snapshot.last_index = self.base + found[-1]
        for node in dict.fromkeys(found):
            self.helped[self._name(node)] = None
        self.placed += pods[: len(found)]
        return len(found)

    def simulate(self, nodes: AddedNodes) -> None:
        """Add `nodes` and their pods to the snapshot."""
        for number, pods in enumerate(nodes.pods):
            name = self._name(number)
            self.template.add_to(self.snapshot, name)
            for pod in pods:
                self.snapshot.add_pod(pod, name)

    def pack(self, pods: Sequence[PodInfo]) -> None:
        """Place `pods` (one equivalence group) by steps (a) and (b) of the module's docstring."""
        rest = self._on_added_nodes(pods)
        if self.is_at_limit:
            return
        for pod in rest:
            if not self._on_last_node(pod) and not self._on_new_node(pod):
                return

    def pack_by_arithmetic(self, pods: Sequence[PodInfo]) -> None:
        """Do the same as `pack`, but simulate only one new node.

        Each further node takes as many pods as this node, because all new nodes are equal.

        upstream: binpacking_estimator.go: tryFastPath
        """
        rest = self._on_added_nodes(pods)
        if not rest or self.is_at_limit or not self._add_node():
            return
        start = len(self.placed)
        for pod in rest:
            if self.snapshot.rejection(pod, self.last) is not None:
                break
            self._place(pod, self.last)
        per_node = len(self.placed) - start
        if not per_node:
            return
        for number, at in enumerate(range(per_node, len(rest), per_node), 1):
            if not self._may_add_node():
                return
            self.helped[f"{self.last}-fake-{number}"] = None
            self.placed += rest[at : at + per_node]

    def _on_added_nodes(self, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Place pods on added nodes, up to the first pod that fits no added node.

        Returns this pod and all later pods; () if all pods were placed.
        """
        for index, pod in enumerate(pods):
            name = self.snapshot.find_place(pod, first=self.base)
            if name is None:
                return pods[index:]
            self._place(pod, name)
        return ()

    def _on_last_node(self, pod: PodInfo) -> bool:
        """Place the pod on the last added node if it fits; return whether the pod was placed.

        A topology spread constraint over hostnames can keep the pod off the last added node. If the
        pod fits another node of the snapshot, the pod is then placed on that node.
        """
        if not self.last:
            return False
        status = self.snapshot.rejection(pod, self.last)
        if status is None:
            self._place(pod, self.last)
            return True
        if not _spreads_over_hosts(pod) or SPREAD_MISMATCH not in status.reasons:
            return False
        others = set(self.snapshot.node_names) - {self.last}
        name = self.snapshot.find_place(pod, others)
        if name is not None:
            self._place(pod, name)
        return name is not None

    def _on_new_node(self, pod: PodInfo) -> bool:
        """Add a node and place the pod on it; return whether the pod was placed.

        If the last added node is still empty, the pod would not fit another new node either. In
        this case, or if the limit of new nodes is reached, no node is added and the result is
        False. A new node stays even if the pod does not fit it.
        """
        if self.last and self.last not in self.helped:
            return False
        if not self._add_node() or self.snapshot.rejection(pod, self.last) is not None:
            return False
        self._place(pod, self.last)
        return True

    def _add_node(self) -> bool:
        if not self._may_add_node():
            return False
        self._name_next()
        self.template.add_to(self.snapshot, self.last)
        return True

    def _name_next(self) -> None:
        self.last = self._name(self.added)
        self.added += 1

    def _name(self, number: int) -> str:
        return f"{self.template.node.metadata.name}-e-{number}"

    def _may_add_node(self) -> bool:
        if self.left is not None:
            if self.left <= 0:
                self.is_at_limit = True
                return False
            self.left -= 1
        return True

    def _place(self, pod: PodInfo, name: str) -> None:
        self.snapshot.add_pod(pod, name)
        self.helped[name] = None
        self.placed.append(pod)


def estimate(
    snapshot: ClusterSnapshot,
    groups: Sequence[Sequence[PodInfo]],
    template: Template,
    limit: int | None,
    *,
    fast_path: bool = False,
) -> BinpackingEstimate:
    """Return the number of nodes like `template` that `groups` need, and the placed pods.

    At most `limit` nodes are added (None: any number). `fast_path` is the flag
    --fastpath-binpacking-enabled. If this flag is set, the function `fast_path_group` chooses a
    group. This group is packed after all other groups, and only the first of its new nodes is
    simulated.
    """
    ordered = decreasing(groups, template.node)
    chosen = fast_path_group(ordered, template.node) if fast_path else None
    packing = _Packing(snapshot, template, len(snapshot.node_names), limit)
    simulated = [pods for index, pods in enumerate(ordered) if index != chosen]
    with snapshot.fork():
        nodes, count = _leading_by_resources(snapshot, simulated, template)
        for pods in simulated[:count]:
            packing.pack_by_resources(nodes, pods)
        if count < len(simulated) or chosen is not None:
            packing.simulate(nodes)
        for pods in simulated[count:]:
            packing.pack(pods)
        if chosen is not None:
            packing.pack_by_arithmetic(ordered[chosen])
    return BinpackingEstimate(len(packing.helped), tuple(packing.placed))


def _leading_by_resources(
    snapshot: ClusterSnapshot, groups: Sequence[Sequence[PodInfo]], template: Template
) -> tuple[AddedNodes, int]:
    """Return an empty AddedNodes, and the number of leading `groups` that need only free resources.

    The count ends before the first group with another need, such as a host port. The number is 0 if
    the node of `template` is cordoned.
    """
    with snapshot.fork():
        template.add_to(snapshot)
        empty = snapshot.node(template.node.metadata.name)
        assert empty is not None
        # First-fit never chooses a cordoned node, whatever the pods tolerate.
        limit = 0 if template.node.spec.unschedulable else len(groups)
        by_resources = takewhile(
            lambda pods: snapshot.fits_by_resources(pods[0]), islice(groups, limit)
        )
        return AddedNodes(empty), sum(1 for _ in by_resources)


def _spreads_over_hosts(pod: PodInfo) -> bool:
    constraints = pod.shape.spec.topology_spread_constraints
    return any(one.topology_key == HOSTNAME for one in constraints)

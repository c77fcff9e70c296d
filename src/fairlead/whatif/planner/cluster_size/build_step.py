"""BuildStep: decisions of earlier builds of `fairlead size`, so that no build repeats a decision.

The search builds the nodes in several ways. All builds place the same pods in the same order. The
builds differ only in the node that they add for a pod without a node. Until two builds add
different nodes, all their decisions are equal. A decision depends only on the nodes and their pods.
Often, two builds do not differ at all.

A BuildStep is a state of a build: some pods are placed, and the next pod is not. The steps form a
tree. Each build is a path from the root to a leaf of the tree. A node is recorded as its row in the
node table of the model, because the same node has another name in each build.
"""

from __future__ import annotations

from msgspec import Struct, field

from fairlead.engine.scheduling.decision import Failure


class KnownPlacement(Struct, frozen=True, eq=False):
    """A placement that an earlier build made; `after` is the build's state after the placement.

    `row` is the row of the node in the node table of the model. `choices` is the number of choices
    that the tie-break had made by the end of the placement. `is_reserved` is set if a Reserve
    plugin acted for the pod.
    """

    row: int
    choices: int
    is_reserved: bool
    after: BuildStep


class BuildStep(Struct, eq=False):
    """The known results for the next pod of a build, in one state of the nodes.

    A build is one way to add nodes until all pods have a node. If a node of the build took the pod,
    `placed` is the placement. If no node took the pod, `failure` says why. If a new node was tried,
    `failure` includes the reasons of the last new node. If `placed` and `failure` are None, the pod
    was not scheduled yet. `tries` maps the `id()` of each tried NodeOffer to the placement on a new
    node of this offer, or to None if the pod does not fit the new node. If the pod fits no new node
    either, the build leaves the pod out and continues with the step `left_out`.
    """

    placed: KnownPlacement | None = None
    failure: Failure | None = None
    tries: dict[int, KnownPlacement | None] = field(default_factory=dict)
    left_out: BuildStep | None = None

"""Failed nodes: nodes that were out of service when the dump was taken.

The evictions from such a node are due even without a change. A what-if in which the node fails
would therefore show no difference. So in the run without the change, the node returns to service at
the start. The answer then compares a node that stays out of service with a node that returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.nodes.kubelet_behaviour import Mode
from fairlead.api.nodes.readiness import FALSE, UNKNOWN, ready_status
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import NODE
from fairlead.whatif.change import commands
from fairlead.whatif.change.node_outage.outage import READY, Outage
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples


def failed_nodes(outages: Iterable[Outage], initial: Iterable[Manifest]) -> list[str]:
    """Return the nodes of `outages` that are out of service in `initial`, sorted.

    Nodes that are being deleted are left out, because their machines are probably gone. In both
    runs, these nodes are deleted, or stay out of service if a finalizer keeps them.
    """
    failing = {name for outage in outages for name in outage.nodes}
    return sorted(
        one.ref.name
        for one in samples(initial)
        if one.kind is NODE
        and one.ref.name in failing
        and ready_status(one.node) in (UNKNOWN, FALSE)
        and not one.node.metadata.deletion_timestamp
    )


def return_to_service(nodes: Sequence[str]) -> ScriptedStep:
    """Return a step that makes the failed `nodes` Ready, without a delay.

    The step first changes the behaviour of the kubelets to `paused`. When a paused kubelet becomes
    Ready, the containers on its node do not restart.
    """
    made = [
        commands.set_kubelet_behaviour(name, behaviour)
        for name in nodes
        for behaviour in (str(Mode.PAUSED), READY)
    ]
    return ScriptedStep(0, tuple(made), "--fail-node", "")


def failed_note(nodes: Sequence[str]) -> str:
    """Return a note for an answer about `nodes`, which had failed before the dump was taken.

    The note says that the answer compares two cases: the nodes stay down, or they return at the
    time of the dump.
    """
    was, stays = ("was", "it stays") if len(nodes) == 1 else ("were", "they stay")
    return (
        f"{listed(nodes)} {was} not in service when the dump was taken. This answer shows what "
        f"happens if {stays} so, compared with a return at the time of the dump."
    )

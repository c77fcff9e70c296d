"""A next step that proposes new nodes for pending pods without a trial.

The dashboard of a running cluster shows such a step, because nothing is simulated there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairlead.whatif.next_steps.new_nodes import lacks_room, least_copies, new_nodes_for
from fairlead.whatif.next_steps.tried_nodes import added_nodes
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd


def estimated_nodes(
    verb: str, pending: Iterable[PodEnd], nodes: Sequence[NodeEnd]
) -> Iterator[NextStep]:
    """Yield a what-if with new nodes for the `pending` pods that lack room; `verb` begins its text.

    The number of nodes is an estimate. More nodes may be necessary, because the scheduler does not
    pack pods tightly. If there are new nodes, the scheduler leaves more room on the present
    `nodes`, too. This room is often too small for the largest pods. If the room is large enough,
    fewer nodes may be enough, so the text names a lower bound (`least_copies`).
    """
    short = [pod for pod in pending if lacks_room(pod)]
    found = new_nodes_for(short, nodes)
    if found is None:
        return
    like = next(node for node in nodes if node.name == found.like)
    least = min(least_copies(short, like, nodes), found.count)
    if least == found.count:
        yield added_nodes(f"{verb} at least", found)
    else:
        rest = f" (at least {least:,})" if least > 1 else ""
        yield added_nodes(f"{verb} about", found, rest=rest)

"""NextStep: something to do after an answer: a question to ask next, or a command to run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.nodes.taint import SHUT_DOWN
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind


class NextStep(Struct, frozen=True):
    """A step: an imperative clause (`words`), and either `options` or a `command`."""

    words: str  # begins with a small letter and has no full stop
    # Added to the options of the user's what-if when it runs again. If an option can be given only
    # once, the new value replaces the old value.
    options: str = ""
    command: str = ""  # another command to run
    # The kind of the finding that the step is about; None if the step is about the whole answer.
    outcome: OutcomeKind | None = None
    makes_change: bool = False  # whether the step makes the change in the real cluster

    @property
    def clause(self) -> str:
        """The `words`, beginning with a capital letter."""
        return f"{self.words[0].upper()}{self.words[1:]}"

    @property
    def code(self) -> str:
        """The options or the command, as text for a shell."""
        return self.options or self.command

    def to_json(self) -> Json:
        """Return the step as an object in the JSON of an answer."""
        return {
            "sentence": f"{self.clause}.",
            "options": self.options or None,
            "command": self.command or None,
            "outcome": None if self.outcome is None else self.outcome.value,
        }


def out_of_service_step(nodes: Sequence[str], *, more: int = 0, selector: str = "") -> NextStep:
    """Return the step that taints the failed `nodes`, so that their pods are deleted.

    `more` is the number of further failed nodes; the command does not taint them. If `selector` is
    not "", it is a label selector that selects exactly `nodes`. The command then contains the
    selector instead of the names of the nodes.

    upstream: pkg/controller/podgc/gc_controller.go: gcTerminating
    """
    every = len(nodes) + more
    node, kubelet = ("node is", "kubelet runs") if every == 1 else ("nodes are", "kubelets run")
    which = f" (the command taints {len(nodes):,} of {every:,} nodes)" if more else ""
    which_nodes = ("-l", selector) if selector else nodes
    return NextStep(
        f"if the failed {node} shut down, have the pods replaced elsewhere{which}; when the "
        f"{kubelet} again, remove the taint",
        command=shlex.join(("kubectl", "taint", "nodes", *which_nodes, SHUT_DOWN)),
    )

"""NextStep: something to do after an answer: a question to ask next, or a command to run."""

from __future__ import annotations

from msgspec import Struct

from fairlead.whatif.outcome.assessment.verdict import OutcomeKind


class NextStep(Struct, frozen=True):
    """A step: an imperative clause without a capital letter or a full stop, and how to do it.

    A step has either `options`, with which the question is asked again, or `command`, another
    command to run. `options` are added to the options of the question; they replace options that
    can be given only once. `outcome` is the kind of the finding that the step is about; None if it
    is about the whole answer. If `makes_change` is True, the step makes the change of the question
    in the real cluster.
    """

    words: str
    options: str = ""
    command: str = ""
    outcome: OutcomeKind | None = None
    makes_change: bool = False

    @property
    def clause(self) -> str:
        """The `words`, beginning with a capital letter."""
        return f"{self.words[0].upper()}{self.words[1:]}"

    @property
    def code(self) -> str:
        """The options or the command, as text for a shell."""
        return self.options or self.command

"""BatchOptions: the options of the batch scheduler, as users write them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.whatif.input.option_type import refuse_wrong_types

SINGLE_PODS: Final = "single-pods"
OPTION: Final = "--batch-plugin"


class BatchOptions(Struct, frozen=True):
    """The batch scheduler's options, as the user wrote them.

    `source` is the name or file of a configuration; `plugins` name the classes of users' plugins.
    """

    source: str | None = None
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError if a field has a value of another type than its annotation."""
        refuse_wrong_types(self)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options as words of a command."""
        source = () if self.source is None else ("--batch-config", self.source)
        return (*source, *(word for one in self.plugins for word in (OPTION, one)))


DEFAULT_BATCH_OPTIONS: Final = BatchOptions()

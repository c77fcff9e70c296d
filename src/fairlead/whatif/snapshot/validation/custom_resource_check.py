"""Checks custom resources while a change or a scenario is read.

The schemas of custom resources are imported only if a custom resource is written, because the
import takes as long as a small simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import is_custom

if TYPE_CHECKING:
    from fairlead.whatif.snapshot.validation.custom_resource import DefinedTypes


class CustomResourceCheck:
    """Checks custom resources against the definitions that `inventory` has when a check begins.

    A definition is compiled once, and again only after it has changed.
    """

    def __init__(self, inventory: Inventory) -> None:
        """Keep `inventory`; later checks see definitions that are added or replaced there."""
        self._inventory = inventory
        self._types: DefinedTypes | None = None  # None before the first custom resource

    def refuse_invalid(self, written: Sequence[Manifest], before: Manifest | None = None) -> None:
        """Raise InputError if the API server refuses one of the custom resources in `written`.

        The definitions of these resources are in the inventory or in `written`. A resource without
        a definition is checked only if it is a resource of Karpenter. `before` is the object that
        `written` replaces; None if all of `written` are new.
        """
        if not any(is_custom(one.value["apiVersion"]) for one in written):
            return
        if self._types is None:
            from fairlead.whatif.snapshot.validation.custom_resource import (  # noqa: PLC0415
                DefinedTypes,
            )

            self._types = DefinedTypes(self._inventory)
        self._types.refuse_invalid(written, before)

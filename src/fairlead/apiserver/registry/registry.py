"""Registry: the strategies of all kinds, and functions to decode, default and validate objects.

A store uses one registry. `api_server.API_SERVER` has all features that clients of an API server
rely on. `simulation.SIMULATION` is smaller, because only controllers write objects in a simulation.

upstream: runtime.Scheme for the functions, pkg/registry for the strategies
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import CUSTOM, DEFAULT, ResourceStrategy
from fairlead.apiserver.validation.meta.kind_rules import KindRules
from fairlead.apiserver.validation.validator import Validator


class Registry(Struct, frozen=True, kw_only=True):
    """The strategies and functions that a store uses. Each function may raise ApiError."""

    strategies: Mapping[str, ResourceStrategy]
    # Returns an object without its unknown fields, and with its values in canonical form.
    decode: Callable[[Kind, Json], Json]
    # Returns an object, which is already decoded, with its defaults.
    default: Callable[[Kind, Json], Json]
    # Given (kind, old, new), does the same for `new`, an update of the stored object `old`.
    default_update: Callable[[Kind, Json, Json], Json]
    # Returns an object of a snapshot as if it had been read from the storage of a server.
    read: Callable[[Kind, Json], Json]
    # Given (kind, old, new), returns `new` with the fields that its type always encodes. `new` was
    # derived from the stored object `old`, which is None if the object is new.
    normalize: Callable[[Kind, Json | None, Json], Json]
    # Returns the status of a new object; None if a new object has no status.
    zero_status: Callable[[Kind], Json | None]
    # Applies the validation rules. upstream: Validate, ValidateUpdate of a kind's strategies
    validator: Validator

    def strategy(self, kind: Kind) -> ResourceStrategy:
        """Return the strategy of a kind.

        A kind without its own strategy has the strategy `CUSTOM` if it is custom, else `DEFAULT`.
        """
        return self.strategies.get(kind.resource) or (CUSTOM if kind.is_custom else DEFAULT)

    def rules(self, kind: Kind) -> KindRules:
        """Return the validation rules of a kind."""
        return self.strategy(kind).rules_of(kind)

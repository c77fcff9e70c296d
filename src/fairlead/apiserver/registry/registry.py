"""Registry: the strategies of all kinds, and how objects of any kind are read and validated.

A store is composed with one registry. `api_server.API_SERVER` has everything that clients of an API
server rely on. `simulation.SIMULATION` is smaller: only controllers write objects there, so it
allocates nothing, gives no warnings, sets only the defaults that scheduling reads, and validates
less.

upstream: runtime.Scheme for the functions, pkg/registry for the strategies
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import CUSTOM, DEFAULT, ResourceStrategy
from fairlead.apiserver.validation.validator import Validator


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """See the module; every function may raise ApiError."""

    strategies: Mapping[str, ResourceStrategy]
    # The object as its type reads it: unknown fields dropped, values in canonical form.
    decode: Callable[[Kind, Json], Json]
    # A decoded object with its defaults.
    default: Callable[[Kind, Json], Json]
    # An object that the server made of a stored one (None: new), as its type writes it.
    normalize: Callable[[Kind, Json | None, Json], Json]
    # What status is before anything was written to it, None where it is absent.
    zero_status: Callable[[Kind], Json | None]
    # Whether admission plugins see the Bindings of pods. upstream: BindingREST.Create
    admits_bindings: bool
    # upstream: Validate, ValidateUpdate of a kind's strategies
    validator: Validator

    def strategy(self, kind: Kind) -> ResourceStrategy:
        """The strategy of a kind; a general one where it has none of its own."""
        return self.strategies.get(kind.resource) or (CUSTOM if kind.is_custom else DEFAULT)

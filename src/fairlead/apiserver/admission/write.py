"""Write: the context of a write, such as its user, its options and whether it is a dry run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Authorizer
from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.request import User
from fairlead.apiserver.suspension import WebhookCalls

if TYPE_CHECKING:
    from fairlead.apiserver.apiextensions.conversion.conversions import Conversions

Track = Callable[[Json | None, Json], Json]
Warn = Callable[[str], None]
Annotate = Callable[[str, str], None]
View = Callable[[Json], Json]


NO_OPTIONS: Final[Mapping[str, Any]] = {}


def _ignore(_warning: str) -> None:
    """Do nothing; the default of `Write.warn`."""


def _forget(_key: str, _value: str) -> None:
    """Do nothing; the default of `Write.annotate`."""


class Write(Struct, frozen=True, kw_only=True):
    """The context of one write. The defaults are those of a write by the server itself.

    Two writes with an equal `manager` give equal objects the same managed fields, except for the
    times.
    """

    dry_run: bool = False  # if True, the object is not stored
    track: Track | None = None  # `track(old, new)` returns `new` with its managed fields set
    manager: str | None = None  # identifies the field manager and its operation; None if unknown
    user: User | None = None  # None for the server itself
    warn: Warn = _ignore  # receives warnings for the client
    annotate: Annotate = _forget  # receives keys and values for the audit log
    # The request's options as the client sent them.
    options: Mapping[str, Any] = field(default_factory=lambda: NO_OPTIONS)
    # Checks further permissions of the user; None if the user has all permissions.
    rights: Authorizer | None = None
    view: View | None = None  # converts an object to the subresource's kind, such as Scale
    # Set if the objects of the write are custom resources in the version of the request. None if
    # the objects have the version in which they are stored.
    conversions: Conversions | None = None
    # The name that the server chose for a new object because the request has only a generateName,
    # otherwise "".
    generated_name: str = ""
    # In a dry run that creates a pod: an existing pod that is assumed to end before. Quotas do not
    # count it. None if all pods are assumed to stay.
    replaced: Json | None = None

    def tracked_steps(self, old: Json | None, new: Json) -> WebhookCalls[Json]:
        """Return the result of `tracked(old, new)`: `new` with updated managedFields.

        Custom resources may have to be converted to the API versions in their managedFields.
        Therefore this method is a generator, which yields the calls of the conversion webhook.
        """
        if self.conversions is None:
            return self.tracked(old, new)
        return (yield from self.conversions.run(lambda: self.tracked(old, new)))

    def from_storage(self, stored: Json) -> WebhookCalls[Json]:
        """Return `stored`, converted from the storage version to the version of the write."""
        if self.conversions is None:
            return stored
        return (yield from self.conversions.from_storage(stored))

    def to_storage(self, obj: Json) -> WebhookCalls[Json]:
        """Return `obj`, converted from the version of the write to the storage version."""
        if self.conversions is None:
            return obj
        return (yield from self.conversions.to_storage(obj))

    def tracked(self, old: Json | None, new: Json) -> Json:
        """Return `new` with managedFields that record its differences from `old`.

        `old` is None if `new` is a new object. The defaults of `new` must already be set. If this
        write does not track fields, `new` is returned unchanged.
        """
        return new if self.track is None else self.track(old, new)

    def is_same(self, old: Json, new: Json) -> bool:
        """Return whether the objects are equal, except for the times of their managed fields."""
        if self.track is None:
            return json_equal(old, new)
        # Simulations track no fields, and start sooner without the modules that do.
        from fairlead.apiserver.patch.managedfields.managed_fields import (  # noqa: PLC0415
            without_timestamps,
        )

        return json_equal(without_timestamps(old), without_timestamps(new))


PLAIN: Final = Write()

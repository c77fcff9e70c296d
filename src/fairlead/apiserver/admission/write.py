"""Write: how a client wants a change to be carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorizer import Authorizer
from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.patch.managedfields.managed_fields import without_timestamps
from fairlead.apiserver.request import NO_ANSWERS, User, WebhookAnswer

Track = Callable[[Json | None, Json], Json]
Warn = Callable[[str], None]
Annotate = Callable[[str, str], None]
View = Callable[[Json], Json]


NO_OPTIONS: Final[Mapping[str, Any]] = {}


def _ignore(_warning: str) -> None:
    """Nobody listens."""


def _forget(_key: str, _value: str) -> None:
    """Nobody keeps a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """`track` notes on an object (given what was there) who has written what of it.

    `is_read`: the object comes as its kind's type reads it, in the form in which it is stored.
    With `dry_run` everything happens but storing. `user` None is the server itself; `warn` is
    told what the client should know though it gets its way, `annotate` what the audit log should
    (key and value). `webhooks` are the answers of those that were asked already, `options` what
    the client said besides, as it said it, `rights` know what else it may do (None: anything);
    `view` shows objects as the client sees them where it
    writes to a view of them.
    """

    is_read: bool = False
    dry_run: bool = False
    track: Track | None = None
    user: User | None = None
    warn: Warn = _ignore
    annotate: Annotate = _forget
    webhooks: Mapping[str, WebhookAnswer] = field(default_factory=lambda: NO_ANSWERS)
    options: Mapping[str, Any] = field(default_factory=lambda: NO_OPTIONS)
    rights: Authorizer | None = None
    view: View | None = None

    def tracked(self, old: Json | None, new: Json) -> Json:
        """`new`, as a client wants it and with its defaults, in place of `old`."""
        return new if self.track is None else self.track(old, new)

    def is_same(self, old: Json, new: Json) -> bool:
        """Whether nothing has changed; when somebody wrote what they had written is nothing."""
        if self.track is None:
            return json_equal(old, new)
        return json_equal(without_timestamps(old), without_timestamps(new))


PLAIN: Final = Write()

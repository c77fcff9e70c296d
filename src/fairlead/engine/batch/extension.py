"""Extensions: plugins and actions that a user adds in Python."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.plugins.registry import Factory


class Extensions(Struct, frozen=True):
    """Plugins and actions by name; they override built-in plugins and actions of the same name."""

    plugins: Mapping[str, Factory] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)

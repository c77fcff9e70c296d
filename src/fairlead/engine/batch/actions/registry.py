"""ACTIONS: every action by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.actions.allocate import Allocate
from fairlead.engine.batch.actions.backfill import Backfill
from fairlead.engine.batch.actions.enqueue import Enqueue
from fairlead.engine.batch.actions.preempt import Preempt
from fairlead.engine.batch.actions.reclaim import Reclaim

ACTIONS: Final[Mapping[str, Action]] = {
    action.name: action for action in (Allocate(), Backfill(), Enqueue(), Preempt(), Reclaim())
}

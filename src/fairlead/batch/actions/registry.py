"""ACTIONS: every action by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.batch.actions.action import Action
from fairlead.batch.actions.allocate import Allocate
from fairlead.batch.actions.backfill import Backfill
from fairlead.batch.actions.enqueue import Enqueue
from fairlead.batch.actions.preempt import Preempt
from fairlead.batch.actions.reclaim import Reclaim

ACTIONS: Final[Mapping[str, Action]] = {
    action.name: action for action in (Allocate(), Backfill(), Enqueue(), Preempt(), Reclaim())
}

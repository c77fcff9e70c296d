"""Preparations: reserves and prepares the volumes and devices of tasks before the tasks are bound.

    reserve ──▶ (dispatched) ──▶ pre-bind ──▶ (preparing) ──▶ Bind sent ──▶ bound
       └──────────────┴─────────────┴── refused ─┴───────────────┘  release

The scheduler's own Reserve and PreBind plugins do the work (`engine.framework.pre_bind`). A task's
volumes and devices are reserved as soon as a session gives the task a node. The next member of its
gang then cannot take them.

Tasks that are dispatched together are bound together, when all of them are prepared. If one task
cannot be prepared, the placements of all tasks dispatched with it are undone. The placements are
also undone if one of these tasks is deleted and too few members of its gang are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct, field

from fairlead.engine.batch.info.job import TaskInfo
from fairlead.engine.batch.info.job_table import JobTable
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.nodes.node_choice import NodeChoice
from fairlead.engine.core.command import Bind, Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status, error
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Preparation, Preparer
from fairlead.engine.framework.pre_bind import (
    PodPreparation,
    PreparationResult,
    PreparingPods,
    pre_bind_refusal,
)
from fairlead.engine.framework.runtime import attempt


class _ReservedTask(Struct):
    """The reservations for `task` on `node`; `refusal` is set if a plugin refused to reserve."""

    task: TaskInfo
    node: str
    state: CycleState
    refusal: Status | None = None


class DispatchGroup(Struct, eq=False):
    """Tasks that were dispatched together.

    `members` are the ids of these tasks. `preparing` are the ids of the tasks that are not prepared
    yet.
    """

    members: tuple[str, ...]
    preparing: dict[str, None] = field(default_factory=dict)


class PreparationCommands(Struct, frozen=True):
    """The result of one step of a preparation.

    `commands` are the commands to send. `to_undo` are the tasks whose placement must be undone.
    `refusal` is the status of the plugin that refused a task, or None.
    """

    commands: Sequence[Command] = ()
    to_undo: Sequence[TaskInfo] = ()
    refusal: Status | None = None


class Preparations:
    """The tasks with volumes or devices that have been given a node and are not yet bound."""

    def __init__(self, choice: NodeChoice, jobs: JobTable) -> None:
        """Use the Reserve and PreBind plugins of `choice`."""
        self._choice = choice
        self._jobs = jobs
        self._framework = choice.framework
        self._held: dict[str, _ReservedTask] = {}
        self._groups: dict[str, DispatchGroup] = {}  # by id of an unbound task
        self._preparing = PreparingPods()

    # --- within a session ------------------------------------------------------------------

    def pre_filter(self, task: TaskInfo) -> CycleState | None:
        """Return the state after PreFilter for `task`.

        Returns None if the task has neither volumes nor devices.
        """
        shape = task.info.shape
        if not self._framework.reserve or not (shape.has_volumes or shape.spec.resource_claims):
            return None
        return self._choice.find(task.info).state

    def reserve(self, task: TaskInfo, node: str, state: CycleState) -> None:
        """Reserve the volumes and devices that `task` needs on `node`; `release` undoes this.

        If a plugin refuses, the refusal is stored, and `dispatch` returns it.
        """
        held = self._held[task.id] = _ReservedTask(task, node, state)
        for plugin in self._framework.reserve:
            status = attempt(plugin, partial(plugin.reserve, state, task.info, node))
            if status is not None and not status.is_success:
                held.refusal = status.by(plugin.name)
                return

    def release(self, pod_id: str) -> None:
        """Release the volumes and devices that are reserved for the task `pod_id`, if any."""
        held = self._held.pop(pod_id, None)
        self._groups.pop(pod_id, None)
        if held is not None:
            pod = held.task.info
            self._preparing.forget(pod)
            for plugin in reversed(self._framework.reserve):
                attempt(plugin, partial(plugin.unreserve, held.state, pod, held.node))

    def dispatch(self, tasks: Sequence[TaskInfo], now: Instant) -> PreparationCommands:
        """Start to prepare `tasks`; return the Bind commands if none of them needs preparation.

        If a plugin refuses a task, none of `tasks` is bound. If a task needs preparation, the
        result contains the commands that prepare it. When the last preparation has ended, a call
        of `check` or `handle_deleted` returns the Bind commands.
        """
        group = DispatchGroup(tuple(task.id for task in tasks))
        works: dict[str, list[PodPreparation]] = {}
        for task in tasks:
            found = self._pre_bind(task)
            if isinstance(found, Status):
                return PreparationCommands(to_undo=tasks, refusal=found)
            if found:
                works[task.id] = found
        if not works:
            return PreparationCommands(_binds(tasks))
        group.preparing = dict.fromkeys(works)
        self._groups |= dict.fromkeys((task.id for task in tasks), group)
        commands: list[Command] = []
        for work in works.values():
            commands += self._preparing.begin(work, now)
        return PreparationCommands(commands)

    def _pre_bind(self, task: TaskInfo) -> list[PodPreparation] | Status:
        held = self._held.get(task.id)
        if held is None:
            return []
        if held.refusal is not None:
            return held.refusal
        works: list[PodPreparation] = []
        for plugin in self._framework.pre_bind:
            ask = partial(plugin.pre_bind, held.state, task.info, held.node)
            answer = attempt(plugin, ask)
            if isinstance(answer, Preparation):
                assert isinstance(plugin, Preparer), plugin.name
                works.append(PodPreparation(task.info, held.node, held.state, plugin, answer))
            elif answer is not None and not answer.is_success:
                return pre_bind_refusal(plugin.name, answer)
        return works

    # --- outcomes ----------------------------------------------------------------------------

    def handle_outcome(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> PreparationCommands | None:
        """Handle the outcome of a command that may belong to a preparation.

        If a preparation's command failed, the result contains the tasks whose placement must be
        undone. These are the task of the preparation, and the tasks that were dispatched with it.
        Otherwise the result is None. After the last command has succeeded, later calls of `check`
        find out whether the task is prepared.
        """
        prepared = self._preparing.handle_outcome(outcome, now)
        return None if prepared is None else self._prepared(prepared)

    def next_deadline(self) -> Instant | None:
        """Return the earliest time at which to check a preparation, or None."""
        return self._preparing.next_check() if self._preparing.works else None

    def check(self, now: Instant) -> Iterator[PreparationCommands]:
        """Check each preparation whose next check is due at `now`.

        Yields one result for each task that is now prepared, was refused, or has timed out. Before
        the next result, the caller must release the tasks whose placement must be undone. If
        several members of a gang time out together, only the first of them yields a result. The
        caller then releases the other members.
        """
        for prepared in self._preparing.check(now):
            yield self._prepared(prepared)

    def _prepared(self, prepared: PreparationResult) -> PreparationCommands:
        group = self._groups[prepared.pod.id]
        if prepared.refusal is not None:
            return self._cancel(group, prepared.refusal)
        group.preparing.pop(prepared.pod.id, None)
        return self._continue_group(group)

    def _continue_group(self, group: DispatchGroup) -> PreparationCommands:
        if group.preparing:
            return PreparationCommands()
        return PreparationCommands(_binds(self._end(group)))

    def _cancel(self, group: DispatchGroup, refusal: Status) -> PreparationCommands:
        return PreparationCommands(to_undo=self._end(group), refusal=refusal)

    def _end(self, group: DispatchGroup) -> list[TaskInfo]:
        """Remove `group`; return its members that were not bound."""
        for task_id in group.members:
            self._groups.pop(task_id, None)
        tasks = (self._jobs.tasks.get(task_id) for task_id in group.members)
        return [t for t in tasks if t is not None and t.status is TaskStatus.BINDING]

    def handle_deleted(self, pod_id: str) -> PreparationCommands:
        """Handle the deletion of the pod with the ID `pod_id`.

        The result concerns the tasks that were dispatched together with this pod. If their gang has
        too few members left, the result contains these tasks, and their placements must be undone.
        Otherwise, if all these tasks are prepared, the result contains their Bind commands.
        """
        group = self._groups.get(pod_id)
        self.release(pod_id)
        if group is None:
            return PreparationCommands()
        group.preparing.pop(pod_id, None)
        rest = [self._jobs.tasks[one] for one in group.members if one in self._jobs.tasks]
        if any(not task.job.is_ready for task in rest):
            return self._cancel(group, error("too few members of the gang are left"))
        return self._continue_group(group)

    def bound(self, pod_id: str) -> None:
        """Drop the reservation of a bound pod, which now owns its volumes and devices."""
        self._held.pop(pod_id, None)


def _binds(tasks: Iterable[TaskInfo]) -> list[Command]:
    return [Bind(task.ref, task.node) for task in tasks]

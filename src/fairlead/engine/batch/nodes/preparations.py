"""Preparations: volumes and devices of tasks, from a session's decision to the Bind.

    reserve ──▶ (dispatched) ──▶ pre-bind ──▶ (preparing) ──▶ Bind sent ──▶ bound
       └──────────────┴─────────────┴── refused ─┴───────────────┘  release

The scheduler's own Reserve and PreBind plugins do the work (`engine.framework.preparing`). What a
task is given is reserved as soon as a session gives it a node, so that the next member of its gang
sees it taken. Who is dispatched together is a *company*: nobody of it is bound before all are
prepared, and all are taken back if one cannot be, or has gone, and the others are too few. So a
gang that has no volumes for its last member does not run without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fairlead.engine.batch.info.job_table import JobTable
from fairlead.engine.batch.info.task import TaskInfo, TaskStatus
from fairlead.engine.batch.nodes.node_choice import NodeChoice
from fairlead.engine.core.command import Bind, Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status, error
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Preparation, Preparer
from fairlead.engine.framework.pre_bind import Prepared, Preparing, PreparingPods, pre_bind_refusal
from fairlead.engine.framework.runtime import attempt


@dataclass(slots=True)
class _Held:
    """What is reserved for `task` on `node`; with a `refusal` it cannot be bound there."""

    task: TaskInfo
    node: str
    state: CycleState
    refusal: Status | None = None


@dataclass(slots=True, eq=False)
class Company:
    """Tasks (by id) that were dispatched together; `preparing` are not ready to be bound yet."""

    members: tuple[str, ...]
    preparing: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparationCommands:
    """What a step on the way comes to: commands, and the tasks that have to be taken back."""

    commands: Sequence[Command] = ()
    taken_back: Sequence[TaskInfo] = ()
    refusal: Status | None = None


class Preparations:
    """All tasks that have volumes or devices, from their allocation until they are bound."""

    def __init__(self, choice: NodeChoice, jobs: JobTable) -> None:
        """`choice` has the plugins."""
        self._choice = choice
        self._jobs = jobs
        self._framework = choice.framework
        self._held: dict[str, _Held] = {}
        self._companies: dict[str, Company] = {}  # by task, of those that are not bound yet
        self._preparing = PreparingPods()

    # --- within a session ------------------------------------------------------------------

    def look(self, task: TaskInfo) -> CycleState | None:
        """What the plugins find out about `task` before it is put on a node; None without need."""
        shape = task.info.shape
        if not self._framework.reserve or not (shape.has_volumes or shape.spec.resource_claims):
            return None
        return self._choice.find(task.info).state

    def reserve(self, task: TaskInfo, node: str, state: CycleState) -> None:
        """Take what `task` needs on `node`. Undone by `release`."""
        held = self._held[task.id] = _Held(task, node, state)
        for plugin in self._framework.reserve:
            status = attempt(plugin, partial(plugin.reserve, state, task.info, node))
            if status is not None and not status.is_success:
                held.refusal = status.by(plugin.name)
                return

    def release(self, pod_id: str) -> None:
        """Give back what was reserved for a task, if anything was."""
        held = self._held.pop(pod_id, None)
        self._companies.pop(pod_id, None)
        if held is not None:
            pod = held.task.info
            self._preparing.forget(pod)
            for plugin in reversed(self._framework.reserve):
                attempt(plugin, partial(plugin.unreserve, held.state, pod, held.node))

    def dispatch(self, tasks: Sequence[TaskInfo], now: Instant) -> PreparationCommands:
        """Bind `tasks` once all are prepared; all of them are taken back where one is refused."""
        company = Company(tuple(task.id for task in tasks))
        works: dict[str, list[Preparing]] = {}
        for task in tasks:
            found = self._pre_bind(task)
            if isinstance(found, Status):
                return PreparationCommands(taken_back=tasks, refusal=found)
            if found:
                works[task.id] = found
        if not works:
            return PreparationCommands(_binds(tasks))
        company.preparing = dict.fromkeys(works)
        self._companies |= dict.fromkeys((task.id for task in tasks), company)
        commands: list[Command] = []
        for work in works.values():
            commands += self._preparing.begin(work, now)
        return PreparationCommands(commands)

    def _pre_bind(self, task: TaskInfo) -> list[Preparing] | Status:
        held = self._held.get(task.id)
        if held is None:
            return []
        if held.refusal is not None:
            return held.refusal
        works: list[Preparing] = []
        for plugin in self._framework.pre_bind:
            ask = partial(plugin.pre_bind, held.state, task.info, held.node)
            answer = attempt(plugin, ask)
            if isinstance(answer, Preparation):
                assert isinstance(plugin, Preparer), plugin.name
                works.append(Preparing(task.info, held.node, held.state, plugin, answer))
            elif answer is not None and not answer.is_success:
                return pre_bind_refusal(plugin.name, answer)
        return works

    # --- what the world answers --------------------------------------------------------------

    def answer(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> PreparationCommands | None:
        """Go on with the company whose preparation the world's answer ends, if it ends one."""
        prepared = self._preparing.answer(outcome, now)
        return None if prepared is None else self._prepared(prepared)

    def next_deadline(self) -> Instant | None:
        """When a preparation is looked at again."""
        return self._preparing.next_check() if self._preparing.works else None

    def check(self, now: Instant) -> list[PreparationCommands]:
        """Look at every preparation whose time has come."""
        return [self._prepared(prepared) for prepared in self._preparing.check(now)]

    def _prepared(self, prepared: Prepared) -> PreparationCommands:
        company = self._companies[prepared.pod.id]
        if prepared.refusal is not None:
            return self._disband(company, prepared.refusal)
        company.preparing.pop(prepared.pod.id, None)
        return self._go_on(company)

    def _go_on(self, company: Company) -> PreparationCommands:
        if company.preparing:
            return PreparationCommands()
        return PreparationCommands(_binds(self._ended(company)))

    def _disband(self, company: Company, refusal: Status) -> PreparationCommands:
        return PreparationCommands(taken_back=self._ended(company), refusal=refusal)

    def _ended(self, company: Company) -> list[TaskInfo]:
        """The company is no more: those of it of whom the world has not been told."""
        for task_id in company.members:
            self._companies.pop(task_id, None)
        tasks = (self._jobs.tasks.get(task_id) for task_id in company.members)
        return [t for t in tasks if t is not None and t.status is TaskStatus.BINDING]

    def left(self, pod_id: str) -> PreparationCommands:
        """The pod is gone: its company goes on without it while that is still a gang."""
        company = self._companies.get(pod_id)
        self.release(pod_id)
        if company is None:
            return PreparationCommands()
        company.preparing.pop(pod_id, None)
        rest = [self._jobs.tasks[one] for one in company.members if one in self._jobs.tasks]
        if any(not task.job.is_ready for task in rest):
            return self._disband(company, error("too few of the gang are left"))
        return self._go_on(company)

    def bound(self, pod_id: str) -> None:
        """What was reserved is the pod's own from now on."""
        self._held.pop(pod_id, None)


def _binds(tasks: Iterable[TaskInfo]) -> list[Command]:
    return [Bind(task.ref, task.node) for task in tasks]

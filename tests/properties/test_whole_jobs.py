"""Properties of gangs and queues over random clusters.

No part of a gang is bound, no node is over-committed, no queue is reclaimed below its share,
critical pods are not evicted, and evictions end. Random clusters with queues and gangs run random
sessions; evicted pods are created again, as by their controllers.
"""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.engine.batch.actions.eviction_search import PREEMPTION, RECLAIM
from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import read_configuration, shipped_configuration
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.plugins.drf import Drf
from fairlead.engine.batch.plugins.proportion import Proportion
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.batch.session.session import Session
from fairlead.engine.batch.session.statement import Statement
from fairlead.engine.core.command import Bind, DeleteObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.batch_builders import make_group, make_priority_class, make_queue, make_task
from fairlead.testing.builders import make_node
from fairlead.testing.random_cluster import Chance

CRITICAL = "system-cluster-critical"
CLASSES = {"low": 1, "high": 10, CRITICAL: 2_000_000_000}
NODES = ("n1", "n2", "n3", "n4")
GIBIBYTE = 1 << 30
SESSIONS = 6
ENOUGH = 20  # sessions, for six jobs
EPSILON = 1e-6
SEEDS = st.integers(0, 2**32)

ALL_ACTIONS = """\
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CONFIGURATIONS = {
    "fairlead": shipped_configuration("fairlead"),
    "kube-batch": shipped_configuration("kube-batch"),
    "all of kube-batch": read_configuration(ALL_ACTIONS),
}

every_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)
often = settings(max_examples=30)


class Days:
    """A random cluster from `seed`, and sessions over it."""

    def __init__(self, config, seed):
        self.chance = Chance(seed)
        self.cluster = Cluster()
        self.composition = compose(config, self.cluster)
        self.jobs = self.composition.jobs
        self.tie_break = TieBreak(seed)
        self.now_s = 0.0
        self.evictions = []
        self.left = []
        for name, value in CLASSES.items():
            self.tell(ObjectChanged(make_priority_class(name, value)))
        for name in NODES[: 1 + self.chance.below(4)]:
            self.tell(ObjectChanged(self.any_node(name)))
        self.queues = ["default", "a", "b"][: 1 + self.chance.below(3)]
        for name in self.queues:
            self.tell(ObjectChanged(make_queue(name, 1 + self.chance.below(3))))
        for i in range(6):
            self.any_gang(f"g{i}")

    # --- what there is -----------------------------------------------------------------------

    def any_node(self, name):
        chance = self.chance
        return make_node(name, cpu=chance.of((1, 2, 4, 4)), memory=f"{chance.of((2, 4, 8))}Gi")

    def any_gang(self, name):
        chance = self.chance
        size, minimum = 1 + chance.below(5), chance.below(6)
        queue, priority = chance.of(self.queues), chance.of(("", "low", "low", "high", CRITICAL))
        group = make_group(name, min(minimum, size), queue, priorityClassName=priority)
        self.tell(ObjectChanged(group))
        for i in range(size):
            self.tell(ObjectChanged(self.any_task(f"{name}-{i}", name, priority)))

    def any_task(self, name, group, priority):
        """Return a task that is pending, or running on a node with room."""
        chance = self.chance
        cpu, memory = chance.of((0, 1, 1, 2)), chance.of((1, 1, 2))
        nodes = [n for n in self.cluster.table.nodes() if cpu and has_room(n, cpu, memory)]
        node = chance.of(nodes).name if nodes and chance.one_in(2) else ""
        return make_task(
            name,
            group,
            cpu=cpu,
            memory=f"{memory}Gi",
            node=node,
            priority=chance.below(3),
            terminating=bool(node) and chance.one_in(8),
            spec={"priorityClassName": priority},
        )

    def tell(self, stimulus):
        self.cluster.apply(stimulus)
        self.jobs.apply(stimulus)

    # --- what happens ------------------------------------------------------------------------

    def live(self):
        """Run a session and a random change, and check the state; yield what happened."""
        for _ in range(SESSIONS):
            commands = self.decide()
            yield commands
            self.perform(commands)
            self.shake()

    def decide(self):
        done = run_session(
            self.composition, self.cluster, self.tie_break, seconds(self.now_s), observer=self
        )
        self.jobs.validate()
        self.cluster.table.validate()
        self.now_s += 1
        return done.commands

    def perform(self, commands):
        for command in commands:
            match command:
                case Bind(pod=target, node=node):
                    self.tell(ObjectChanged(running(self.pod(target), node)))
                case DeleteObject(target=target):
                    pod = self.pod(target)
                    self.tell(ObjectDeleted(pod))
                    self.tell(ObjectChanged(waiting(pod)))

    def pod(self, target):
        return self.cluster.pods[f"default/{target.name}"].pod

    def shake(self):
        chance, pods = self.chance, [info.pod for info in self.cluster.pods.values()]
        match chance.below(5):
            case 0 if pods:
                self.tell(ObjectDeleted(chance.of(pods)))
            case 1 if pods:
                pod = chance.of(pods)
                done = msgspec.structs.replace(pod.status, phase="Succeeded")
                self.tell(ObjectChanged(msgspec.structs.replace(pod, status=done)))
            case 2:
                self.tell(ObjectChanged(self.any_node(chance.of(NODES))))
            case 3:
                self.tell(ObjectChanged(make_queue(chance.of(self.queues), 1 + chance.below(3))))
            case _:
                self.any_gang(f"g{chance.below(8)}")

    # --- what can be seen --------------------------------------------------------------------

    def session(self):
        """Return an open session that has made no decision."""
        session = Session(self.cluster, self.jobs, self.composition.policy, self.tie_break, 0)
        session.open()
        return session

    def excess(self):
        """Return the requests beyond the allocatable amounts, by (node, resource)."""
        return {
            (node.name, column): requested - offered
            for node in self.cluster.table.nodes()
            for column, (requested, offered) in enumerate(
                zip(node.requested, node.allocatable, strict=False)
            )
            if requested > offered
        }

    def picture(self):
        """Return all state that discarding a statement must restore."""
        room = self.composition.policy.room
        return {
            "tasks": {key: (task.status, task.node) for key, task in self.jobs.tasks.items()},
            "held": {job.id: trimmed(job.held) for job in self.jobs.jobs.values()},
            "nodes": {node.name: sorted(node.pods) for node in self.cluster.table.nodes()},
            "sums": self.cluster.table.requested.tolist(),
            "room": (room.idle.tolist(), room.releasing.tolist()),
        }

    # --- the observer of a session -----------------------------------------------------------

    def opened(self, session):
        self.shares = next(p for p in session.tiers.plugins if isinstance(p, Proportion)).shares

    def note(self, step):
        """Record the evicted pod, and the share that reclaim left to its queue."""
        if step.verb == "evict":
            self.evictions.append(step.task)
            if step.detail == "reclaim":
                self.left.append(self.shares[step.task.job.queue].share)

    def closing(self, session):
        """Do nothing."""


def has_room(node, cpu, memory):
    free = [a - b for a, b in zip(node.allocatable, node.requested, strict=False)]
    return free[0] >= cpu * 1000 and free[1] >= memory * GIBIBYTE


def running(pod, node):
    return msgspec.structs.replace(
        pod,
        spec=msgspec.structs.replace(pod.spec, node_name=node),
        status=msgspec.structs.replace(pod.status, phase="Running"),
    )


def waiting(pod):
    """Return the pod that its controller creates as a replacement."""
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, uid=f"{pod.metadata.uid}+"),
        spec=msgspec.structs.replace(pod.spec, node_name=""),
        status=msgspec.structs.replace(pod.status, phase="Pending"),
    )


def trimmed(amounts):
    found = list(amounts)
    while found and not found[-1]:
        found.pop()
    return found


# --- sessions --------------------------------------------------------------------------------


@every_configuration
@often
@given(seed=SEEDS)
def test_no_part_of_a_gang_is_bound(name, seed):
    days = Days(CONFIGURATIONS[name], seed)
    for commands in days.live():
        for command in commands:
            if isinstance(command, Bind):
                job = days.jobs.tasks[command.pod.uid].job
                assert job.ready_count >= job.min_available


@often
@given(seed=SEEDS)
def test_no_node_gets_more_than_its_allocatable_resources(seed):
    """This is exact to a milli-unit; a node that has shrunk gets no more pods."""
    days = Days(CONFIGURATIONS["fairlead"], seed)
    for _ in range(SESSIONS):
        before = days.excess()
        days.perform(days.decide())
        assert all(amount <= before.get(at, 0) for at, amount in days.excess().items())
        days.shake()


@every_configuration
@often
@given(seed=SEEDS)
def test_no_queue_is_reclaimed_below_its_share(name, seed):
    days = Days(CONFIGURATIONS[name], seed)
    for _ in days.live():
        assert all(share >= 1 - EPSILON for share in days.left)


@every_configuration
@often
@given(seed=SEEDS)
def test_critical_pods_are_never_evicted(name, seed):
    config = replace(CONFIGURATIONS[name], broken_gang_grace_s=None)
    days = Days(config, seed)
    for _ in days.live():
        pass
    classes = {task.info.pod.spec.priority_class_name for task in days.evictions}
    assert CRITICAL not in classes


@pytest.mark.long
@often
@given(seed=SEEDS)
def test_evictions_end(seed):
    """Pods are not evicted for each other in an endless cycle."""
    days = Days(CONFIGURATIONS["fairlead"], seed)
    for i in range(ENOUGH + 10):
        if i == ENOUGH:
            days.evictions.clear()
        days.perform(days.decide())
    assert days.evictions == []


@every_configuration
@settings(max_examples=10)
@given(seed=SEEDS)
def test_equal_seeds_give_equal_decisions(name, seed):
    found = [list(Days(CONFIGURATIONS[name], seed).live()) for _ in range(2)]
    assert found[0] == found[1]


# --- statements ------------------------------------------------------------------------------


@every_configuration
@often
@given(seed=SEEDS)
def test_a_discarded_statement_leaves_no_change(name, seed):
    days = Days(CONFIGURATIONS[name], seed)
    session = days.session()
    chance, before, statement = days.chance, days.picture(), Statement(session)
    nodes = list(days.cluster.table.nodes())
    for _ in range(12):
        any_step(chance, statement, chance.of(list(days.jobs.tasks.values())), chance.of(nodes))
        if chance.one_in(4):
            statement.discard_after(chance.below(len(statement) + 1))
    days.jobs.validate()
    days.cluster.table.validate()
    statement.discard()
    assert days.picture() == before
    assert session.commands == []


def any_step(chance, statement, task, node):
    """Perform a random valid operation for the task, whether or not the node has room."""
    match task.status:
        case TaskStatus.PENDING if chance.one_in(2):
            statement.allocate(task, node)
        case TaskStatus.PENDING:
            statement.pipeline(task, node)
        case TaskStatus.RUNNING:
            statement.evict(task, "preempt")
        case _:
            pass


# --- verdicts on whole jobs ------------------------------------------------------------------


@every_configuration
@pytest.mark.parametrize("kind", [PREEMPTION, RECLAIM], ids=["preempt", "reclaim"])
@often
@given(seed=SEEDS)
def test_the_verdict_of_a_plugin_on_a_job_equals_its_verdicts_on_the_members(kind, name, seed):
    """A job that it excludes as a whole has no victims for any task of the preemptor."""
    session = Days(CONFIGURATIONS[name], seed).session()
    excluding = [
        p for tier in kind.voters(session.tiers) for p in tier if isinstance(p, kind.excluding)
    ]
    assert excluding
    for taker, giver in product(session.jobs.values(), repeat=2):
        members = giver.with_status(TaskStatus.RUNNING)
        for plugin in excluding:
            if members and not kind.not_excluded_by(plugin, taker, [giver]):
                for task in taker.with_status(TaskStatus.PENDING):
                    assert not kind.allowed_by(plugin, task, members)
                    assert not any(kind.allowed_by(plugin, task, [member]) for member in members)


# --- shares ----------------------------------------------------------------------------------


@often
@given(seed=SEEDS)
def test_an_allocation_never_lowers_the_share_of_a_job(seed):
    """So jobs with smaller shares are served first until the shares are equal."""
    days = Days(CONFIGURATIONS["kube-batch"], seed)
    session = days.session()
    drf = next(p for p in session.tiers.plugins if isinstance(p, Drf))
    statement, nodes = Statement(session), list(days.cluster.table.nodes())
    for task in days.jobs.tasks.values():
        if task.status is TaskStatus.PENDING:
            before = drf.share_of(task.job)
            statement.allocate(task, nodes[0])
            assert drf.share_of(task.job) >= before
            statement.discard_after(len(statement) - 1)
            assert drf.share_of(task.job) == before
            statement.allocate(task, nodes[0])

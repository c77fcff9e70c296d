"""VictimPools: the pools kept between searches equal those of a new search."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.batch.actions.eviction_search import RECLAIM, victim_pools
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.session.plugin import ReclaimableJobs
from fairlead.engine.batch.session.tier import without_gang_protection
from fairlead.testing.batch_builders import make_gang, make_queue
from fairlead.testing.builders import make_node
from fairlead.testing.random_cluster import Chance

QUEUES = ("a", "b", "c")


@pytest.fixture
def harness(make_harness):
    """Two queues of running gangs on eight nodes, and a third queue that reclaims."""
    harness = make_harness("fairlead").put([make_queue(name) for name in QUEUES])
    for number in range(8):
        harness.put(make_node(f"n{number}", cpu="4"))
        queue, minimum = QUEUES[number % 2], number % 4
        gang = make_gang(f"g{number}", 4, queue=queue, min_member=minimum, node=f"n{number}")
        harness.put(gang)
    return harness.put(make_gang("taker", 2, queue="c"))


def candidate_jobs(session, taker, voters, jobs):
    """Return the jobs whose tasks may be victims, and their resources, computed without a pool."""
    for plugin in (one for tier in voters for one in tier if isinstance(one, ReclaimableJobs)):
        jobs = plugin.reclaimable_jobs(taker, jobs)
    occupied = np.zeros_like(session.room.idle)
    for job in jobs:
        for task in job.with_status(TaskStatus.RUNNING):
            for column, amount in task.request.running:
                occupied[column, session.table.find(task.node).row] += amount
    return sorted(job.id for job in jobs), occupied


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("protected", [True, False])
def test_kept_pools_equal_those_of_a_new_search(harness, seed, protected):
    """Members leave and return, so the gangs and queues get and lose surplus members."""
    session, chance = harness.session(), Chance(seed)
    taker, voters = harness.job("taker"), session.tiers.reclaim_voters
    if not protected:
        voters = without_gang_protection(voters)
    jobs = [job for job in session.jobs.values() if job.queue != "c"]
    kept, seen = victim_pools(session, RECLAIM, jobs), set()
    tasks = [task for job in jobs for task in job.tasks.values()]
    for _ in range(60):
        found = kept.for_job(taker, voters)
        ids, occupied = candidate_jobs(session, taker, voters, jobs)
        assert ids == sorted(job.id for job in found.jobs)
        assert (found.potential >= occupied).all()
        seen.add(tuple(ids))
        for _ in range(1 + chance.below(6)):
            task = chance.of(tasks)
            if task.status is TaskStatus.RUNNING:
                session.release(task)
            else:
                session.unevict(task)
    assert len(seen) > 1

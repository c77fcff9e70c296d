"""Checks of nodes on several cores have the results that one core would compute."""

from __future__ import annotations

import os

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node_drain.single_drain import check_alone
from fairlead.whatif.run.progress import NoProgress

NODES = tuple(f"n{number:02}" for number in range(20))


@pytest.fixture
def model(planner, make):
    return planner(*map(make.node, NODES)).model


def used_processes(model, items):
    return set(independent_checks(model, lambda _: os.getpid(), items))


def test_many_checks_use_a_process_for_each_core(monkeypatch, model):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    used = used_processes(model, NODES)
    assert len(used) == 3
    assert os.getpid() not in used


@pytest.mark.parametrize(
    ("cores", "items", "is_stateless"),
    [
        pytest.param({0}, NODES, True, id="there is only one core"),
        pytest.param({0, 1}, NODES[:3], True, id="there are only three checks"),
        pytest.param({0, 1}, NODES, False, id="a plugin of the user may keep a state"),
    ],
)
def test_all_checks_run_in_this_process_if(monkeypatch, model, cores, items, is_stateless):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores)
    monkeypatch.setattr(type(model), "repeats_decisions", is_stateless)
    assert used_processes(model, items) == {os.getpid()}


def test_the_answer_does_not_depend_on_the_number_of_cores(monkeypatch, planner, make):
    """Several nodes are equally good for each pod, so each placement is a random choice."""

    def plan(cores):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores)
        nodes = [make.node(name, cpu="4") for name in NODES]
        pods = deployment(make, "web", [*NODES[:10], *NODES[:6]], cpu="1")
        large = deployment(make, "large", NODES[10:13], cpu="4")
        made = planner(*nodes, *pods, *large)
        return check_alone(made, NODES, "dump.yaml", NoProgress())

    alone = plan({0})
    assert plan({0, 1, 2}) == alone
    assert len({move.target for drain in alone.drains for move in drain.moves}) > 1

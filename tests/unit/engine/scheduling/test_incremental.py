"""Cached results equal recomputed ones: plans, nominations and dry runs after any changes.

One cluster with all its caches changes at random. After each change, two other profiles must
evaluate and schedule a waiting pod in the same way: a new profile over the same cluster, and a
profile over a cluster that was loaded anew.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.engine.core.status import Code
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.nominated_pods import only_fit
from fairlead.engine.scheduling.preemption.dry_run.victim_columns import VictimColumns, guarded_rows
from fairlead.engine.scheduling.preemption.dry_run.victims import (
    select_victims_by_resources,
    select_victims_on_node,
)
from fairlead.engine.scheduling.preemption.policy import RULES
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.random_cluster import (
    NODE_NAMES,
    POD_NAMES,
    Chance,
    any_budget,
    any_node,
    any_pod,
)

WAITING_NAMES = tuple(f"w{i}" for i in range(1, 10))


def on_node(pod, node):
    """Return `pod` as it is after its binding to `node`."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def important(pod):
    """Return `pod` with a higher priority than all others, so that it may preempt."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=5000))


def promised(pod, node):
    """Return `pod` with `node` as the nominated node in its status."""
    status = msgspec.structs.replace(pod.status, nominated_node_name=node)
    return msgspec.structs.replace(pod, status=status)


def findings(served, pod):
    """Return everything that an evaluation contains, with names instead of objects."""
    found = evaluate(served, pod)
    plain = {name: getattr(found, name) for name in found.__slots__ if name != "preemption"}
    if found.room is not None:  # which equal node is named depends on their order
        plain["room"] = found.room.by, len(found.room.victims)
    preemption = found.preemption
    if preemption is None:
        return plain
    return plain | {
        "ineligible": preemption.ineligible,
        "potential": sorted(preemption.potential_nodes),
        "candidates": {
            name: ([victim.key for victim in one.victims], one.pdb_violations)
            for name, one in preemption.candidates.items()
        },
        "rejected": preemption.rejected,
        "nominated": preemption.nominated,
        "rule": preemption.rule,
        "error": preemption.post_filter_error,
    }


def decision(served, pod):
    """Return the node that a cycle chooses, and the other results that do not depend on chance."""
    found = run_consultation(schedule_one(served, pod, TieBreak(0)))
    if isinstance(found, Placement):
        return found.node.name, (found.via, found.feasible, found.equals)
    room = found.post_filter_result and (
        len(found.post_filter_result.victims),
        found.post_filter_result.pdb_violations,
        found.post_filter_result.rule,
    )
    return "", (found.message, found.plugins, found.is_error, room)


class Life:
    """A cluster with long-lived caches, its objects, and pending pods."""

    def __init__(self, seed, *, beyond_the_node):
        self.chance = Chance(seed)
        self.beyond = beyond_the_node
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.objects = {}
        self.waiting = {}
        self.profile = self.build_profile(self.cluster, self.nominator)
        self.victims = VictimColumns(self.cluster.table)
        self.seen = Counter()
        for name in NODE_NAMES[:4]:
            self.tell(any_node(self.chance, name))
        for _ in range(10):
            self.put_pod()
        for name in WAITING_NAMES:
            self.renew(name)

    def build_profile(self, cluster, nominator):
        return build_profile(
            Profile(), PluginHandle(cluster, nominator, WaitingPods()), TieBreak(0)
        )

    def tell(self, obj):
        self.objects[obj.key] = obj
        self.cluster.apply(ObjectChanged(obj))

    def lose(self, key):
        gone = self.objects.pop(key, None)
        if gone is not None:
            self.cluster.apply(ObjectDeleted(gone))

    def change(self):
        """Change the cluster at random; most changes add or delete pods."""
        chance = self.chance
        (self.put_pod, self.put_pod, self.touch_pod, self.touch_pod, self.lose_pod, self.place,
         self.nominate, self.nominate, self.nominate, self.withdraw, self.put_node, self.lose_node,
         self.tell_budget, self.renew)[chance.below(14)]()  # fmt: skip

    def put_pod(self):
        name, node = self.chance.of(POD_NAMES), self.chance.of(NODE_NAMES)
        pod = any_pod(self.chance, name, node, beyond_the_node=self.beyond)
        known = self.objects.get(pod.key)
        if known is not None and known.metadata.uid == pod.metadata.uid:
            pod = on_node(pod, known.spec.node_name)  # a binding never changes
        self.tell(pod)

    def touch_pod(self):
        """Change a pod in fields that only the plugins of other pods read."""
        placed = [pod for pod in self.cluster.pods.values() if pod.pod.spec.node_name]
        if placed:
            old = self.chance.of(placed).pod
            new = any_pod(self.chance, old.metadata.name, old.spec.node_name)
            meta = msgspec.structs.replace(new.metadata, uid=old.metadata.uid)
            spec = msgspec.structs.replace(old.spec, priority=new.spec.priority)
            self.tell(msgspec.structs.replace(new, metadata=meta, spec=spec))

    def lose_pod(self):
        self.lose(f"default/{self.chance.of((*POD_NAMES, *WAITING_NAMES))}")

    def put_node(self):
        self.tell(any_node(self.chance, self.chance.of(NODE_NAMES)))

    def lose_node(self):
        self.lose(self.chance.of(NODE_NAMES))

    def tell_budget(self):
        self.tell(any_budget(self.chance))

    def renew(self, name=""):
        name = name or self.chance.of(WAITING_NAMES)
        self.lose(f"default/{name}")
        pod = any_pod(self.chance, name, beyond_the_node=self.beyond)
        if not self.chance.one_in(3):
            pod = important(pod)
        self.nominator.withdraw(f"uid-{name}-0")
        self.nominator.withdraw(f"uid-{name}-1")
        self.wait(pod)

    def wait(self, pod):
        self.waiting[pod.metadata.name] = PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def nominate(self):
        pod, node = self.any_waiting(), self.chance.of(NODE_NAMES)
        self.wait(promised(pod.pod, node))
        self.nominator.nominate(self.waiting[pod.pod.metadata.name], node)

    def withdraw(self):
        pod = self.any_waiting()
        self.nominator.withdraw(pod.uid)
        self.wait(promised(pod.pod, ""))

    def place(self):
        """Run a cycle, and bind the pod if it finds a node."""
        pod = self.any_waiting()
        found = run_consultation(schedule_one(self.profile, pod, TieBreak(self.chance.below(99))))
        if isinstance(found, Placement):
            self.nominator.withdraw(pod.uid)
            self.tell(on_node(promised(pod.pod, ""), found.node.name))
            del self.waiting[pod.pod.metadata.name]
            if not self.waiting:
                self.renew()

    def any_waiting(self):
        return self.waiting[self.chance.of(sorted(self.waiting))]

    def check(self):
        """Compare the cached results with those of a new profile and of a newly loaded cluster."""
        pod = self.any_waiting()
        kept, decided = findings(self.profile, pod), decision(self.profile, pod)
        fresh = self.build_profile(self.cluster, self.nominator)
        assert kept == findings(fresh, pod)
        assert decided == decision(fresh, pod)
        kept_plan, fresh_plan = (one.plans.plan_for(pod) for one in (self.profile, fresh))
        assert kept_plan.total.tolist() == fresh_plan.total.tolist()
        anew, stranger = self.rebuilt(pod)
        assert kept == findings(anew, stranger)
        assert decided[1] == decision(anew, stranger)[1]
        assert decided[0] in (kept["choices"] or [""])
        self.note(kept)
        self.victims_both_ways(pod)
        matrix = kept_plan.matrix
        self.seen["in a matrix"] += matrix is not None and len(matrix.plans) > 3

    def victims_both_ways(self, pod):
        """Check that the victims found by sums equal the victims of a trial, on every node."""
        framework, nominator = self.profile.framework, self.nominator
        found = find_nodes_that_fit(self.profile.plans, pod)
        fit = None if found.rejected else only_fit(found.plan, found.state)
        if fit is None:
            return
        budgets, table = self.cluster.budgets(), self.cluster.table
        for node in table.nodes():
            if not found.plan.static_code(node.row):
                rivals = nominator.competing_pods_on(node.name, pod)
                assert select_victims_by_resources(
                    fit, pod, node, table.representatives, rivals, budgets
                ) == select_victims_on_node(framework, found.state, pod, node, budgets)
                self.seen["by resources"] += 1
        self.victims_over_columns(fit, pod, found)

    def victims_over_columns(self, fit, pod, found):
        """Check that the costs over columns are those of the candidates on each node."""
        table, budgets = self.cluster.table, self.cluster.budgets()
        guarded = guarded_rows(table, budgets, np.arange(table.capacity))
        rows = [
            node.row
            for node in table.nodes()
            if any(other.priority < pod.priority for other in node.pods.values())
            and not guarded[node.row]
            and not found.plan.static_code(node.row)
            and not self.nominator.competing_pods_on(node.name, pod)
        ]
        assert self.victims.refresh()
        result = self.victims.costs(fit, pod, np.array(rows, np.int64), RULES)
        for i, row in enumerate(rows if result is not None else ()):
            answer = select_victims_by_resources(
                fit, pod, table.at(row), table.representatives, (), budgets
            )
            if isinstance(answer, Candidate):
                assert result.is_candidate[i]
                assert result.costs[:, i].tolist() == [rule.cost(answer) for rule in RULES]
            else:
                assert not result.is_candidate[i]
                code = result.codes[i]
                assert answer == result.statuses[code] if code else answer.code is Code.ERROR
            self.seen["over columns"] += 1

    def rebuilt(self, pod):
        """Return a profile over a newly loaded cluster, and `pod` as known there."""
        cluster, nominator = Cluster(), Nominator()
        cluster.apply(ObjectsLoaded(list(reversed(self.objects.values()))))

        def known(info):
            return PodInfo(info.pod, cluster.shapes.shape_of(info.pod))

        for node in self.nominator.nodes():
            for rival in self.nominator.pods_on(node):
                nominator.nominate(known(rival), node)
        return self.build_profile(cluster, nominator), known(pod)

    def note(self, kept):
        """Count the kinds of results."""
        self.seen["placed" if kept["choices"] else "refused"] += 1
        self.seen["scored"] += kept["via"] == "score"
        self.seen["preempting"] += bool(kept.get("candidates"))
        self.seen["beside rivals"] += bool(self.nominator)


@pytest.mark.parametrize("beyond", [False, True], ids=["within the node", "beyond the node"])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_cached_results_equal_recomputed_results(seed, beyond):
    """Statuses, scores, ties, messages, candidates, victims and the deciding rule."""
    life = Life(seed, beyond_the_node=beyond)
    for _ in range(25):
        life.change()
        life.check()


def test_the_random_changes_cover_all_outcomes():
    """Placements by score, rejections, preemptions and nominations all occur often."""
    seen = Counter()
    for seed in range(5):
        life = Life(seed, beyond_the_node=True)
        for _ in range(25):
            life.change()
            life.check()
        seen += life.seen
    assert min(seen.values()) >= 8, seen

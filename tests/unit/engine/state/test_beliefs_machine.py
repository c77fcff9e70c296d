"""After any order of changes, assumptions and hypotheses, all sums are correct."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlead.engine.state.fork import fork
from fairlead.testing.builders import make_node, make_pod

GPU = "nvidia.com/gpu"
NODES = st.sampled_from(["n1", "n2", "n3"])
NAMES = st.sampled_from(["a", "b", "c", "d"])
UIDS = st.sampled_from(["1", "2"])
LABELS = st.dictionaries(st.sampled_from(["app", "zone"]), st.sampled_from(["x", "y"]))
AMOUNTS = st.fixed_dictionaries(
    {}, optional={"cpu": st.integers(0, 3), "memory": st.integers(0, 9), GPU: st.integers(1, 2)}
)


def affinity(kind):
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


SPECS = st.sampled_from([{}, {}, affinity("podAffinity"), affinity("podAntiAffinity")])
PODS = st.builds(
    lambda name, uid, **more: make_pod(name, uid=f"{name}-{uid}", **more),
    NAMES,
    UIDS,
    priority=st.integers(0, 2),
    labels=LABELS,
    requests=AMOUNTS,
    host_ports=st.lists(st.integers(80, 82), max_size=2, unique=True),
    terminating=st.booleans(),
    spec=SPECS,
)


class Beliefs(RuleBasedStateMachine):
    """Random changes of a cluster; a fixture sets `tools` to the functions of conftest."""

    tools = SimpleNamespace()

    def __init__(self):
        super().__init__()
        self.one = self.tools.believer()
        self.one.table.label_column("zone")
        self.truth = {}  # the observed pods, as the API server stores them
        self.real_nodes = {}

    @rule(name=NODES, labels=LABELS, amounts=AMOUNTS, tainted=st.booleans())
    def put_node(self, name, labels, amounts, tainted):
        node = make_node(name, labels=labels, taints=["t:NoSchedule"] * tainted, **amounts)
        self.real_nodes[name] = node
        self.one.put(node)

    @rule(name=NODES)
    def lose_node(self, name):
        self.real_nodes.pop(name, None)
        self.one.gone(make_node(name))

    @rule(pod=PODS, node=st.one_of(st.just(""), NODES))
    def put_pod(self, pod, node):
        known = self.truth.get(pod.key)
        if known is not None and known.metadata.uid == pod.metadata.uid and known.spec.node_name:
            node = known.spec.node_name  # a binding never changes
        bound = placed(pod, node)
        self.truth[pod.key] = bound
        self.one.put(bound)

    @rule(name=NAMES)
    def lose_pod(self, name):
        gone = self.truth.pop(f"default/{name}", None)
        if gone is not None:
            self.one.gone(gone)

    @rule(name=NAMES, node=NODES)
    def assume(self, name, node):
        known = self.one.cluster.pods.get(f"default/{name}")
        if known is not None and not self.one.cluster.node_of(known):
            self.one.cluster.assume(known, node)

    @rule(name=NAMES)
    def forget(self, name):
        known = self.one.cluster.pods.get(f"default/{name}")
        if known is not None:
            self.one.cluster.forget(known)

    @rule(name=NAMES)
    def confirm(self, name):
        known = self.one.cluster.pods.get(f"default/{name}")
        if known is not None and self.one.cluster.is_assumed(known):
            self.put_pod(known.pod, self.one.cluster.node_of(known))

    @precondition(lambda self: self.real_nodes)
    @rule(data=st.data())
    def suppose(self, data):
        """Make nested hypothetical changes, and revert all of them."""
        table, before = self.one.table, self.tools.dump(self.one.table)
        log = table.pod_log.position
        with ExitStack() as stack:
            for _ in range(data.draw(st.integers(1, 3))):
                self._change(data, stack.enter_context(fork(table)))
        assert self.tools.dump(table) == before
        assert table.pod_log.position == log

    def _change(self, data, hypothesis):
        for _ in range(data.draw(st.integers(0, 4))):
            node = data.draw(st.sampled_from(self.one.table.nodes()))
            stranger = self.one.info(data.draw(PODS))
            if node.pods and data.draw(st.booleans()):
                leaving = data.draw(st.sampled_from(sorted(node.pods)))
                hypothesis.remove_pod(node, node.pods[leaving])
            elif stranger.id not in node.pods:
                hypothesis.add_pod(node, stranger)

    @invariant()
    def kept_is_recomputed(self):
        """Check that the sums equal those of a cluster that is loaded at once in another order."""
        self.tools.check(self.one.table)
        fresh = self.tools.believer()
        pods = [info.pod for info in self.one.cluster.pods.values()]
        nodes = list(self.real_nodes.values())
        fresh.put(*reversed(nodes))
        fresh.put(*reversed([placed(p, self._counted_on(p)) for p in pods]))
        assert without_versions(self.tools.by_name(self.one.table)) == without_versions(
            self.tools.by_name(fresh.table)
        )

    def _counted_on(self, pod):
        return self.one.cluster.node_of(self.one.cluster.pods[pod.key])


def placed(pod, node):
    """`pod` with `node` as its node."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def without_versions(shown):
    """Return the nodes with only the keys of pods; an assumed pod's object has no node."""
    return {name: node | {"pods": [key for key, _ in node["pods"]]} for name, node in shown.items()}


@pytest.mark.long
def test_sums_equal_recomputed_ones_and_hypotheses_are_reverted(new_believer, dump, by_name, check):
    """Columns, integers, ports, labels, pod_index and images, after any changes."""
    Beliefs.tools = SimpleNamespace(believer=new_believer, dump=dump, by_name=by_name, check=check)
    Beliefs.TestCase.settings = settings(max_examples=150, stateful_step_count=20)
    Beliefs.TestCase().runTest()

"""The joined list of nodes after changes equals a list that is built from scratch."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.seeded_choice import draws

NAMES = ("a", "b", "c", "d")
START = 10**18


def node(name, provider_id, version):
    meta = {"name": name, "labels": {"version": str(version)}}
    return decode_as(Node, {"metadata": meta, "spec": {"providerID": provider_id}})


def claim(name, provider_id, version):
    meta = {"name": f"claim-{name}", "labels": {"version": str(version)}}
    return decode_as(NodeClaim, {"metadata": meta, "status": {"providerID": provider_id}})


def joined_anew(cluster, now, until, marked):
    """Join the nodes without any cached state."""
    by_provider = {
        one.spec.provider_id: one for one in cluster.node_objects.values() if one.spec.provider_id
    }
    pairs = [
        (one, by_provider.get(one.status.provider_id))
        for one in cluster.node_claims.values()
        if one.status.provider_id
    ]
    claimed = {one.metadata.name for _, one in pairs if one is not None}
    pairs += [(None, o) for o in cluster.node_objects.values() if o.metadata.name not in claimed]
    found = [StateNode(*pair) for pair in pairs]
    return [
        StateNode(one.claim, one.node, one.key in marked, until.get(one.key, now) > now)
        for one in found
    ]


def remove_any(cluster, known, choice, marked, now):
    if known:
        gone = choice(known)
        cluster.remove(gone, now)
        if isinstance(gone, NodeClaim):
            marked.discard(gone.status.provider_id or gone.name)


@pytest.mark.parametrize("seed", range(6))
def test_an_updated_list_equals_a_list_built_from_scratch(seed):
    drawn = draws(seed, 1)

    def choice(values):
        return values[next(drawn) % len(values)]

    cluster, now, until, marked = KarpenterCluster(), START, {}, set()
    for version in range(150):
        now += seconds(choice((0, 1, 7)))
        name, provider_id = choice(NAMES), choice(("", "p-1", "p-2", "p-3"))
        match choice(range(6)):
            case 0:
                cluster.put(node(name, provider_id, version), now)
            case 1:
                cluster.put(claim(name, provider_id, version), now)
            case 2:
                cluster.nominate(provider_id, now)
                until[provider_id] = now + seconds(20)
            case 3:
                cluster.mark((provider_id,))
                marked.add(provider_id)
            case 4:
                cluster.unmark((provider_id,))
                marked.discard(provider_id)
            case 5:
                known = choice((cluster.node_objects, cluster.node_claims))
                remove_any(cluster, list(known.values()), choice, marked, now)
        assert cluster.nodes(now) == joined_anew(cluster, now, until, marked)


def test_an_unchanged_node_stays_the_same_object():
    cluster = KarpenterCluster()
    for name in NAMES:
        cluster.put(node(name, f"p-{name}", 0), START)
    before = cluster.nodes(START)
    cluster.put(node("b", "p-b", 1), START)
    after = cluster.nodes(START)
    assert [one is other for one, other in zip(before, after, strict=True)] == [
        True, False, True, True,
    ]  # fmt: skip

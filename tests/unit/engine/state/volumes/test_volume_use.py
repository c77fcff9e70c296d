"""VolumeUse: the pods that use claims and disks, updated with changes and hypotheses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.state.fork import fork
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance
from fairlead.testing.storage_builders import make_claim_volumes

DISKS = {
    "gce": {"gcePersistentDisk": {"pdName": "d"}},
    "aws": {"awsElasticBlockStore": {"volumeID": "d"}},
    "iscsi": {"iscsi": {"iqn": "d", "targetPortal": "t", "lun": 0}},
    "rbd": {"rbd": {"pool": "p", "image": "d", "monitors": ["m"]}},
}
NAMES = {
    "gce": ("gce-pd", "d"),
    "aws": ("aws-ebs", "d"),
    "iscsi": ("iscsi", "d"),
    "rbd": ("rbd", "p", "d"),
}


def mounting(kind):
    return {"volumes": [{"name": "d", **DISKS[kind]}]}


@pytest.fixture
def use(believer):
    believer.put(make_node("n1"), make_node("n2"))
    return believer.table.volume_use


def test_a_claim_is_in_use_while_a_placed_pod_mounts_it(believer, use):
    """In its own namespace, and until the last pod is deleted."""
    waiting = make_pod("waiting", spec=make_claim_volumes("c"))
    first, second = (make_pod(name, node="n1", spec=make_claim_volumes("c")) for name in ("a", "b"))
    believer.put(waiting)
    assert not use.is_claim_used("default/c")
    believer.put(first, second)
    assert use.is_claim_used("default/c")
    assert not use.is_claim_used("other/c")
    believer.gone(first)
    assert use.is_claim_used("default/c")
    believer.gone(second)
    assert not use.is_claim_used("default/c")


def test_pods_with_volumes_are_counted_by_row(believer, use):
    """A volume that no plugin reads does not count."""
    row = believer.table.find("n1").row
    scratch = {"volumes": [{"name": "s", "emptyDir": {}}]}
    first, second = (make_pod(name, node="n1", spec=make_claim_volumes("c")) for name in ("a", "b"))
    believer.put(first, second, make_pod("d", node="n2", spec=scratch))
    assert use.pods == {row: 2}
    believer.gone(first)
    assert use.pods == {row: 1}
    believer.gone(second)
    assert use.pods == {}


def test_the_claim_of_an_ephemeral_volume_is_not_counted(believer, use):
    """No other pod can use it."""
    ephemeral = {"volumes": [{"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}]}
    believer.put(make_pod("a", node="n1", spec=ephemeral))
    assert not use.is_claim_used("default/a-e")


@pytest.mark.parametrize("kind", sorted(DISKS))
def test_a_disk_is_found_where_it_is_mounted(kind, believer, use):
    """For every pod that mounts it."""
    pods = [make_pod(f"p{i}", node=f"n{1 + i % 2}", spec=mounting(kind)) for i in range(3)]
    believer.put(*pods)
    rows = sorted(believer.node(name).row for name in ("n1", "n2"))
    assert use.rows_with(NAMES[kind]) == rows
    believer.gone(pods[1])
    assert use.rows_with(NAMES[kind]) == [believer.node("n1").row]
    believer.gone(pods[0], pods[2])
    assert use.rows_with(NAMES[kind]) == []


def test_a_disk_is_not_in_use_after_its_node_is_deleted(believer, use):
    """The pods of the node do not count any more, either."""
    believer.put(make_pod("a", node="n1", spec=mounting("gce")))
    believer.gone(make_node("n1"))
    assert use.rows_with(NAMES["gce"]) == []


SPECS = (
    {},
    *map(mounting, DISKS),
    make_claim_volumes("c"),
    make_claim_volumes("c", "d"),
    make_claim_volumes("d", "d"),
)


@given(seed=st.integers(0, 2**32))
def test_updated_counts_equal_new_counts(seed, new_believer, check):
    """After added, changed, deleted and hypothetical pods."""
    chance, believer = Chance(seed), new_believer()
    believer.put(make_node("n1"), make_node("n2"))
    for _ in range(12):
        name, node = f"p{chance.below(4)}", chance.of(("n1", "n2"))
        known = believer.cluster.pods.get(f"default/{name}")
        if known is not None and chance.one_in(2):
            believer.gone(known.pod)
        else:
            at = known.pod.spec.node_name if known is not None else node
            believer.put(make_pod(name, node=at, spec=chance.of(SPECS)))
        suppose(chance, believer)
        check(believer.table)


def suppose(chance, believer):
    """Remove some pods and add others in a fork, and leave it."""
    with fork(believer.table) as hypothesis:
        for node in believer.table.nodes():
            for pod in list(node.pods.values()):
                if chance.one_in(2):
                    hypothesis.remove_pod(node, pod)
            hypothesis.add_pod(node, believer.info(make_pod("new", spec=chance.of(SPECS))))
        believer.table.validate()

"""Groups of replicas: grouping by known templates, and columns of their fields."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.pods.replicas import LoadedObjects, neighbouring_replicas
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod

TEMPLATES = {"a": object(), "b": object()}


def pod(number, app, node, start):
    status = {"phase": "Running", **({"startTime": start} if start else {})}
    made = make_pod(f"{app}-{number}", node=node, labels={"app": app}, status=status)
    return made, app


pods = st.builds(
    pod,
    st.integers(0, 99),
    st.sampled_from("ab"),
    st.sampled_from(("", "n1", "n2")),
    st.sampled_from(("", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")),
)


@given(st.lists(st.tuples(pods, st.booleans()), max_size=12))
def test_known_templates_do_not_change_the_groups(found):
    alone = [one for (one, _), _ in found]
    templates = [TEMPLATES[app] if is_known else None for (_, app), is_known in found]
    plain = neighbouring_replicas(alone)
    assert neighbouring_replicas(alone, templates) == plain
    loaded = ObjectsLoaded(LoadedObjects([make_node("n1")], plain))
    assert loaded.replicas == plain
    assert loaded.others == [make_node("n1")]


@given(st.lists(pods, min_size=1, max_size=5))
def test_columns_have_an_entry_for_each_pod(found):
    for replicas in neighbouring_replicas([one for one, _ in found]):
        assert replicas.names == [one.metadata.name for one in replicas]
        assert replicas.keys == [one.key for one in replicas]
        assert replicas.uids == [one.metadata.uid for one in replicas]
        assert replicas.nodes == [one.spec.node_name for one in replicas]
        assert replicas.created == [one.metadata.creation_timestamp for one in replicas]
        assert replicas.rows == [(replicas, index) for index in range(len(replicas))]
        assert replicas.have_own_keys == (len({one.key for one in replicas}) == len(replicas))


def test_replicas_can_differ_in_their_node_affinity():
    def pinned(name, node, **more):
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return make_pod(name, node=node, spec={"affinity": {"nodeAffinity": required, **more}})

    def apart(key):
        term = {"topologyKey": key, "labelSelector": {}}
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def share(*pods):
        (replicas,) = neighbouring_replicas(pods)
        return replicas.share_pod_affinity

    assert share(pinned("a", "n1"), pinned("b", "n2"))
    assert share(pinned("a", "n1", **apart("zone")), pinned("b", "n2", **apart("zone")))
    assert not share(pinned("a", "n1", **apart("zone")), pinned("b", "n2", **apart("host")))

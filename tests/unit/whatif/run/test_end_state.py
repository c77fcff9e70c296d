"""The end state of a run is the same whether or not an earlier state was cached."""

from __future__ import annotations

import pickle
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.pods.original import REPLACES
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.run.end_state import EndState
from fairlead.whatif.run.recorders.kept_ends import UpdatedEnds
from fairlead.whatif.run.recorders.recorder import Recorder

NAMES = ("web-1", "web-2", "web-3")
NODES = ("a", "b")


def pod(name, number=0, node="", phase="Running", replaces="", *, ends=False):
    """A pod whose uid depends on its node, because no pod moves."""
    made = make_pod(
        name, uid=f"{name}-{number}-{node}", node=node, status={"phase": phase}, terminating=ends
    )
    annotations = {REPLACES: replaces} if replaces else {}
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


pods = st.builds(
    pod,
    st.sampled_from(NAMES),
    st.integers(0, 1),
    st.sampled_from(("", *NODES)),
    st.sampled_from(("Pending", "Running", "Failed")),
    st.sampled_from(("", *NAMES)),
    ends=st.booleans(),
)
objects = st.one_of(pods, st.sampled_from(NODES).map(make_node))
stimuli = st.one_of(objects.map(ObjectChanged), objects.map(ObjectDeleted))


@pytest.mark.long
@settings(max_examples=300)
@given(
    initial=st.lists(objects, max_size=5, unique_by=lambda one: one.key),
    before=st.lists(stimuli, max_size=3),
    after=st.lists(stimuli, max_size=6),
)
def test_a_cached_state_is_updated(initial, before, after):
    runs = [Recorder(now=0), Recorder(now=0)]
    states = [EndState(run) for run in runs]
    for number, stimulus in enumerate([ObjectsLoaded(initial), *before, None, *after]):
        if stimulus is None:
            states[0].keep()
            continue
        for run in runs:
            run.observe(stimulus, number)
    for run in runs:
        run.explain_waiting(lambda pod: f"{pod.metadata.name} waits")
    found = [(state.nodes(), state.workloads_total(), *run.ends().items())
             for state, run in zip(states, runs, strict=True)]  # fmt: skip
    assert found[0] == found[1]
    listed = [list(state.pods(state.nodes()[:1]).items()) for state in states]
    assert listed[0] == listed[1]
    ends = runs[0].ends()
    assert list(pickle.loads(pickle.dumps(ends)).items()) == list(ends.items())


def test_unchanged_objects_are_shared():
    """Only the changed pod and its node are new objects."""
    recorder = Recorder(now=0)
    loaded = [make_node("a"), make_node("b"), pod("web-1", node="a"), pod("web-2", node="b")]
    recorder.observe(ObjectsLoaded(loaded), 0)
    state = EndState(recorder)
    shared = {id(one) for one in state.keep()}
    assert all(id(one) in shared for one in (*state.nodes(), state.pods(state.nodes())))
    recorder.observe(ObjectChanged(pod("web-2", node="b", phase="Failed")), 1)
    assert [id(one) in shared for one in state.nodes()] == [True, False]
    assert [id(one) in shared for one in state.pods(state.nodes()).values()] == [True, False]


def test_a_pickle_contains_only_the_changed_pods():
    """A forked process sends its pods to a process that has the earlier pods, too."""
    kept = {
        f"a/web-{number:04}": PodEnd(namespace="a", name=f"web-{number:04}")
        for number in range(1_000)
    }
    anew = {
        f"a/{name}": PodEnd(namespace="a", name=name, node="b") for name in ("web-0500", "web-1")
    }
    updated = UpdatedEnds(kept, anew, ["a/web-0001"])
    assert list(updated) == sorted({*kept, *anew} - {"a/web-0001"})

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return "kept" if obj is kept else None

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, _):
            return kept

    file = BytesIO()
    Pickler(file).dump(updated)
    assert len(file.getvalue()) < 2_000
    file.seek(0)
    assert list(Unpickler(file).load().items()) == list(updated.items())

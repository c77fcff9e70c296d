"""Dependents that were loaded and are indexed later have the same effects."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.finalizer import FOREGROUND, ORPHAN
from fairlead.api.objects import OwnerReference
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.testing.builders import make_pod

NAMES = ("a", "b", "c", "d", "e")


class Eager(GarbageCollector):
    """A collector that indexes all loaded objects immediately."""

    def _are_listed_only(self, alike):
        return False


def owned(name, owners, finalizers, has_uids, *, ends):
    """Return a pod with owners, which are also pods here."""
    references = tuple(
        OwnerReference(
            api_version="v1",
            kind="Pod",
            name=one,
            uid=f"uid-{one}" if has_uids else "",
            block_owner_deletion=True,
        )
        for one in owners
    )
    found = make_pod(name, terminating=ends)
    meta = replace(found.metadata, owner_references=references, finalizers=finalizers)
    return replace(found, metadata=meta)


pods = st.builds(
    owned,
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    st.sampled_from(((), (), (FOREGROUND,), (ORPHAN,))),
    st.booleans(),
    ends=st.sampled_from((False, False, True)),
)
stimuli = st.one_of(pods.map(ObjectChanged), pods.map(ObjectDeleted))


@settings(max_examples=400)
@given(st.lists(pods, max_size=6), st.lists(stimuli, max_size=6))
def test_dependents_indexed_later_have_the_same_effects(loaded, then):
    both = GarbageCollector(), Eager()
    for stimulus in (ObjectsLoaded(loaded), *then):
        lazy, eager = (one.handle(stimulus, 0) for one in both)
        assert lazy == eager

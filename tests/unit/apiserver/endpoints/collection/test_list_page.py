"""All pages of a list show the same version, whatever is written between them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.apiserver.endpoints.collection.list_page import list_page
from fairlead.apiserver.endpoints.request.options import ListOptions
from fairlead.apiserver.endpoints.request.selector import SelectionPredicate
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import value_of

CONFIG_MAP, SECRET = find_kind("configmap"), find_kind("secret")
EVERYTHING = SelectionPredicate()
PLAIN = ListOptions("", "", "", "", 0, "", None, False, None, False)
# In a list of all namespaces, the objects of `a-b` come before those of `a`.
PLACES = st.tuples(st.sampled_from(["a", "a-b", "b"]), st.sampled_from(["k", "k-l", "l", "m"]))
WRITES = st.lists(st.tuples(st.booleans(), PLACES), max_size=12)


def write(storage, writes):
    for is_removal, (namespace, name) in writes:
        for kind in (CONFIG_MAP, SECRET):
            if not is_removal:
                meta = {"name": name, "namespace": namespace}
                storage.put(kind, {"apiVersion": "v1", "kind": kind.kind, "metadata": meta})
            elif storage.find(kind, namespace, name):
                storage.remove(kind, namespace, name)


def ordered(storage, namespace):
    """Return all objects in the order of a list."""
    found = [one["metadata"] for one in storage.items(CONFIG_MAP, namespace or None)]
    return sorted(found, key=lambda meta: f"{meta['namespace']}/{meta['name']}")


@given(st.sampled_from(["", "a", "b"]), st.integers(1, 4), st.lists(WRITES, min_size=1, max_size=5))
def test_all_pages_together_equal_the_list_at_the_version_of_the_first_page(
    namespace, limit, history
):
    storage = CompactStorage(hot_max=3)
    write(storage, history[0])
    expected, version = ordered(storage, namespace), storage.version
    seen, token = [], ""
    for writes in [*history[1:], *[[]] * 12]:
        options = replace(PLAIN, limit=limit, continue_token=token)
        page = list_page(storage, CONFIG_MAP, namespace, EVERYTHING, options)
        seen += [value_of(one)["metadata"] for one in page.objects]
        token = page.continue_token
        assert page.version == version
        assert page.remaining == (len(expected) - len(seen) if token else None)
        if not token:
            break
        write(storage, writes)
    assert seen == expected


@given(st.sampled_from(["", "a"]), st.lists(WRITES, min_size=2, max_size=4))
def test_a_list_at_a_version_shows_the_objects_of_that_version(namespace, history):
    storage = CompactStorage()
    write(storage, history[0])
    expected, version = ordered(storage, namespace), storage.version
    for writes in history[1:]:
        write(storage, writes)
    if version:
        options = replace(PLAIN, version=str(version), match="Exact")
        page = list_page(storage, CONFIG_MAP, namespace, EVERYTHING, options)
        assert [value_of(one)["metadata"] for one in page.objects] == expected

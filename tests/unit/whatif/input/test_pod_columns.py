"""A snapshot file gives back the texts of all objects; columns that do not fit are refused."""

from __future__ import annotations

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from fairlead.whatif.input.document import read, read_listings
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import split
from fairlead.whatif.input.pod_columns import (
    ColumnError,
    _are_plain,
    encode_columns,
    encode_list,
    in_listing_order,
    objects_of,
)
from fairlead.whatif.input.pod_columns import texts_of as single_texts

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def pod(name, node="n1", **labels):
    meta = {"name": name, "generateName": "web-", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": node}}


def texts_of(objects):
    return [json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for one in objects]


TEXT = st.text() | st.sampled_from(["", "web-1", 'a"b', "\\", "\x7f0", "é", "\u2028", "\ud7ff"])
KEY = st.sampled_from(["app", 'k:{"ip":"10.0.0.1"}', "\\", "é"])
OBJECTS = st.lists(
    st.one_of(
        st.just(NODE),
        st.builds(pod, TEXT, TEXT),
        st.builds(lambda name, key, value: pod(name, **{key: value}), TEXT, KEY, TEXT),
    )
)


@given(objects=OBJECTS)
def test_the_texts_of_all_objects_are_restored_in_order(objects):
    texts = texts_of(objects)
    encoded = encode_columns(texts, {"annotations": {"a": "b"}})
    listing = split(encoded)
    assert [bytes(one) for one in single_texts(listing.items)] == texts
    assert listing.head["metadata"] == {"annotations": {"a": "b"}}
    assert objects_of(json.loads(encoded)) == [json.loads(one) for one in texts]


def test_pods_that_differ_only_in_strings_become_one_pod_with_columns():
    encoded = json.loads(encode_columns(texts_of([NODE, pod("a"), pod("b", "n2")]), {}))
    assert (encoded["kind"], encoded["items"]) == ("Snapshot", [NODE])
    (group,) = encoded["pods"]
    assert group["like"] == pod("a")
    assert group["positions"] == [1, 2]
    assert group["columns"] == [["a", "b"], ["n1", "n2"]]


def test_pods_are_listed_by_namespace_and_name():
    """They are put at the place of the first pod; other objects keep their order."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    in_x, in_y = pod("b"), pod("a")
    in_x["metadata"]["namespace"], in_y["metadata"]["namespace"] = "x", "y"
    found = in_listing_order(texts_of([NODE, pod("b"), job, in_y, pod("a"), in_x, NODE]))
    assert found == texts_of([NODE, pod("a"), pod("b"), in_x, in_y, job, NODE])
    assert in_listing_order(texts_of([job, NODE])) == texts_of([job, NODE])
    assert in_listing_order([]) == []


def test_equal_columns_share_their_strings():
    """Also after the pods are sorted; a name that a label repeats is stored once."""
    texts = texts_of([pod("b", app="b"), pod("a", "n2", app="a")])
    (rows,) = split(encode_columns(texts, {})).items
    name, label, node = rows.columns
    assert name is label
    name, label, node = rows.sorted_by(0).columns
    assert (name, node) == (["a", "b"], ["n2", "n1"])
    assert name is label


def test_the_file_is_a_list_that_other_programs_can_read():
    objects = [NODE, pod("a"), pod("b")]
    found = json.loads(encode_list(texts_of(objects), {"annotations": {}}))
    expected = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": {}}}
    assert found == {**expected, "items": objects}


def changed(tmp_path, change):
    whole = json.loads(encode_columns(texts_of([NODE, pod("a"), pod("b", "n2")]), {}))
    change(whole["pods"][0])
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(whole))
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda one: one["columns"].pop(),
            "pods[0].columns: has 1 columns, not 2", id="a column is missing"),
        pytest.param(lambda one: one["columns"][1].pop(),
            "pods[0].columns[1]: has 1 entries, not 2", id="an entry is missing"),
        pytest.param(lambda one: one["columns"][1].__setitem__(1, 'n2","x":"'),
            "pods[0].columns[1][1]: is not the text of a JSON string",
            id="an entry that ends early"),
        pytest.param(lambda one: one["positions"].__setitem__(1, 1),
            "pods[0].positions: names a position that another pod has",
            id="two pods in one place"),
        pytest.param(lambda one: one["positions"].__setitem__(1, 7),
            "pods: has a position that is not from 0 to 2", id="a pod after the end"),
        pytest.param(lambda one: one["strings"].__setitem__(1, 900),
            "pods[0].strings: is not an ascending list of numbers from 0 to", id="no such string"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_refused(tmp_path, change, said):
    path = changed(tmp_path, change)
    with pytest.raises(InputError) as refusal:
        read_listings(str(path))
    assert str(refusal.value).startswith(f"{path}: {said}")


def test_only_characters_that_json_does_not_escape_are_plain():
    """ASCII texts are checked in a different way than other texts, with the same result."""
    for code in (*range(0x100), 0x2028, 0x1F600):
        text = chr(code)
        is_plain = text.isprintable() and text not in '"\\'
        for column in ([text], ["é", text]):
            if code < 0x20 or text in '"\\':
                with pytest.raises(ColumnError):
                    _are_plain(column, "x")
            else:
                assert _are_plain(column, "x") is is_plain


def test_a_snapshot_of_another_version_is_refused(tmp_path):
    path = changed(tmp_path, lambda _: None)
    path.write_text(path.read_text().replace("fairlead.dev/v1", "fairlead.dev/v2"))
    with pytest.raises(InputError) as refusal:
        read_listings(str(path))
    problem = "'fairlead.dev/v2' is not 'fairlead.dev/v1', which this version of Fairlead reads"
    assert str(refusal.value) == f"{path}: apiVersion: {problem}"


def test_an_indented_file_has_the_same_objects(tmp_path):
    path = changed(tmp_path, lambda _: None)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
    (document,) = read_listings(str(path))
    found = [json.loads(bytes(one)) for one in single_texts(document.listing.items)]
    assert found == [NODE, pod("a"), pod("b", "n2")] == objects_of(read(str(path))[0].value)

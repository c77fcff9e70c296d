"""Large listings that are split at their indentation."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.whatif.input import listing
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import split
from fairlead.whatif.snapshot.snapshot import read_snapshot

PADDING = "x" * 3000


def node(name, **more):
    """A Node that is large, because only large listings are split at their indentation."""
    annotations = {"padding": PADDING, "quoted": '{"a": [\n        {\n        },\n        {}]}'}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": annotations},
        "status": {"images": [{}, {"names": []}, {"names": ["a"]}]},
        **more,
    }


def nodes(count):
    return {
        "apiVersion": "v1",
        "items": [node(f"node-{at}") for at in range(count)],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


@pytest.fixture
def whole(monkeypatch):
    """Counts decodings of whole listings, which take longer than splitting at lines."""
    calls = []
    decode = listing._decode

    def counted(data):
        if len(data) > listing._LARGE_BYTES:
            calls.append(data)
        return decode(data)

    monkeypatch.setattr(listing, "_decode", counted)
    return calls


def indented(value, indent=4):
    return json.dumps(value, indent=indent, ensure_ascii=False).encode() + b"\n"


@pytest.mark.parametrize("indent", [1, 2, 4, 8])
@pytest.mark.parametrize("block", [1 << 10, 1 << 20])
def test_the_lines_between_items_split_a_listing(monkeypatch, whole, indent, block):
    monkeypatch.setattr(listing, "_BLOCK_BYTES", block)
    expected = nodes(400)
    found = split(indented(expected, indent))
    assert not whole
    assert [json.loads(bytes(one)) for one in found.items] == expected["items"]
    assert found.head == {**expected, "items": []}


def test_a_listing_with_one_item(whole):
    expected = {**nodes(0), "items": [node("a", data=["y" * 1000] * 2000)]}
    found = split(indented(expected))
    assert not whole
    assert [json.loads(bytes(one)) for one in found.items] == expected["items"]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(nodes(400)).encode(),
        indented(nodes(400), "\t"),
        indented(nodes(400)).replace(b'"kind": "List"', b'"kind": "List", "items": [{}]'),
        indented(nodes(400)).replace(b"\n", b"\r\n"),
        b"\n" + indented(nodes(400)),
    ],
    ids=["one line", "tabs", "items twice", "Windows", "blank line"],
)
def test_listings_with_other_layouts_are_split(text):
    found = split(text)
    assert [json.loads(bytes(one)) for one in found.items] == json.loads(text)["items"]


def test_null_items_are_an_empty_list():
    found = split(indented({**nodes(0), "items": None}))
    assert (found.head, list(found.items)) == (nodes(0), [])


@pytest.mark.parametrize("count", [2, 400])
def test_an_unknown_field_of_a_list_is_ignored_if_it_contains_no_objects(tmp_path, count):
    path = tmp_path / "nodes.json"
    path.write_bytes(indented({**nodes(count), "other": {"items": [1, 2]}, "more": [1]}))
    assert len(read_snapshot(str(path)).manifests) == count


@pytest.mark.parametrize("count", [2, 400])
@pytest.mark.parametrize("field", ["pods", "deployments"])
@pytest.mark.parametrize("is_first", [True, False])
def test_objects_beside_the_items_of_a_list_are_refused(tmp_path, count, field, is_first):
    """Otherwise the answer would lack them."""
    objects = {field: [node(f"other-{at}") for at in range(count)]}
    whole = {**objects, **nodes(count)} if is_first else {**nodes(count), **objects}
    path = tmp_path / "nodes.json"
    line = f"{path}: {field}: List has no such field; put its objects into items"
    for text in (indented(whole), json.dumps(whole).encode()):
        path.write_bytes(text)
        with pytest.raises(InputError) as caught:
            read_snapshot(str(path))
        assert str(caught.value) == line


@pytest.mark.parametrize("is_nested", [False, True])
def test_the_metadata_of_a_list_is_no_unknown_field(tmp_path, is_nested):
    """Its objects are no objects of the cluster. Fairlead does not read that of an inner List."""
    whole = {**nodes(2), "metadata": [{"name": "a"}]}
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [whole]}))
    if is_nested:
        assert len(read_snapshot(str(path)).manifests) == 2
        return
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError) as caught:
        read_snapshot(str(path))
    assert str(caught.value) == f"{path}: metadata: expected an object, got a list"


SHIFTED = b'"images": [\n        {\n        },\n        {"names": []}]'


def test_an_item_with_the_separator_within_it(tmp_path):
    """The parts are then malformed, and the listing is decoded as a whole."""
    text = indented(nodes(400))
    begin = text.index(b'"images"')
    end = text.index(b"\n            }\n        }", begin)
    path = tmp_path / "nodes.json"
    path.write_bytes(text[:begin] + SHIFTED + text[end:])
    found = read_snapshot(str(path)).manifests
    assert [one.ref.name for one in found] == [f"node-{at}" for at in range(400)]
    assert found[0].value["status"]["images"][1] == {"names": []}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"name": "node-7"', b'"name": node-7'),
        (b'"name": "node-7"', b'"name": "node-7'),
        (b'"name": "node-7"', b'"name": "node-7"}'),
        (b"\n        },\n        {", b"\n        },\n        ,\n        {"),
        (b'"kind": "List"', b'"kind": List'),
        (b"    ],\n", b""),
    ],
)
def test_errors_are_those_of_the_whole_file(tmp_path, old, new):
    text = indented(nodes(400))
    assert old in text
    path = tmp_path / "nodes.json"
    path.write_bytes(text.replace(old, new, 1))
    with pytest.raises(InputError, match="is not JSON: "):
        read_snapshot(str(path))


def lines(objects):
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


@pytest.mark.parametrize("count", [2, 400])
@pytest.mark.parametrize(
    "written",
    [
        pytest.param(lines, id="a line for each object"),
        pytest.param(lambda found: b"\n".join(map(indented, found)), id="indented objects"),
        pytest.param(
            lambda found: (
                indented({**nodes(0), "items": found[:-1]})
                + indented({**nodes(0), "items": found[-1:]})
            ),
            id="two lists of kubectl",
        ),
        pytest.param(
            lambda found: lines([{**nodes(0), "items": found[:-1]}]) + lines(found[-1:]),
            id="a list and an object",
        ),
        pytest.param(
            lambda found: lines([{**nodes(0), "items": None}, {**nodes(0), "items": found}]),
            id="a list without items and a list",
        ),
    ],
)
def test_a_file_can_contain_several_json_values(tmp_path, whole, count, written):
    path = tmp_path / "nodes.json"
    path.write_bytes(written(nodes(count)["items"]))
    found = read_snapshot(str(path)).manifests
    assert [one.ref.name for one in found] == [f"node-{at}" for at in range(count)]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(lines, id="a line for each object"),
        pytest.param(
            lambda found: b"\n".join(indented({**nodes(0), "items": [one]}) for one in found),
            id="lists of kubectl",
        ),
    ],
)
def test_errors_name_the_value_of_several(tmp_path, written):
    text = written(nodes(400)["items"])
    path = tmp_path / "nodes.json"
    path.write_bytes(text.replace(b'"node-7"', b"node-7", 1))
    with pytest.raises(InputError, match=r"nodes\.json: document 8 is not JSON: "):
        read_snapshot(str(path))


def test_an_item_too_deep_for_the_decoder_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    deep = b"[" * 20_000 + b"]" * 20_000
    path.write_bytes(indented(nodes(400)).replace(b'"Node"', b'"Node", "deep": ' + deep, 1))
    with pytest.raises(InputError) as refused:
        read_snapshot(str(path))
    assert str(refused.value) == f"{path}: is nested too deeply"


BLOCKS = st.sampled_from((16, 64, 1 << 18))


@given(st.lists(st.sampled_from((b"a", "é".encode(), "€".encode(), b"\xff", b"\xe2"))), BLOCKS)
def test_bytes_are_utf8_if_they_can_be_decoded(parts, block):
    data = b"".join(parts) * 9
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(listing, "_BLOCK_BYTES", block)
        try:
            data.decode()
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                listing._require_utf8(data)
        else:
            listing._require_utf8(data)


INNER = b"\n  "
END = INNER + b"}"
BETWEEN = b"," + INNER + b"{"
LINES = (END + BETWEEN, INNER + b"{", b"}\n   }", b"\n  { }", b"\n a}", b"\n", b"}", b"\xe9\x5c")


@given(st.lists(st.sampled_from((*LINES, END + b",")), max_size=30), BLOCKS)
def test_items_are_found_in_blocks_of_any_size(parts, block):
    data = b"    " + b"".join(parts) + END
    ends = [at for at in range(4, len(data) + 1) if data[:at].endswith(END)]
    is_listing = all(data.startswith(BETWEEN, at) for at in ends[:-1])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(listing, "_BLOCK_BYTES", block)
        found = listing._item_ends(data, 3, len(data), INNER, BETWEEN)
    assert found == (ends if is_listing else None)

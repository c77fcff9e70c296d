"""Listings in kubectl's layout are parsed as by the general YAML parser."""

from __future__ import annotations

import hypothesis.strategies as st
import msgspec
import pytest
import yaml
from hypothesis import given

from fairlead.api.text import yaml_documents
from fairlead.api.text.yaml_listing import split_listing

TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "true", "yes", "null", "~", "1", "-1", "1.5", "0x1f", "1e3", "a: b", "a #b",
         "#", "- a", "-", "a:", ":", "a b", " a", "a ", "'", '"', "it's", 'say "x"', "a\nb",
         "a\\n", "{}", "[]", "{a}", "*", "&a", "!a", "|", "%", "@x", "`", "1Gi",
         "100m", "=", "<<", "?", "é", "..", "---", "a,b", "k:{x}", "0o7", "1_000", ".5", ".inf"]
    ),
    st.text(max_size=6),
)  # fmt: skip
KEYS = st.one_of(st.sampled_from(["a", "b", "f:spec", "app.io/name", "on", "1", "x y"]), TEXTS)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), TEXTS),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)),
    max_leaves=12,
)
ITEMS = st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), min_size=1, max_size=3)


def general(text):
    """Return what the general parser returns; None if it refuses the text."""
    try:
        return list(yaml_documents.documents(text))
    except yaml_documents.YamlError:
        return None


def scanned(text):
    found = split_listing(text)
    if found is None:
        return None
    head, items = found
    return [{**head, "items": [msgspec.json.decode(item) for item in items]}]


@given(items=ITEMS)
def test_a_listing_is_parsed_as_by_the_general_parser(items):
    value = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}
    text = yaml.safe_dump(value, default_flow_style=False, allow_unicode=True, width=10**9)
    found = scanned(text)
    assert found is None or found == general(text)


def items_with(texts):
    """Return a strategy for a few items with `texts`: the general parser takes long for many."""
    of_lists = st.lists(texts, max_size=3)
    return st.lists(st.fixed_dictionaries({"data": texts, "list": of_lists}), max_size=3)


WORDS = st.lists(st.sampled_from(["word", "(a", "1", "key:", "a:b", "#b", "-", "null", "b "]))
FOLDED = st.dictionaries(KEYS, WORDS.map(" ".join))


@given(items=items_with(FOLDED))
def test_folded_texts_are_parsed_as_by_the_general_parser(items):
    value = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}
    text = yaml.safe_dump(value, default_flow_style=False, width=12)
    found = scanned(text)
    assert found is None or found == general(text)


class Literal(yaml.SafeDumper):
    """A dumper that writes multi-line texts as literal blocks, as kubectl does."""


def literal(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


Literal.add_representer(str, literal)
LINES = st.lists(st.sampled_from(["", "a", " b", "c: |", "- d", "# e", "f ", "---"]), max_size=4)
BLOCKS = st.dictionaries(
    KEYS, LINES.map("\n".join) | LINES.map("\n".join).map(lambda one: one + "\n")
)


@given(items=items_with(BLOCKS))
def test_literal_blocks_are_parsed_as_by_the_general_parser(items):
    value = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}
    text = yaml.dump(value, Dumper=Literal, default_flow_style=False, width=10**9)
    found = scanned(text)
    assert found is None or found == general(text)


@given(items=ITEMS, noise=st.text("-:{}[]'\"#|>&*! \nab", max_size=5), at=st.integers(0, 400))
def test_a_damaged_listing_is_parsed_as_by_the_general_parser_or_refused(items, noise, at):
    value = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}
    text = yaml.safe_dump(value, default_flow_style=False, allow_unicode=True, width=10**9)
    damaged = text[:at] + noise + text[at:]
    found = scanned(damaged)
    assert found is None or found == general(damaged)


POD = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    labels: {}
    name: web-0
  spec:
    containers:
    - args:
      - "8080"
      - --verbose
      image: web:1
    - image: 'proxy:2'
      command:
      - sh
    matrix:
    - - 1
      - 2
    - - 3
    empty:
  status:
    phase: Running
- {}
kind: List
metadata:
  resourceVersion: ""
"""


def test_a_literal_block_needs_no_general_parser(monkeypatch):
    applied = (
        "    annotations:\n      last-applied: |\n        {a: |\n\n          b}\n    labels: {}"
    )
    text = POD.replace("    labels: {}", applied).replace("- {}\n", "")
    expected = general(text)[0]["items"]
    monkeypatch.delattr(yaml_documents, "documents")
    _, items = split_listing(text)
    assert [msgspec.json.decode(item) for item in items] == expected
    assert expected[0]["metadata"]["annotations"] == {"last-applied": "{a: |\n\n  b}\n"}


def test_a_folded_text_needs_no_general_parser(monkeypatch):
    folded = (
        "    annotations:\n      about: Used for pods that\n        must run,\n        but can move"
    )
    text = POD.replace("    labels: {}", folded).replace("- {}\n", "")
    expected = general(text)[0]["items"]
    monkeypatch.delattr(yaml_documents, "documents")
    _, items = split_listing(text)
    assert [msgspec.json.decode(item) for item in items] == expected
    annotations = expected[0]["metadata"]["annotations"]
    assert annotations == {"about": "Used for pods that must run, but can move"}


def test_the_layout_of_kubectl_is_split():
    head, items = split_listing(POD)
    assert head == {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
                    "items": []}  # fmt: skip
    assert [msgspec.json.decode(item) for item in items] == general(POD)[0]["items"]


BLOCK = "        a\n        b"


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(BLOCK, id="a block"),
        pytest.param("\n" + BLOCK, id="a line break first"),
        pytest.param("          a\n        b", id="less indentation after its first line"),
        pytest.param("    labels: {}", id="no text"),
    ],
)
def test_an_item_with_an_unusual_block_is_read_by_the_general_parser(block):
    """Only this item is parsed by the general parser."""
    applied = f"    annotations:\n      last-applied: |\n{block}\n    labels: {{}}"
    text = POD.replace("    labels: {}", applied)
    expected = general(text)
    found = split_listing(text)
    if expected is None:
        assert found is None
    else:
        assert [msgspec.json.decode(item) for item in found[1]] == expected[0]["items"]


def test_an_item_that_is_nested_too_deep_is_refused():
    """The refusal is that of the general parser."""
    deep = "\n".join("  " * level + "a:" for level in range(2, 250))
    text = POD.replace("  spec:\n", f"  deep:\n{deep} 1\n  spec:\n")
    assert general(text) is None
    assert split_listing(text) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\n", id="no list"),
        pytest.param(POD.replace("- apiVersion", "  - apiVersion"), id="indented items"),
        pytest.param(POD + "---\na: 1\n", id="several documents"),
        pytest.param(POD.replace("name: web-0", "name: a\n    name: b"), id="a repeated key"),
        pytest.param(POD.replace("\n", "\r\n"), id="other line breaks"),
        pytest.param(POD.replace("kind: List", "items: []\nkind: List"), id="items twice"),
        pytest.param(POD.replace("phase: Running", "phase: *x"), id="an unknown alias"),
    ],
)
def test_any_other_text_is_left_to_the_general_parser(text):
    assert split_listing(text) is None

"""Generated names have upstream's form and are deterministic."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.workloads.identity import ALPHABET, generated_name, template_hash


def test_generated_names_are_deterministic():
    """Fixed values: a change here changes every recorded command log."""
    names = [generated_name("web", "uid-1", serial) for serial in (1, 2)]
    assert names == ["web-l7x7v", "web-l9vhm"]
    assert template_hash({"spec": {"a": 1}}, 0) == "6fk5trs2cr"


@given(
    base=st.from_regex(r"[a-z]([-a-z0-9]{0,200}[a-z0-9])?", fullmatch=True),
    serial=st.integers(0, 10**6),
)
def test_names_have_upstreams_form(base, serial):
    """At most 63 characters, five of them from the alphabet without vowels."""
    name = generated_name(base, "seed", serial)
    assert len(name) <= 63
    assert name.startswith(f"{base}-"[:58])
    assert re.fullmatch(f"[{ALPHABET}]{{5}}", name[-5:])


def test_a_template_hash_does_not_depend_on_the_order_of_keys():
    assert template_hash({"a": 1, "b": 2}, 0) == template_hash({"b": 2, "a": 1}, 0)
    assert template_hash({"a": 1}, 0) != template_hash({"a": 1}, 1)
    assert template_hash({"a": 1}, 0) != template_hash({"a": 2}, 0)

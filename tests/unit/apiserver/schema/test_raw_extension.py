"""Raw extensions, which keep the text of their data."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.raw_extension import differs_as_text, with_raw_data


def revision(body):
    return with_raw_data({"data": {"a": 1}}, body)["data"]


SPACED = b'{"data": {"a": 1}}'
DENSE = b'{"data":{"a":1}}'


@pytest.mark.parametrize(
    ("before", "after", "is_other"),
    [
        (revision(SPACED), revision(SPACED), False),
        (revision(SPACED), revision(DENSE), True),
        (revision(SPACED), {"a": 1}, True),
        (revision(DENSE), {"a": 1}, False),
        ({"a": 1}, revision(SPACED), False),
    ],
    ids=[
        "sent again",
        "sent with other whitespace",
        "patched",
        "patched, without whitespace",
        "read back",
    ],
)
def test_equal_data_can_differ_as_text(before, after, is_other):
    assert before == after
    assert differs_as_text(before, after) == is_other


def test_data_in_a_patch_result_differs_as_text():
    data = revision(SPACED)
    assert differs_as_text(data, data)


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"data": null}'])
def test_an_object_without_data_is_unchanged(body):
    assert with_raw_data({"a": 1}, body) == {"a": 1}

"""Objects that know how they were spelled."""

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
    ids=["sent again", "sent otherwise", "patched", "patched, of no blanks", "read back"],
)
def test_equal_data_may_be_spelled_otherwise(before, after, is_other):
    assert before == after
    assert differs_as_text(before, after) == is_other


def test_what_a_patch_takes_over_has_lost_its_blanks():
    data = revision(SPACED)
    assert differs_as_text(data, data)


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"data": null}'])
def test_what_has_no_data_stays_as_it_is(body):
    assert with_raw_data({"a": 1}, body) == {"a": 1}

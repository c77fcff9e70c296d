"""Warning headers are escaped and bounded."""

from __future__ import annotations

import pytest

from fairlead.apiserver.http.warning_header import TOTAL_CHARACTERS_MAX, warning_headers


def headers(*texts):
    return [text.decode() for _, text in warning_headers(texts)]


def test_each_warning_is_sent_once_and_quoted():
    assert headers('b"s\\', "", 'b"s\\', "é") == [r'299 - "b\"s\\"', '299 - "é"']


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: b", "a\nb", "a\0b", "a\x7fb", "a\x85b"])
def test_a_warning_cannot_become_another_header(text):
    assert headers(text, "c") == ['299 - "c"']


def test_long_warnings_are_truncated_and_warnings_above_the_limit_are_omitted():
    texts = [f"{number:04}" + "x" * 1000 for number in range(1000)]
    assert headers(*texts[:4]) == [f'299 - "{text}"' for text in texts[:4]]
    cut = headers(*texts)
    assert cut == [f'299 - "{text[:256]}"' for text in texts[:16]]
    assert sum(map(len, cut)) < TOTAL_CHARACTERS_MAX + 16 * len('299 - ""') + 1


def test_a_response_has_at_most_64_warnings():
    """Python's http.client fails on a response with more than 100 headers."""
    headers = warning_headers(f"w{number}" for number in range(500))
    assert [value for _, value in headers] == [b'299 - "w%d"' % number for number in range(64)]

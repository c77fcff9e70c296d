"""Repeated request headers."""

from __future__ import annotations

import pytest

from fairlead.apiserver.http.header import headers_of


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([], {}),
        ([(b"a", b"1"), (b"b", b"\xff")], {"a": "1", "b": "ÿ"}),
        ([(b"accept", b"x"), (b"accept", b"y")], {"accept": "x"}),
        (
            [(b"impersonate-group", b"a,b"), (b"host", b"h"), (b"impersonate-group", b"c")],
            {"impersonate-group": "a,b\nc", "host": "h"},
        ),
        (
            [(b"sec-websocket-protocol", b"a"), (b"sec-websocket-protocol", b"b")],
            {"sec-websocket-protocol": "a\nb"},
        ),
    ],
)
def test_the_first_of_repeated_headers_is_used_and_list_headers_are_joined(sent, expected):
    assert headers_of(sent) == expected

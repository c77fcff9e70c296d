"""Base64 as upstream decodes it; the positions of errors are recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.gojson.base64_text import IllegalBase64Error, canonical_base64


@pytest.mark.parametrize(
    ("text", "kept"),
    [("", ""), ("YQ==", "YQ=="), ("YQ\n==\r\n", "YQ=="), ("YR==", "YQ=="), ("aGk=", "aGk=")],
)
def test_line_ends_and_spare_bits_are_ignored(text, kept):
    assert canonical_base64(text) == kept


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("!!", 0),
        ("a", 0),
        ("aGk", 0),
        ("YQ==aGk", 4),
        ("YWJj!", 4),
        ("YWJjZ", 4),
        ("YQ=", 3),
        ("YQ=a", 2),
        ("Y=", 1),
        ("=", 0),
        ("YQ==\n=", 5),
        ("YW\nJjZ", 5),
        ("é", 0),
    ],
)
def test_invalid_base64_is_refused_with_the_position(text, at):
    with pytest.raises(IllegalBase64Error, match=f"^illegal base64 data at input byte {at}$"):
        canonical_base64(text)

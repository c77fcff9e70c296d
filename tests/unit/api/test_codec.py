"""JSON values become views, or are refused."""

from __future__ import annotations

import pytest

from fairlead.api.codec import DecodeError, decode


@pytest.mark.parametrize("value", [None, 1, "text", [], {"apiVersion": [], "kind": {}}])
def test_what_is_no_object_of_any_kind_is_refused(value):
    with pytest.raises(DecodeError):
        decode(value)

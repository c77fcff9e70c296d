"""What a test hears when the API server refuses."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class RefusedError(Exception):
    """The API server said no; `status` is its Status."""

    def __init__(self, status: Json) -> None:
        """The message is the server's."""
        super().__init__(status.get("message", "refused"))
        self.status = status

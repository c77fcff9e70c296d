"""Json: the type of a JSON object as msgspec decodes it, used for all untyped objects."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

"""Json: a JSON object as msgspec decodes it, the one alias for untyped objects."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

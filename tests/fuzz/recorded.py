"""Objects from recorded requests that a real API server accepted: the largest one of each kind."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

FILES: Final = Path(__file__).parents[1] / "golden" / "data" / "api"
LENGTH_MAX: Final = 6_000


@cache
def recorded_objects() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the objects by (apiVersion, kind), without names and namespaces."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in sorted(FILES.glob("0[2-5]*.jsonl.gz")):
        for line in gzip.decompress(file.read_bytes()).splitlines():
            for step in json.loads(line)["steps"]:
                _keep(found, step.get("request") or {}, step.get("response") or {})
    return dict(sorted(found.items()))


def _keep(
    found: dict[tuple[str, str], dict[str, Any]], request: dict[str, Any], answer: dict[str, Any]
) -> None:
    body = request.get("body")
    if request.get("method") != "POST" or answer.get("status") != 201 or not isinstance(body, dict):
        return
    key = (body.get("apiVersion", ""), body.get("kind", ""))
    length = len(json.dumps(body))
    if all(key) and len(json.dumps(found.get(key, {}))) < length < LENGTH_MAX:
        meta = body.get("metadata", {})
        found[key] = {**body, "metadata": {name: meta[name] for name in meta if "name" not in name}}

"""The objects in docs/devices.md are those of examples/devices; test_readme runs its commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parent.parent
YAML: Final = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_object_of_the_page_is_in_the_example() -> None:
    """The objects are equal, so that readers can try them."""
    files = (ROOT / "examples" / "devices").glob("*.yaml")
    known = [one for file in files for one in yaml.safe_load_all(file.read_text())]
    shown: list[Any] = [
        yaml.safe_load(text) for text in YAML.findall((ROOT / "docs" / "devices.md").read_text())
    ]
    assert [one["kind"] for one in shown if one in known] == [
        "DeviceClass",
        "ResourceClaimTemplate",
        "DeviceTaintRule",
    ]
    assert len(shown) == 3

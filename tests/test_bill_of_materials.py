"""docs/bom.cdx.json is the output of tools/bill_of_materials.py."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "bill_of_materials.py"))


def test_the_bill_of_materials_is_current():
    """`python tools/bill_of_materials.py` updates it."""
    assert TOOL["FILE"].read_text() == TOOL["bill_of_materials"]()


def test_the_bill_of_materials_lists_every_pinned_requirement_once():
    lock = (ROOT / "requirements.lock").read_text()
    names = [one["name"] for one in json.loads(TOOL["bill_of_materials"]())["components"]]
    assert (
        len(set(names))
        == len(names)
        == sum("==" in line for line in lock.splitlines() if line[0].isalnum())
    )

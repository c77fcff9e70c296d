"""Writes docs/bom.cdx.json, the bill of materials in CycloneDX's JSON, from requirements.lock.

    python tools/bill_of_materials.py

The file lists the direct and indirect dependencies of an installed Fairlead. Their hashes are only
in requirements.lock. tests/test_bill_of_materials.py compares the file with what this tool writes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FILE: Final = ROOT / "docs" / "bom.cdx.json"
PINNED: Final = re.compile(r"^([a-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


def bill_of_materials() -> str:
    """Return the text of the file."""
    pinned = sorted(set(PINNED.findall((ROOT / "requirements.lock").read_text())))
    components = [
        {
            "type": "library",
            "bom-ref": f"{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        for name, version in pinned
    ]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": "fairlead", "name": "fairlead"}
        },
        "components": components,
    }
    return json.dumps(bill, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(bill_of_materials())

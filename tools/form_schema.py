"""Writes the JSON schemas of Fairlead's own file formats, from the classes that decode them.

    python tools/form_schema.py

tests/test_form_schema.py compares the files with the output of this tool.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.whatif.configuration.autoscaling.node_group_file import NodeGroupFile

DOCS: Final = Path(__file__).parent.parent / "docs"
FORMS: Final = {"node-groups-schema.json": NodeGroupFile}


def main() -> None:
    """Write the files."""
    for name, form in FORMS.items():
        (DOCS / name).write_text(schema_text(form))


def schema_text(form: type[msgspec.Struct]) -> str:
    """Return the schema of `form` as JSON text."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(form),
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    main()

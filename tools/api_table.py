"""Write the table of served kinds into COMPATIBILITY.md.

    python tools/api_table.py COMPATIBILITY.md

The rows of the section "Served kinds" are replaced by what the server says of itself; everything
else on the page stays.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fairlead.apiserver.endpoints.kind_summary import rows
from fairlead.apiserver.registry.served_kinds import WITH_METRICS, ServedKinds

TABLE = re.compile(r"(## Served kinds\n.*?\n\|---\|---\|---\|\n)(?:\|[^\n]*\|\n)*", re.DOTALL)


def main(page: Path) -> None:
    """Replace the rows in `page`."""
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows(ServedKinds(WITH_METRICS)))
    page.write_text(TABLE.sub(lambda found: found[1] + table, page.read_text(), count=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

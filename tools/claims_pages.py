"""Writes the pages of docs/from-the-documents from claims.yaml: python tools/claims_pages.py.

Each page has a table of its claims: what shows a claim in its version, and what 1.36 does instead.
tests/test_from_the_documents.py runs every command and compares the pages with the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parent.parent / "docs" / "from-the-documents"
NOT: Final = "not: "
HOW: Final = """\
Each row is checked by a test. A command is run in `docs/from-the-documents/scenarios` with
`--behave-like` and the version, and again with 1.36. `-v 5` logs the decisions that are shown here,
`--commands FILE` writes the commands to the API server, `--metrics FILE` the metrics.
"""
HEAD: Final = """\
# From the documents

Readers of well-known explanations of preemption, node failures and batch scheduling can start here.
A page per document lists what it claims, the command that shows it in the version of the document,
and what Kubernetes 1.36 does instead. [Versions](../versions.md) explains `--behave-like`.

| document | version | claims | different in 1.36 |
|---|---|---|---|
"""


def read_claims() -> list[dict[str, Any]]:
    """The pages with their claims."""
    pages: list[dict[str, Any]] = yaml.safe_load((FOLDER / "claims.yaml").read_text())
    return pages


def pages() -> dict[str, str]:
    """The text of every page by file name."""
    found = {f"{page['page']}.md": _page(page) for page in read_claims()}
    rows = "".join(
        f"| [{page['title']}]({page['page']}.md) | {page['version']} | {len(page['claims'])} "
        f"| {sum(_differs(claim) for claim in page['claims'])} |\n"
        for page in read_claims()
    )
    found["README.md"] = HEAD + rows
    return found


def _differs(claim: dict[str, Any]) -> bool:
    return "today" in claim


def _page(page: dict[str, Any]) -> str:
    version = page["version"]
    head = f"# {page['title']}\n\n{page['about']}\n\n{HOW}\n"
    table = f"| claim | shown by | in {version} | in 1.36 |\n|---|---|---|---|\n"
    return head + table + "".join(_row(claim) for claim in page["claims"])


def _row(claim: dict[str, Any]) -> str:
    if "test" in claim:
        test = claim["test"]
        return f"| {claim['claim']} | [{Path(test).name}](../../{test}) | works | see the test |\n"
    today = _texts(claim["today"]) if _differs(claim) else "the same"
    return (
        f"| {claim['claim']} | `fairlead {claim['run']}` | {_texts(claim['shows'])} | {today} |\n"
    )


def _texts(texts: list[str]) -> str:
    return "<br>".join(_text(text) for text in texts)


def _text(text: str) -> str:
    quoted = text.removeprefix(NOT).replace("|", "\\|")
    return f"nowhere `{quoted}`" if text.startswith(NOT) else f"`{quoted}`"


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)

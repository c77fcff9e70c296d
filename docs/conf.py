# ruff: noqa: INP001 - Sphinx runs it as a script
"""Builds the pages in docs/ as a site and the commands as a manual page, without the network.

    make site

Links to files outside docs/ become their paths as text, because a site does not contain them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead import __version__
from fairlead.cli.main import documented_app

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).parent

project = "Fairlead"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["conf.py", "explanation/scenarios", "from-the-documents/scenarios"]
smartquotes = False  # otherwise, --drain in a heading becomes a dash and the word drain
html_theme = "furo"
html_title = "Fairlead"
html_static_path = ["images", "style"]
html_css_files = ["site.css"]
html_theme_options = {"source_view_link": "", "source_edit_link": ""}
html_show_copyright = False
man_pages = [("commands", "fairlead", 'ask a Kubernetes cluster "what if?"', ["the authors"], 1)]
# A page that is too wide for a terminal is still a page.
suppress_warnings = ["myst.header"]

_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?!https?:|#)[^)\s]+)\)")
_GENERATED: Final = "<!-- The site lists the commands here. -->"
# {page: the pages below it}. The navigation of the site shows the pages below only on demand.
_BELOW: Final = {"adr/README": "0*", "performance": "performance/*"}


def setup(app: Sphinx) -> None:
    """Connect what changes pages before they are read."""
    app.connect("source-read", _prepare)


def _prepare(_: Sphinx, name: str, source: list[str]) -> None:
    folder = (ROOT / name).parent

    def kept(match: re.Match[str]) -> str:
        text, target = match[1], match[2].partition("#")[0]
        path = (folder / target).resolve()
        is_page = path.is_relative_to(ROOT) and path.is_file()
        return match[0] if is_page or not target else text

    text = _LINK.sub(kept, source[0])
    if name in _BELOW:
        text += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{_BELOW[name]}\n```\n"
    source[0] = text.replace(_GENERATED, _commands()) if _GENERATED in text else text


def _commands() -> str:
    """The reference of all commands as Markdown, one section for each."""
    text = documented_app().generate_docs(output_format="markdown", heading_level=1)
    return text[text.index("\n## fairlead ") :]

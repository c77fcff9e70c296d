"""The page's own scripts: joinable into one, and careful with text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from fairlead.whatif import report
from fairlead.whatif.report.script import IMPORT, MODULES, inlined, joined_modules
from fairlead.whatif.report.write import STYLES, asset

STATIC = Path(report.__file__).parent / "static"
DECLARED = re.compile(r"^(?:export )?(?:function|const|class) (\w+)", re.MULTILINE)
IMPORTED = re.compile(r"^import \{([^}]*)\} from \"\./(\w+\.js)\";$", re.MULTILINE)
# Ways for text to become markup or code, and ways out of the page.
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"
    r"|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|\bimport\("
)


def test_every_file_is_used():
    """No script or style sheet lies about unused."""
    scripts = {path.name for path in STATIC.glob("*.js")}
    styles = {path.name for path in STATIC.glob("*.css")}
    assert scripts == set(MODULES)
    assert styles == {name for name in STYLES if "/" not in name}


@pytest.mark.parametrize("module", MODULES)
def test_imports_what_an_earlier_module_exports(module):
    """Import lines, which only tools and readers follow, are true."""
    for names, source in IMPORTED.findall(asset(module)):
        assert MODULES.index(source) < MODULES.index(module)
        for name in filter(None, (name.strip() for name in names.split(","))):
            pattern = rf"^export (?:function|const|class) {name}\b"
            assert re.search(pattern, asset(source), re.MULTILINE), f"{name} of {source}"
            assert re.search(rf"\b{name}\b", inlined(asset(module))), f"{name} is not used"


def test_joined_script_has_no_module_syntax_left():
    """Inlined, the modules are one script."""
    joined = joined_modules(asset)
    assert not re.search(r"^(import|export)\b", joined, re.MULTILINE)
    assert not IMPORT.search(joined)


def test_no_name_is_declared_twice():
    """In one script, two declarations of a name are an error."""
    names = Counter(name for module in MODULES for name in DECLARED.findall(asset(module)))
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("module", MODULES)
def test_text_never_becomes_markup(module):
    """No module has a way to turn a name into an element, or to call out."""
    assert DANGEROUS.findall(asset(module)) == []


def test_assets_cannot_end_their_element():
    """Nothing inlined holds what would end or confuse a script or style element."""
    inlined_texts = [asset(name) for name in STYLES] + [joined_modules(asset)]
    inlined_texts += [asset("vendor/uPlot.iife.min.js"), asset("vendor/LICENSE.uPlot")]
    for text in inlined_texts:
        assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)

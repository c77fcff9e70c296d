"""The scripts of the page: they can be joined into one script, and they escape text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from fairlead.whatif import report
from fairlead.whatif.report.script import (
    COMPARISON_MODULES,
    DASHBOARD_MODULES,
    IMPORT,
    LIVE_MODULES,
    MODULES,
    inlined,
    joined_modules,
)
from fairlead.whatif.report.write import COMPARISON_STYLES, LIVE_STYLES, asset

STATIC = Path(report.__file__).parent / "static"
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
IMPORTED = re.compile(r"^import \{([^}]*)\} from \"\./(\w+\.js)\";$", re.MULTILINE)
# Texts that could become markup or code, and ways to leave the page.
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"
)
WAYS_OUT = re.compile(r"\bfetch\(|EventSource|XMLHttpRequest|WebSocket|sendBeacon|\bimport\(")
ALL_MODULES = (*MODULES, "comparison.js", *LIVE_MODULES)


def test_every_file_is_used():
    """No script or style sheet is unused."""
    scripts = {path.name for path in STATIC.glob("*.js")}
    styles = {path.name for path in STATIC.glob("*.css")}
    assert scripts == set(ALL_MODULES)
    assert styles == {name for name in (*LIVE_STYLES, *COMPARISON_STYLES) if "/" not in name}


@pytest.mark.parametrize("module", ALL_MODULES)
def test_each_module_imports_only_exports_of_earlier_modules(module):
    """Import lines, which only tools and readers use, are correct."""
    for names, source in IMPORTED.findall(asset(module)):
        pages = (MODULES, COMPARISON_MODULES, DASHBOARD_MODULES)
        modules = next(page for page in pages if module in page)
        assert modules.index(source) < modules.index(module)
        for name in filter(None, (name.strip() for name in names.split(","))):
            pattern = rf"^export (?:async )?(?:function|const|class) {name}\b"
            assert re.search(pattern, asset(source), re.MULTILINE), f"{name} of {source}"
            assert re.search(rf"\b{name}\b", inlined(asset(module))), f"{name} is not used"


@pytest.mark.parametrize("modules", [MODULES, COMPARISON_MODULES, DASHBOARD_MODULES])
def test_joined_script_has_no_module_syntax_left(modules):
    """The modules are inlined as one classic script."""
    joined = joined_modules(asset, modules)
    assert not re.search(r"^(import|export)\b", joined, re.MULTILINE)
    assert not IMPORT.search(joined)


@pytest.mark.parametrize("modules", [MODULES, COMPARISON_MODULES, DASHBOARD_MODULES])
def test_no_name_is_declared_twice(modules):
    """In one script, two declarations of a name are an error."""
    names = Counter(name for module in modules for name in DECLARED.findall(asset(module)))
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("module", ALL_MODULES)
def test_text_never_becomes_markup(module):
    """No module converts text into elements."""
    assert MARKUP.findall(asset(module)) == []


def test_only_one_module_can_send_requests():
    """A report sends no requests, and a dashboard only from its module for requests."""
    assert [name for name in ALL_MODULES if WAYS_OUT.search(asset(name))] == ["live_server.js"]
    assert "live_server.js" not in (*MODULES, *COMPARISON_MODULES)


@pytest.mark.parametrize("modules", [MODULES, COMPARISON_MODULES, DASHBOARD_MODULES])
def test_a_script_has_every_module_that_it_imports(modules):
    """Each script contains all modules that its modules import."""
    for module in modules:
        assert {source for _, source in IMPORTED.findall(asset(module))} <= set(modules)


def test_assets_do_not_contain_the_end_tag_of_their_element():
    """No inlined asset contains text that ends a script or style element."""
    inlined_texts = [asset(name) for name in (*LIVE_STYLES, *COMPARISON_STYLES)]
    pages = (MODULES, COMPARISON_MODULES, DASHBOARD_MODULES)
    inlined_texts += [joined_modules(asset, modules) for modules in pages]
    inlined_texts += [asset("vendor/uPlot.iife.min.js"), asset("vendor/LICENSE.uPlot")]
    for text in inlined_texts:
        assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)

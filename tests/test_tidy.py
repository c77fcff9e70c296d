"""The rules of ARCHITECTURE.md and STYLE.md that a program can check, with the standard library.

`.importlinter` states the layers, too; here they are checked without an installed tool. Other
rules do not follow from imports: printing, opening files, iterating over sets, vague names.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
import structure

ROOT: Final = Path(__file__).parent.parent
SOURCE: Final = ROOT / "src" / "fairlead"

# From the lowest to the highest; packages in one row must not import each other.
LAYERS: Final = (
    ("api",),
    ("cel",),
    ("engine", "apiserver", "client"),
    ("worlds",),
    ("whatif", "conformance", "bench", "testing", "plugin", "batch_plugin"),
    ("cli",),
)
RANK: Final = {package: rank for rank, row in enumerate(LAYERS) for package in row}

# The client sends requests to a server, and makes no decisions.
DECIDING: Final = tuple(
    package for package, rank in RANK.items() if rank < RANK["worlds"] and package != "client"
)
# The modules of deciding packages that use the outside world. A new one needs a reason.
OUTSIDE: Final[tuple[str, ...]] = (
    "fairlead.api.client_tls",  # how certificates of servers are verified
    "fairlead.api.data_folder",  # the data files that are part of the packages
    "fairlead.apiserver.http.app",  # the API server's socket, and how query strings are written
    "fairlead.apiserver.http.request_body",
    "fairlead.apiserver.http.listener",
    "fairlead.apiserver.http.coalescing_transport",
    "fairlead.apiserver.http.connection_timeouts",
    "fairlead.apiserver.http.suspended_steps",
    "fairlead.apiserver.http.watch_stream",
    "fairlead.apiserver.http.webhook_client",
    "fairlead.apiserver.auth.impersonation",  # how keys are written in headers
    "fairlead.apiserver.endpoints.audit",  # how query strings are written
    "fairlead.apiserver.storage.write_ahead_log",  # data that survives the process
    "fairlead.apiserver.storage.disk_reserve",
    "fairlead.apiserver.storage.high_water_mark",
    "fairlead.apiserver.storage.sqlite_log",
)
# fmt: off
IMPURE_MODULES: Final = frozenset({
    "asyncio", "concurrent", "getpass", "glob", "http", "logging", "multiprocessing", "os",
    "pathlib", "platform", "queue", "random", "sched", "secrets", "select", "selectors",
    "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading",
    "time", "urllib", "uuid",
})
# fmt: on
# `hash` of text differs with PYTHONHASHSEED.
IMPURE_CALLS: Final = frozenset({"breakpoint", "hash", "input", "open", "print"})

EMPTY_MODULE_NAMES: Final = frozenset(
    {"base", "common", "helper", "helpers", "lib", "manager", "misc", "shared", "util", "utils"}
)
EMPTY_CLASS_NAME: Final = re.compile(r"(Manager|Helper|Util|Utils|Processor|Wrapper|Base|Impl)$")

MACHINE_PATH: Final = re.compile(r"/(work|root|home)/")
SIBLING_PATH: Final = re.compile(r"(?<![\w./-])([.][.]/)?shared[/]")
REGISTRIES: Final = re.compile(r"\b(pypi|pythonhosted|npmjs|anaconda)[.](org|com)\b")
LINK: Final = re.compile(r"\]\(([^)#\s]+)")
LINK_TO_SECTION: Final = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE_BLOCK: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DATA_SUFFIXES: Final = frozenset({".gz", ".png", ".jsonl"})

# A path below src/fairlead in a table; `<kind>` stands for any name.
SOURCE_PATH: Final = re.compile(r"`((?:engine|apiserver|worlds|whatif|cli|cel)/[\w/.]*)[`<]")

# Names that upstream uses for two different things.
SHARED_CLASS_NAMES: Final = {
    "NodeAffinity": "the API type, and the plugin that users name in configurations",
    "Priority": "the admission plugin, and kube-batch's plugin `priority`",
}


@cache
def source_modules() -> dict[str, structure.Module]:
    """Return every module of Fairlead by its dotted name."""
    return structure.read_modules(SOURCE.parent)


def modules() -> dict[str, ast.Module]:
    """Return every module of Fairlead, parsed, by its dotted name."""
    return {name: module.tree for name, module in source_modules().items()}


def package_of(module: str) -> str:
    """Return the layer of a dotted name, "" for names outside the layers."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "fairlead" and parts[1] in RANK else ""


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "fairlead":
            yield from ((node.lineno, f"fairlead.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def deciding_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that may get data from outside only through arguments."""
    for name, tree in modules().items():
        if package_of(name) in DECIDING and name not in OUTSIDE:
            yield name, tree


def may_know(importer: str, imported: str) -> bool:
    """Return whether package `importer` may import package `imported`."""
    return RANK[imported] < RANK[importer]


def test_packages_import_only_lower_layers() -> None:
    """A package imports lower packages only."""
    assert [
        f"{name}:{line} imports {imported}"
        for name, tree in modules().items()
        for line, imported in imports(tree)
        if package_of(name)
        and package_of(imported)
        and package_of(name) != package_of(imported)
        and not may_know(package_of(name), package_of(imported))
    ] == []


def test_every_package_has_a_layer() -> None:
    """A new package is placed in the layers before it is used."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages - set(RANK) == set()


def test_no_cycle_between_sub_packages() -> None:
    """The sub-packages of a package import one another in one direction only."""
    assert structure.package_cycles(source_modules()) == []


def test_a_class_name_has_one_meaning() -> None:
    """Two public classes may share a name only for a reason stated here."""
    places = structure.public_class_names(source_modules())
    ambiguous = {name for name, modules_ in places.items() if len(modules_) > 1}
    assert ambiguous == set(SHARED_CLASS_NAMES)


def test_paths_in_the_architecture_page_exist() -> None:
    """Every path in ARCHITECTURE.md's tables exists."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    paths = [path for row in rows for path in SOURCE_PATH.findall(row)]
    assert len(paths) > 25
    assert [path for path in paths if not (SOURCE / path).exists()] == []


def test_deciding_modules_do_not_import_impure_modules() -> None:
    """Packages below worlds use no clock, randomness, waiting, disk or network."""
    assert [
        f"{name}:{line} imports {imported}"
        for name, tree in deciding_modules()
        for line, imported in imports(tree)
        if imported.partition(".")[0] in IMPURE_MODULES
    ] == []


def test_deciding_modules_do_not_call_impure_functions() -> None:
    """They do not print, open files, or use hashes that depend on the process."""
    assert [
        f"{name}:{node.lineno} calls {node.func.id}"
        for name, tree in deciding_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in IMPURE_CALLS
    ] == []


def is_set(node: ast.expr) -> bool:
    """Return whether an expression is visibly a set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"set", "frozenset"}
    return isinstance(node, ast.Set | ast.SetComp)


def ordered_iterations(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the iterated expressions whose order affects the result."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.DictComp):
            yield from (generator.iter for generator in node.generators)


def test_deciding_modules_do_not_iterate_over_sets() -> None:
    """The iteration order of a set differs between processes."""
    assert [
        f"{name}:{expression.lineno}"
        for name, tree in deciding_modules()
        for expression in ordered_iterations(tree)
        if is_set(expression)
    ] == []


def test_module_and_class_names_are_not_vague() -> None:
    """No module or class has a name like utils or helpers."""
    files = [name for name in modules() if name.rpartition(".")[2] in EMPTY_MODULE_NAMES]
    classes = [
        f"{name}.{node.name}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and EMPTY_CLASS_NAME.search(node.name)
    ]
    assert files + classes == []


def tracked_lines() -> Iterator[tuple[str, str]]:
    """Yield (`file:line`, text) of every line of the project's text files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix not in DATA_SUFFIXES and path.is_file():
            text = path.read_text(errors="replace")  # some inputs of fuzzers are not UTF-8
            for number, line in enumerate(text.splitlines(), start=1):
                yield f"{name}:{number}", line


@pytest.mark.needs("git")
def test_files_contain_no_local_paths_or_registry_hosts() -> None:
    """Paths of one machine, sibling folders of the project, and hosts of package registries."""
    assert [
        f"{place}: {line.strip()[:100]}"
        for place, line in tracked_lines()
        if MACHINE_PATH.search(line) or SIBLING_PATH.search(line) or REGISTRIES.search(line)
    ] == []


def documents() -> list[Path]:
    """Return the pages of the documentation."""
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]


def test_links_in_documents_have_existing_targets() -> None:
    """Every link within the project has an existing target."""
    assert [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in documents()
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ] == []


def section_names(page: Path) -> set[str]:
    """Return the names by which links refer to the sections of `page`, as GitHub makes them."""
    headings = HEADING.findall(CODE_BLOCK.sub("", page.read_text()))
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


def test_links_to_sections_have_existing_targets() -> None:
    """Every link to a section of a page within the project has an existing target."""
    assert [
        f"{page.relative_to(ROOT)} -> {target}#{section}"
        for page in documents()
        for target, section in LINK_TO_SECTION.findall(page.read_text())
        if "://" not in target
        if section not in section_names(page.parent / target if target else page)
    ] == []


def test_changelog_fragments_have_no_issue_number() -> None:
    """Towncrier prints the part of a name before the kind as an issue, unless it begins with +."""
    form = re.compile(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md")
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md"}
    assert [name for name in sorted(names) if not form.fullmatch(name)] == []

"""Counts properties that make a source tree hard to navigate, and prints a table.

    python tools/structure.py            the table
    python tools/structure.py --list     the table, and every finding below it

Only a dependency cycle that contains a sub-package is an error (exit status 1). The packages and
modules in such a cycle must be read together. The other figures are hints for reviews.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parent.parent / "src"
FOLDER_MAX: Final = 15  # modules; plugins of one kind may be more
FUNCTION_MAX: Final = 70  # lines


@dataclass(frozen=True, slots=True)
class Module:
    """A source file: dotted name, number of lines, syntax tree, and imported modules."""

    name: str
    path: Path
    lines: int
    tree: ast.Module
    is_package: bool
    imports: frozenset[str] = field(default_factory=frozenset)


def read_modules(source: Path) -> dict[str, Module]:
    """Return the modules below `source` by dotted name; `imports` contains only these modules."""
    parsed: dict[str, Module] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text()
        parsed[name] = Module(name, path, text.count("\n"), ast.parse(text), is_package)
    return {
        name: Module(
            name,
            module.path,
            module.lines,
            module.tree,
            module.is_package,
            frozenset(imported_modules(module.tree, parsed)) - {name},
        )
        for name, module in parsed.items()
    }


def imported_modules(tree: ast.Module, known: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of the modules in `known` that `tree` imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in known:
                    yield full
                elif node.module in known:
                    yield node.module


def import_lines(modules: Mapping[str, Module]) -> int:
    """Return the number of lines of all import statements."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def private_functions(modules: Mapping[str, Module]) -> tuple[int, list[str]]:
    """Return (number of private functions, names of those that are used once in their file)."""
    total, once = 0, []
    for module in modules.values():
        uses = Counter(
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Attribute | ast.Name)
        )
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_private(node.name):
                total += 1
                if uses[node.name] == 1:
                    once.append(f"{module.name}.{node.name}")
    return total, once


def is_private(name: str) -> bool:
    """Return whether `name` begins with exactly one underscore."""
    return name.startswith("_") and not name.startswith("__")


def single_importer(modules: Mapping[str, Module]) -> list[str]:
    """Return the names of the modules that exactly one other module imports."""
    importers = Counter(imported for module in modules.values() for imported in module.imports)
    return [
        name for name, module in modules.items() if importers[name] == 1 and not module.is_package
    ]


def large_folders(modules: Mapping[str, Module]) -> list[str]:
    """Return the packages that directly contain more than FOLDER_MAX modules, largest first."""
    sizes = Counter(
        name.rpartition(".")[0] for name, module in modules.items() if not module.is_package
    )
    return [f"{name} ({size})" for name, size in sizes.most_common() if size > FOLDER_MAX]


def public_class_names(modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Return {name of a public class: modules that define it at top level}."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.name)
    return dict(places)


def ambiguous_names(modules: Mapping[str, Module]) -> list[str]:
    """Return the public class names that several modules define, with these modules."""
    return [
        f"{name}: {', '.join(places)}"
        for name, places in sorted(public_class_names(modules).items())
        if len(places) > 1
    ]


def package_cycles(modules: Mapping[str, Module]) -> list[str]:
    """Return the dependency cycles among the children of each package.

    A cycle without a sub-package is left out; `module_cycles` finds it. If `a.d.e` imports `a.b.c`,
    the child `a.d` of `a` depends on the child `a.b`. The `__init__` of a package is not a child,
    because it may import from all children.
    """
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in modules.values():
        for imported in module.imports:
            ours, theirs = module.name.split("."), imported.split(".")
            shared = 0
            while shared < min(len(ours), len(theirs)) and ours[shared] == theirs[shared]:
                shared += 1
            if shared < len(ours) and shared < len(theirs):
                parent = ".".join(ours[:shared])
                edges[parent][ours[shared]].add(theirs[shared])
    packages = {name for name, module in modules.items() if module.is_package}
    return [
        f"{parent}: {' <-> '.join(circle)}"
        for parent, graph in sorted(edges.items())
        for circle in circles(graph)
        if any(f"{parent}.{child}" in packages for child in circle)
    ]


def module_cycles(modules: Mapping[str, Module]) -> list[str]:
    """Return the cycles of modules that import each other, including imports inside functions."""
    graph = {name: set(module.imports) for name, module in modules.items()}
    return [" <-> ".join(circle) for circle in circles(graph)]


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with several nodes, sorted (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(start: str) -> None:
        # An explicit stack, because import chains are longer than Python's recursion limit.
        work = [(start, iter(sorted(graph.get(start, ()))))]
        index[start] = low[start] = len(index)
        path.append(start)
        while work:
            node, successors = work[-1]
            following = next(
                (each for each in successors if each not in index or each in path), None
            )
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = path[path.index(node) :]
                    del path[path.index(node) :]
                    if len(component) > 1:
                        found.append(sorted(component))
            elif following not in index:
                index[following] = low[following] = len(index)
                path.append(following)
                work.append((following, iter(sorted(graph.get(following, ())))))
            else:
                low[node] = min(low[node], index[following])

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def long_functions(modules: Mapping[str, Module]) -> list[str]:
    """Return the functions that do not fit a screen, with their numbers of lines; longest first."""
    found = [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{name}.{node.name}")
        for name, module in modules.items()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    longest = sorted((one for one in found if one[0] > FUNCTION_MAX), reverse=True)
    return [f"{name}: {length} lines" for length, name in longest]


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if a dependency cycle contains a sub-package, else 0."""
    modules = read_modules(SOURCE)
    lines = sum(module.lines for module in modules.values())
    imports = import_lines(modules)
    private, used_once = private_functions(modules)
    cycles = package_cycles(modules)
    findings = {
        "cycles with sub-packages (must be 0)": cycles,
        "cycles between modules": module_cycles(modules),
        "class names with several meanings": ambiguous_names(modules),
        f"folders with more than {FOLDER_MAX} modules": large_folders(modules),
        "modules with one importer": single_importer(modules),
        "private functions used once": used_once,
        f"functions with more than {FUNCTION_MAX} lines": long_functions(modules),
    }
    print(f"{'modules':<42}{len(modules):>8,}")
    print(f"{'lines':<42}{lines:>8,}")
    print(f"{'import lines':<42}{imports:>8,}  {imports / lines:.1%}")
    print(f"{'private functions':<42}{private:>8,}")
    for title, found in findings.items():
        print(f"{title:<42}{len(found):>8,}")
    if "--list" in arguments:
        for title, found in findings.items():
            print(f"\n{title}:", *found, sep="\n  ")
    elif cycles:
        print(*cycles, sep="\n")
    return 1 if cycles else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

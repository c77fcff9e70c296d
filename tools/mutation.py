"""Measures how many small changes of the code the tests detect (docs/mutation-tests.md).

    python tools/mutation.py preemption --sample 150 --seed 1

A mutant is a module with one change inside a function. The changes are:

- another comparison, boolean operator, arithmetic operator, number or truth value
- a negated condition
- None instead of the returned value
- a statement that is left out
- `break` instead of `continue`, or the reverse

A mutant is killed if a test fails or does not end in time. A mutant whose function no test calls
survives. `AREAS` lists the files that are changed, and the tests that run.

First, the tests of the area run once, and a profile function records which test calls which
function. For each mutant, the process forks. The child process replaces the code of the changed
function, which is already imported. Then it runs the tests that call the function, the quickest
first, up to the first failure. The tool prints each surviving mutant, and the number of killed
mutants.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random  # noqa: TID251 - of the sample's seed
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parent.parent
ENGINE: Final = "src/fairlead/engine"


@dataclass(frozen=True)
class Area:
    """The files that are changed, and the tests that should detect the changes."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


AREAS: Final = {
    "preemption": Area(
        (
            f"{ENGINE}/scheduling/preemption/*.py",
            f"{ENGINE}/framework/preemption/*.py",
            f"{ENGINE}/framework/candidate.py",
        ),
        (
            "tests/unit/engine/scheduling",
            "tests/golden/test_scheduling.py::test_every_recorded_decision_is_ours[preempt]",
            "tests/golden/test_scheduling.py::test_every_recorded_decision_is_ours[preempt_tie]",
            "tests/golden/test_scheduling.py::test_every_recorded_decision_is_ours[preempt_constraints]",
            "tests/golden/test_scheduling.py::test_every_recorded_decision_is_ours[nominated]",
            "tests/golden/test_timelines.py",
        ),
    ),
    "gangs": Area(
        (
            f"{ENGINE}/batch/actions/*.py",
            f"{ENGINE}/batch/plugins/gang.py",
            f"{ENGINE}/batch/info/group.py",
            f"{ENGINE}/batch/info/job.py",
            f"{ENGINE}/batch/info/job_table.py",
            f"{ENGINE}/batch/session/close_session.py",
            f"{ENGINE}/batch/session/statement.py",
            f"{ENGINE}/scheduling/pod_group/*.py",
        ),
        (
            "tests/unit/engine/batch",
            "tests/unit/engine/test_batch.py",
            "tests/unit/engine/test_gang_preparations.py",
            "tests/unit/engine/scheduling/pod_group",
            "tests/golden/test_kubebatch.py",
            "tests/properties/test_whole_jobs.py",
        ),
    ),
    "eviction": Area(
        (
            f"{ENGINE}/nodelifecycle/eviction/*.py",
            f"{ENGINE}/nodelifecycle/health/*.py",
            f"{ENGINE}/nodelifecycle/zones/*.py",
            f"{ENGINE}/nodelifecycle/monitor.py",
        ),
        ("tests/unit/engine/nodelifecycle", "tests/golden/test_nodelifecycle.py"),
    ),
    "disruption budgets": Area(
        (
            f"{ENGINE}/workloads/disruption/*.py",
            f"{ENGINE}/framework/preemption/disruption_budget.py",
            "src/fairlead/apiserver/registry/subresource/eviction.py",
        ),
        (
            "tests/unit/engine/workloads/disruption",
            "tests/unit/engine/workloads/drain",
            "tests/unit/engine/scheduling/test_picking.py",
            "tests/unit/engine/scheduling/test_preempting.py",
            "tests/unit/engine/scheduling/test_versions.py",
            "tests/unit/apiserver/registry",
            "tests/unit/apiserver/endpoints/subresources",
        ),
    ),
}

COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
TIME_FACTOR: Final = 3.0
"""A mutant may take this many times the CPU time of its tests, plus SLACK_S."""
SLACK_S: Final = 20.0


@dataclass(frozen=True)
class Mutant:
    """One change: the index `place` of the changed node, and the index `choice` of the change.

    The nodes are numbered in the order of `_places`, and the changes of a node in the order of
    `_changes`.
    """

    path: Path
    function: str
    place: int
    choice: int
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} {self.function}: {self.text}"


# --- mutants --------------------------------------------------------------------------------


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    tree = ast.parse(path.read_text())
    for place, (node, function) in enumerate(_places(tree)):
        for choice, changed in enumerate(_changes(node)):
            text = f"{_shown(node)}  ->  {_shown(changed)}"
            yield Mutant(path, function, place, choice, getattr(node, "lineno", 0), text)


def mutated(mutant: Mutant) -> ast.Module:
    """Return the syntax tree of the mutant's file with the change."""
    tree = ast.parse(mutant.path.read_text())
    node, _ = list(_places(tree))[mutant.place]
    changed = list(_changes(node))[mutant.choice]
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, changed)
            elif isinstance(value, list) and any(one is node for one in value):
                value[:] = [changed if one is node else one for one in value]
    return ast.fix_missing_locations(tree)


def _places(tree: ast.AST, function: str = "", *, inside: bool = False) -> Iterator[Any]:
    """Yield (node, qualified name of the function) for each node that may be changed."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.ClassDef) or _is_function(child):
            assert isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            name = f"{function}.{child.name}" if function and not inside else child.name
            outer = function if inside else name
            body = ast.Module([one for one in child.body if not _is_text(one)], [])
            yield from _places(body, outer, inside=inside or _is_function(child))
        elif not isinstance(child, ast.Raise | ast.Assert | ast.arguments):
            if inside:
                yield child, function
            kept = _without_annotation(child)
            yield from _places(kept, function, inside=inside)


def _without_annotation(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.AnnAssign):
        return ast.Expression(node.value) if node.value else ast.Module([], [])
    return node


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - one case per operator
    """Yield the nodes that may replace `node`."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            for other in COMPARISONS[type(op)]:
                yield ast.Compare(left, [other()], comparators)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            changed = copy.copy(node)
            changed.test = ast.UnaryOp(ast.Not(), test)
            yield changed
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(op)](), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Return(value=ast.expr() as value) if not _is_nothing(value):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _shown(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return " ".join(text.split("\n")[0].split())[:100]


# --- running --------------------------------------------------------------------------------


@dataclass
class Baseline:
    """The result of the first run: the tests that call each function, and the time of each test."""

    codes: frozenset[str]
    """The files whose functions are recorded."""
    callers: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Record the functions that one test and its fixtures call."""
        seen: set[tuple[str, str]] = set()

        def record(frame: FrameType, event: str, _: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename in self.codes:
                seen.add((code.co_filename, code.co_qualname.partition(".<locals>")[0]))

        began = time.process_time()
        sys.setprofile(record)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            self.seconds[item.nodeid] = time.process_time() - began
            for one in seen:
                self.callers.setdefault(one, set()).add(item.nodeid)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that call the mutant's function, the quickest first."""
        found = self.callers.get((str(mutant.path), mutant.function), set())
        return sorted(found, key=self.seconds.__getitem__)


@dataclass(frozen=True)
class Selection:
    """A pytest plugin that runs only the tests `names`, in this order."""

    names: list[str]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep only the tests `names`, and sort them in this order."""
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self.names if name in by_name]


OPTIONS: Final = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header")


def is_killed(mutant: Mutant, baseline: Baseline) -> bool:
    """Return whether a test fails or takes too long with the mutant.

    The tests run in a forked process. The result is False if no test calls the changed function.
    """
    tests = baseline.tests_of(mutant)
    if not tests:
        return False
    limit = TIME_FACTOR * sum(baseline.seconds[name] for name in tests) + SLACK_S
    child = os.fork()
    if not child:
        os._exit(_status_of(mutant, tests, limit))
    _, status = os.waitpid(child, 0)
    return status != 0


def _status_of(mutant: Mutant, tests: list[str], limit: float) -> int:
    """Run `tests` in the forked process; return 0 if they pass.

    After `limit` seconds of CPU time, a signal ends the process.
    """
    signal.setitimer(signal.ITIMER_PROF, limit)  # The signal SIGPROF ends the process.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        try:
            _install(mutant)
            files = sorted({name.partition("::")[0] for name in tests})
            return int(pytest.main([*OPTIONS, *files], plugins=[Selection(tests)]))
        except BaseException:  # noqa: BLE001 - any error means that the change was detected
            return 1


def _install(mutant: Mutant) -> None:
    """Replace the code of the mutant's function in all function objects that have this code."""
    old = dict(_codes(compile(mutant.path.read_text(), str(mutant.path), "exec")))
    new = dict(_codes(compile(mutated(mutant), str(mutant.path), "exec")))
    changed = new[mutant.function]
    first_line = old[mutant.function].co_firstlineno
    found = 0
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            code = one.__code__
            if code.co_filename == str(mutant.path) and code.co_qualname == mutant.function:
                assert code.co_firstlineno == first_line, mutant
                one.__code__ = changed
                found += 1
    assert found, f"{mutant}: not imported"


def _codes(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Yield the functions of a module and the methods of its classes, by qualified name."""
    for one in code.co_consts:
        if isinstance(one, CodeType) and "<" not in one.co_name:
            yield one.co_qualname, one
            if not one.co_flags & 0x2:  # a class's body, which is not optimized
                yield from _codes(one)


def paths_of(area: Area) -> list[Path]:
    """Return the files of an area, sorted."""
    return sorted(path for pattern in area.files for path in ROOT.glob(pattern))


def matching_mutants(area: Area, match: list[str]) -> list[Mutant]:
    """Return the mutants of an area whose description contains one of the texts `match`.

    If `match` is empty, all mutants of the area are returned.
    """
    everything = (mutant for path in paths_of(area) for mutant in mutants_of(path))
    return [one for one in everything if not match or any(text in str(one) for text in match)]


def measure(name: str, sample: int, seed: int, match: list[str], tests: list[str]) -> int:
    """Measure one area; return the number of survivors.

    `match` selects the mutants, as in `matching_mutants`, and must match at least one. If `tests`
    is not empty, these tests run instead of the tests of the area.
    """
    area = AREAS[name]
    paths = paths_of(area)
    baseline = Baseline(frozenset(map(str, paths)))
    os.chdir(ROOT)
    if pytest.main([*OPTIONS, *(tests or area.tests)], plugins=[baseline]):
        raise SystemExit("the tests fail without any change")
    everything = matching_mutants(area, match)
    chosen = Random(seed).sample(everything, min(sample, len(everything)))  # noqa: S311
    survivors = []
    for number, mutant in enumerate(sorted(chosen, key=str), 1):
        if not is_killed(mutant, baseline):
            survivors.append(mutant)
            callers = len(baseline.tests_of(mutant))
            print(f"SURVIVED {mutant}  ({callers} tests call it)", flush=True)
        if number % 25 == 0:
            print(f"... {number} of {len(chosen)}", flush=True)
    killed = len(chosen) - len(survivors)
    print(
        f"{name}: {len(everything)} mutants in {len(paths)} files, {len(chosen)} tried,"
        f" {killed} killed ({killed / len(chosen):.1%})"
    )
    return len(survivors)


def main() -> None:
    """Measure the areas that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", default=list(AREAS), help=", ".join(AREAS))
    parser.add_argument("--sample", type=int, default=150, help="mutants per area")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", action="append", default=[], help="only mutants with this text")
    parser.add_argument("--tests", action="append", default=[], help="instead of the area's tests")
    wanted = parser.parse_args()
    areas = [name for name in wanted.areas if matching_mutants(AREAS[name], wanted.match)]
    if not areas:
        print(f"--match: no mutant of {', '.join(wanted.areas)} matches", file=sys.stderr)
        sys.exit(2)
    for name in areas:
        measure(name, wanted.sample, wanted.seed, wanted.match, wanted.tests)


if __name__ == "__main__":
    main()

"""The fixture `fairlead_cluster` in other projects' test suites."""

from __future__ import annotations

import pytest

# pytester forgets the modules of its runs, but numpy and others can be loaded only once.
import fairlead.testing.cluster.start  # noqa: F401

pytest_plugins = ["pytester"]

ALIKE = """
import pytest

def test_one(fairlead_cluster):
    fairlead_cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    assert len(fairlead_cluster.list("node")) == 3
    assert fairlead_cluster.kubeconfig.read_text().startswith("apiVersion: v1")

def test_two(fairlead_cluster):
    assert (fairlead_cluster.get("cm", "c") is not None) == SHARED
"""

MARKED = """
import pytest

@pytest.mark.fairlead_cluster(nodes=2, zones=2, paused=True)
def test_marked(fairlead_cluster):
    zones = [n["metadata"]["labels"]["topology.kubernetes.io/zone"]
             for n in fairlead_cluster.list("node")]
    assert zones == ["zone-a", "zone-b"]
    assert fairlead_cluster.now == fairlead_cluster.now
"""


@pytest.fixture
def suite(pytester):
    """Runs a suite in this process; Fairlead's plugin is active because Fairlead is installed."""

    def run(text, *options):
        pytester.makepyfile(text)
        # Where schemathesis is installed, each run would import its 280 modules again.
        return pytester.runpytest("-p", "no:schemathesis", *options)

    return run


def test_every_test_has_its_own_cluster(suite) -> None:
    suite(f"SHARED = False\n{ALIKE}", "--strict-markers").assert_outcomes(passed=2)


def test_the_tests_of_a_module_may_share_a_cluster(suite) -> None:
    result = suite(f"SHARED = True\n{ALIKE}", "-o", "fairlead_cluster_scope=module")
    result.assert_outcomes(passed=2)


def test_a_mark_sets_the_options_of_the_cluster(suite) -> None:
    suite(MARKED, "--strict-markers").assert_outcomes(passed=1)


def test_an_unknown_option_is_refused_by_name(suite) -> None:
    result = suite(MARKED.replace("paused=True", "pods=3"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fairlead_cluster: *unexpected keyword argument 'pods'*"])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_an_unknown_scope_is_refused(suite) -> None:
    result = suite(MARKED, "-o", "fairlead_cluster_scope=planet")
    result.stderr.fnmatch_lines(["*fairlead_cluster_scope must be one of function, class, *"])


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("nodes=-1", "*fairlead_cluster: -1 nodes in 1 zones: *"),
        ("nodes=2, zones=3", "*fairlead_cluster: 2 nodes in 3 zones: *"),
        ("6", "*fairlead_cluster: takes arguments by name, such as nodes=6*"),
        ("speed=0", "*fairlead_cluster: speed must be from 0.001*"),
        ("speed='2'", "*fairlead_cluster: speed '2' is not a number"),
        ("nodes='3'", "*fairlead_cluster: nodes '3' is not an integer"),
        ("zones=None", "*fairlead_cluster: zones None is not an integer"),
        ("paused='no'", "*fairlead_cluster: paused 'no' is not True or False"),
        ("without=None", "*fairlead_cluster: without takes a list such as *, not None"),
        ("without=['etcd']", "*fairlead_cluster: without 'etcd': must be among kubelet, *"),
        ("without='scheduler'", "*: without takes a list such as *, not the text 'scheduler'"),
    ],
)
def test_an_invalid_option_value_is_refused(suite, wish, message) -> None:
    result = suite(MARKED.replace("nodes=2, zones=2, paused=True", wish))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_mark_on_a_test_with_a_shared_cluster_is_refused(suite) -> None:
    result = suite(MARKED, "-o", "fairlead_cluster_scope=module")
    result.stderr.fnmatch_lines(["*test_marked: @pytest.mark.fairlead_cluster has no effect with*"])


MARKED_CLASS = """
import pytest

@pytest.mark.fairlead_cluster(nodes=1)
class TestMarked:
    def test_marked(self, fairlead_cluster):
        assert len(fairlead_cluster.list("node")) == 1
"""
MARKED_MODULE = """
import pytest

pytestmark = pytest.mark.fairlead_cluster(nodes=1)

def test_marked(fairlead_cluster):
    assert len(fairlead_cluster.list("node")) == 1
"""


@pytest.mark.parametrize(
    ("text", "scope", "instead"),
    [
        (MARKED_CLASS, "class", ""),
        (MARKED_CLASS, "module", "use pytestmark"),
        (MARKED_MODULE, "module", ""),
        (MARKED_MODULE, "session", "all tests share a cluster without settings"),
        (MARKED_MODULE, "package", "all tests share a cluster without settings"),
    ],
)
def test_a_mark_on_some_tests_that_share_a_cluster_is_refused(suite, text, scope, instead) -> None:
    """Otherwise, the cluster would silently have other settings."""
    result = suite(text, "-o", f"fairlead_cluster_scope={scope}")
    if instead:
        result.stderr.fnmatch_lines([f"*fairlead_cluster has no effect with *{scope}; {instead}"])
    else:
        result.assert_outcomes(passed=1)


FAILING = """
def test_waits(fairlead_cluster):
    fairlead_cluster.expect_bound("nobody")

def test_is_refused(fairlead_cluster):
    fairlead_cluster.delete("pod", "nobody")
"""


def test_failures_are_shown_at_the_line_of_the_test(suite) -> None:
    result = suite(FAILING, "--tb=short")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E *nobody was not bound within 1m: there is no such pod"])
    result.stdout.no_fnmatch_line("*local_cluster.py*")
    result.stdout.no_fnmatch_line("*asking.py*")

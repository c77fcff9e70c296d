"""The pytest plugin: the fixture `fairlead_cluster`, a new cluster for each test.

    def test_it(fairlead_cluster): ...

    @pytest.mark.fairlead_cluster(nodes=6, zones=3, paused=True)
    def test_it_in_three_zones(fairlead_cluster): ...

If pytest's configuration sets `fairlead_cluster_scope = module`, the tests of a module share a
cluster. The scopes `class` and `session` are also possible. The scope `package` has the same effect
as `session`. Each worker of pytest-xdist always has its own clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

if TYPE_CHECKING:
    from fairlead.testing.cluster.test_cluster import TestCluster

Scope = Literal["session", "package", "module", "class", "function"]

MARKER: Final = "fairlead_cluster"
SCOPE: Final = "fairlead_cluster_scope"
SCOPES: Final = ("function", "class", "module", "package", "session")
# For each scope, the nodes of pytest whose markers the fixture does not see, and what to do then.
# pytest gives a fixture of a plugin with the scope `package` to all packages.
_UNSEEN: Final[dict[str, tuple[tuple[type[pytest.Item | pytest.Collector], ...], str]]] = {
    "function": ((), ""),
    "class": ((pytest.Item,), "mark the class, or use pytestmark"),
    "module": ((pytest.Item, pytest.Class), "use pytestmark"),
    **dict.fromkeys(
        ("package", "session"),
        ((pytest.Item, pytest.Class, pytest.Module), "all tests share a cluster without settings"),
    ),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `fairlead_cluster_scope`, an option of pytest's configuration file."""
    parser.addini(
        SCOPE, f"the scope of tests that share a cluster: {', '.join(SCOPES)}", default="function"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; raise UsageError if the configured scope is unknown."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(nodes=3, zones=1, speed=1.0, paused=False, without=(), patience_s=3.0): "
        "settings of the cluster",
    )
    if config.getini(SCOPE) not in SCOPES:
        raise pytest.UsageError(f"{SCOPE} must be one of {', '.join(SCOPES)}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Raise UsageError if a marker marks only some of the tests that share a cluster."""
    scope = config.getini(SCOPE)
    unseen, instead = _UNSEEN[scope]
    for item in items if unseen else ():
        for node, _ in item.iter_markers_with_node(MARKER):
            if isinstance(node, unseen):
                problem = f"has no effect with {SCOPE} = {scope}; {instead}"
                raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.{MARKER} {problem}")


def _scope(fixture_name: str, config: pytest.Config) -> Scope:  # noqa: ARG001 - pytest's
    scope: Scope = config.getini(SCOPE)
    return scope


@pytest.fixture(scope=_scope)
def fairlead_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestCluster]:
    """Yield a cluster with an API server, a scheduler, controllers and simulated nodes."""
    # Imported late, because every pytest run loads this file.
    from fairlead.testing.cluster.start import start_cluster  # noqa: PLC0415

    marker = request.node.get_closest_marker(MARKER)
    wanted: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    if marker is not None and marker.args:
        raise _refusal("takes arguments by name, such as nodes=6")
    try:
        starting = start_cluster(tmp_path_factory.mktemp("fairlead"), **wanted)
    except (TypeError, ValueError) as cause:
        raise _refusal(str(cause)) from None
    with starting as cluster:
        yield cluster


def _refusal(problem: str) -> BaseException:
    """Return the failure that a marker causes; pytest shows only its message, no traceback."""
    return pytest.fail.Exception(f"@pytest.mark.{MARKER}: {problem}", pytrace=False)

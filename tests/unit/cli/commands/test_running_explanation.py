"""How a running scheduler explains pods that it does not schedule one by one."""

from __future__ import annotations

from types import SimpleNamespace

from fairlead.cli.commands.run.explanation import explain_running
from fairlead.engine.compose import build_running_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.testing.batch_builders import make_gang, make_task
from fairlead.testing.builders import make_node, make_pod
from fairlead.whatif.configuration.batch.batch_file import read_batch_config
from fairlead.worlds.cluster.http_server import PodQuery
from fairlead.worlds.cluster.resource import BATCH, SCHEDULER


def explained(key):
    """Return (status, text) for a pending pod.

    The pod waits with a gang, is too large for all nodes, or belongs to another scheduler.
    """
    config = EngineConfig(batch=read_batch_config("fairlead"))
    engine = build_running_engine(config, SilentReporter(), (SCHEDULER, BATCH))
    other = make_task("other", scheduler="nobody")
    large = make_pod("large", requests={"cpu": "99"})
    labelled = make_pod("labelled", spec={"nodeSelector": {"pool": "gpu"}})
    engine.handle(ObjectsLoaded([make_node("n1"), *make_gang("g", 2), other, large, labelled]), 0)
    answer = explain_running(
        SimpleNamespace(engine=engine, clock=SimpleNamespace(now=lambda: 0)),
        PodQuery(key, "text", 120),
    )
    return answer.status, answer.body.decode()


def test_a_pod_of_the_batch_scheduler_is_not_explained():
    status, text = explained("default/g-0")
    assert status == 404
    assert text.startswith("default/g-0 waits for the batch scheduler of this process")


def test_a_pod_of_another_scheduler_is_named_as_such():
    assert explained("default/other") == (200, "default/other: not scheduled by this process\n")


def test_there_is_no_empty_column_for_changes_that_are_not_computed():
    status, text = explained("default/large")
    assert status == 200
    assert "refused by" in text
    assert "would fit after" not in text


def test_a_label_that_no_node_has_is_named():
    _, text = explained("default/labelled")
    assert "No node has pool=gpu; no node has the label pool." in text

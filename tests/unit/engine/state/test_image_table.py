"""ImageTable: one size per image name, that of the first node with the image."""

from __future__ import annotations

from fairlead.engine.state.node_table import ImageTable
from fairlead.testing.builders import make_node


def test_an_image_without_nodes_has_no_size():
    """It does not count."""
    assert ImageTable().size_and_nodes("app") == (0, 0)


def test_the_first_size_is_kept_until_the_last_node_is_deleted():
    """Also if the first node is deleted earlier."""
    table = ImageTable()
    table.add({"app": 100})
    table.add({"app": 200, "db": 7})
    assert table.size_and_nodes("app") == (100, 2)
    table.remove({"app": 100})
    assert table.size_and_nodes("app") == (100, 1)
    table.remove({"app": 200, "db": 7})
    assert table.size_and_nodes("app") == (0, 0)
    table.add({"app": 300})
    assert table.size_and_nodes("app") == (300, 1)


def test_every_change_is_a_new_version():
    """Cached scores depend on it."""
    table = ImageTable()
    versions = [table.version]
    for act in (table.add, table.add, table.remove):
        act({"app": 1})
        versions.append(table.version)
    assert len(set(versions)) == 4


def test_nodes_that_keep_their_images_keep_the_version(believer):
    """So a heartbeat does not invalidate cached scores."""
    believer.put(make_node("n1", images={"app": 100}))
    version = believer.table.images.version
    believer.put(make_node("n1", images={"app": 100}, labels={"a": "b"}))
    assert believer.table.images.version == version
    believer.put(make_node("n1", images={"app": 100, "db": 1}))
    assert believer.table.images.version > version
    assert believer.table.images.size_and_nodes("db") == (1, 1)
    believer.gone(make_node("n1"))
    assert believer.table.images.size_and_nodes("app") == (0, 0)

"""Compressed dumps and archives are read like the files they contain."""

from __future__ import annotations

import gzip
import io
import tarfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from tests.fuzz.strategies import damaged

from fairlead.whatif.input import archive
from fairlead.whatif.input.document import parse_listings, read, read_listings
from fairlead.whatif.input.error import InputError

NODE = b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
POD = b"{apiVersion: v1, kind: Pod, metadata: {name: p}}"


def tar_of(contents, mode="w:"):
    """A tar file with the given contents by name."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as file:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def linked(kind, target):
    """Return a tar file with a Node, the text of a Pod, and the link pod.yaml."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:") as file:
        for name, content in {"node.json": NODE, "pod.txt": POD}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("pod.yaml")
        link.type, link.linkname = kind, target
        file.addfile(link)
    return stream.getvalue()


@pytest.fixture
def path(tmp_path):
    """Write a file and return its path."""

    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("reader", [read, read_listings])
def test_a_compressed_dump_is_read(path, reader):
    (document,) = reader(path("dump.json.gz", gzip.compress(NODE)))
    assert document.value["kind"] == "Node"
    assert document.source.endswith("dump.json.gz")


def test_the_members_of_a_gzip_file_are_one_text(path):
    content = gzip.compress(NODE[:10]) + gzip.compress(NODE[10:])
    assert len(read(path("dump.json.gz", content))) == 1


def test_standard_input_can_be_compressed():
    assert len(read("-", io.BytesIO(gzip.compress(NODE)))) == 1
    assert len(read_listings("-", io.BytesIO(gzip.compress(NODE)))) == 1


@pytest.mark.parametrize(("name", "mode"), [("dump.tar", "w:"), ("dump.tgz", "w:gz")])
def test_an_archive_is_read_like_a_directory(path, name, mode):
    contents = {"dump/pods.yaml": POD, "dump/nodes.json": NODE, "dump/notes.txt": b"{"}
    found = read(path(name, tar_of(contents, mode)))
    assert [document.value["kind"] for document in found] == ["Node", "Pod"]
    assert found[1].source.endswith(f"{name}: dump/pods.yaml")


def test_the_files_of_an_archive_can_be_compressed(path):
    contents = {"pods.yaml.gz": gzip.compress(POD), "nodes.json": NODE, "notes.txt.gz": b"{"}
    found = read(path("dump.tar", tar_of(contents)))
    assert [document.value["kind"] for document in found] == ["Node", "Pod"]
    assert found[1].source.endswith("dump.tar: pods.yaml.gz")


def test_compressed_files_of_an_archive_count_with_their_expanded_size(path):
    bombs = {f"{number}.json.gz": gzip.compress(b" " * 600_000) for number in range(2)}
    with pytest.raises(InputError, match=r"1\.json\.gz: expands to more than 1,048,576"):
        read_listings(path("bombs.tar", tar_of(bombs)), bytes_max=1 << 20)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_link_in_an_archive_is_the_file_that_it_names(path, kind):
    found = read(path("links.tar", linked(kind, "pod.txt")))
    assert [document.value["kind"] for document in found] == ["Node", "Pod"]


def test_links_count_as_the_files_that_they_name():
    data = linked(tarfile.SYMTYPE, "node.json")
    with pytest.raises(InputError, match="expands to more than"):
        list(archive.unpacked("links.tar", data, len(NODE) + len(POD)))


def test_archives_in_a_directory_are_read(path, tmp_path):
    path("nodes.json.gz", gzip.compress(NODE))
    path("pods.yaml", POD)
    assert len(read(str(tmp_path))) == 2


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("cut.gz", gzip.compress(NODE, mtime=0)[:-9], "is cut short"),
        ("odd.gz", gzip.compress(NODE, mtime=0)[:10] + b"\xff" * 20, "is not a valid gzip file"),
        (
            "none.tar",
            tar_of({"notes.txt": b"{"}),
            "is an archive without a .yaml, .yml, .json file",
        ),
        ("bad.tar", tar_of({"n.json": NODE})[:300], "is not a valid tar file"),
        (
            "far.tar",
            linked(tarfile.SYMTYPE, "/etc/passwd"),
            "pod.yaml is a link to /etc/passwd, which the archive does not contain",
        ),
        ("fifo.tar", linked(tarfile.FIFOTYPE, ""), "pod.yaml is not a file"),
        ("bad.json.gz", gzip.compress(b"{", mtime=0), "is not JSON"),
    ],
)
def test_an_archive_that_cannot_be_unpacked_is_refused_by_name(path, name, content, problem):
    with pytest.raises(InputError, match=rf"{name}.*: {problem}"):
        read(path(name, content))


def test_a_file_that_expands_beyond_the_limit_is_refused(path):
    """The limit is set by --max-input, and applies to the expanded size."""
    bomb = path("bomb.json.gz", gzip.compress(b" " * (1 << 21)))
    with pytest.raises(InputError, match="expands to more than 1,048,576 bytes; for a dump, --"):
        read_listings(bomb, bytes_max=1 << 20)
    with pytest.raises(InputError, match="expands to more than 1,048,576 bytes"):
        read_listings("-", io.BytesIO(Path(bomb).read_bytes()), bytes_max=1 << 20)


def test_an_archive_of_very_many_files_is_refused(path, monkeypatch):
    monkeypatch.setattr(archive, "MEMBERS_MAX", 3)
    names = [f"{number}.txt" for number in range(4)]
    with pytest.raises(InputError, match="has more than 3 files"):
        read(path("many.tar", tar_of(dict.fromkeys(names, b""))))


@given(damaged(tar_of({"n.json": NODE, "p.yaml": POD})) | damaged(tar_of({"n.json": NODE}, "w:gz")))
def test_a_damaged_archive_is_read_or_refused(content):
    with suppress(InputError):
        assert parse_listings("dump.tgz", content)


def test_an_archive_of_sparse_files_is_refused_before_it_is_expanded(path):
    """A sparse member of 16 GiB takes 1 KiB of the archive."""
    member = tarfile.TarInfo("dump.yaml")
    member.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "dump.yaml",
        "GNU.sparse.realsize": str(16 << 30),
    }  # fmt: skip
    content = b"0\n".ljust(512, b"\0")
    member.size = len(content)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:", format=tarfile.PAX_FORMAT) as file:
        file.addfile(member, io.BytesIO(content))
    with pytest.raises(InputError, match="expands to more than 2,147,483,648 bytes"):
        read(path("sparse.tar", stream.getvalue()))


@pytest.mark.parametrize("is_stdin", [True, False], ids=["standard input", "file"])
def test_empty_files_in_an_archive_are_skipped_and_named(tmp_path, is_stdin):
    data, empty = tar_of({"a.json": b"", "b.json": b'{"a": 1}'}), []
    path = tmp_path / "dump.tar"
    path.write_bytes(data)
    name = "-" if is_stdin else str(path)
    found = read_listings(name, io.BytesIO(data), on_empty=empty.append)
    assert [one.value for one in found] == [{"a": 1}]
    assert empty == [f"{'stdin' if is_stdin else path}: a.json"]


@pytest.mark.parametrize("kept", [512, 1024, 1024 + 300], ids=["header", "file", "next-header"])
def test_an_archive_without_its_end_is_refused(path, kept):
    """The archive may have contained more files than those that are left."""
    whole = tar_of({"a.json": NODE if kept > 512 else b"", "b.yaml": POD})
    cut = path("cut.tar", whole[:kept])
    with pytest.raises(InputError, match=r"cut.tar: is damaged or cut short: the tar data has no"):
        read_listings(cut)


def test_a_damaged_header_does_not_end_an_archive(path):
    whole = bytearray(tar_of({"a.json": NODE, "b.yaml": POD}))
    whole[1024 + 150] ^= 1  # the checksum in the header of b.yaml
    with pytest.raises(InputError, match=r"bad.tar: is damaged or cut short"):
        read_listings(path("bad.tar", bytes(whole)))


def test_a_link_that_names_itself_is_refused(path):
    archive = path("x.tar", linked(tarfile.SYMTYPE, "pod.yaml"))
    with pytest.raises(InputError, match=r"x.tar: pod.yaml is a link in a cycle"):
        read_listings(archive)

"""The report file: complete, small, without network requests, and safe against HTML in names."""

from __future__ import annotations

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from fairlead.whatif.report import render_report

BARE = {"kind": "simulate", "title": "t"}


class Document(HTMLParser):
    """The elements of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.texts = {"script": [], "style": [], "title": []}
        self._inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag if tag in self.texts else None
        if self._inside:
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, text):
        if self._inside:
            self.texts[self._inside][-1] += text

    def data(self):
        return json.loads(self.texts["script"][0])

    def policy(self):
        return next(a["content"] for tag, a in self.elements if a.get("http-equiv"))


@pytest.mark.parametrize("name", ["small", "large", "hostile"])
def test_the_page_loads_nothing(name, request):
    """All references of elements are to the page itself or to data: addresses."""
    document = Document(render_report(request.getfixturevalue(name)))
    targets = [
        value
        for _, attributes in document.elements
        for key, value in attributes.items()
        if key in {"src", "href", "action", "data", "poster", "srcset"}
    ]
    assert [target for target in targets if not target.startswith(("#", "data:"))] == []


def test_style_loads_nothing():
    """The style requests no font, image or style sheet."""
    style = Document(render_report(BARE)).texts["style"][0]
    assert "url(" not in style
    assert "@import" not in style
    assert "@font-face" not in style


@pytest.mark.parametrize("name", ["small", "hostile"])
def test_the_security_policy_allows_only_scripts_and_styles_of_the_page(name, request):
    """The policy has the hash of each script and style, and forbids everything else."""
    document = Document(render_report(request.getfixturevalue(name)))
    policy = dict(part.split(" ", 1) for part in document.policy().split("; "))

    def hashes(texts):
        digests = (hashlib.sha256(text.encode()).digest() for text in texts)
        return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)

    assert policy == {
        "default-src": "'none'",
        "script-src": hashes(document.texts["script"][1:]),
        "style-src": hashes(document.texts["style"]),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_html_in_names_adds_no_elements(small, hostile):
    """Hostile data adds no element, and the page's data equals it."""
    plain, attacked = Document(render_report(small)), Document(render_report(hostile))
    assert [tag for tag, _ in attacked.elements] == [tag for tag, _ in plain.elements]
    assert attacked.data()["title"] == hostile["title"]
    assert hostile["title"].encode("utf-8", "replace").decode() in attacked.texts["title"][0]


def test_data_contains_no_markup(hostile):
    """The data contains no "<", and thus neither "</script" nor "<!--"."""
    text = Document(render_report(hostile)).texts["script"][0]
    assert "<" not in text
    assert text.isascii()


def test_a_cluster_of_openb_size_stays_small(large):
    """1,523 nodes and 8,152 pods take well under 5 MB."""
    assert len(render_report(large).encode()) < 1_000_000


def test_equal_data_gives_equal_files(small):
    """The file depends only on the data."""
    assert render_report(small) == render_report(small)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"nodes": [], "pending": [], "preemptions": [], "resources": []},
        {"nodes": [{"name": "a"}]},
        {"timeline": {"t_s": [], "series": []}},
        {"timeline": {"t_s": [0.0], "series": []}},
        {"timeline": {"t_s": [0.0, 1.0], "series": [{"priority": 0}]}},
    ],
)
def test_absent_data_is_no_error(more):
    """A report can be written with almost no data."""
    assert Document(render_report({**BARE, **more})).data()["title"] == "t"


def test_the_chart_library_includes_its_licence():
    """Every copy of uPlot comes with its copyright and permission notice."""
    script = Document(render_report(BARE)).texts["script"][1]
    assert "Copyright (c) 2022 Leon Sorokin" in script
    assert "THE SOFTWARE IS PROVIDED" in script

"""The report of a theory: whole, without a network, and with no text of a user's taken for HTML."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinodal import cli


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.anchors, self.links = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.anchors.add(given.get("id"))
        self.links += [given[name] for name in ("href", "src") if name in given]


def written(tmp_path, *words):
    out = tmp_path / "report.html"
    outcome = CliRunner().invoke(cli, ["report", *words, "--out", str(out), "--quick", "--quiet"])
    assert outcome.exit_code == 0, outcome.output
    return out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words, number",
    [
        (("copy-head/softmax", "L=32", "V=8", "--digits", "25"), "330.3782338884473450570724"),
        (("classical/potts",), "0.360673760222"),
    ],
)
def test_the_page_is_whole(words, number, tmp_path):
    text = written(tmp_path, *words)
    page = Page(text)
    assert all(link.startswith("#") and link[1:] in page.anchors for link in page.links)
    assert "script" not in page.tags
    assert page.tags.count("math") > 3
    assert number in text
    assert "FAIL" not in text
    assert ">yes<" in text


def test_the_text_of_a_user_stays_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["new", "mine"]).exit_code == 0
    file = Path("mine.toml")
    file.write_text(file.read_text().replace('summary = "', 'summary = "<script>alert(1)</script> '))
    page = written(tmp_path, "mine.toml")
    assert "script" not in Page(page).tags
    assert "&lt;script&gt;alert(1)" in page


def test_what_cannot_be_written_is_refused(tmp_path):
    outcome = CliRunner().invoke(cli, ["report", "classical/potts", "--out", str(tmp_path / "no" / "x.html")])
    assert outcome.exit_code == 2
    outcome = CliRunner().invoke(cli, ["report", "copy-head/softmax", "--out", str(tmp_path / "x.html")])
    assert outcome.exit_code == 2
    assert not list(tmp_path.iterdir())

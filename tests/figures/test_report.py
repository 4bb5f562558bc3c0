"""The report of a theory: whole, without a network, every symbol described, and no text of a user's taken for HTML."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from derive.catalogue import THEORIES, classical, find
from figures.gallery import pictures
from figures.report import Contents, _symbols, report
from spinodal import cli

TOY = '''"""A toy: one double well in a module of its own."""

from sympy import Function, S, Symbol

from derive.action import EffectiveAction, OrderParameter, Parameter
from derive.derivation import Derivation, Step

x, a = Symbol("x", real=True), Symbol("a", real=True)


def derivation():
    step = Step("action", Function("F")(x), lambda model: a * x**2 / 2 + x**4 / 4, "Given, to order x^4.")
    return Derivation("toy", None, (step,), "a toy")


def action():
    value = derivation().value("action")
    control = Parameter(a, "coefficient of x^2", lower=S(-10))
    return EffectiveAction("toy", value, (OrderParameter(x, "the well", S(-4), S(4)),), control, (), (S(-2), S(2)))
'''


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.anchors, self.links, self.text, self.inside = [], set(), [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag
        given = dict(attrs)
        self.anchors.add(given.get("id"))
        self.links += [given[name] for name in ("href", "src") if name in given]

    def handle_data(self, data):
        self.text += data if self.inside != "style" else ""


def written(tmp_path, *words, code=0):
    out = tmp_path / "report.html"
    outcome = CliRunner().invoke(cli, ["report", *words, "--out", str(out), "--quick", "--quiet"])
    assert outcome.exit_code == code, outcome.output
    return out


@pytest.fixture(scope="module")
def potts(tmp_path_factory):
    return written(tmp_path_factory.mktemp("potts"), "classical/potts", "q=4")


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Derivation and one figure of a theory with chapters; no numbers, which take longer."""
    out = tmp_path_factory.mktemp("linear") / "linear.html"
    theory = find("copy-head/linear")
    one = next(iter(pictures(theory, {}, None)))
    out.write_text(report(theory, theory.derivation(), {}, Contents(pictures=(one,))), encoding="utf-8")
    return out


def is_whole(text):
    page = Page(text)
    inside = [link for link in page.links if not link.startswith("data:image/svg+xml;base64,")]
    assert all(link.startswith("#") and link[1:] in page.anchors for link in inside)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert page.tags.count("math") > 3
    assert "FAIL" not in page.text
    assert "not described" not in page.text
    assert not re.search(r"<code>[^<]*\\", text)  # LaTeX that was not understood
    return page


def test_a_page_is_whole(potts):
    text = potts.read_text(encoding="utf-8")
    page = is_whole(text)
    assert "0.303413075542279" in page.text  # (q - 2)/(2 (q - 1) ln(q - 1))
    assert "Every number carries the digits asked for" in page.text
    assert ">yes<" in text
    assert page.tags.count("img") == 3
    assert "spinodal transitions classical/potts q=4 --digits 15 --certify" in page.text


def test_chapters_come_from_the_modules(linear):
    page = is_whole(linear.read_text(encoding="utf-8"))
    assert "chapter-8" in page.anchors
    assert "Linear theory at zero attention: the pooling instability" in page.text
    assert "Not computed for this page" in page.text


def test_a_state_evolution_has_its_pictures(tmp_path):
    """Its solutions around the transitions, also quickly; nobody asked for proofs, so that there are none is no failure."""
    page = is_whole(written(tmp_path, "classical/phase-retrieval").read_text(encoding="utf-8"))
    assert {"figure-bifurcation", "figure-branches"} <= page.anchors
    assert page.tags.count("img") == 2
    assert "1.128" in page.text
    assert "not proven" not in page.text


@pytest.mark.slow
def test_averages_over_one_variable_are_certified(tmp_path):
    out = tmp_path / "report.html"
    for name, proven in (("sherrington-kirkpatrick", True), ("binary-perceptron", False)):
        outcome = CliRunner().invoke(cli, ["report", f"classical/{name}", "--out", str(out), "--quiet"])
        assert outcome.exit_code == 0, outcome.output
        text = out.read_text(encoding="utf-8")
        assert (">yes<" in text) == ("Certificate, to be verified" in text) == proven
        assert ("Nothing is proven" in text) != proven


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy-head/softmax", "copy-head/softmax-relaxed", "copy-head/linear"])
def test_every_head_has_its_page(name, tmp_path):
    page = is_whole(written(tmp_path, name, "L=32", "V=8").read_text(encoding="utf-8"))
    assert page.tags.count("img") >= 3
    if name == "copy-head/softmax":
        assert "330.378233888447" in page.text


@pytest.mark.slow
@pytest.mark.parametrize("theory", [theory.name for theory in classical()])
def test_every_classical_theory_has_its_page(theory, tmp_path):
    out = tmp_path / "report.html"
    outcome = CliRunner().invoke(cli, ["report", theory, "--out", str(out), "--quick", "--quiet"])
    assert outcome.exit_code in (0, 3), outcome.output
    is_whole(out.read_text(encoding="utf-8"))


# Heads of one module share their derivation.
@pytest.mark.parametrize(
    "theory",
    [*{theory.module: theory for theory in (*THEORIES, *classical())}.values()],
    ids=lambda theory: theory.name,
)
def test_every_symbol_is_described(theory):
    rows = list(_symbols(theory.derivation(), theory.problem()))
    assert rows
    assert [row["symbol"] for row in rows if row["meaning"] == "not described"] == []


def test_a_theory_in_a_module(tmp_path, monkeypatch):
    (tmp_path / "toy_of_a_test.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    page = is_whole(written(tmp_path, "module:toy_of_a_test").read_text(encoding="utf-8"))
    assert "one double well" in page.text


def test_the_text_of_a_user_stays_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["new", "mine"]).exit_code == 0
    file = Path("mine.toml")
    file.write_text(file.read_text().replace('summary = "', 'summary = "<script>alert(1)</script> x_<b> '))
    text = written(tmp_path, "mine.toml").read_text(encoding="utf-8")
    page = is_whole(text)
    assert "alert" in page.text
    assert "b" not in page.tags
    assert "figure-diagram" in page.anchors


def test_a_cross_check_is_shown(tmp_path):
    row = {"claim": "a claim", "case": "L=3", "quantity": "P*", "measured": 1.25, "standard_error": 0.01, "theory": 1.2}
    row |= {
        "tolerance": 0.1,
        "power": 0.12,
        "verdict": "holds",
        "reason": "terms of order 1/L",
        "problem": "classical/landau-4",
    }
    file = tmp_path / "crosscheck.json"
    file.write_text(
        json.dumps({"schema": 1, "rows": [row, row | {"claim": "of another", "problem": "classical/potts"}]})
    )
    text = written(tmp_path, "classical/landau-4", "--crosscheck", str(file)).read_text(encoding="utf-8")
    assert "<td>a claim</td>" in text
    assert "<td>of another</td>" not in text
    assert "<td>1.25</td>" in text


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rows": [1]}', '{"rows": [{"problem": "classical/potts"}]}'])
def test_what_is_no_cross_check_is_refused(content, tmp_path):
    file = tmp_path / "x.json"
    file.write_text(content)
    written(tmp_path, "classical/potts", "--crosscheck", str(file), code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_what_cannot_be_written_is_refused(tmp_path):
    outcome = CliRunner().invoke(cli, ["report", "classical/potts", "--out", str(tmp_path / "no" / "x.html")])
    assert outcome.exit_code == 2
    outcome = CliRunner().invoke(cli, ["report", "copy-head/softmax", "--out", str(tmp_path / "x.html")])
    assert outcome.exit_code == 2
    assert not list(tmp_path.iterdir())


# --- in a browser ---


@pytest.fixture(params=["potts", "linear"])
def opened(request, browser):
    browser.open(request.getfixturevalue(request.param))
    return browser


def test_a_browser_shows_the_page(opened):
    assert opened.complaints() == []
    loaded = opened.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    boxes = opened.run(
        "return [...document.querySelectorAll('math')].map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])"
    )
    assert len(boxes) > 10
    assert all(width > 0 and height > 0 for width, height in boxes)
    widths = opened.run("return [...document.querySelectorAll('img')].map(image => image.naturalWidth)")
    assert widths
    assert min(widths) > 0
    # The page itself does not scroll sideways; wide formulas do, by themselves.
    assert opened.run("return document.documentElement.scrollWidth <= window.innerWidth")


def test_formulas_fit_on_paper(opened):
    """On A4 with margins of a centimetre: 718 pixels."""
    opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    size = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    opened.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        wide = opened.run(
            "for (const e of document.querySelectorAll('details')) e.open = true;"
            "const right = e => Math.max(...[e, ...e.querySelectorAll('*')].map(x => x.getBoundingClientRect().right));"
            "return [...document.querySelectorAll('math')].map(e => [right(e), e.textContent.slice(0, 60)])"
            ".filter(([edge]) => edge > 719)"
        )
    finally:
        opened.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        opened.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wide == []


def test_the_contents_navigate(opened):
    links = opened.all("nav a")
    assert len(links) >= 8
    for link in (links[0], links[len(links) // 2], links[-1]):
        target = link.get_attribute("href").partition("#")[2]
        opened.run("arguments[0].click()", link)
        where = opened.run("return document.getElementById(arguments[0]).getBoundingClientRect().top", target)
        height = opened.run("return window.innerHeight")
        assert opened.run("return location.hash") == f"#{target}"
        assert -5 <= where < height
    assert opened.run("return window.scrollY") > 0


def test_the_page_prints(opened):
    assert base64.b64decode(opened.driver.print_page())[:5] == b"%PDF-"

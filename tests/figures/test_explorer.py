"""The interactive page in a browser: what it finds against the solvers, how it is used, and that it needs nothing else."""

import json
import time
from functools import cache

import mpmath
import pytest
from sympy import Rational

import spinodal
from derive.catalogue import find
from figures.explorer.page import _script, page
from figures.plot import DATA
from figures.table import read
from numerics.stationary import minima
from numerics.transitions import transitions

HEAD = {"L": 32, "V": 8, "gamma_w": 1, "gamma_g": 1, "T": 0}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "index.html"
    path.write_text(page(), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, file):
    """The page, opened at what a fragment says; afterwards its console is clean."""

    def open_at(fragment="", stage="minima"):
        browser.open(file, fragment)
        shown(browser, stage)
        return browser

    yield open_at
    assert browser.complaints() == []


STAGES = ("minima", "transitions", "diagram")


def shown(browser, stage="minima", patience=60.0):
    """Wait until the page shows as much of the present state."""
    end = time.monotonic() + patience
    while browser.run("return document.body.dataset.shown") not in STAGES[STAGES.index(stage) :]:
        assert time.monotonic() < end, "the page is still computing"
        time.sleep(0.02)


def typed(browser, stage="minima", /, **values):
    """Type into the number fields."""
    for name, text in values.items():
        browser.run(
            "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
            "field.dispatchEvent(new Event('input'));",
            name,
            str(text),
        )
    shown(browser, stage)


def verdict(browser):
    return browser.run("return document.getElementById('verdict').textContent")


def rows(browser, table):
    """The rows of a table; a column of errors goes by the name of what it is the error of."""
    first, *others = browser.run(
        "return [...document.getElementById(arguments[0]).rows].map(row => [...row.cells].map(cell => cell.textContent))",
        table,
    )
    names = [f"{first[k - 1]} error" if name == "error" else name for k, name in enumerate(first)]
    return [dict(zip(names, (cell.replace("\u2212", "-") for cell in row), strict=True)) for row in others]


@cache
def known(theory, **values):
    action = find(theory).action()
    return transitions(action, action.setup({**HEAD, **values}), 15)


def test_it_needs_nothing_but_itself(file):
    text = file.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    for way in ("src=", "<link", "@import", "fetch(", "XMLHttpRequest", "import("):
        assert way not in text
    assert {line for line in text.split('"') if line.startswith("http")} == {
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/2000/svg",
    }


def test_no_source_ends_the_script():
    with pytest.raises(ValueError, match="ends a script"):
        _script("const x = '</script>';")


@pytest.mark.parametrize("theory", ["copy-head/softmax", "copy-head/linear", "positional-semantic"])
def test_every_theory_is_shown(opened, theory):
    browser = opened(f"theory={theory}", "diagram")
    assert verdict(browser).startswith("Global minimum")
    assert browser.run("return document.querySelector('[name=theory]:checked').value") == theory
    for chart in ("landscape", "diagram"):
        assert len(browser.all(f"#{chart} [clip-path] *")) >= 3
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


def test_past_the_transition_the_global_minimum_is_another(opened):
    at = float(known("copy-head/softmax").of("coexistence").value)
    browser = opened("L=32&V=8")
    for side, lowest, other in ((-1, "uniform", "copy"), (1, "copy", "uniform")):
        typed(browser, P=repr(at * (1 + side * 1e-9)))
        assert verdict(browser).startswith(f"Global minimum: {lowest} ")
        assert f"{other} is metastable" in verdict(browser)
        assert [row["phase"] for row in rows(browser, "points")] == [lowest, other]


def test_the_slider_passes_the_transition(opened):
    """By its keys, and what is announced is what changes."""
    browser = opened("P=325")
    slider = browser.driver.find_element("id", "P-slider")
    seen = []
    while not seen or float(seen[-1][0]) < 345:
        seen.append((browser.run("return document.getElementById('P').value"), verdict(browser).split()[2]))
        slider.send_keys("\ue014")  # the right arrow
        shown(browser)
    at = float(known("copy-head/softmax").of("coexistence").value)
    assert len(seen) > 3
    assert {phase for _, phase in seen} == {"uniform", "copy"}
    assert all((phase == "copy") == (float(P) > at) for P, phase in seen)
    assert browser.run("return document.getElementById('verdict').getAttribute('aria-live')") == "polite"


@pytest.mark.parametrize(("phase", "there"), [("copy", 1), ("uniform", -1)])
def test_a_second_minimum_is_there_between_the_spinodals(opened, phase, there):
    at = float(known("copy-head/softmax").of("spinodal", phase).value)
    browser = opened()
    for side in (-1, 1):
        typed(browser, P=repr(at * (1 + side * 1e-6)))
        names = {row["phase"] for row in rows(browser, "points")}
        assert names == ({"copy", "uniform"} if side == there else {"copy", "uniform"} - {phase})
        assert ("no other minimum" in verdict(browser)) == (side != there)


@pytest.mark.parametrize(
    ("theory", "values"),
    [
        ("copy-head/softmax", {"P": "340"}),
        ("copy-head/softmax", {"P": "12.5", "L": "100", "gamma_g": "0.01"}),
        ("copy-head/softmax", {"P": "1000", "L": "64", "V": "20", "gamma_w": "3", "T": "0.1"}),
        ("copy-head/softmax", {"P": "1e7"}),
        ("copy-head/linear", {"P": "20"}),
        ("copy-head/linear", {"P": "51.1"}),
        ("copy-head/linear", {"P": "1000"}),
        ("copy-head/linear", {"P": "100000", "L": "1000", "T": "0.1"}),
        ("copy-head/linear", {"P": "99950", "L": "1000"}),
    ],
)
def test_minima_are_those_of_the_solver(opened, theory, values):
    """Each within the error that is printed."""
    action = find(theory).action()
    points = [point for point in minima(action, action.setup({**HEAD, **values}), 20) if point.kind.value == "minimum"]
    browser = opened("&".join(f"{name}={text}" for name, text in {"theory": theory, **HEAD, **values}.items()))
    found = rows(browser, "points")
    assert len(found) == len(points)
    for row, point in zip(found, sorted(points, key=lambda point: point.action.value), strict=True):
        assert row["phase"] == point.name
        for name, exact in {**point.order_parameters, "F": point.action}.items():
            assert abs(mpmath.mpf(row[name]) - exact.value) <= mpmath.mpf(row[f"{name} error"])
            assert float(row[f"{name} error"]) <= 1e-7 * max(abs(float(exact)), 1e-3)
        for name, exact in point.observables.items():
            if row[name] != "\u2013":
                assert float(row[name]) == pytest.approx(float(exact), rel=1e-5)


@pytest.mark.parametrize(
    ("theory", "values"),
    [
        ("copy-head/softmax", {}),
        ("copy-head/softmax", {"L": "64", "T": "0.01"}),
        ("copy-head/softmax", {"L": "14"}),
        pytest.param("copy-head/linear", {"L": "256"}, marks=pytest.mark.slow),
        pytest.param("copy-head/linear", {"L": "720"}, marks=pytest.mark.slow),
        pytest.param("copy-head/linear", {"L": "12"}, marks=pytest.mark.slow),
        pytest.param("copy-head/linear", {"L": "1000"}, marks=pytest.mark.slow),
    ],
)
def test_transitions_are_those_of_the_solver(opened, theory, values):
    exact = [(entry.kind.value, entry.value.value) for entry in known(theory, **values) if not entry.at]
    browser = opened("&".join(f"{name}={text}" for name, text in {"theory": theory, **HEAD, **values}.items()))
    shown(browser, "transitions")
    found = rows(browser, "transitions")
    assert [row["kind"] for row in found] == [kind for kind, _ in exact]
    for row, (_, value) in zip(found, exact, strict=True):
        assert abs(mpmath.mpf(row["P"]) - value) <= float(row["P error"]) <= 1e-6 * value


@pytest.mark.parametrize("length", ["55/4", "69/5"])
def test_transitions_within_one_step_are_seen(opened, length):
    """Just above the critical end point, L = 13.7415, all three lie within one step in P."""
    exact = [entry for entry in known("copy-head/softmax", L=length) if not entry.at]
    browser = opened()
    found = browser.run(
        "const theory = HEADS['copy-head/softmax'], at = parametersOf(theory, arguments[0]), [, along, rungs] = theory.grids;"
        "return transitions(theory, at, theory.reach(...at), rungs, along).found.map(({kind, P, error}) => [kind, P, error])",
        float(Rational(length)),
    )
    assert (
        [kind for kind, *_ in found] == [entry.kind.value for entry in exact] == ["spinodal", "coexistence", "spinodal"]
    )
    for (_, P, error), entry in zip(found, exact, strict=True):
        assert abs(P - entry.value.value) <= error
    step = browser.run(
        "const [a, b] = HEADS['copy-head/softmax'].reach(...arguments[0]); return (b/a)**0.01", [14, 8, 1, 1, 0]
    )
    assert found[2][1] / found[0][1] < step


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_the_critical_end_point_is_marked(opened, attention):
    (end,) = read(DATA / "copy-phases.csv").where(attention=attention, curve="critical-end-point").rows
    browser = opened(f"theory=copy-head/{attention}&V=8", "diagram")
    (found,) = browser.run("return cache.rows.ends")
    assert abs(found["size"] - end[2]) <= found["sizeError"] <= 2e-3 * end[2]
    assert abs(found["P"] - end[3]) <= found["error"] <= 3e-3 * end[3]
    caption = browser.run("return document.getElementById('diagram-caption').textContent")
    assert "critical end point" in caption


def test_where_nothing_jumps_no_transition_is_listed(opened):
    browser = opened("L=13", "transitions")
    assert rows(browser, "transitions") == []


def test_the_lines_follow_the_parameters(opened):
    browser = opened("V=8", "diagram")
    before = [line.get_attribute("d") for line in browser.all("#diagram [clip-path] path")]
    typed(browser, "diagram", gamma_g=4)
    after = [line.get_attribute("d") for line in browser.all("#diagram [clip-path] path")]
    assert len(before) == len(after) == 6  # three lines, their end, and the cross
    assert before[0] != after[0]


def test_the_address_keeps_the_state(opened):
    browser = opened()
    typed(browser, P="350", T="0.02")
    fragment = browser.run("return location.hash")[1:]
    told = verdict(browser)
    browser = opened(fragment)
    assert verdict(browser) == told
    assert browser.run("return [document.getElementById('P').value, document.getElementById('T').value]") == [
        "350",
        "0.02",
    ]
    assert "P=350" in browser.run("return document.getElementById('command').textContent")
    browser.all("#reset")[0].click()
    shown(browser)
    assert browser.run("return document.getElementById('P').value") == "300"
    assert browser.run("return location.hash") != f"#{fragment}"


@pytest.mark.parametrize(
    "fragment",
    [
        "theory=constructor&P=abc&L=-4&T=",
        "P=0&V=1",
        "P=Infinity&L=NaN",
        "theory=positional-semantic&alpha=77&omega=<b>",
        "%E0%A4%A",
    ],
)
def test_an_address_that_means_nothing_is_the_start(opened, fragment):
    browser = opened(fragment)
    assert verdict(browser).startswith("Global minimum")
    assert browser.run("return state.P") == 300
    assert browser.run("return state.L") == 32


@pytest.mark.parametrize(
    ("name", "text"), [("P", "0"), ("P", "-3"), ("L", "1.5"), ("V", ""), ("T", "-0.1"), ("gamma_w", "0")]
)
def test_a_number_out_of_range_is_refused_and_nothing_changes(opened, name, text):
    browser = opened("P=340")
    told = verdict(browser)
    typed(browser, **{name: text})
    problem = browser.run("return document.getElementById('problem').textContent")
    assert problem.startswith(f"{name}: give a number with {name} >")
    assert browser.run("return document.getElementById(arguments[0]).getAttribute('aria-invalid')", name) == "true"
    assert verdict(browser) == told
    typed(browser, **{name: "20"})
    assert browser.run("return document.getElementById('problem').textContent") == ""


def test_far_out_values_are_shown_or_said_to_be_beyond_it(opened):
    browser = opened()
    for values in ({"P": "1e300"}, {"P": "1e-300"}, {"P": "300", "L": "1e12"}, {"L": "2", "V": "2"}, {"T": "1e6"}):
        typed(browser, "diagram", **values)
        assert verdict(browser).startswith(("Global minimum", "No minimum was found"))


def test_every_control_has_a_name_and_takes_the_keys(opened):
    browser = opened()
    assert (
        browser.run(
            "return [...document.querySelectorAll('input')].filter(e => !e.labels.length && !e.ariaLabel).length"
        )
        == 0
    )
    reached = set()
    for _ in range(20):
        browser.driver.switch_to.active_element.send_keys("\ue004")  # the tabulator
        reached.add(browser.run("return document.activeElement.id"))
    assert {"P-slider", "P", "L-slider", "V-slider", "gamma_w-slider", "gamma_g-slider", "T-slider", "reset"} <= reached
    for chart in browser.all("svg"):
        assert browser.run(
            "return document.getElementById(arguments[0]).textContent", chart.get_attribute("aria-labelledby")
        )


def test_stored_solutions_are_shown_as_they_are(opened):
    table = read(DATA / "solutions.csv")
    browser = opened("theory=positional-semantic&omega=0.3")
    last = ""
    for place, alpha in enumerate(table.distinct("alpha")):
        browser.run(
            "const s = document.getElementById('alpha-slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))",
            place,
        )
        shown(browser)
        here = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.where(omega=0.3, alpha=alpha).rows}
        found = rows(browser, "points")
        assert [row["solution"] for row in found] == sorted(here, key=lambda branch: here[branch]["e"])
        for row in found:
            for name in ("e", "m", "theta", "q"):
                assert abs(float(row[name]) - here[row["solution"]][name]) <= float(row[f"{name} error"])
        if len(here) == 2:
            gap = here["semantic"]["e"] - here["positional"]["e"]
            if abs(gap) > here["semantic"]["e_error"] + here["positional"]["e_error"]:
                last = "semantic" if gap < 0 else "positional"
                assert verdict(browser).startswith(f"Global minimum: {last}.")
                assert (last == "semantic") == (alpha > 1.2515)
    assert last == "semantic"


def test_the_verb_writes_the_page(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        spinodal.main(["explore", "--out", str(tmp_path / "page"), "--json", "--quiet"])
    assert stop.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == str(tmp_path / "page" / "index.html")
    assert "copy-head/softmax" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["index.html"]


def test_the_verb_refuses_what_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "page" / "index.html").mkdir(parents=True)
    for out in ("file", "missing/page", "page"):
        with pytest.raises(SystemExit) as stop:
            spinodal.main(["explore", "--out", str(tmp_path / out), "--quiet"])
        assert stop.value.code == 2
        assert str(tmp_path / out) in capsys.readouterr().err

"""The command line and its JSON contract, on the two copy heads."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sympy import Rational

import spinodal
from derive.catalogue import find
from derive.positional_semantic import general, state_evolution
from derive.positional_semantic.model import isotropic
from numerics.points import Points
from numerics.present import heading, points_table
from numerics.scan import about, parse_axis
from numerics.store import Store

SCRIPT = [sys.executable, spinodal.__file__]
SOFTMAX = ("copy-head/softmax", "L=32", "V=8")
LINEAR = ("copy-head/linear", "L=256", "V=8")

# Independent computation at 60 digits, of the model of arXiv 2606.12058 at gamma_w = gamma_g = 1, T = 0.
P_STAR = "330.37823388844734505707239917666"
GAPS = {"uniform": "0.256437169723436192548537798272", "copy": "2.07101032651939241595144382825"}
SPINODALS = {"copy": "304.5638461756313353253533", "uniform": "392.1534194074142939676934"}
END_POINT = {"s": "0.9273202491992815537818839", "P": "104.5549593141569053270946", "L": "13.74152524343017040154859"}


@pytest.fixture
def run(capsys, monkeypatch):
    """Run one command line in this process: (exit code, standard output, standard error without progress)."""
    monkeypatch.setattr("spinodal.PULSE", 3600.0)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            spinodal.main(arguments)
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


@pytest.fixture
def document(run):
    """Run one command line with --json and return (exit code, document)."""

    def document(*arguments):
        code, out, err = run(*arguments, "--json")
        assert err == ""
        return code, json.loads(out)

    return document


def agrees(text, reference):
    """All digits that both have are the same, up to the rounding of the last one."""
    digits = min(len(text), len(reference)) - 2
    return text[:digits] == reference[:digits]


# --- help and start-up -----------------------------------------------------------------------------------------------


def test_help_is_instant():
    begin = time.perf_counter()
    outcome = subprocess.run([*SCRIPT, "--help"], capture_output=True, text=True, check=True)
    assert time.perf_counter() - begin < 0.5
    assert all(verb in outcome.stdout for verb in ("list", "derive", "minima", "transitions", "asymptotics", "figure"))


@pytest.mark.parametrize("verb", spinodal.cli.commands)
def test_every_verb_has_help_version_and_quiet(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert all(option in out for option in ("--quiet", "--json", "--version"))
    assert run(verb, "--version") == (0, f"spinodal, version {spinodal.__version__}\n", "")


def test_heavy_libraries_are_imported_by_verbs_only():
    probe = (
        "import sys, spinodal; print({'sympy', 'numpy', 'mpmath', 'scipy', 'matplotlib', 'torch'} & set(sys.modules))"
    )
    root = Path(spinodal.__file__).parent
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, cwd=root).stdout == "set()\n"


# --- list ------------------------------------------------------------------------------------------------------------


def test_list(run):
    code, out, err = run("list")
    assert (code, err) == (0, "")
    assert all(word in out for word in ("copy-head/linear", "copy-head/softmax", "gamma_w > 0", "L >= 2"))


def test_list_json(document):
    code, found = document("list")
    assert (code, found["schema"]) == (0, 1)
    softmax = next(entry for entry in found["theories"] if entry["name"] == "copy-head/softmax")
    assert [order["name"] for order in softmax["order_parameters"]] == ["s"]
    assert softmax["control"]["name"] == "P"
    assert {p["name"]: p["default"] for p in softmax["parameters"]} == {
        "L": None, "V": None, "gamma_w": "1", "gamma_g": "1", "T": "0"
    }  # fmt: skip
    assert softmax["choices"] == []


def test_list_has_the_sizes_that_a_theory_is_built_for(document, run):
    (attention,) = (entry for entry in document("list")[1]["theories"] if entry["name"] == "positional-semantic")
    assert [choice["name"] for choice in attention["choices"]] == ["L", "r", "r_s", "r_t", "A"]
    built = {choice["name"]: choice["default"] for choice in attention["choices"] if choice["name"] != "r"}
    words = ("minima", "positional-semantic", "alpha=1", "--digits", "11")  # refused once the theory is built
    for given in (built, {"r": attention["choices"][1]["default"]}):
        assert "averages of positional-semantic are" in run(*words, *(f"{k}={v}" for k, v in given.items()))[2]


# --- transitions -----------------------------------------------------------------------------------------------------


def test_transitions_json(document):
    code, found = document("transitions", *SOFTMAX, "--digits", "25")
    assert code == 0
    assert (found["schema"], found["theory"], found["digits"], found["status"]) == (1, "copy-head/softmax", 25, "ok")
    assert found["setup"] == {"L": "32", "V": "8", "gamma_w": "1", "gamma_g": "1", "T": "0"}
    assert isinstance(found["seconds"], float)

    (jump,) = (entry for entry in found["transitions"] if entry["kind"] == "coexistence")
    assert (jump["order"], jump["control"], jump["certified"]) == ("first", "P", False)
    assert agrees(jump["value"], P_STAR)
    assert 0 < float(jump["error"]) < 1e-21
    assert [phase["name"] for phase in jump["phases"]] == ["uniform", "copy"]
    for phase in jump["phases"]:
        assert agrees(phase["order_parameters"]["s"], GAPS[phase["name"]])
    assert agrees(jump["phases"][0]["action"], jump["phases"][1]["action"])

    spinodals = {entry["phase"]: entry["value"] for entry in found["transitions"] if entry["kind"] == "spinodal"}
    assert spinodals.keys() == SPINODALS.keys()
    assert all(agrees(spinodals[phase], SPINODALS[phase]) for phase in SPINODALS)

    end = found["transitions"][-1]
    assert end["kind"] == "critical-end-point"
    assert agrees(end["value"], END_POINT["P"])
    assert agrees(end["at"]["L"], END_POINT["L"])


def test_transitions_of_the_linear_head(document):
    code, found = document("transitions", *LINEAR, "--digits", "20")
    assert code == 0
    kinds = {entry["kind"]: entry for entry in found["transitions"]}
    assert agrees(kinds["instability"]["value"], "62.0572918492785")
    assert kinds["instability"]["order"] == "second"
    assert float(kinds["crossover"]["value"]) / (256**1.5 * 8**0.5) == pytest.approx(1.22334, abs=5e-6)
    assert kinds["spinodal"]["phase"] == "anti-copy"
    assert float(kinds["spinodal"]["value"]) == pytest.approx(14076, rel=1e-3)  # "about 14076" on the theory page


def test_table_for_people_has_the_digits_of_the_json(run, document):
    _, found = document("transitions", *SOFTMAX)
    code, out, _ = run("transitions", *SOFTMAX)
    assert code == 0
    for entry in found["transitions"]:
        assert entry["value"] in out
        assert entry["kind"] in out


def test_below_the_end_point_there_is_no_first_order_transition(run, document):
    code, found = document("transitions", "copy-head/softmax", "L=10", "V=8")
    assert code == 0
    assert sorted(entry["kind"] for entry in found["transitions"]) == ["critical-end-point", "crossover"]
    code, out, _ = run("transitions", "copy-head/softmax", "L=10", "V=8")
    assert code == 0
    assert "no first-order transition" in out


def test_a_range_without_a_transition_says_so(run, document):
    arguments = ("transitions", *SOFTMAX, "--over", "P=10:20")
    code, found = document(*arguments)
    assert code == 0
    assert {entry["kind"] for entry in found["transitions"]} <= {"crossover", "critical-end-point"}
    code, out, _ = run(*arguments)
    assert code == 0
    assert "no first-order transition in P=10:20" in out


def test_values_are_exact_and_options_stand_anywhere(document):
    _, first = document("transitions", "copy-head/softmax", "L=3.2e1", "V=16/2", "T=0.01")
    _, second = document("transitions", "--digits", "15", "copy-head/softmax", "V=8", "--quiet", "T=1/100", "L=32")
    assert first["setup"] == second["setup"] == {"L": "32", "V": "8", "gamma_w": "1", "gamma_g": "1", "T": "1/100"}
    assert first["transitions"] == second["transitions"]


# --- minima ----------------------------------------------------------------------------------------------------------


def test_minima_json(document):
    code, found = document("minima", *SOFTMAX, "P=330")
    assert code == 0
    assert (found["schema"], found["control"], found["digits"], found["status"]) == (1, {"P": "330"}, 15, "ok")
    points = {point["name"]: point for point in found["points"] if point["kind"] == "minimum"}
    assert points.keys() == {"uniform", "copy"}
    assert [point["kind"] for point in found["points"]] == ["minimum", "minimum", "maximum"]
    # The projected action at P = 330: energies, a_G and losses (theory page, reference numbers).
    for name, action, a_G, loss, stability in (
        ("copy", -23.183, 0.1777, 0.3362, "metastable"),
        ("uniform", -23.278, 0.00902, 0.8389, "stable"),
    ):
        assert float(points[name]["action"]) == pytest.approx(action, abs=6e-4)
        assert float(points[name]["observables"]["a_G"]) == pytest.approx(a_G, abs=6e-5)
        assert float(points[name]["observables"]["loss"]) == pytest.approx(loss, abs=6e-5)
        assert points[name]["stability"] == stability
        assert all(float(eigenvalue) > 0 for eigenvalue in points[name]["hessian"])


def test_minima_table(run):
    code, out, err = run("minima", *SOFTMAX, "P=330")
    assert (code, err) == (0, "")
    assert all(word in out for word in ("uniform", "copy", "metastable", "loss"))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("330", "330"),
        ("1/3", "1/3"),
        ("62.0572918492785110921937904543", "62.0572918492785110921937904543"),
        ("1e300", "1e300"),
        ("1.5e-300", "1.5e-300"),
        ("0." + "12" * 40, "1.212121212121212...12121212e-1"),
        ("1" * 80 + "/7", "1111111111111111...11111111/7"),
    ],
)
def test_the_heading_shows_numbers_as_they_are_written(given, shown):
    assert heading("theory", {"P": str(Rational(given))}, 15) == f"theory: P = {shown}; 15 digits"


# --- asymptotics -----------------------------------------------------------------------------------------------------


def test_asymptotics_the_next_term_explains_the_difference(document):
    code, found = document("asymptotics", "copy-head/softmax", "V=8", "--upto", "1e40")
    assert (code, found["schema"], found["theory"], found["digits"]) == (0, 1, "copy-head/softmax", 15)
    for quantity in found["quantities"]:
        assert quantity["status"] == "ok"
        assert [rung["size"] for rung in quantity["rungs"]] == ["100", "1000", "1e6", "1e12", "1e24", "1e40"]
        missing = [abs(1 - float(rung["explained"])) for rung in quantity["rungs"]]
        assert missing == sorted(missing, reverse=True)
        assert missing[-1] < 0.05


def test_the_table_of_a_series_has_what_the_series_has(run):
    """No column twice where there is one term, no columns of a next term where none is known; formulas in full."""
    words = ("asymptotics", "positional-semantic", "--upto", "1e-2", "--digits", "3")
    every = run("asymptotics", "copy-head/softmax", "P*", "V=8", "--upto", "1e2")[1]
    assert all(f" {column} " in every for column in ("leading", "partial", "difference", "next term", "explained"))
    one, unknown = (run(*words, name)[1] for name in ("q-few", "Vhat-few"))
    assert "partial" not in one + unknown
    assert "difference = ratio - leading" in one
    assert one.index("alpha * (<1> + <2> + ...)") < one.index("next term: sqrt(alpha)*(") < one.index("<8>")
    assert one.count(" error") == 3
    assert "explained" not in unknown
    assert "next term: unknown" in unknown


def test_a_ridge_that_leaves_no_solution_is_no_success_and_says_what_to_try(run):
    code, out, err = run(
        "minima", "positional-semantic", "alpha=1", "lambda=1e6", "--digits", "2", "--sector", "uninformed"
    )
    assert (code, "no points" in out) == (3, True)
    assert "a variable shrinks to zero against its scale" in err
    assert "asymptotic laws hold; else try parameters nearer to the defaults" in err


def test_asymptotics_that_are_not_found_are_no_success(run, monkeypatch):
    """At this ridge the series starts nothing, and the engine is not asked."""
    monkeypatch.setattr("numerics.asymptotics._SMALL", 0)
    words = ("asymptotics", "copy-head/softmax", "V=8", "gamma_w=1e300", "--upto", "1e3")
    code, _, complaint = run(*words)
    assert code == 3
    assert complaint.count("the coexistence at L = 1000 was not found from its series") == 1
    assert json.loads(run(*words, "--json")[1])["status"] == "no root"


MAGNET = ("asymptotics", "classical/curie-weiss-in-field")


def test_asymptotics_of_a_limit_that_is_named(document):
    code, found = document(*MAGNET, "spinodal", "--limit", "T=0", "--order", "2", "--upto", "1e3")
    (quantity,) = found["quantities"]
    assert (code, quantity["status"], len(quantity["terms"])) == (0, "ok", 2)


def test_asymptotics_without_parameters_have_no_empty_list(run):
    code, out, _ = run(*MAGNET, "spinodal", "--limit", "T=0", "--order", "2", "--upto", "10")
    assert (code, out.splitlines()[0]) == (0, "classical/curie-weiss-in-field, spinodal: spinodal of up as T = 0+")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("spinodal", "--limit", "T=0", "--order", "0"), 2, "a whole number from 1 to 12, not 0"),
        (("spinodal", "--limit", "T=0", "--order", "50"), 2, "a whole number from 1 to 12, not 50"),
        (("spinodal", "--phase", "up"), 2, "goes with --limit"),
        (("magnetisation",), 2, "it may be"),
        (("spinodal", "T=1/2"), 2, "T goes to 1 in this limit; leave its value out"),
        (("spinodal", "h=0"), 2, "h is what the series of a spinodal gives"),
        (("m", "--limit", "T=0"), 2, "needs a value of the control h"),
        (("--limit", "T=0"), 2, "needs a quantity"),
        (("nothing", "--limit", "T=0"), 2, "it has coexistence, spinodal, instability, m"),
        (("spinodal", "--limit", "Q=0"), 2, "as NAME it may be"),
        (("spinodal", "--limit", "T=1"), 2, "from which side"),
        (("spinodal", "--limit", "h=oo"), 2, "cannot grow without end"),
        (("spinodal", "--limit", "h=0+"), 2, "the control"),
        (("instability", "--limit", "T=1-"), 3, "there is no instability near T = 1-"),
        (("spinodal", "--limit", "T=0", "--phase", "nobody"), 2, "'nobody' is none of the phases down, up"),
    ],
)
def test_asymptotics_refuses_a_limit(run, words, code, told):
    found, _, message = run(*MAGNET, *words)
    assert found == code
    assert told in message
    assert "Traceback" not in message


def test_declared_limits_are_shown_without_an_option(run, document):
    """All of them, or those of a quantity, with the words of the file; --order asks for other terms."""
    code, found = document("asymptotics", "classical/landau-6", "--upto", "1e3")
    assert (code, found["status"]) == (0, "ok")
    assert [quantity["name"] for quantity in found["quantities"]] == ["coexistence", "spinodal", "x"]
    words = "minimum (x) of ordered as a = 0-: below the tricritical point, beta = 1/4"
    assert (found["quantities"][2]["meaning"], found["quantities"][2]["setup"]) == (words, {"b": "0"})
    code, found = document("asymptotics", "classical/curie-weiss", "m", "--order", "1", "--upto", "10")
    assert [len(quantity["terms"]) for quantity in found["quantities"]] == [1, 1]
    assert run("asymptotics", "classical/curie-weiss", "m", "T=1/2", "--upto", "10")[0] == 2
    code, _, message = run("asymptotics", "classical/phase-retrieval")
    assert (code, "declares no limits" in message) == (2, True)
    assert run("asymptotics", "copy-head/softmax", "--order", "3")[0] == 2


def test_a_declared_limit_that_is_not_reached_does_not_hide_the_others(run, tmp_path):
    text = Path(find("classical/landau-6").module).read_text()
    nothing = 'parameter = "b"\nto = "0+"\nquantity = "coexistence"\nmeaning = "there is none"'
    file = tmp_path / "mine.toml"
    file.write_text(f"{text}\n[[limits]]\n{nothing}\n")
    code, out, message = run("asymptotics", str(file), "coexistence", "--upto", "10")
    assert (code, "3*b**2/16" in out) == (3, True)
    assert "coexistence, b = 0+: there is no coexistence near b = 0+ to follow" in message
    assert json.loads(run("asymptotics", str(file), "coexistence", "--upto", "10", "--json")[1])["status"] == "no root"


def test_the_derivation_of_a_series_is_shown_and_checked(run, document, monkeypatch):
    words = ("asymptotics", "classical/curie-weiss", "m", "--limit", "T=1-", "--upto", "10", "--derivation")
    code, out, _ = run(*words)
    assert (code, out.count("pass: "), "FAIL" in out) == (0, 6, False)
    for text in ("scaling ansatz", "(0,) = (c_m**3/3 - c_m,)", "The balance gives c_m.", "m_1 = sqrt(3)*"):
        assert text in out
    steps = document(*words)[1]["quantities"][0]["derivation"]["steps"]
    assert [step["name"] for step in steps[:4]] == ["equation 1", "scaling ansatz", "dominant balance", "leading terms"]
    assert all(check["result"] == "pass" for step in steps for check in step["checks"])
    monkeypatch.setattr("derive.limits.steps.correction", lambda *_: None)
    code, out, _ = run(*words)
    assert (code, out.count("FAIL: ")) == (3, 3)


def test_asymptotics_of_a_limit_are_for_closed_forms(run):
    code, _, message = run("asymptotics", "positional-semantic", "coexistence", "--limit", "alpha=oo")
    assert (code, "closed forms" in message) == (2, True)


def test_asymptotics_of_a_state_evolution_compare_a_law_with_fixed_points(document):
    """theta of the semantic solution with many samples; the document is that of a series, with bounds for every entry."""
    words = ("theta-semantic", "omega=1/2", "sigma=3/10", "--digits", "3", "--upto", "100")
    code, found = document("asymptotics", "positional-semantic", *words)
    (quantity,) = found["quantities"]
    assert (code, quantity["sector"], quantity["limit"], quantity["status"]) == (0, "semantic", "oo", "ok")
    assert [rung["size"] for rung in quantity["rungs"]] == ["10", "100"]
    first, second = (abs(1 - float(rung["explained"])) for rung in quantity["rungs"])
    assert second < min(first, 0.05)
    assert all(0 < float(rung["errors"]["explained"]) < 0.02 for rung in quantity["rungs"])


def test_asymptotics_table_of_one_quantity(run):
    code, out, _ = run("asymptotics", "copy-head/linear", "P_pool", "V=8", "--upto", "1e1000")
    assert code == 0
    assert "P_pool" in out
    assert "P_x" not in out
    assert any(line.startswith("1e1000 ") for line in out.splitlines())


def test_asymptotic_series_are_shown_in_lines_of_readable_length(run):
    for theory in ("copy-head/linear", "copy-head/softmax"):
        code, out, _ = run("asymptotics", theory, "V=8", "--upto", "1e3")
        assert code == 0
        assert max(map(len, out.splitlines())) <= 130


# --- derive ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theory", ["copy-head/linear", "copy-head/softmax"])
def test_quick_checks_pass(run, theory):
    code, out, _ = run("derive", theory, "--check", "--quick")
    assert code == 0
    assert "none failed" in out
    assert "FAIL" not in out
    assert f"`spinodal derive {theory} --check` runs" in out


def test_a_failed_check_exits_3(run, monkeypatch):
    from dataclasses import replace

    from derive.catalogue import Theory, find

    whole = find("copy-head/softmax").derivation()
    broken = replace(whole, steps=whole.steps[:1]).altered("joint energy", lambda value: value * 8 / 7)
    monkeypatch.setattr(Theory, "derivation", lambda self: broken)
    code, out, _ = run("derive", "copy-head/softmax", "--check")
    assert code == 3
    assert "FAIL" in out


def test_derive_json(document):
    code, found = document("derive", "copy-head/softmax", "--check", "--quick")
    assert (code, found["schema"], found["theory"]) == (0, 1, "copy-head/softmax")
    for step in found["steps"]:
        assert step["statement"]["text"]
        assert step["statement"]["latex"]
        assert step["reason"]
    results = {check["result"] for step in found["steps"] for check in step["checks"]}
    assert results == {"pass", "not run"}


def test_one_expression_as_source_that_runs(run, tmp_path):
    name = "softmax action"
    code, out, _ = run("derive", "copy-head/softmax", "--expr", name, "--format", "python")
    assert code == 0
    (tmp_path / "action.py").write_text(out)
    subprocess.run([sys.executable, "-I", str(tmp_path / "action.py")], check=True, timeout=60)
    for form in ("text", "latex", "c"):
        code, out, _ = run("derive", "copy-head/softmax", "--expr", name, "--format", form)
        assert code == 0
        assert out.strip()


@pytest.mark.parametrize(
    ("theory", "name", "step"),
    [
        ("copy-head/softmax", "action", "softmax action"),
        ("copy-head/linear", "action", "linear action"),
        ("copy-head/softmax-relaxed", "action", "relaxed action"),
        ("positional-semantic", "action", "reduced potential"),
        ("classical/curie-weiss", "potential", "action"),
        ("classical/sherrington-kirkpatrick", "action", "potential"),
    ],
)
def test_the_expression_that_is_solved_has_a_name_of_its_own(document, theory, name, step):
    code, found = document("derive", theory, "--expr", name)
    assert (code, found["step"]) == (0, step)


def test_source_of_a_theory_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("new", "mine")[0] == 0
    code, out, _ = run("derive", "./mine.toml", "--expr", "action", "--format", "python")
    assert code == 0
    (tmp_path / "action.py").write_text(out)
    subprocess.run([sys.executable, "-I", str(tmp_path / "action.py")], check=True, timeout=60)


def test_an_average_is_no_source(run):
    code, out, err = run("derive", "classical/sherrington-kirkpatrick", "--expr", "potential", "--format", "c")
    assert (code, out) == (2, "")
    assert "c has no GaussianAverage" in err


# --- figure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["missing/folder", "a-file", "a-file/folder"])
def test_target_that_cannot_be_written(run, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("kept")
    code, out, err = run("figure", "softmax-landscape", "--out", target)
    assert (code, out) == (2, "")
    assert err.startswith("spinodal: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]
    assert (tmp_path / "a-file").read_text() == "kept"


@pytest.mark.parametrize("taken", ["softmax-landscape.csv", "softmax-landscape.png"])
def test_picture_and_data_are_written_both_or_not_at_all(run, tmp_path, taken):
    (tmp_path / taken).mkdir()
    code, out, err = run("figure", "softmax-landscape", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert taken in err
    assert [path.name for path in tmp_path.iterdir()] == [taken]


# --- the process -----------------------------------------------------------------------------------------------------


def test_a_closed_pipe_is_no_error():
    command = subprocess.Popen([*SCRIPT, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.close()
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait() == 0


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


@needs_full
@pytest.mark.parametrize("words", [["list"], ["--help"], ["--version"], ["minima", "--help"]])
def test_a_full_disk_is_one_message(words):
    with FULL.open("w") as full:
        outcome = subprocess.run([*SCRIPT, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert outcome.returncode == 2
    assert outcome.stderr == "spinodal: cannot write the output: No space left on device\n"


@needs_full
@pytest.mark.parametrize("words", [[], ["minima", "copy-head/softmax", "L=32"]])
def test_a_complaint_that_cannot_be_written_keeps_its_exit_code(words):
    with FULL.open("w") as full:
        assert subprocess.run([*SCRIPT, *words], stderr=full, stdout=subprocess.PIPE).returncode == 2


def test_closed_streams():
    """Without standard output there is nothing to do; without standard error all goes on."""
    script = shlex.join(SCRIPT)
    closed = subprocess.run(f"{script} list >&-", shell=True, capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (2, "spinodal: standard output is closed\n")
    silent = subprocess.run(
        f"{script} transitions copy-head/softmax L=32 V=8 --digits 5 2>&-", shell=True, stdout=subprocess.PIPE
    )
    assert silent.returncode == 0
    assert b"coexistence" in silent.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_exits_130(number):
    command = subprocess.Popen(
        [*SCRIPT, "transitions", *SOFTMAX, "--digits", "10000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.5)
    command.send_signal(number)
    out, err = command.communicate(timeout=30)
    assert command.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "spinodal: interrupted"
    assert "Traceback" not in err


def test_interruption_while_the_workers_of_a_cross_check_begin():
    words = [*SCRIPT, "crosscheck", "--quick", "--row", "softmax branches"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = subprocess.Popen(words, **pipes, text=True, start_new_session=True)
    command.stderr.readline()  # the budget is printed, the workers are next
    time.sleep(0.5)
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does
    out, err = command.communicate(timeout=30)
    assert (command.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "spinodal: interrupted"
    assert "Traceback" not in err


def test_scan_and_status(run, tmp_path):
    head = ("scan", "copy-head/softmax", "L=32", "V=8")
    tail = ("--out", str(tmp_path / "store"), "--json")
    command = (*head, "--over", "P=320:340:2", *tail)
    assert json.loads(run(*command)[1])["solved"] == 2
    assert "give --resume" in run(*command)[2]
    assert json.loads(run(*command, "--resume")[1])["there"] == 2
    held = json.loads(run("status", str(tmp_path / "store"), "--json")[1])
    assert (held["records"], held["left"]) == ({"ok": 2}, 0)
    for words, complaint in (
        (("status", str(tmp_path)), "no record store"),
        ((*head, "--over", "P=1:2:2", "--over", "P=1:2:2", *tail), "P is given twice"),
        ((*head, "--over", "T=0:1:2", *tail), "holds a store with"),
        ((*head, "--over", "P=1:2", *tail), "is no axis"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert complaint in err


def test_scan_of_transitions(run, document, tmp_path):
    """Without a value of the control each point of the grid holds every transition."""
    command = ("scan", "copy-head/softmax", "L=32", "--over", "V=8:9:2", "--out", str(tmp_path / "store"))
    assert document(*command)[1]["solved"] == 2
    first, _ = Store.open(tmp_path / "store").records("transition set")
    values = {first.values[f"{key}.kind"]: first.values[f"{key}.value"] for key in "0123"}
    assert agrees(values["coexistence"], P_STAR)
    assert set(values) == {"coexistence", "spinodal", "critical-end-point"}


def test_a_store_belongs_to_one_structure(run, tmp_path):
    """Three tokens are another theory than two, although the parameters have the same names."""
    tail = ("--over", "alpha=1:1:1", "--out", str(tmp_path / "store"))
    for theory, structure in ((state_evolution(), "two tokens, rank one"), (general(isotropic(3, 1, 1)), "3 tokens")):
        axis = parse_axis("alpha=1:1:1")
        meant = about("positional-semantic", theory, theory.setup({"alpha": 1}), [axis], 3)
        assert structure in meant["structure"]
        if structure == "two tokens, rank one":
            Store.create(tmp_path / "store", meant)
    code, _, err = run("scan", "positional-semantic", "L=3", *tail, "--digits", "3")
    assert code == 2
    assert "structure" in err or "expression" in err


def test_another_structure_than_the_default_is_named(document):
    words = ("minima", "positional-semantic", "alpha=1.5", "--sector", "semantic", "--digits", "2")
    _, default = document(*words)
    _, other = document(*words, "A_22=.7")
    assert "structure" not in default
    assert other["structure"] == "2 tokens, student of rank 1, teacher of rank 1"
    (point,) = default["points"]
    assert set(point["errors"]) == {*point["order_parameters"], "action"}
    assert float(point["error"]) == max(map(float, point["errors"].values()))
    assert heading("theory", {"L": "3"}, 2, "3 tokens") == "theory (3 tokens): L = 3; 2 digits"


def test_a_table_without_points_says_so():
    assert points_table(Points(())) == "no points"


def test_failed_points_of_a_scan_stay_until_they_are_retried(run, tmp_path, monkeypatch):
    def lost(*_, **__):
        raise ArithmeticError("lost")

    command = ("scan", "copy-head/softmax", "L=32", "V=8", "--over", "P=320:340:2", "--out", str(tmp_path / "store"))
    with monkeypatch.context() as patched:
        patched.setattr("numerics.stationary.minima", lost)
        for words in (command, (*command, "--resume")):
            code, _, err = run(*words)
            assert code == 3
            assert "--retry solves them again" in err
    assert run(*command, "--resume")[:2] == (3, f"0 points solved, 2 were there, 2 are not ok: {tmp_path / 'store'}\n")
    assert run(*command, "--retry")[:2] == (0, f"2 points solved, 0 were there, 0 are not ok: {tmp_path / 'store'}\n")


def test_a_store_that_is_being_written_is_refused(run, tmp_path):
    command = ("scan", "copy-head/softmax", "L=32", "V=8", "--over", "P=320:340:2", "--out", str(tmp_path))
    assert run(*command)[0] == 0
    with Store.open(tmp_path).alone():
        code, out, err = run(*command, "--resume")
    assert (code, out) == (2, "")
    assert "another process is writing there" in err


def test_corners_of_a_grid_are_looked_at_first(run, tmp_path):
    code, out, err = run("scan", *SOFTMAX, "--over", "P=320:340:2", "--over", "T=-1:0:1000000", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert "points" in err
    code, out, err = run("scan", *SOFTMAX, "--over", "P=320:340:2", "--over", "T=-1:1:500000", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert "T >= 0" in err
    assert list(tmp_path.iterdir()) == []


def test_an_entry_of_the_matrix_can_be_an_axis(run, tmp_path):
    """The theory is that of two different tokens although no value makes them differ."""
    words = ("scan", "positional-semantic", "alpha=1", "--over", "A_22=1/2:3/4:2", "--out", str(tmp_path / "store"))
    assert "1 to 10 digits" in run(*words, "--digits", "11")[2]
    assert "student of rank 1" in Store.open(tmp_path / "store").about()["structure"]


def test_progress_where_there_is_no_terminal(run, monkeypatch):
    """Lines now and then, of whatever stage the work is in; none with --quiet."""

    def slow(action, setup, digits, progress):
        progress("the first stage")
        time.sleep(0.3)
        return Points(())

    monkeypatch.setattr("numerics.stationary.minima", slow)
    monkeypatch.setattr("spinodal.PULSE", 0.1)
    lines = run("minima", *SOFTMAX, "P=330")[2].splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("the first stage (00:00") for line in lines)
    assert run("minima", *SOFTMAX, "P=330", "--quiet")[2] == ""


def test_a_store_that_cannot_be_opened(run, tmp_path):
    (tmp_path / "records.sqlite").mkdir()
    code, out, err = run("scan", *SOFTMAX, "--over", "P=320:340:2", "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert "unable to open" in err


# --- diagram ---------------------------------------------------------------------------------------------------------


def test_diagram_rows_are_those_of_transitions(document, run):
    command = ("diagram", "copy-head/softmax", "L=32", "--x", "P=50:2000", "--y", "V=6:8:3", "--digits", "12")
    code, found = document(*command)
    assert (code, found["status"]) == (0, "ok")
    _, alone = document("transitions", *SOFTMAX, "--digits", "12", "--over", "P=50:2000")
    last = sorted(curve["points"][-1]["value"] for curve in found["curves"])
    assert last == sorted(entry["value"] for entry in alone["transitions"])
    assert [point["V"] for point in found["curves"][0]["points"]] == ["6", "7", "8"]
    table = run(*command)[1]
    assert all(point["value"] in table for curve in found["curves"] for point in curve["points"])


def test_diagram_goes_on_where_it_was(document, run, tmp_path, monkeypatch):
    store = ("--out", str(tmp_path / "store"))
    command = ("diagram", "copy-head/softmax", "L=32", "--x", "P=50:2000", "--y", "V=8:9:2", *store)
    _, first = document(*command)
    assert "give --resume" in run(*command)[2]
    monkeypatch.setattr("numerics.transitions.survey", None)  # rows are read: no branch is sought anew
    _, again = document(*command, "--resume")
    assert again["curves"] == first["curves"]
    held = json.loads(run("status", str(tmp_path / "store"), "--json")[1])
    assert (held["records"], held["left"]) == ({"ok": 3}, 0)


@pytest.mark.parametrize(
    "words, complaint",
    [
        (("--x", "V=4:8", "--y", "P=100:400"), "along P"),
        (("--x", "P=100:400", "--y", "P=100:400"), "P is given twice"),
        (("--x", "P=400:100", "--y", "V=4:8"), "the lower end"),
        (("--x", "P=100", "--y", "V=4:8"), "--x P=LO:HI"),
        (("--x", "P=100:400", "--y", "V=4"), "is no axis"),
        (("--x", "P=100:400", "--y", "W=4:8"), "no parameter 'W'"),
        (("--x", "P=100:400", "--y", "L=4:8"), "L is given twice"),
        (("--x", "P=100:400", "--y", "V=4:8", "--resume"), "--out DIR"),
    ],
)
def test_bad_diagrams_are_refused(run, words, complaint):
    code, out, err = run("diagram", "copy-head/softmax", "L=32", *words)
    assert (code, out) == (2, "")
    assert complaint in err


def test_checks_with_averages_are_run(run):
    code, out, err = run("derive", "positional-semantic", "--check", "--quiet")
    assert (code, err) == (0, "")
    assert re.search(r"steps, \d\d checks, none failed", out)
    assert "averages equal" in out


def test_a_window_of_an_action_may_reach_below_zero(document):
    """phi^6: the order of the instability at a = 0 changes at b = 0."""
    _, found = document("diagram", "classical/landau-6", "--x", "a=-1:2", "--y", "b=-1:1:5", "--digits", "10")
    assert [(point["kind"], float(point["a"]), float(point["b"])) for point in found["meetings"]] == [
        ("tricritical", 0, 0)
    ]
    _, found = document("transitions", "classical/curie-weiss-in-field", "--over", "h=-1/4:1/4")
    assert [entry["value"] for entry in found["transitions"]] == ["0"]

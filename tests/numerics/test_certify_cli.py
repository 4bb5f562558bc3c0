"""`--certify` and `verify` on the command line."""

import json
import resource
import sys
from pathlib import Path

import pytest

import spinodal

SOFTMAX = ("copy-head/softmax", "L=32", "V=8")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run one command line in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            spinodal.main(arguments)
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


def test_transitions_are_certified_and_verified(run):
    code, out, err = run("transitions", *SOFTMAX, "--digits", "30", "--certify", "--json", "--quiet")
    document = json.loads(out)
    assert (code, err, document["status"]) == (0, "", "ok")
    assert [entry["certified"] for entry in document["transitions"]] == [True] * 4
    assert document["certificate"] == "copy-head-softmax.certificate.json"
    code, out, err = run("verify", document["certificate"], "--json")
    again = json.loads(out)
    assert (code, err, again["status"]) == (0, "", "ok")
    assert [row["kind"] for row in again["theorems"]] == [entry["kind"] for entry in document["transitions"]]
    assert all(row["verified"] for row in again["theorems"])
    code, out, _ = run("verify", document["certificate"])
    assert code == 0
    assert "P = 330.378233888447345057072399176" in out
    assert "none of them, nor a wall, has a lower action than the points" in out
    assert "assumed: every stationary point" in out


def test_stationary_points_are_certified_and_verified(run):
    code, out, err = run("minima", *SOFTMAX, "P=330", "--digits", "40", "--certify", "--out", "points.json")
    assert code == 0
    assert "points.json" in err
    assert "-23.27836592775386937235255608687135147919" in out
    code, out, _ = run("verify", "points.json")
    assert code == 0
    assert "point 1, uniform: there is one stationary point in the box, a minimum" in out


def test_a_changed_certificate_is_refused(run):
    run("minima", *SOFTMAX, "P=330", "--certify", "--out", "points.json")
    file = Path("points.json")
    file.write_text(file.read_text().replace('"P": "330"', '"P": "331"'))
    code, out, err = run("verify", "points.json")
    assert (code, out) == (2, "")
    assert "was changed" in err


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (("transitions", *SOFTMAX, "--out", "x.json"), "--out goes with --certify"),
        (("transitions", *SOFTMAX, "--certify", "--out", "no/x.json"), "folder that may be written"),
        (("transitions", *SOFTMAX, "--certify", "--out", "."), "name of a file"),
        (("transitions", *SOFTMAX, "--certify", "--digits", "9000"), "9000 digits"),
        (("minima", "positional-semantic", "alpha=1", "--certify"), "state evolution"),
        (("verify", "none.json"), "No such file"),
    ],
)
def test_bad_input(run, arguments, reason):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert reason in err


def test_a_certificate_does_not_have_code_run(run):
    run("minima", *SOFTMAX, "P=330", "--certify", "--out", "points.json")
    document = json.loads(Path("points.json").read_text())
    document["theory"] = "module:antigravity"
    spinodal_certificate = pytest.importorskip("numerics.certify.certificate")
    document.pop("seal")
    Path("points.json").write_text(json.dumps({**document, "seal": spinodal_certificate.seal(document)}))
    code, out, err = run("verify", "points.json")
    assert (code, out) == (2, "")
    assert "module" in err


def test_a_point_under_another_name_is_refused(run):
    room = pytest.importorskip("numerics.certify.certificate")
    run("minima", *SOFTMAX, "P=330", "--certify", "--out", "points.json")
    document = json.loads(Path("points.json").read_text())
    document.pop("seal")
    text = json.dumps(document).replace("uniform", "@").replace("copy", "uniform").replace("@", "copy")
    changed = {**json.loads(text), "theory": document["theory"]}
    Path("points.json").write_text(json.dumps({**changed, "seal": room.seal(changed)}))
    code, _, err = run("verify", "points.json")
    assert code == 3
    assert "the points are named uniform, copy" in err


WALLED = """
[theory]
name = "walled"
summary = "a minimum at 2 above the wall at 0"
action = "T*(m^3/3 - 3*m^2/2 + 2*m)"
window = ["1/10", "10"]
[control.T]
meaning = "temperature"
[order_parameters.m]
meaning = "magnetisation"
lower = 0
upper = 4
edge = true
"""


def test_what_is_not_proven_has_an_exit_code(run):
    Path("walled.toml").write_text(WALLED)
    code, out, err = run("minima", "walled.toml", "T=1", "--certify", "--json")
    assert (code, json.loads(out)["status"]) == (3, "not proven")
    assert "the action on the wall is not lower" in json.loads(out)["notes"][-1]
    assert "not everything that was found is proven" in err
    code, out, err = run("verify", json.loads(out)["certificate"])
    assert (code, out) == (2, "")
    assert "no theorem" in err


# what somebody may have changed, and sealed again -----------------------------------------------------------------


def resealed(path, change):
    room = pytest.importorskip("numerics.certify.certificate")
    document = json.loads(Path(path).read_text())
    document.pop("seal")
    change(document)
    Path(path).write_text(json.dumps({**document, "seal": room.seal(document)}))


def swapped(document):
    coexistence = document["theorems"][1]
    coexistence["names"] = coexistence["names"][::-1]


def moved(document):
    side = document["theorems"][1]["box"][-1]
    side["value"] = side["value"][:-6] + "000000"


def shrunk(document):
    side = document["theorems"][1]["box"][-1]
    side["radius"] = "1E-45"


def renamed(document):
    document["theorems"][0]["names"] = ["uniform"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (swapped, "the points belong to the phases uniform, copy"),
        (renamed, "the points belong to the phases copy"),
        (moved, "not proven that there is one root in the box"),
        (shrunk, "not proven that there is one root in the box"),
    ],
)
def test_a_change_that_was_sealed_is_refused(run, change, reason):
    run("transitions", *SOFTMAX, "--certify", "--out", "t.json")
    resealed("t.json", change)
    code, out, err = run("verify", "t.json")
    assert code == 3
    assert reason in err
    assert out.count("REFUSED") == 1


def test_other_versions_are_said_and_nothing_rests_on_them(run):
    run("minima", *SOFTMAX, "P=330", "--certify", "--out", "points.json")
    resealed("points.json", lambda document: document["versions"].update(mpmath="0.19"))
    code, out, _ = run("verify", "points.json")
    assert code == 0
    assert "written with mpmath 0.19, verified with" in out
    assert "seen again in the intervals of mpmath, from the text" in out
    assert json.loads(run("verify", "points.json", "--json")[1])["other_versions"] == {"mpmath": "0.19"}


MODULE = '''
"""A double well in a field."""
from sympy import Rational, Symbol
from derive import catalogue
from derive.files.theory import parsed

TEXT = """{text}"""


def derivation():
    return parsed(TEXT, "here").derivation()


def action():
    return parsed(TEXT, "here").action()
'''
WELL = """
[theory]
name = "well"
summary = "a double well in a field"
action = "x^4/4 - x^2/2 - h*x"
window = [-1, 1]
[control.h]
meaning = "field"
lower = -1
upper = 1
strict = false
[order_parameters.x]
meaning = "place"
lower = -3
upper = 3
[[phases]]
name = "left"
where = "x < 0"
[[phases]]
name = "right"
where = "x > 0"
"""


def test_the_certificate_of_a_module_is_verified_without_it(run, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("well_of_a_test.py").write_text(MODULE.replace("{text}", WELL))
    theory = "module:well_of_a_test"
    code, _, err = run("transitions", theory, "--certify", "--digits", "30", "--out", "well.json")
    assert (code, "well.json" in err) == (0, True)
    code, out, _ = run("verify", "well.json", "--theory", theory)
    assert (code, f"{theory} gives the same" in out) == (0, True)
    monkeypatch.delitem(sys.modules, "well_of_a_test")
    Path("well_of_a_test.py").write_text("raise SystemExit(7)")
    code, out, _ = run("verify", "well.json")
    assert code == 0
    assert out.count("proven again") == 3
    assert f"{theory} was not run" in out
    Path("well_of_a_test.py").write_text(MODULE.replace("{text}", WELL.replace("x^2/2", "x^2/3")))
    code, _, err = run("verify", "well.json", "--theory", theory)
    assert (code, "is not the action" in err) == (2, True)
    resealed("well.json", lambda document: document.update(source=document["source"].replace("x**2/2", "x**2/3")))
    code, _, err = run("verify", "well.json")
    assert (code, "about another action" in err) == (2, True)


def unwritable(document):
    document["theorems"][0]["names"] = ["\ud800"]


def without_digits(document):
    document["digits"] = -(10**9)


@pytest.mark.parametrize("change", [unwritable, without_digits])
def test_what_no_certificate_says_is_no_certificate(run, change):
    run("minima", *SOFTMAX, "P=330", "--certify", "--out", "points.json")
    resealed("points.json", change)
    code, out, err = run("verify", "points.json")
    assert (code, out) == (2, "")
    assert "is no certificate of schema 1" in err


def test_a_key_that_is_written_twice_is_refused(run):
    run("minima", *SOFTMAX, "P=330", "--certify", "--out", "points.json")
    file = Path("points.json")
    file.write_text(file.read_text().replace('"theory":', '"theory": "another", "theory":'))
    code, out, err = run("verify", "points.json")
    assert (code, out) == (2, "")
    assert "a key is written twice" in err


def test_names_that_nothing_is_proven_about_are_called_so(run):
    run("transitions", *SOFTMAX, "--certify", "--out", "t.json")
    out = run("verify", "t.json")[1]
    assert "critical-end-point (called critical): proven again" in out
    assert "spinodal (copy): proven again" in out


def test_where_nothing_can_be_written_nothing_is_lost(run, monkeypatch):
    """A disk that is full: the certificate that was there stays, what was found is printed, and no empty file is left."""
    assert run("transitions", "classical/landau-6", "b=-1", "--certify", "--out", "c.json")[0] == 0
    before = Path("c.json").read_text()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        certified = run("transitions", "classical/landau-6", "b=-1", "--certify", "--out", "c.json", "--json")
        begun = run("new", "mine")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (certified[0], begun[0]) == (3, 2)
    document = json.loads(certified[1])
    assert len(document["transitions"]) == 3
    assert "certificate" not in document
    assert "the certificate c.json cannot be written: File too large" in document["notes"][-1]
    assert Path("c.json").read_text() == before
    assert [path.name for path in Path().iterdir()] == ["c.json"]

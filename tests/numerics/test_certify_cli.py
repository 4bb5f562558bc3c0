"""`--certify` and `verify` on the command line."""

import json
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

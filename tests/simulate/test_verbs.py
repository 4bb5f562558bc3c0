"""`spinodal simulate` and `spinodal crosscheck`: results, resuming, bad input, exit codes."""

import json

import pytest

import spinodal
from simulate.crosscheck import registry
from tests.simulate.crosscheck.invented import CLAIM, broken

HEAD = ("copy-head/softmax", "L=6", "V=3", "P=40")
ROW = ("--row", "invented", "--workers", "1", "--quiet")


@pytest.fixture
def run(capsys):
    """Run one command line in this process: (exit code, standard output, standard error)."""

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            spinodal.main(arguments)
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


@pytest.fixture
def invented(monkeypatch):
    """The cross-check with one claim that costs nothing."""

    def put(**changes):
        claim = CLAIM if not changes else type(CLAIM)(**{**vars(CLAIM), **changes})
        monkeypatch.setattr(registry, "CLAIMS", (claim,))

    put()
    return put


def test_simulate_prints_means_and_standard_errors(run):
    code, out, _ = run("simulate", *HEAD, "--init", "copy", "--seeds", "2", "--quiet")
    assert code == 0
    assert "lbfgs from copy on cpu; 2 seeds" in out
    code, out, _ = run("simulate", *HEAD, "--init", "copy", "--seeds", "2", "--json", "--quiet")
    document = json.loads(out)
    assert document["schema"] == 1
    assert document["status"] == "ok"
    assert document["observables"]["energy"]["standard_error"] > 0


def test_simulate_goes_on_with_its_folder_only(run, tmp_path):
    folder = str(tmp_path / "runs")
    first = run("simulate", *HEAD, "--seeds", "2", "--out", folder, "--json", "--quiet")
    assert first[0] == 0
    assert run("simulate", *HEAD, "--seeds", "2", "--out", folder)[0] == 2
    assert run("simulate", *HEAD, "--seeds", "2", "--out", folder, "--resume", "--json", "--quiet") == first
    code, _, err = run("simulate", *HEAD, "--seeds", "2", "--method", "gd", "--out", folder, "--resume")
    assert code == 2
    assert "method = 'lbfgs', not 'gd'" in err
    assert run("status", folder)[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((*HEAD[:3], "P=40.5"), 2, "whole number"),
        ((*HEAD[:3], "P=0"), 2, "P > 0"),
        (HEAD[:3], 2, "give P=VALUE"),
        ((*HEAD, "--device", "tpu"), 2, "the devices are cpu"),
        ((*HEAD, "--method", "sgd"), 2, "there are lbfgs"),
        ((*HEAD, "--init", "semantic"), 2, "there are zero, copy"),
        ((*HEAD, "--seeds", "0"), 2, "--seeds"),
        (("copy-head/sofmax",), 2, "did you mean"),
        (("copy-head/softmax", "L=100000", "V=8", "P=3000"), 2, "GiB"),
        ((*HEAD, "--method", "gd", "--rate", "1e200"), 3, "not finite after step 1"),
        ((*HEAD, "--method", "gd", "--init", "copy", "--steps", "2", "--seeds", "1"), 3, "did not arrive"),
    ],
)
def test_simulate_refuses_or_says_what_was_not_reached(run, words, code, message):
    found, _, err = run("simulate", *words, "--quiet")
    assert found == code
    assert message in err
    assert "Traceback" not in err


def test_the_map_of_checks(run):
    code, out, _ = run("crosscheck", "copy-head/linear", "--list")
    assert code == 0
    assert "row: linear onset" in out
    code, out, _ = run("crosscheck", "copy-head/linear", "--list", "--json")
    assert all(entry["checks"] or entry["rows"] for entry in json.loads(out)["expressions"])


def test_a_cross_check_that_holds_and_is_gone_on_with(run, tmp_path, invented):
    words = ("crosscheck", *ROW, "--quick", "--out", str(tmp_path / "records"))
    code, out, _ = run(*words)
    assert code == 0
    assert "1 holds" in out
    assert run(*words)[0] == 2
    code, out, _ = run(*words, "--resume", "--json")
    assert code == 0
    (row,) = json.loads(out)["rows"]
    assert row["verdict"] == "holds"
    assert abs(row["measured"] - row["theory"]) <= row["tolerance"] + 2 * row["standard_error"]


def test_budgets_are_printed_before_the_measurements(run, invented):
    _, _, err = run("crosscheck", *ROW[:-1])
    assert "2 x 6" in err
    assert "12 s" in err


def test_one_comparison_that_fails_is_exit_three(run, invented):
    invented(measure=broken)
    code, out, err = run("crosscheck", *ROW)
    assert code == 3
    assert "seed 0 broke down" in out
    assert "not every comparison holds" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("copy-head/lnear",), "did you mean"),
        (("--row", "nothing"), "there is no row 'nothing'"),
        (("--resume",), "--resume goes with --out"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_bad_input_of_the_cross_check(run, words, message):
    code, _, err = run("crosscheck", *words)
    assert code == 2
    assert message in err

"""`spinodal simulate` and `spinodal crosscheck`: results, resuming, bad input, exit codes."""

import json

import pytest

import spinodal
from simulate import run as loop
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
    code, _, err = run("simulate", *HEAD, "--seeds", "3", "--out", folder, "--resume")
    assert code == 2
    assert "--seeds = '2', not '3'" in err
    assert run("status", folder)[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((*HEAD[:3], "P=40.5"), 2, "whole number"),
        ((*HEAD[:3], "P=0"), 2, "P > 0"),
        (HEAD[:3], 2, "give P=VALUE"),
        ((*HEAD, "--device", "tpu"), 2, "the devices are cpu"),
        ((*HEAD, "--method", "sgd"), 2, "there are lbfgs"),
        ((*HEAD, "--method", "mala"), 2, "give T=1/100"),
        ((*HEAD, "T=1", "--method", "sgld", "--batch", "41"), 2, "from 1 to 40"),
        ((*HEAD, "T=1", "--method", "mala", "--chains", "1"), 2, "two or more"),
        ((*HEAD, "--rank", "0"), 2, "at least 1"),
        ((*HEAD, "--restarts", "2", "--batch", "3"), 2, "takes no batch"),
        ((*HEAD, "--sweep", "P=1:3:3"), 2, "no P of its own"),
        ((*HEAD[:3], "--sweep", "L=1:3:3"), 2, "P=LO:HI:N"),
        ((*HEAD[:3], "--sweep", "P=20:10:3"), 2, "LO must lie below HI"),
        (("copy-head/softmax", "L=64", "V=32", "P=100000", "--chunk", "100000"), 2, "fits"),
        (("positional-semantic", "alpha=1", "--joint"), 2, "takes no joint"),
        ((*HEAD, "--init", "semantic"), 2, "there are zero, copy"),
        ((*HEAD, "--seeds", "0"), 2, "--seeds"),
        (("copy-head/sofmax",), 2, "did you mean"),
        (("copy-head/softmax", "L=100000", "V=8", "P=3000"), 2, "GiB"),
        ((*HEAD, "--method", "gd", "--rate", "1e200"), 3, "not finite after step 1"),
        ((*HEAD, "--method", "gd", "--init", "copy", "--steps", "2", "--seeds", "1"), 3, "the gradient norm is"),
    ],
)
def test_simulate_refuses_or_says_what_was_not_reached(run, words, code, message):
    found, _, err = run("simulate", *words, "--quiet")
    assert found == code
    assert message in err
    assert "Traceback" not in err


def test_chains_that_have_not_met_are_printed_and_exit_three(run):
    words = (*HEAD, "T=1/20", "--method", "langevin", "--chains", "2", "--steps", "60", "--seeds", "1", "--quiet")
    code, out, err = run("simulate", *words)
    assert code == 3
    assert "R-hat" in out
    assert "the chains have not met" in err
    code, out, _ = run("simulate", *words, "--json")
    document = json.loads(out)
    assert code == 3
    assert document["status"].startswith("the chains have not met")
    assert document["observables"]["s"].keys() == {"mean", "standard_error", "mcse", "r_hat", "ess_bulk", "ess_tail"}


def test_a_sweep_is_one_row_for_each_step_up_and_down(run):
    words = ("simulate", *HEAD[:3], "--sweep", "P=20:40:2", "--seeds", "2", "--quiet")
    code, out, _ = run(*words)
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[4:]] == [
        [P, way] for way in ("up", "down") for P in ("20", "40")
    ]
    code, out, _ = run(*words, "--json")
    assert [(step["P"], step["direction"]) for step in json.loads(out)["sweep"]] == [
        (P, way) for way in ("up", "down") for P in ("20", "40")
    ]


def test_a_sweep_in_whole_numbers_has_each_once(run):
    for axis, values in (("P=20:30:4", "20 23 27 30"), ("P=5:7:5:log", "5 6 7")):
        code, out, _ = run("simulate", *HEAD[:3], "--sweep", axis, "--seeds", "1", "--quiet", "--json")
        assert code == 0
        assert [step["P"] for step in json.loads(out)["sweep"]] == 2 * values.split()


def test_what_blows_up_says_where_in_a_few_words(run):
    code, out, err = run("simulate", *HEAD, "--method", "gd", "--rate", "1e200", "--seeds", "1", "--quiet")
    assert code == 3
    assert "observable" not in out
    assert "1 seed\n" in out
    assert "seed 0: the energy of row 0 is not finite after step 1; take a smaller step (gradient descent" in err
    assert "batch" not in err


def test_what_is_printed_is_explained_and_nothing_is_said_of_what_is_not_set(run):
    _, out, _ = run("simulate", *HEAD, "--seeds", "1")
    assert "h: score of keys of the query's own token" in out
    document = json.loads(run("simulate", *HEAD, "--seeds", "1", "--json", "--quiet")[1])
    assert not {"None", "False"} & set(document["about"].values())


def test_progress_is_told_without_a_terminal_too(run, monkeypatch):
    monkeypatch.setattr(spinodal, "PULSE", 0.01)
    _, _, err = run("simulate", *HEAD, "--seeds", "2")
    assert "simulate" in err
    assert "/2" in err


@pytest.mark.parametrize(
    "words",
    [
        ("T=1/20", "--method", "mala", "--chains", "2"),
        ("T=1/20", "--method", "ula", "--chains", "2"),
        ("T=1/20", "--method", "sgld", "--chains", "2"),
        ("--method", "gd", "--rate", "1e-3", "--restarts", "2"),
        ("--method", "adam", "--rate", "1e-4"),
    ],
)
def test_what_is_interrupted_goes_on_in_the_same_bits(run, tmp_path, monkeypatch, words):
    made = ("simulate", *HEAD, *words, "--steps", "120", "--seeds", "2", "--json", "--quiet", "--out")
    whole = run(*made, str(tmp_path / "whole"))
    refuse, steps = loop._refuse_infinite, []

    def interrupted(*arguments):
        steps.append(1)
        if len(steps) == 170:  # in the second seed
            raise KeyboardInterrupt
        refuse(*arguments)

    monkeypatch.setattr(loop, "_refuse_infinite", interrupted)
    assert run(*made, str(tmp_path / "cut"))[0] == 130
    assert (tmp_path / "cut" / "seed-1.pt").exists()
    assert run(*made, str(tmp_path / "cut"), "--resume") == whole


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


def test_the_bar_of_what_is_gone_on_with_begins_where_it_was(run, tmp_path, invented, monkeypatch):
    bars, bar = [], spinodal._bar

    def seen(quiet, **how):
        bars.append(how)
        return bar(quiet, **how)

    monkeypatch.setattr(spinodal, "_bar", seen)
    words = ("crosscheck", *ROW, "--quick", "--out", str(tmp_path / "records"))
    run(*words)
    run(*words, "--resume")
    counts = [(how["initial"], how["total"]) for how in bars if "initial" in how]
    assert counts == [(0, 3), (3, 3)]


def test_budgets_are_printed_before_the_measurements(run, invented):
    _, _, err = run("crosscheck", *ROW[:-1])
    assert "2 x 6" in err
    assert "12 s" in err
    assert "seconds of one core for the measurements alone" in err


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

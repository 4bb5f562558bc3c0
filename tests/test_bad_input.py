"""Bad input: each kind ends with exit code 2 and one message that says what would be right; nothing is written."""

import numpy as np
import pytest
from sympy import Rational, Symbol

import spinodal
from derive.action import SetupError
from derive.averages import GaussianAverage
from derive.catalogue import find
from numerics import evolution_transitions, sectors, stationary, transitions
from numerics.averages.ensemble import Ensemble
from numerics.averages.expression import Averaged
from numerics.averages.rules import QuasiMonteCarlo
from numerics.evolution import Evolution
from numerics.points import CostError, justified

HEAD, ATTENTIVE = find("copy-head/softmax").action(), find("positional-semantic").state_evolution()
HEAD_SETUP, ATTENTIVE_SETUP = HEAD.setup({"L": 32, "V": 8, "P": 330}), ATTENTIVE.setup({"alpha": 1})

SOFTMAX = ("copy-head/softmax",)
POINT = (*SOFTMAX, "L=32", "V=8", "P=330")
ATTENTION = ("positional-semantic", "alpha=1.5")
SCAN = ("scan", "positional-semantic", "--out", "store")
DIAGRAM = ("diagram", "positional-semantic", "--out", "store")
A = "A=[[3/5,2/5],[2/5,3/5]]"

CASES = {
    "no verb of that name": (["transition", *SOFTMAX], "transition"),
    "no theory": (["minima"], "THEORY"),
    "unknown theory": (["minima", "copyhead/softmx", "L=32"], "copy-head/softmax"),
    "unknown theory to derive": (["derive", "linear"], "copy-head/linear"),
    "theory file": (["derive", "./mine.py"], "./mine.py"),
    "unknown parameter": (["transitions", *SOFTMAX, "L=32", "V=8", "gama_w=2"], "gamma_w"),
    "parameter in the wrong case": (["transitions", *SOFTMAX, "l=32", "V=8"], "'l'"),
    "missing parameter": (["transitions", *SOFTMAX, "L=32"], "V=VALUE"),
    "missing control": (["minima", *SOFTMAX, "L=32", "V=8"], "P=VALUE"),
    "control where it is sought": (["transitions", *POINT], "--over P=LO:HI"),
    "V below two": (["transitions", *SOFTMAX, "L=32", "V=1"], "V >= 2"),
    "L below two": (["transitions", *SOFTMAX, "L=1.9", "V=8"], "L >= 2"),
    "negative L": (["transitions", *SOFTMAX, "L=-32", "V=8"], "L >= 2"),
    "gamma_w zero": (["transitions", *SOFTMAX, "L=32", "V=8", "gamma_w=0"], "gamma_w > 0"),
    "gamma_g negative": (["transitions", *SOFTMAX, "L=32", "V=8", "gamma_g=-1"], "gamma_g > 0"),
    "T negative": (["transitions", *SOFTMAX, "L=32", "V=8", "T=-0.1"], "T >= 0"),
    "P zero": (["minima", *SOFTMAX, "L=32", "V=8", "P=0"], "P > 0"),
    "P negative": (["minima", *SOFTMAX, "L=32", "V=8", "P=-1"], "P > 0"),
    "not a number": (["minima", *SOFTMAX, "L=nan", "V=8", "P=1"], "L: 'nan'"),
    "infinite": (["minima", *SOFTMAX, "L=inf", "V=8", "P=1"], "L: 'inf'"),
    "text": (["minima", *SOFTMAX, "L=many", "V=8", "P=1"], "L: 'many'"),
    "empty value": (["minima", *SOFTMAX, "L=", "V=8", "P=1"], "L: ''"),
    "division by zero": (["minima", *SOFTMAX, "L=1/0", "V=8", "P=1"], "divides by zero"),
    "formula": (["minima", *SOFTMAX, "L=__import__('os')", "V=8", "P=1"], "is not a number"),
    "formula of numbers": (["minima", *SOFTMAX, "L=2**5", "V=8", "P=1"], "is not a number"),
    "matrix": (["minima", *SOFTMAX, "L=[[3/5,2/5],[2/5,3/5]]", "V=8", "P=1"], "is not a number"),
    "huge exponent": (["minima", *SOFTMAX, "L=1e999999999", "V=8", "P=1"], "exponent"),
    "exponent of many digits": (["minima", *SOFTMAX, "L=1e" + "9" * 9000, "V=8", "P=1"], "exponent"),
    "blank before a value": (["minima", *POINT, "gamma_w= 1"], "gamma_w: ' 1'"),
    "no key": (["minima", *SOFTMAX, "=32"], "KEY=VALUE"),
    "no value": (["minima", *SOFTMAX, "L32"], "KEY=VALUE"),
    "a key given twice": (["minima", *SOFTMAX, "L=32", "V=8", "L=32", "P=1"], "L is given twice"),
    "an option given twice": (["minima", *POINT, "--digits", "5", "--digits", "6"], "--digits is given twice"),
    "digits zero": (["minima", *POINT, "--digits", "0"], "from 1 to 10000"),
    "digits negative": (["minima", *POINT, "--digits", "-3"], "from 1 to 10000"),
    "digits too many": (["minima", *POINT, "--digits", "10001"], "from 1 to 10000"),
    "digits of many digits": (["minima", *POINT, "--digits", "9" * 5000], "from 1 to 10000"),
    "digits as text": (["minima", *POINT, "--digits", "ten"], "from 1 to 10000"),
    "digits as fraction": (["minima", *POINT, "--digits", "1.5"], "from 1 to 10000"),
    "unknown sector": (["minima", *ATTENTION, "--sector", "semantik"], "'semantic'"),
    "sector of an action": (["minima", *POINT, "--sector", "copy"], "has no sectors"),
    "unknown option": (["minima", *POINT, "--digit-count", "3"], "--digit-count"),
    "range of another symbol": (["transitions", *SOFTMAX, "L=32", "V=8", "--over", "L=2:3"], "--over P=LO:HI"),
    "range of a parameter that is given": (
        ["transitions", "positional-semantic", "alpha=1", "omega=1/5", "--over", "omega=1/10:1/2"],
        "omega is given twice",
    ),
    "range of a parameter without the control": (
        ["transitions", "positional-semantic", "--over", "omega=1/10:1/2"],
        "give alpha=VALUE",
    ),
    "range without end": (["transitions", *SOFTMAX, "L=32", "V=8", "--over", "P=3"], "--over P=LO:HI"),
    "range upside down": (["transitions", *SOFTMAX, "L=32", "V=8", "--over", "P=4:3"], "lower end"),
    "range too narrow": (
        ["transitions", *SOFTMAX, "L=32", "V=8", "--over", "P=330:330.00000000000000000000000000001"],
        "is empty",
    ),
    "range out of range": (["transitions", *SOFTMAX, "L=32", "V=8", "--over", "P=-4:3"], "P > 0"),
    "range of formulas": (["transitions", *SOFTMAX, "L=32", "V=8", "--over", "P=exit():3"], "is not a number"),
    "share above one": (["minima", *ATTENTION, "omega=1.1"], "0 <= omega <= 1"),
    "share below zero": (["minima", *ATTENTION, "omega=-0.1"], "0 <= omega <= 1"),
    "sigma zero": (["minima", *ATTENTION, "sigma=0"], "sigma > 0"),
    "ridge zero": (["minima", *ATTENTION, "lambda=0"], "lambda > 0"),
    "alpha negative": (["minima", "positional-semantic", "alpha=-1"], "alpha > 0"),
    "alpha missing": (["minima", "positional-semantic"], "alpha=VALUE"),
    "A of another size": (["minima", *ATTENTION, "L=3", "A=[[1,0],[0,1]]"], "it must be 3 x 3"),
    "A of one token": (["minima", *ATTENTION, "A=[[1]]"], "it must be 2 x 2"),
    "rows that do not sum to one": (["minima", *ATTENTION, "A=[[1/2,1/3],[0,1]]"], "row 1 of A"),
    "entry of A above one": (["minima", *ATTENTION, "A=[[1.5,-.5],[.5,.5]]"], "entries from 0 to 1, not 3/2"),
    "A and an entry": (["minima", *ATTENTION, A, "A_11=.7"], "A and A_11 exclude each other"),
    "A and an entry as axis": ([*SCAN, A, "--over", "A_11=.6:.8:3"], "A and A_11 exclude each other"),
    "A and an entry as x": ([*DIAGRAM, A, "--x", "A_11=.6:.8", "--y", "alpha=1:2"], "A and A_11 exclude each other"),
    "A and an entry as y": ([*DIAGRAM, A, "--x", "alpha=1:2", "--y", "A_11=.6:.8"], "A and A_11 exclude each other"),
    "size as axis": ([*SCAN, "--over", "L=2:3:2"], "L cannot be an axis"),
    "rank as axis": ([*SCAN, "--over", "r_s=1:2:2"], "r_s cannot be an axis"),
    "A as axis": ([*SCAN, "--over", A], "A cannot be an axis"),
    "size as x": ([*DIAGRAM, "--x", "L=2:4", "--y", "omega=.1:.5"], "L cannot be an axis"),
    "size as y": ([*DIAGRAM, "--x", "alpha=1:2", "--y", "L=2:4"], "L cannot be an axis"),
    "grid too large": ([*SCAN, "--over", "alpha=1:2:1000", "--over", "omega=.1:.5:1001"], "has 1001000 points"),
    "x from zero": ([*DIAGRAM, "--x", "omega=0:1", "--y", "alpha=1:2"], "above zero"),
    "ragged A": (["minima", *ATTENTION, "A=[[1,0],[1]]"], "different lengths"),
    "A that is no matrix": (["minima", *ATTENTION, "A=eye(2)"], "is not a matrix"),
    "half a token": (["minima", *ATTENTION, "L=2.5"], "whole number"),
    "rank zero": (["minima", *ATTENTION, "r=0"], "whole number"),
    "two ranks and one": (["minima", *ATTENTION, "r=1", "r_s=1"], "give r, or r_s and r_t"),
    "more fields than can be held": (["minima", *ATTENTION, "L=10", "r=5"], "100 Gaussian fields"),
    "control of a law": (["asymptotics", *ATTENTION], "alpha runs along the ladder"),
    "ladder of a law too long": (
        ["asymptotics", "positional-semantic", "--upto", "1e9"],
        "alpha = 1e-5 or 1e4, not to 1e9",
    ),
    "ladder of a law of text": (["asymptotics", "positional-semantic", "--upto", "low"], "--upto: 'low' is not"),
    "ladder to the other limit": (["asymptotics", "positional-semantic", "q-few", "--upto", "9"], "no ladder of q-few"),
    "laws of another model": (["asymptotics", "positional-semantic", "L=3"], "two tokens, rank one"),
    "unknown step": (["derive", *SOFTMAX, "--expr", "softmax acton"], "'softmax action'"),
    "unknown format": (["derive", *SOFTMAX, "--format", "docx"], "text, latex, html or json"),
    "source of a whole derivation": (["derive", *SOFTMAX, "--format", "c"], "--expr"),
    "page of one expression": (["derive", *SOFTMAX, "--expr", "softmax action", "--format", "html"], "python"),
    "two formats": (["derive", *SOFTMAX, "--json", "--format", "html"], "exclude"),
    "quick without check": (["derive", *SOFTMAX, "--quick"], "--check"),
    "checks of one expression": (["derive", *SOFTMAX, "--expr", "softmax action", "--check"], "--expr"),
    "no name of a target": (["figure", "softmax-landscape", "--out", ""], "--out"),
    "name of a target too long": (["figure", "softmax-landscape", "--out", "a" * 300], "--out"),
    "unknown figure": (["figure", "landscape", "--out", "."], "softmax-landscape"),
    "unknown picture format": (["figure", "softmax-landscape", "--out", ".", "--format", "bmp"], "png"),
    "figure without target": (["figure", "softmax-landscape"], "--out"),
    "ladder too short": (["asymptotics", *SOFTMAX, "V=8", "--upto", "1"], "--upto"),
    "ladder of text": (["asymptotics", *SOFTMAX, "V=8", "--upto", "high"], "--upto: 'high' is not"),
    "theory without series": (["asymptotics", "copy-head/softmax-relaxed", "V=8"], "no series of its own"),
    "two quantities": (["asymptotics", *SOFTMAX, "P*", "P_x", "V=8"], "one quantity"),
    "size of a ladder": (["asymptotics", *SOFTMAX, "L=2", "V=8"], "L runs along the ladder"),
    "control of a series": (["asymptotics", *SOFTMAX, "P*", "V=8", "P=3"], "P is what the series gives"),
    "unknown quantity": (["asymptotics", *SOFTMAX, "P_nil", "V=8"], "P_nil"),
}


@pytest.mark.parametrize(("arguments", "says"), CASES.values(), ids=CASES)
def test_bad_input(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        spinodal.main(arguments)
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith("spinodal: ")
    assert printed.err.count("\n") == 1
    assert len(printed.err) < 700
    assert says in printed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: sectors.minima("positional-semantic", ATTENTIVE_SETUP), TypeError, "is no StateEvolution"),
        (lambda: sectors.minima(HEAD, HEAD_SETUP), TypeError, "is no StateEvolution"),
        (lambda: sectors.minima(ATTENTIVE, {"alpha": 1}), TypeError, "is no setup"),
        (lambda: sectors.minima(ATTENTIVE, HEAD_SETUP), SetupError, "is none of positional-semantic"),
        (lambda: sectors.minima(ATTENTIVE, ATTENTIVE_SETUP, digits="3"), CostError, "1 to 10 digits"),
        (lambda: sectors.minima(ATTENTIVE, ATTENTIVE_SETUP, digits=2.5), CostError, "1 to 10 digits"),
        (lambda: stationary.minima(ATTENTIVE, ATTENTIVE_SETUP), TypeError, "is no EffectiveAction"),
        (lambda: stationary.minima(HEAD, ATTENTIVE_SETUP), SetupError, "is none of copy-head/softmax"),
        (lambda: stationary.minima(HEAD, HEAD_SETUP, digits="3"), ValueError, "a whole number"),
        (lambda: transitions.transitions(HEAD, HEAD_SETUP), SetupError, "P is what transitions are sought along"),
        (
            lambda: evolution_transitions.transitions(ATTENTIVE, ATTENTIVE_SETUP),
            SetupError,
            "alpha is what transitions are sought along",
        ),
        (lambda: QuasiMonteCarlo(0), ValueError, "at least two points"),
        (lambda: QuasiMonteCarlo(8, replicates=0), ValueError, "one replicate"),
    ],
)
def test_bad_arguments_in_python(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_a_covariance_that_is_not_symmetric_is_refused():
    x, y = Symbol("x", real=True), Symbol("y", real=True)
    of = GaussianAverage(x**2 * y**2, (x, y), (0, 0), [[1, Rational(1, 2)], [Rational(1, 2), 1]])
    assert Ensemble.compile([of], []).covariance(np.zeros(0)).tolist() == [[1, 0.5], [0.5, 1]]
    with pytest.raises(ValueError, match="not symmetric"):
        Ensemble.compile([GaussianAverage(x**2 * y**2, (x, y), (0, 0), [[1, Rational(1, 2)], [0, 1]])], [])


@pytest.mark.parametrize(("value", "error"), [(1.0, np.inf), (1.0, np.nan), (np.nan, 1.0), (np.inf, 1.0)])
def test_a_number_without_an_error_is_none(value, error):
    assert (justified(value, error, 3).text, justified(value, error, 3).bound) == ("nan", "nan")
    assert justified(2.0, 0.02, 3).text == "2.0"


def test_an_update_whose_matrices_are_singular_is_not_defined(monkeypatch):
    def singular(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    evolution, x = Evolution(ATTENTIVE, ATTENTIVE.setup({})), np.array([0.1, 10.0, 0.0, 0.0])
    monkeypatch.setattr(Averaged, "values", singular)
    assert np.isnan(evolution.update(x, 1.0, evolution.ladder[0])).all()

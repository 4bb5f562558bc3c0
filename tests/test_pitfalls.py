"""What people who do this job report as going wrong: one test for each kind, named after it, with the inputs reported.

Most go through a theory file and a verb, as a user would; those about formulas and averages through `emit` and the rules
of integration, those about samplers through `simulate`. Each kind has more tests beside the code that it is about.
"""

import contextlib
import json
import math
import pickle
import subprocess
import sys
import time

import mpmath
import numpy as np
import pytest
import torch
from mpmath import mpf
from sympy import (
    Abs,
    Float,
    Piecewise,
    Rational,
    S,
    Symbol,
    Tuple,
    cos,
    erf,
    erfc,
    exp,
    expand,
    log,
    pi,
    sin,
    sqrt,
)

import spinodal
from derive.action import EffectiveAction, OrderParameter, Parameter
from derive.averages import GaussianAverage
from derive.exact import ExactnessError
from numerics.averages.ensemble import Ensemble
from numerics.averages.rules import Cubature
from numerics.emit import emit
from numerics.fixed_point import Outcome, fixed_point
from simulate.langevin import Langevin, Metropolis, diagnose, occupation
from simulate.run import Noise, drive, threads, value_and_gradient
from tests.numerics import test_emit as large
from tests.simulate.heads import head

x, y, z = Symbol("x", real=True), Symbol("y", real=True), Symbol("z", real=True)

THEORY = """
[theory]
name = "case"
summary = "an input that was reported"
action = "{action}"
window = [{window}]
[control.T]
meaning = "the control"
lower = -10
upper = 10
[order_parameters.m]
meaning = "the order parameter"
lower = {lower}
upper = {upper}
{more}
"""
MIRROR = '[[symmetries]]\nname = "mirror"\nimage = { m = "-m" }'
INFINITE = mpmath.inf


@pytest.fixture
def ask(capsys, tmp_path, monkeypatch):
    """What a verb finds in an action: the document, its exit code under "code"."""
    monkeypatch.chdir(tmp_path)

    def asked(verb, action, *values, window="1, 2", lower=-20, upper=20, more=""):
        text = THEORY.format(action=action, window=window, lower=lower, upper=upper, more=more)
        (tmp_path / "case.toml").write_text(text)
        with pytest.raises(SystemExit) as stopped:
            spinodal.main([verb, "case.toml", *values, "--json"])
        printed = capsys.readouterr()
        assert stopped.value.code in (0, 3), printed.err
        return {**json.loads(printed.out), "code": stopped.value.code}

    return asked


def roots(found):
    return sorted(mpf(point["order_parameters"]["m"]) for point in found["points"])


def values(found, kind):
    return [mpf(entry["value"]) for entry in found["transitions"] if entry["kind"] == kind]


# --- formulas ---


def test_precision_lost_through_floats(ask):
    """A formula that contains 0.1, at 50 digits."""
    (point,) = ask("minima", "T*(m^2/2 - 0.1*m)", "T=1", "--digits", "50")["points"]
    with mpmath.workdps(60):
        assert abs(mpf(point["order_parameters"]["m"]) - mpf(1) / 10) < mpf(10) ** -50
    (order, driver) = OrderParameter(x, "", S(-1), S.One), Parameter(Symbol("T", positive=True), "")
    with pytest.raises(ExactnessError, match=r"0\.1"):
        EffectiveAction("case", x**2 - Float("0.1") * x, (order,), driver, (), (S.One, S(2)))


def test_a_function_that_cannot_travel():
    """Pickled, evaluated in another process and then in this one: the same digits, and mpmath is left as it was."""
    function = emit(exp(x) / 3 + pi, [x], "mpmath")
    code = "import pickle, sys, mpmath; f = pickle.load(sys.stdin.buffer); mpmath.mp.dps = 40; print(repr(f('0.3')))"
    mpmath.mp.dps = 40
    there = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(function), capture_output=True, check=True)
    assert there.stdout.decode().strip() == repr(function("0.3"))
    assert mpmath.mp.dps == 40


OVERFLOW = [
    (log(1 + exp(x)), (1000,), "1000"),
    (log(1 + exp(x)), (-40,), "4.248354255291589e-18"),
    (exp(x) / (exp(x) + exp(y)), (800, 799), "0.7310585786300049"),
    ((1 / (1 + exp(-x))).diff(x), (-800,), "0"),  # below the least double
    (log(erfc(x)), (30,), "-903.9741171106439"),
    (1 - erf(x), (10,), "2.088487583762545e-45"),
]


@pytest.mark.parametrize(("formula", "point", "value"), OVERFLOW, ids=str)
@pytest.mark.filterwarnings("error")
def test_overflow_in_soft_functions(formula, point, value):
    arguments = [x, y][: len(point)]
    assert emit(formula, arguments)(*map(float, point)) == pytest.approx(float(value), rel=1e-14)
    exact = emit(formula, arguments, "mpmath").to_digits(*point, digits=15)
    assert mpmath.almosteq(exact, mpf(value) if mpf(value) else mpmath.exp(-800), 1e-14)


@pytest.mark.filterwarnings("error")
def test_all_branches_evaluated():
    logarithm = Piecewise((log(-x), x < 0), (log(x), True))
    assert emit(logarithm, [x])(np.array([1.0, math.e])).tolist() == [0, 1]
    for target in ("numpy", "mpmath"):
        assert emit(sin(x) / x, [x], target)(0) == 1


@pytest.mark.parametrize("one", [S.One, cos(x) ** 2 + sin(x) ** 2], ids=str)
def test_constants_do_not_broadcast(one):
    for value in (emit(one.simplify(), [x])(np.zeros(3)), emit((x, one.simplify()), [x])(np.zeros(3))[1]):
        assert value.tolist() == [1, 1, 1]


def test_big_expressions():
    """About 12,000 operations: fast to emit, and shared sub-expressions change no digit."""
    formula, point = large.large_expression(12_000), ("0.3", "0.7", "1.1")
    exact = {}
    for share in (True, False):
        begin = time.process_time()
        function = emit(formula, [large.x, large.y, large.a], "mpmath", share)
        assert time.process_time() - begin < 5
        exact[share] = function.to_digits(*point, digits=50)
    with mpmath.workdps(60):
        assert mpmath.almosteq(exact[True], exact[False], mpf(10) ** -50)


def test_cancellation(ask):
    """As observables of a theory at m = 1.01 and m = 1e12."""
    power = str(expand((x - 1) ** 20)).replace("x", "m").replace("**", "^")
    table = '[[observables]]\nname = "watched"\nvalue = "{}"\nmeaning = ""'
    for place, formula, exact in (("1.01", power, "1e-40"), ("1e12", "m*log(1 + 1/m) - 1", "-4.99999999999666667e-13")):
        more = table.format(formula)
        found = ask("minima", f"T*(m - {place})^2", "T=1", lower=1, upper="2e12", more=more)
        (point,) = found["points"]
        assert found["code"] == 0
        assert mpmath.almosteq(mpf(point["observables"]["watched"]), mpf(exact), 1e-14)


# --- roots ---


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("T*(m^3/3 - 2*m^2)", ["0", "4"]),  # F' = z^2 - 4 z
        ("-T*exp(-m)", []),  # F' = exp(-t), which a solver takes for zero at 22
        ("T*(m^3/3 - m^2)", ["0", "2"]),  # F' = z^2 - 2 z
    ],
)
def test_the_lies_of_root_finders(ask, action, expected):
    found = ask("minima", action, "T=1", upper=40)
    assert (roots(found), found["code"]) == ([*map(mpf, expected)], 0)


@pytest.mark.parametrize("digits", [15, 50])
def test_the_lies_of_root_finders_at_a_double_root(ask, digits):
    """(t - 1)^2: to all digits, and flagged."""
    found = ask("minima", "T*(m - 1)^3/3", "T=1", "--digits", str(digits))
    (point,) = found["points"]
    assert (point["kind"], found["status"]) == ("degenerate", "degenerate")
    with mpmath.workdps(digits + 10):
        assert abs(mpf(point["order_parameters"]["m"]) - 1) < mpf(10) ** (1 - digits)


def test_the_trivial_fixed_point(ask):
    """q = tanh(2 q): zero is known, and known to be unstable."""
    found = ask("minima", "m^2/2 - log(cosh(T*m))/T", "T=2", more=MIRROR)
    stable, trivial = found["points"]
    assert (trivial["order_parameters"]["m"], trivial["stability"]) == ("0", "unstable")
    assert stable["stability"] == "stable"
    with mpmath.workdps(20):
        q = mpmath.findroot(lambda q: mpmath.tanh(2 * q) - q, 0.96)
        assert abs(abs(mpf(stable["order_parameters"]["m"])) - q) <= mpf(stable["error"])


def test_near_criticality(ask):
    """q = tanh(1.001 q): .0547..., within an error bound that knows how soft it is; and by iteration."""
    (stable, _) = ask("minima", "T*m^2/2 - log(cosh(T*m))", "T=1.001", more=MIRROR)["points"]
    with mpmath.workdps(30):
        q = mpmath.findroot(lambda q: mpmath.tanh(q * mpf("1.001")) - q, mpf("0.0547"))
        assert abs(abs(mpf(stable["order_parameters"]["m"])) - q) <= mpf(stable["error"]) < mpf("1e-15")
    run = fixed_point(lambda q: np.tanh(1.001 * q), np.array([0.1]), tolerance=1e-6)
    off = run.shift(run.residual * np.abs(run.x))[0]
    assert run.outcome is Outcome.OK
    assert abs(run.x[0] - float(q)) <= 1.5 * off + 1e-9


def test_early_stop():
    """Overlaps of 1e-4 at a tolerance of 1e-4; a warm start; a cycle of period two."""
    small = fixed_point(lambda q: 2e-4 * np.tanh(1e4 * q), np.array([3e-4]), np.array([1e-4]), tolerance=1e-4)
    assert abs(small.x[0] / (2e-4 * math.tanh(1e4 * small.x[0])) - 1) < 1e-4
    warm = fixed_point(lambda q: np.tanh(2 * q), small.x * 0 + 0.957, tolerance=1e-10, slope=np.array([[0.17]]))
    assert (warm.outcome, warm.evaluations < 8) == (Outcome.OK, True)
    cycle = fixed_point(lambda q: 1 / q if q[0] > 1 else 2 + 0 * q, np.array([2.0]), damping=1.0, most=60)
    assert cycle.outcome in (Outcome.CYCLE, Outcome.LONG)
    assert cycle.outcome.message


# --- branches ---


@pytest.mark.parametrize(
    ("action", "window", "expected"),
    [
        ("m^4/4 + T*m^2/2", "-2, 1", {"instability": "0"}),  # x^3 + p x
        ("m^2/2 - log(cosh(T*m))/T", '"1/2", 2', {"instability": "1"}),  # u = tanh(p u)
        ("T*m^2/2 - m^4/4 + m^6/6", '"1/100", 1', {"spinodal": "1/4", "coexistence": "3/16"}),
    ],
)
def test_continuation(ask, action, window, expected):
    found = ask("transitions", action, window=window, lower=-4, upper=4, more=MIRROR)
    assert {entry["kind"] for entry in found["transitions"]} == set(expected)
    for kind, value in expected.items():
        (at,) = values(found, kind)
        assert abs(at - mpf(Rational(value).p) / Rational(value).q) < mpf("1e-14")
    assert found["code"] == 0


def test_mirror_twins(ask):
    """One phase, the symmetry named, and one sign all along a scan."""
    signs = set()
    for temperature in ("1.1", "1.4", "1.9"):
        stable, zero = ask("minima", "m^2/2 - log(cosh(T*m))/T", f"T={temperature}", more=MIRROR)["points"]
        assert (stable["copies"], stable["symmetry"], "copies" in zero) == (2, ["mirror"], False)
        signs.add(mpf(stable["order_parameters"]["m"]) > 0)
    assert len(signs) == 1


def test_a_wrong_symbol_twin(ask):
    twin, driver = Symbol("x", positive=True), Parameter(Symbol("T", positive=True), "")
    with pytest.raises(ExactnessError, match="x"):
        EffectiveAction(
            "case", x**2 - twin * driver.symbol, (OrderParameter(x, "", S(-1), S.One),), driver, (), (S.One, S(2))
        )
    more = '[parameters.lambda]\nmeaning = "a reserved word of Python"\ndefault = 3'
    assert roots(ask("minima", "T*m^2/2 - lambda*m", "T=1", more=more)) == [3]


# --- samplers ---


def bowl(theta):
    return theta.square().sum(-1) / 2


def test_the_scale_of_langevin():
    """T/(1 - eta/2) on a bowl, to four standard errors of 20,000 independent coordinates; and not T."""
    temperature, rate = 0.3, 0.5
    run = drive(Langevin(bowl, temperature, rate, Noise.of([0])), torch.zeros(1, 20_000, dtype=torch.float64), 60)
    squares = run.now["theta"].flatten().square()
    error = float(squares.std()) / math.sqrt(20_000)
    assert abs(float(squares.mean()) - temperature / (1 - rate / 2)) < 4 * error
    assert abs(float(squares.mean()) - temperature) > 10 * error


def test_one_mode_seen():
    """Chains from one well agree on what is wrong; from both they do not, and the occupation says where they are."""
    begin = torch.tensor([[-1.0]] * 4 + [[1.0]] * 4, dtype=torch.float64)

    def draws(theta):
        sampler = Metropolis(lambda t: ((t**2 - 1) ** 2 / 4).sum(-1), 0.01, 0.3, Noise.of(range(8)))
        return drive(sampler, theta, 500, observe=lambda now: {"x": now["theta"][:, 0]}, burn=50, thin=3).draws["x"]

    assert diagnose(draws(begin.abs())).r_hat < 1.05
    both = draws(begin)
    assert diagnose(both).r_hat > 1.5
    assert occupation(both, ["left"] * 4 + ["right"] * 4, 0.0) == {"left": 0.0, "right": 1.0}


def test_a_fully_masked_row():
    """The convention: nan with a warning in NumPy, an error in mpmath; a row that is partly masked has its limit."""
    row = exp(x) / (exp(x) + exp(y))
    with pytest.warns(RuntimeWarning, match="invalid"):
        assert np.isnan(emit(row, [x, y])(-np.inf, -np.inf))
    with pytest.raises(ValueError, match="division by zero"):
        emit(row, [x, y], "mpmath")(-INFINITE, -INFINITE)
    assert emit(row, [x, y])(-np.inf, 0.0) == emit(row, [x, y], "mpmath")(-INFINITE, 0) == 0


def test_cubature_misses_the_peak():
    """The mass of N(3, .01^2) in the plane, and of N(0, 1e-3^2), which is 1; a peak in the integrand, or an error."""
    width = Symbol("width", positive=True)
    plane = GaussianAverage(x * y / 9, (x, y), (3, 3), [[width, 0], [0, width]])
    line = GaussianAverage(Abs(x) / sqrt(2 * width / pi), (x,), (0,), [[width]])
    for node, spread in ((plane, 1e-4), (line, 1e-6)):
        estimate = Cubature(1e-6)(Ensemble.compile([node], (width,)), np.array([spread]))
        assert abs(estimate.values[0] - 1) <= estimate.errors[0] + 1e-12 < 1e-4
    peak = exp(-((x - 3) ** 2 + (y - 3) ** 2) / (2 * width**2)) / (2 * pi * width**2)
    node = GaussianAverage(peak, (x, y), Tuple(0, 0), [[1, 0], [0, 1]])
    exact = math.exp(-9 / (1 + 1e-4)) / (2 * math.pi * (1 + 1e-4))
    with contextlib.suppress(ArithmeticError):  # it says that it missed a peak
        estimate = Cubature(1e-6)(Ensemble.compile([node], (width,)), np.array([0.01]))
        assert abs(estimate.values[0] - exact) <= estimate.errors[0]


def test_threads():
    """One and two threads agree to rounding; a run is on one, and the same seed gives the same bits."""
    problem = head(L=8, V=4, P=200, T="1/10")
    theta = problem.begin("copy")
    with threads(1):
        first, again = (value_and_gradient(problem.energy, theta) for _ in range(2))
    with threads(2):
        other = value_and_gradient(problem.energy, theta)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    torch.testing.assert_close(other, first, rtol=1e-12, atol=1e-12)

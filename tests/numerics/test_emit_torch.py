"""Emission to torch: autograd against derivatives at high precision, at what overflows, branches and limits."""

import pickle
import subprocess
import sys

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from mpmath import mp

from derive import copy_head
from numerics.emit import EmissionError, emit

x, y, a, b = sp.symbols("x y a b")
s = sp.Symbol("s", nonnegative=True)

SMOOTH = {
    "softplus": (sp.log(1 + sp.exp(x)), [x], [(-1000,), (-40,), (0,), (3,), (40,), (1000,)]),
    "softmax": (sp.exp(a) / (sp.exp(a) + sp.exp(b)), [a, b], [(800, 799), (1, 2), (-800, 800), (40, 0)]),
    "log-sum-exp": (sp.log(sp.exp(a) + sp.exp(b) + sp.exp(y)), [a, b, y], [(1000, 999, 998), (-1000, -999, 3)]),
    "log-softmax": (sp.log(sp.exp(a) / (sp.exp(a) + sp.exp(b))), [a, b], [(800, 760), (0, 1), (-900, 900)]),
    "sigmoid": (1 / (1 + sp.exp(-x)), [x], [(-800,), (800,), (0.25,)]),
    "log(cosh)": (sp.log(sp.cosh(x)), [x], [(1000,), (-1000,), (1e-3,), (0,)]),
    "log(erfc)": (sp.log(sp.erfc(x)), [x], [(-30,), (0.3,), (5,)]),
    "erf": (1 - sp.erf(x), [x], [(10,), (-10,), (0.5,)]),
    "Lambert": (sp.LambertW(x), [x], [(-0.36,), (-0.1,), (1e-9,), (1,), (20,), (1e300,)]),
    "lower Lambert": (sp.LambertW(x, -1), [x], [(-0.36,), (-0.1,), (-1e-100,)]),
    "entropy": (-x * sp.log(x) - (1 - x) * sp.log(1 - x), [x], [(1e-9,), (0.5,), (0.75,)]),
    "gamma": (sp.gamma(x) + sp.loggamma(x) * sp.digamma(x), [x], [(0.5,), (4,), (30,)]),
    "powers": (sp.sqrt(x) * x**y + 2**x / 3 + sp.pi * sp.atan2(x, y), [x, y], [(0.5, 2), (3, -1)]),
    "chosen": (sp.Piecewise((sp.log(-x), x < 0), (x * sp.log(x) ** 2, True)), [x], [(-2,), (3,)]),
}


def tensors(values):
    return [torch.tensor(float(value), dtype=torch.float64, requires_grad=True) for value in values]


def through_autograd(function, values):
    """Value, gradient and Hessian of one function of numbers."""
    points = tensors(values)
    value = function(*points)
    gradient = torch.autograd.grad(value, points, create_graph=True)
    hessian = [torch.autograd.grad(slope, points, retain_graph=True) for slope in gradient]
    return [float(number.detach()) for number in (value, *gradient, *(bend for row in hessian for bend in row))]


def to_digits(expression, arguments, values):
    gradient = [sp.diff(expression, argument) for argument in arguments]
    formulas = (expression, *gradient, *(sp.diff(slope, argument) for slope in gradient for argument in arguments))
    return emit(formulas, arguments, "mpmath").to_digits(*map(mpmath.mpf, values), digits=20)


def assert_close(ours, exact, tolerance=1e-12):
    for value, reference in zip(ours, exact, strict=True):
        scale = max(abs(reference), mpmath.mpf("1e-300"))
        assert abs(mpmath.mpf(value) - reference) <= tolerance * scale, (ours, exact)


@pytest.mark.parametrize("name", SMOOTH)
def test_autograd_is_the_derivative_and_so_is_autograd_of_it(name):
    expression, arguments, points = SMOOTH[name]
    function = emit(expression, arguments, "torch")
    for point in points:
        assert_close(through_autograd(function, point), to_digits(expression, arguments, point))


def test_the_action_of_a_theory_with_all_of_its_parameters():
    action = copy_head.softmax.action()
    arguments = [*action.variables, action.control.symbol, *(parameter.symbol for parameter in action.parameters)]
    point = {"s": 2, "P": 330, "L": 32, "V": 8, "gamma_w": 1, "gamma_g": 0.5, "T": 0.25}
    values = [point[argument.name] for argument in arguments]
    function = emit(action.value, arguments, "torch")
    assert_close(through_autograd(function, values), to_digits(action.value, arguments, values))


@pytest.mark.parametrize("value", [sp.sin(x) / x, (sp.exp(x) - 1) / x, x / (sp.exp(x) - 1), sp.tanh(x) / x])
def test_the_derivatives_of_a_limit_are_the_limits_of_the_derivatives(value):
    exact = [float(sp.limit(sp.diff(value, x, order), x, 0)) for order in range(3)]
    assert through_autograd(emit(value, [x], "torch"), [0]) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize(
    ("value", "points", "slopes"),
    [
        (sp.Piecewise((sp.sqrt(x), x > 0), (0, True)), [4, -1], [0.25, 0]),
        (sp.Piecewise((sp.log(-x), x < 0), (sp.log(x), x > 0)), [-2, 4], [-0.5, 0.25]),
        (
            sp.Piecewise((1 / x, (x > 1) | (x < -1)), (x, (x > 0) & sp.Ne(x, 1)), (2 * x, True)),
            [2, 0.5, -0.5],
            [-0.25, 1, 2],
        ),
        (sp.Max(x, sp.exp(x) - 1, 0), [-1, 1], [0, np.e]),
        (sp.Abs(x) ** 3, [-2, 0, 2], [-12, 0, 12]),
    ],
)
def test_a_branch_that_is_not_taken_sends_nothing_back(value, points, slopes):
    at = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(emit(value, [x], "torch")(at).sum(), at)
    assert slope.tolist() == pytest.approx(slopes, rel=1e-14)


def test_beyond_a_kink_the_source_itself_is_differentiated():
    at = torch.tensor([-2.0, 2.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(emit(sp.Abs(x) * x, [x], "torch")(at).sum(), at, create_graph=True)
    assert slope.tolist() == [4, 4]
    assert torch.autograd.grad(slope.sum(), at)[0].tolist() == [-2, 2]


@pytest.mark.parametrize(
    "expression", [sp.log(1 + sp.exp(x)), sp.LambertW(x), sp.Piecewise((x**5, x < 0), (1 / x, True))]
)
def test_the_third_derivative_is_that_of_the_second(expression):
    at = torch.tensor([-0.25, 0.5], dtype=torch.float64, requires_grad=True)
    value = emit(expression, [x], "torch")(at)
    for _ in range(3):
        (value,) = torch.autograd.grad(value.sum(), at, create_graph=True)
    exact = sp.lambdify(x, sp.diff(expression, x, 3))
    assert value.tolist() == pytest.approx([complex(exact(-0.25)).real, complex(exact(0.5)).real], rel=1e-13)


def test_it_broadcasts_and_agrees_as_numpy_does():
    matrix = sp.Matrix([[x, y], [1, x * y]])
    expressions = (sp.log(1 + sp.exp(x)) * y, (sp.Integer(1), matrix), sp.Piecewise((y, x < 0), (3, True)))
    columns, row = np.array([[-40.0], [0.0], [2.0]]), np.array([1.0, 2.0])
    ours = emit(expressions, [x, y], "torch")(torch.tensor(columns, dtype=torch.float32), row)
    theirs = emit(expressions, [x, y])(columns, row)
    assert ours[0].dtype == torch.float64
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-15)
    np.testing.assert_allclose(ours[1][0], theirs[1][0])
    np.testing.assert_allclose(np.array([[entry.numpy() for entry in line] for line in ours[1][1]]), theirs[1][1])
    np.testing.assert_allclose(ours[2], theirs[2])


def test_gradients_are_summed_over_what_was_broadcast():
    u = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    v = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    slopes = torch.autograd.grad(emit(x * y**2, [x, y], "torch")(u, v).sum(), [u, v])
    assert [slope.tolist() for slope in slopes] == [[4, 4, 4], 24]


def test_numbers_alone_and_no_argument_at_all():
    assert emit(x**2 / 4, [x], "torch")(3).item() == 2.25
    assert emit(sp.pi, [], "torch")().item() == np.pi


def test_the_transformations_of_torch():
    at = torch.tensor([-1.5, 0.5], dtype=torch.float64)
    function = emit(sp.Piecewise((x**2 * y, x < 0), (sp.exp(x) * y, True)), [x, y], "torch")
    three = torch.tensor(3.0, dtype=torch.float64)
    slopes = torch.func.vmap(torch.func.grad(function), in_dims=(0, None))(at, three)
    assert slopes.tolist() == pytest.approx([-9, 3 * np.exp(0.5)], rel=1e-14)
    bends = torch.func.vmap(torch.func.jacrev(torch.func.grad(function)), in_dims=(0, None))(at, three)
    assert bends.tolist() == pytest.approx([6, 3 * np.exp(0.5)], rel=1e-14)


def test_definitions_are_seen_through():
    inner = sp.Symbol("inner")
    function = emit(inner**2, [x], "torch", definitions={inner: sp.exp(x)})
    mp.dps = 20
    assert_close(through_autograd(function, [0.5]), [mpmath.exp(1), 2 * mpmath.exp(1), 4 * mpmath.exp(1)])


def test_what_torch_has_not_is_named():
    with pytest.raises(EmissionError, match="torch has no besselj"):
        emit(sp.besselj(0, x), [x], "torch")
    assert np.isnan(emit(sp.LambertW(x), [x], "torch")(-1).item())


def test_it_travels():
    function = emit(sp.Piecewise((sp.gamma(x), x > 0), (x, True)), [x], "torch")
    assert pickle.loads(pickle.dumps(function))(4).item() == pytest.approx(6, rel=1e-14)


def test_torch_is_imported_by_the_first_call_only():
    code = (
        "import sys, sympy; from numerics.emit import emit; x = sympy.Symbol('x'); f = emit(x**2, [x], 'torch');"
        "assert 'torch' not in sys.modules; f(2); assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

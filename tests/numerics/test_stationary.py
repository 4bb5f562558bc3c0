"""Stationary points: all of them, none that is not one, every printed digit right."""

import mpmath
import pytest
from mpmath import mpf

from numerics.points import Kind, Number, Stability, Status
from numerics.stationary import minima
from tests.numerics import zoo

LADDER = (15, 30, 100)


def solve(action, digits=15, **values):
    return minima(action, action.setup(values), digits)


def agree(number, exact, digits):
    """The printed string is right to its last digit, and its bound is a bound."""
    with mpmath.workdps(digits + 20):
        off = abs(mpf(number.text) - exact())
        return off <= mpf(number.bound) <= mpf(10) ** (-digits + 1) * max(abs(exact()), mpf(10) ** -digits)


@pytest.mark.parametrize("digits", LADDER)
def test_every_point_of_the_sixth_order_landau_action(digits):
    points = solve(zoo.landau_six(), digits, a="1/5")
    assert [(p.name, p.kind, p.stability, p.copies) for p in points] == [
        ("zero", Kind.MINIMUM, Stability.STABLE, 1),
        ("ordered", Kind.MINIMUM, Stability.METASTABLE, 2),
        ("ordered", Kind.MAXIMUM, Stability.UNSTABLE, 2),
    ]
    root = mpmath.sqrt
    assert agree(points[1].order_parameters["x"], lambda: root((1 + 1 / root(5)) / 2), digits)
    assert agree(points[2].order_parameters["x"], lambda: root((1 - 1 / root(5)) / 2), digits)
    square = lambda: (1 + 1 / root(5)) / 2  # noqa: E731
    assert agree(points[1].action, lambda: square() / 10 - square() ** 2 / 4 + square() ** 3 / 6, digits)
    assert agree(points[1].hessian[0], lambda: mpf(1) / 5 - 3 * square() + 5 * square() ** 2, digits)
    assert points[0].order_parameters["x"].text == "0"
    assert points[0].error == "0"
    assert points.status is Status.OK


def test_mirror_twins_are_one_phase_and_the_symmetry_is_named():
    (point, _) = solve(zoo.pitchfork(), a="1/2")
    assert (point.copies, point.symmetry) == (2, ("mirror",))
    assert point.order_parameters["x"].value > 0


@pytest.mark.parametrize("digits", LADDER)
def test_close_to_criticality_the_error_bound_holds(digits):
    """q = tanh(1.001 q); the value at 15 digits was checked against an independent bisection."""
    point, trivial = solve(zoo.curie_weiss(), digits, a="1.001")
    x = point.order_parameters["x"]
    assert trivial.kind is Kind.MAXIMUM
    with mpmath.workdps(digits + 20):
        beta = mpf(1001) / 1000
        low, high = mpf(x.text) - mpf(x.bound), mpf(x.text) + mpf(x.bound)
        assert low - mpmath.tanh(beta * low) < 0 < high - mpmath.tanh(beta * high)
    assert x.text.startswith("0.05472301031784")


def test_trivial_point_is_reported_unstable_beside_the_stable_one():
    assert [p.stability for p in solve(zoo.curie_weiss(), a=2)] == [Stability.STABLE, Stability.UNSTABLE]


def test_no_root_is_reported_where_there_is_none():
    points = solve(zoo.rootless(), a=1)
    assert len(points) == 0
    assert points.status is Status.OK


@pytest.mark.parametrize("digits", (15, 50))
def test_double_root_is_flagged_and_still_has_its_digits(digits):
    points = solve(zoo.double_root(), digits, a=1)
    assert [p.kind for p in points] == [Kind.DEGENERATE]
    assert points.status is Status.DEGENERATE
    assert agree(points[0].order_parameters["t"], lambda: mpf(1), digits)


def test_degenerate_points_at_a_fold_and_at_a_pitchfork():
    assert [p.kind for p in solve(zoo.landau_six(), a="1/4")] == [Kind.MINIMUM, Kind.DEGENERATE]
    at_pitchfork = solve(zoo.pitchfork(), a=1)
    assert [p.kind for p in at_pitchfork] == [Kind.DEGENERATE]
    assert at_pitchfork[0].order_parameters["x"].text == "0"


def test_a_root_is_never_a_non_root():
    points = solve(zoo.two_roots(), a=1)
    assert [p.order_parameters["t"].text for p in points] == ["4.00000000000000", "0"]


@pytest.mark.parametrize(("near", "count"), [("0.2499999", 3), ("0.25000001", 1)])
def test_nearly_coinciding_roots_are_told_apart(near, count):
    assert len(solve(zoo.landau_six(), a=near)) == count


@pytest.mark.parametrize("digits", LADDER)
def test_two_order_parameters_with_saddles(digits):
    """For a < sqrt(2): x^2 (x^2 - 1) = a^2 x^2/(1 + x^2)^2 with y = a x/(1 + x^2)."""
    minimum, saddle = solve(zoo.two_wells(), digits, a=1)
    assert (minimum.kind, minimum.copies, saddle.kind, saddle.copies) == (Kind.MINIMUM, 2, Kind.SADDLE, 1)
    with mpmath.workdps(digits + 10):
        x, y = (mpf(minimum.order_parameters[name].text) for name in "xy")
        tolerance = mpf(10) ** (-digits + 2)
        assert abs(y - x / (1 + x**2)) < tolerance
        assert abs(x**3 - x + x * y**2 - y) < tolerance


@pytest.mark.parametrize("scale", ("1", "1e30", "1e400"))
def test_any_magnitude(scale):
    points = solve(
        zoo.extreme(), 20, scale=scale, a=f"{scale.replace('e', 'e') if scale == '1' else scale + '/1000000'}"
    )
    assert points.status is Status.OK
    assert len(points) == (1 if scale == "1" else 3)


def test_number_prints_with_a_bound_that_holds():
    with mpmath.workdps(40):
        third = Number(mpf(1) / 3, mpf("1e-35"), 10)
        off = Number(mpf(2) / 3, mpf("3e-10"), 10)
        exact = Number(mpf(0), mpf(0), 10)
    assert (third.text, third.bound, third.reached) == ("0.3333333333", "5e-11", True)
    assert (off.text, off.bound, off.reached) == ("0.6666666667", "4e-10", False)
    assert (exact.text, exact.bound) == ("0", "0")


def test_control_is_required():
    with pytest.raises(ValueError, match="control"):
        solve(zoo.pitchfork())

"""Special points of two parameters against their exact values, at several numbers of digits."""

from dataclasses import replace

import mpmath
import pytest
from mpmath import mpf
from sympy import Rational, S, Symbol, cosh, exp, log

from derive import copy_head
from derive.action import Parameter, Symmetry
from derive.catalogue import find
from numerics import special_points as special
from numerics.branches import Chart
from numerics.landscape import Landscape
from numerics.points import Status
from numerics.special_points import Frame, solved
from tests.numerics.zoo import MIRROR, action, box, x, y

T, D = Symbol("T", positive=True), Symbol("D", real=True)
a, h, k = Symbol("a", real=True), Symbol("h", real=True), Symbol("k", real=True)


def free(symbol):
    return Parameter(symbol, "a parameter", lower=S(-100))


def frame_of(theory, second, over, axis, scales, digits, **values):
    symbol = next(p.symbol for p in theory.parameters if p.name == second)
    landscape = Landscape(replace(theory, size=symbol), theory.setup(values))
    charts = Chart(tuple(map(mpf, scales)), *map(mpf, over)), Chart((), *map(mpf, axis))
    return Frame(landscape, *charts, digits)


def near(value):
    return tuple(mpf(v) for v in value)


def the(starts, frame):
    """The special point that is found from ``starts``, all at the frame's digits."""
    (found, *again) = [point for start in starts if (point := solved(frame, start)) is not None]
    assert all(other.kind == found.kind for other in again)
    assert found.status is Status.OK
    return found


def agrees(number, exact, digits):
    with mpmath.workdps(digits + 20):
        return abs(number.value - exact()) <= number.error + mpf(10) ** (-digits - 5) and number.reached


def blume_capel():
    weights = 1 + 2 * exp(-D / T) * cosh(x / T)
    value = x**2 / 2 - T * log(weights)
    window = (Rational(1, 100), S.One)
    return action(value, (box(x, 1),), control=T, window=window, parameters=(free(D),), symmetries=(MIRROR,))


@pytest.mark.parametrize("digits", [15, 30, 100])
def test_tricritical_point_of_blume_capel(digits):
    """T = 1/3 and D = (2/3) ln 2, from the second-order side and from between the phases that coexist."""
    frame = frame_of(blume_capel(), "D", (0.1, 1), (0, 0.49), (1,), digits, D="1/4")
    for points in ([near([0])], [near([0]), near([0.1])]):
        point = the(special.merging(frame, points, mpf("0.34"), mpf("0.46")), frame)
        assert (point.kind, point.stable) == (special.TRICRITICAL, True)
        assert agrees(point.x, lambda: mpf(1) / 3, digits)
        assert agrees(point.y, lambda: 2 * mpmath.log(2) / 3, digits)


def test_tricritical_point_with_a_relaxed_direction():
    """(2 - a)/2 x^2 - x^2 y + y^2 + k x^4 + x^6: the bare quartic coefficient loses 1/4 to y, so that k = 1/4."""
    value = (2 - a) * x**2 / 2 - x**2 * y + y**2 + k * x**4 + x**6
    theory = action(value, (box(x, 4), box(y, 9)), control=a, parameters=(free(k),), symmetries=(MIRROR,))
    frame = frame_of(theory, "k", (1, 3), (0, 1), (1, 1), 30, k="1/2")
    point = the(special.merging(frame, [near([0, 0])], mpf("1.9"), mpf("0.3")), frame)
    assert point.kind == special.TRICRITICAL
    assert agrees(point.x, lambda: mpf(2), 30)
    assert agrees(point.y, lambda: mpf(1) / 4, 30)


def test_tricritical_point_of_landau_six():
    theory = find("classical/landau-6").action()
    frame = frame_of(theory, "b", (-1, 1), (-1, 1), (1,), 30)
    point = the(special.merging(frame, [near([0]), near([0.1])], mpf("0.01"), mpf("-0.02")), frame)
    assert (point.kind, point.x.value, point.y.value) == (special.TRICRITICAL, 0, 0)


def test_critical_point_of_curie_weiss_in_a_field():
    theory = find("classical/curie-weiss-in-field").action()
    frame = frame_of(theory, "T", (-1, 1), (0.5, 2), (1,), 30)
    point = the(special.merging(frame, [near([-0.1]), near([0.12])], mpf("0.001"), mpf("0.97")), frame)
    assert (point.kind, point.x.value, point.stable) == (special.CRITICAL_END_POINT, 0, True)
    assert agrees(point.y, lambda: mpf(1), 30)


def test_critical_end_point_of_the_copy_head_in_any_parameter():
    """At the number of symbols that it is solved for, the size is that of the theory's own critical end point."""
    theory = copy_head.softmax.action()
    frame = frame_of(theory, "L", (50, 2000), (10, 60), (2,), 25, L=32, V=8)
    point = the(special.merging(frame, [near([0.8]), near([1.1])], mpf(105), mpf("13.9")), frame)
    assert (point.x.text, point.y.text) == ("104.5549593141569053270946", "13.74152524343017040154859")
    size = Rational(point.y.text)
    frame = frame_of(theory, "V", (50, 2000), (4, 12), (2,), 15, L=size, V=7)
    point = the(special.merging(frame, [near([0.8]), near([1.1])], mpf(105), mpf("7.9")), frame)
    assert agrees(point.y, lambda: mpf(8), 15)


def in_a_field():
    """x^6/6 - x^4/4 + a x^2/2 - h x: three phases at h = 0, a = 3/16, two wings that end at x^2 = 3/10."""
    value = x**6 / 6 - x**4 / 4 + a * x**2 / 2 - h * x
    return action(value, (box(x, 3),), control=h, window=(-S.One, S.One), lower=S(-10), parameters=(free(a),))


def test_triple_point_and_the_ends_of_the_wings():
    frame = frame_of(in_a_field(), "a", (-0.25, 0.25), (0, 0.5), (1,), 30, a="1/4")
    start = special.three_phases(frame, [near([-0.8]), near([0.9]), near([0.05])], mpf("0.001"), mpf("0.2"))
    point = the([start], frame)
    assert (point.kind, point.x.value, point.stable) == (special.TRIPLE, 0, True)
    assert agrees(point.y, lambda: mpf(3) / 16, 30)
    assert len(point.phases) == 3
    wing = the(special.merging(frame, [near([0.45]), near([0.65])], mpf("0.13"), mpf("0.44")), frame)
    assert agrees(wing.y, lambda: mpf(9) / 20, 30)
    assert agrees(wing.x, lambda: mpf(24) / 100 * mpmath.sqrt(mpf(3) / 10), 30)


def test_a_minimum_between_two_maxima_that_merge_is_a_dual_cusp():
    frame = frame_of(in_a_field(), "a", (-0.25, 0.25), (-0.5, 0.5), (1,), 30, a="1/4")
    point = the(special.merging(frame, [near([0.01])], mpf("0.001"), mpf("0.01")), frame)
    assert (point.kind, point.x.value, point.y.value, point.stable) == (special.DUAL_CUSP, 0, 0, False)


def test_a_second_order_line_ends_on_a_first_order_line():
    """x^8/8 - 7 x^6/12 + k x^4/4 + a x^2/2: zero, unstable at a = 0, has the action of x^2 = 7/3 at k = 49/18."""
    value = x**8 / 8 - 7 * x**6 / 12 + k * x**4 / 4 + a * x**2 / 2
    theory = action(value, (box(x, 3),), control=a, window=(-S.One, S.One), lower=S(-10), parameters=(free(k),))
    frame = frame_of(theory, "k", (-0.25, 1), (2, 4), (1.6,), 30, k=3)
    point = the(special.meeting_a_line(frame, [near([1.5]), near([0])], mpf("0.01"), mpf("2.7")), frame)
    assert (point.kind, point.x.value, point.stable) == (special.LINE_END, 0, True)
    assert agrees(point.y, lambda: mpf(49) / 18, 30)
    other = point.phases[0].order_parameters["x"]
    assert agrees(other, lambda: mpmath.sqrt(mpf(7) / 3), 30)


@pytest.mark.parametrize("coupling, kind", [("1/2", special.TETRACRITICAL), ("2", special.BICRITICAL)])
def test_two_instabilities_meet(coupling, kind):
    """Beyond it both orders coexist where the coupling is less than the geometric mean of the quartic coefficients."""
    value = (a - k) * x**2 / 2 + (a + k) * y**2 / 2 + x**4 / 4 + y**4 / 4 + Rational(coupling) * x**2 * y**2 / 2
    mirrors = (MIRROR, Symmetry("other mirror", {y: -y}))
    boxes, window = (box(x, 3), box(y, 3)), (S(-2), S.One)
    theory = action(value, boxes, control=a, window=window, lower=S(-10), parameters=(free(k),), symmetries=mirrors)
    frame = frame_of(theory, "k", (-2, 1), (-0.5, 0.5), (1, 1), 30, k="1/4")
    point = the(special.double_instability(frame, [near([0, 0])], mpf("0.02"), mpf("0.03")), frame)
    assert (point.kind, point.x.value, point.y.value, point.stable) == (kind, 0, 0, True)


def test_a_relaxed_coupling_tells_bicritical_from_tetracritical():
    """z (x^2 + y^2) with z^2/2 g takes as much from the coupling as from the squares of both: 2 - 1 is less than 3 - 1."""
    z = Symbol("z", real=True)
    value = (a - k) * x**2 / 2 + (a + k) * y**2 / 2 + x**4 / 4 + y**4 / 4 + Rational(3, 4) * x**2 * y**2 / 2
    value += z * (x**2 - y**2) / 2 + z**2
    mirrors = (MIRROR, Symmetry("other mirror", {y: -y}))
    boxes, window = (box(x, 3), box(y, 3), box(z, 9)), (S(-2), S.One)
    theory = action(value, boxes, control=a, window=window, lower=S(-10), parameters=(free(k),), symmetries=mirrors)
    frame = frame_of(theory, "k", (-2, 1), (-0.5, 0.5), (1, 1, 1), 15, k="1/4")
    point = the(special.double_instability(frame, [near([0, 0, 0])], mpf("0.02"), mpf("0.03")), frame)
    # Relaxed, z = -(x^2 - y^2)/4 adds -(x^2 - y^2)^2/16: squares 3/4, coupling 3/4 + 1/4 > 3/4, so they exclude each other.
    assert point.kind == special.BICRITICAL


def test_where_the_cubic_coefficient_vanishes():
    """a x^2/2 + k x^3/3 + x^4/4: first order at either sign of k, continuous at k = 0 only."""
    value = a * x**2 / 2 + k * x**3 / 3 + x**4 / 4
    theory = action(value, (box(x, 4),), control=a, window=(-S.One, S.One), lower=S(-10), parameters=(free(k),))
    frame = frame_of(theory, "k", (-1, 1), (-1, 1), (1,), 30, k="1/4")
    point = the(special.merging(frame, [near([0.05])], mpf("0.01"), mpf("0.1")), frame)
    assert (point.kind, point.x.value, point.y.value) == (special.LANDAU_POINT, 0, 0)


def test_a_point_above_another_state_is_not_stable():
    """The tricritical point of landau-6 beside a well that lies lower."""
    value = a * x**2 / 2 + k * x**4 / 4 + x**6 / 6 - 10 * exp(-4 * (x**2 - 9) ** 2)
    theory = action(value, (box(x, 6),), control=a, window=(-S.One, S.One), lower=S(-10), parameters=(free(k),))
    frame = frame_of(theory, "k", (-1, 1), (-1, 1), (1,), 15, k="1/4")
    points = [p for s in special.merging(frame, [near([0.01])], mpf("0.01"), mpf("-0.02")) if (p := solved(frame, s))]
    assert {point.kind for point in points} == {special.TRICRITICAL}
    value = value - 200 * exp(-4 * (x**2 - 9) ** 2)
    deeper = replace(theory, value=value)
    frame = frame_of(deeper, "k", (-1, 1), (-1, 1), (1,), 15, k="1/4")
    points = [p for s in special.merging(frame, [near([0.01])], mpf("0.01"), mpf("-0.02")) if (p := solved(frame, s))]
    assert points
    assert not any(point.stable for point in points)


def test_no_special_point_where_there_is_none():
    """Far from the tricritical point, and at a fold pair that never merges."""
    frame = frame_of(blume_capel(), "D", (0.1, 1), (0, 0.49), (1,), 15, D="1/4")
    assert [solved(frame, s) for s in special.merging(frame, [near([0])], mpf("0.66"), mpf("0.01"))] == [None] * 3

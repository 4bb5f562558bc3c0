"""Stationary points: all of them, none that is not one, every printed digit right."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from sympy import Rational, S, cos, exp, expand, log, loggamma, sin, sqrt

from derive.action import Observable, OrderParameter
from derive.catalogue import find
from numerics import plane, present, stationary, touching
from numerics.cover import cover
from numerics.landscape import BoxError, Landscape
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


def test_digits_are_positive():
    with pytest.raises(ValueError, match="digits = 0"):
        solve(zoo.pitchfork(), 0, a=2)


# --- one order parameter: proved complete, or said not to be ----------------------------------------------------------

x, y, z, a = zoo.x, zoo.y, zoo.z, zoo.a


@pytest.mark.parametrize(("shift", "count"), [(1, 0), (0, 1), (-1, 2)])
def test_a_double_root_is_told_from_none_and_from_two(shift, count):
    """F' = (x - 1)^2 + shift 1e-24."""
    points = solve(zoo.action(a * ((x - 1) ** 3 / 3 + Rational(shift, 10**24) * x), (zoo.box(x, 4),)), a=1)
    assert len(points) == count
    assert points.status is (Status.OK if shift else Status.DEGENERATE)
    (note,) = points.notes  # a cubic has no lowest value
    assert note.startswith("the action falls beyond the lower bound of x")


def test_every_wrinkle_is_found():
    """F' = x/50 - sin(60 x), counted by its sign changes on a million points, none of them 0."""
    slope = np.diff(np.sign((grid := np.linspace(-2.0625, 2.0625, 10**6)) / 50 - np.sin(60 * grid)))
    points = solve(zoo.action(a * (x**2 / 100 + cos(60 * x) / 60), (zoo.box(x, 2),)), a=1)
    assert len(points) == np.count_nonzero(slope)
    assert points.status is Status.OK
    # The box ends on wrinkles that go down, and the search a little further out.
    assert [("falls beyond" in note, "lies outside" in note) for note in points.notes] == 2 * [(True, False)] + 2 * [
        (False, True)
    ]


@pytest.mark.parametrize("width", [10**6, 10**12])
def test_a_narrow_well_is_found(width):
    """The minimum that a Gaussian of width 1/width digs at 1, and the maximum beside it."""
    points = solve(zoo.action(a * x**2 / 2 - exp(-(((x - 1) * width) ** 2)), (zoo.box(x, 4),)), a=1)
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.MINIMUM, Kind.MAXIMUM]
    assert abs(points[0].order_parameters["x"].value - 1) < mpf(1) / width
    assert points.status is Status.OK


def test_a_flat_critical_point_is_one_degenerate_point():
    """x = tanh x."""
    (point,) = solve(zoo.curie_weiss(), a=1)
    assert (point.kind, point.order_parameters["x"].text) == (Kind.DEGENERATE, "0")


@pytest.mark.parametrize("power", range(4, 9))
def test_a_flat_point_of_any_order_anywhere(power):
    """At no dyadic number, so that no cell of any cover is bounded by it."""
    points = solve(zoo.action(a * (x - Rational(1, 3)) ** power / power, (zoo.box(x, 2),)), a=1)
    assert [p.kind for p in points] == [Kind.DEGENERATE]
    assert abs(points[0].order_parameters["x"].value - mpf(1) / 3) < mpf("1e-15")
    assert points.status is Status.DEGENERATE


@pytest.mark.parametrize("value", [(x - 1) ** 6, expand((x - 1) ** 6), expand((x - 1) ** 5)], ids=str)
def test_a_flat_point_whose_terms_cancel(value):
    points = solve(zoo.action(a * value, (zoo.box(x, 4),)), a=1)
    assert [(p.kind, p.order_parameters["x"].text) for p in points] == [(Kind.DEGENERATE, "1.00000000000000")]
    assert points.status is Status.DEGENERATE


def test_a_flat_point_beside_others():
    points = solve(zoo.action(a * (x - 1) ** 6 * (x + 1) ** 2 / 6, (zoo.box(x, 4),)), a=1)
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.DEGENERATE, Kind.MAXIMUM]


@pytest.mark.parametrize("beside", [30, 60, 200])
def test_a_control_of_many_digits_is_not_rounded(beside):
    """The minima of the pitchfork at a = 1 - 10^-beside lie at the root of 10^-beside."""
    minimum, maximum = solve(zoo.pitchfork(), a=1 - Rational(1, 10**beside))
    assert (minimum.kind, maximum.kind) == (Kind.MINIMUM, Kind.MAXIMUM)
    assert abs(minimum.order_parameters["x"].value * mpf(10) ** (beside // 2) - 1) < mpf("1e-14")


def test_a_wall_where_the_slope_is_infinite_is_no_point():
    """x log x at 0."""
    wall = OrderParameter(x, "an order parameter", S.Zero, S(10), edge=True)
    points = solve(zoo.action(a * x * log(x), (wall,)), a=1)
    assert [p.order_parameters["x"].text for p in points] == ["0.367879441171442"]
    assert "not proved" in points.notes[0]


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (a * x**2 / 2 + x**4 / 4, [Kind.MINIMUM]),
        ((a - 2) * x**2 / 2 + x**4 / 4, [Kind.MINIMUM, Kind.MAXIMUM]),
        (a * x**3 + x**4, [Kind.DEGENERATE]),
    ],
    ids=str,
)
def test_a_point_on_a_wall(value, kinds):
    wall = OrderParameter(x, "an order parameter", S.Zero, S(10), edge=True)
    points = solve(zoo.action(value, (wall,)), a=1)
    assert [point.kind for point in points] == kinds
    assert points[-1].order_parameters["x"].value == 0


@pytest.mark.parametrize(
    ("value", "wall", "others"),
    [
        (a * x - x**2 + x**3 / 3, Stability.METASTABLE, [Kind.MINIMUM, Kind.MAXIMUM]),  # at a = 1/2; the slope is a
        (8 * a * x / 5 - x**2 + x**3 / 3, Stability.STABLE, [Kind.MINIMUM, Kind.MAXIMUM]),
        (x**2 / 2 + a * x ** Rational(5, 2), Stability.STABLE, []),  # no bend there is finite but the second
        (x**2 / 2 - a * x ** Rational(5, 2), Stability.STABLE, [Kind.MAXIMUM]),
    ],
    ids=str,
)
def test_a_wall_to_which_the_action_falls_is_a_minimum(value, wall, others):
    points = solve(zoo.action(value, (OrderParameter(x, "an order parameter", S.Zero, S(10), edge=True),)), a="1/2")
    (found,) = (point for point in points if not point.order_parameters["x"].value)
    assert (found.name, found.kind, found.stability, found.hessian) == ("wall", Kind.MINIMUM, wall, ())
    assert [point.kind for point in points if point is not found] == others
    assert "minimum on the wall" in points.notes[0]


FLAT = [
    (a, (zoo.box(x, 4),), []),
    pytest.param(a * (sin(x) ** 2 + cos(x) ** 2), (zoo.box(x, 4),), [], marks=pytest.mark.slow),
    (a * x**2, (zoo.box(x, 4), zoo.box(y, 4)), []),
    ((x**2 + y**2 - a) ** 2 / 4, (zoo.box(x, 4), zoo.box(y, 4)), [Kind.MAXIMUM]),
    ((x**2 + 3 * y**2 - a) ** 2 / 4, (zoo.box(x, 4), zoo.box(y, 4)), [Kind.MAXIMUM]),
]


@pytest.mark.parametrize(("value", "order_parameters", "isolated"), FLAT)
def test_points_that_fill_a_curve_or_an_interval_are_not_listed(value, order_parameters, isolated):
    points = solve(zoo.action(value, order_parameters), a=1)
    assert ([p.kind for p in points], points.status) == (isolated, Status.DEGENERATE)
    assert "fill a curve" in points.notes[0]


# --- several order parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [x**3 - 3 * x * y**2, x**4 + y**4, x**3 / 3 + y**2, x**2 * y**2],
    ids=["monkey", "quartic", "fold", "cross"],
)
def test_degenerate_points_of_any_degree(value):
    (point,) = (points := solve(zoo.action(a * value, (zoo.box(x, 4), zoo.box(y, 4))), a=1))
    assert point.kind is Kind.DEGENERATE
    assert points.status is Status.DEGENERATE


@pytest.mark.parametrize("value", [(x - 1) ** 3 + y**2, (x + y / 2 - 1) ** 3 + (y - x / 3) ** 2], ids=str)
def test_a_fold_anywhere_in_the_plane(value):
    """Its degree is zero: no sign of the gradient on any grid tells of it."""
    (point,) = (points := solve(zoo.action(a * value, (zoo.box(x, 4), zoo.box(y, 4))), a=1))
    at = [point.order_parameters[name].value for name in "xy"]
    assert point.kind is Kind.DEGENERATE
    assert all(abs(slope.subs(dict(zip((x, y), at, strict=True)))) < 1e-12 for slope in (value.diff(x), value.diff(y)))
    assert points.status is Status.DEGENERATE


@pytest.mark.parametrize(("shift", "kinds"), [(1, []), (-1, [Kind.MINIMUM, Kind.SADDLE])])
def test_a_pair_beside_a_fold_anywhere_in_the_plane(shift, kinds):
    value = (x - 1) ** 3 + y**2 + shift * x / 10**8
    points = solve(zoo.action(a * value, (zoo.box(x, 4), zoo.box(y, 4))), a=1)
    assert ([p.kind for p in points], points.status, points.notes) == (kinds, Status.OK, ())


@pytest.mark.parametrize(("shift", "stiffness"), [("1/7", 1000), ("1", 1000), ("-5/3", 30)])
def test_a_root_on_an_axis_in_a_stiff_valley(shift, stiffness):
    """Newton's first step leads far along the valley, out of the thin cell around the axis, and the next one back."""
    points = solve(zoo.cubic(-1, Rational(shift), stiffness), field=Rational(1, 5))
    assert sorted(point.order_parameters["y"].value * 3 for point in points)[0] == 0
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.MINIMUM, Kind.SADDLE]
    assert points.status is Status.OK


def test_a_flat_point_in_the_plane_is_one():
    (point,) = solve(zoo.action(a * ((x - 1) ** 4 + y**4), (zoo.box(x, 4), zoo.box(y, 4))), a=1)
    assert point.kind is Kind.DEGENERATE
    assert abs(point.order_parameters["x"].value - 1) < point.order_parameters["x"].error < 1e-2


def test_an_action_that_is_zero_at_a_minimum_has_its_digits():
    """Himmelblau's function: four minima at zero, four saddles, one maximum."""
    value = (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2
    points = solve(zoo.action(a * value, (zoo.box(x, 6), zoo.box(y, 6))), a=1)
    assert [p.kind for p in points] == 4 * [Kind.MINIMUM] + 4 * [Kind.SADDLE] + [Kind.MAXIMUM]
    assert {p.action.text for p in points[:4]} == {"0"}
    assert points.status is Status.OK


def test_three_order_parameters_come_without_a_claim():
    value = a * ((x**2 - 1) ** 2 + y**2 + (z - x) ** 2)
    points = solve(zoo.action(value, (zoo.box(x, 4), zoo.box(y, 4), zoo.box(z, 4))), a=1)
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.MINIMUM, Kind.SADDLE]
    assert "not proved" in points.notes[0]


HEAD = [
    ("copy", Kind.MINIMUM, Stability.STABLE, 2),
    ("anti-copy", Kind.MINIMUM, Stability.METASTABLE, 2),
    ("anti-copy", Kind.SADDLE, Stability.UNSTABLE, 2),
    ("anti-copy", Kind.SADDLE, Stability.UNSTABLE, 2),
    ("zero", Kind.MAXIMUM, Stability.UNSTABLE, 1),
]


def linear(digits=10, **values):
    return solve(find("copy-head/linear").action(), digits, V=8, **values)


def classified(points):
    return [(p.name, p.kind, p.stability, p.copies) for p in points]


@pytest.mark.parametrize(
    "samples", ["1e20", "1e300", *(pytest.param(power, marks=pytest.mark.slow) for power in ("1e15", "1e18", "1e30"))]
)
def test_points_on_scales_hundreds_of_decades_apart(samples):
    """What is independent of P for large P stays: the copy minimum and both saddles along their axis.

    A curved valley, along which the action changes by 10^-10 of what it does across, may be too long to be proven empty.
    """
    points = linear(L=256, P=samples)
    assert points.status is Status.OK
    assert all(note.startswith(stationary.DOUBT) for note in points.notes)
    assert classified(points) == HEAD
    copy, _, saddle, pooling, _ = points
    assert abs(copy.order_parameters["u"].value / mpf("0.0263037137") - 1) < mpf("1e-6")
    assert abs(saddle.order_parameters["c"].value + mpf("0.02544081844")) < mpf("1e-10")
    assert abs(pooling.order_parameters["u"].value - mpf("0.2369584581")) < mpf("1e-6")


def test_weak_weight_decay_is_a_change_of_units():
    """P -> k P, gamma_w -> k^2 gamma_w multiplies the action by k and the scores by sqrt(k)."""
    large, small = linear(L=256, P="1e18"), linear(L=256, P="1000", gamma_w="1e-30")
    assert classified(small) == classified(large) == HEAD
    for big, little in zip(large, small, strict=True):
        assert big.action.value == 0 or abs(big.action.value / little.action.value / mpf("1e15") - 1) < mpf("1e-9")
        assert [h.text for h in big.hessian] == [h.text for h in little.hessian]


@pytest.mark.parametrize(
    ("samples", "place"),
    [("62.0572918492785110921937905", "9.744837968e-15"), ("62.0572918492785110921937904543", "1.342956339e-16")],
)
def test_a_hair_above_the_pooling_instability(samples, place):
    """P* = 62.05729184927851109219379045425..., from `transitions` at 40 digits."""
    points = linear(L=256, P=samples)
    assert [(p.name, p.kind, p.copies) for p in points] == [
        ("pooling", Kind.MINIMUM, 2),
        ("zero", Kind.SADDLE, 1),
    ]
    assert points[0].order_parameters["u"].text == place
    assert points.status is Status.OK


def test_a_cover_that_the_polished_points_contradict_is_not_ok(monkeypatch):
    """With the control rounded to 25 digits, zero seems to be a minimum still."""
    monkeypatch.setattr(stationary, "_written_digits", lambda _: 0)
    assert linear(L=256, P="62.0572918492785110921937904543").status is Status.COVER


@pytest.mark.parametrize(("length", "samples"), [("1e20", "1e22"), ("1e50", "1e52")])
def test_long_sequences_have_a_pooling_minimum(length, samples):
    points = linear(L=length, P=samples)
    assert [(p.name, p.kind, p.copies) for p in points] == [
        ("pooling", Kind.MINIMUM, 2),
        ("zero", Kind.SADDLE, 1),
    ]
    assert points.status is Status.OK


def test_the_copy_minimum_of_the_softmax_head_at_extreme_sample_numbers():
    points = solve(find("copy-head/softmax").action(), L=32, V=8, P="1e300")
    assert [(p.name, p.kind) for p in points] == [("copy", Kind.MINIMUM)]


@pytest.mark.parametrize(
    ("length", "fold", "beside", "count"),
    [
        (256, "14069.01583771881806071939", "-1e-9", 5),
        (256, "14069.01583771881806071939", "1e-6", 9),
        (256, "14069.01583771881806071939", "1e-12", 9),
        (716, "60659.41067770103052999462", "1e-12", 9),
        (716, "60659.41400806419844739034", "1e-9", 5),
        (2000, "283489.6039112420915740258", "-1e-9", 9),
    ],
)
def test_pairs_beside_a_fold_in_a_stiff_valley(length, fold, beside, count):
    """Folds of the linear head to 25 digits, as `transitions` gives them; the pair parts as the square root."""
    landscape = Landscape(*((action := find("copy-head/linear").action()), action.setup({"L": length, "V": 8})))
    with mpmath.workdps(40):
        covered = cover(landscape, mpf(fold) * (1 + mpf(beside)))
    assert (len(covered.points), covered.complete) == (count, True)


@pytest.mark.parametrize("stiffness", (1, 100, 10**6))
@pytest.mark.parametrize("apart", ("1e-2", "1e-6"))
def test_a_pair_at_an_end_of_a_valley_across_an_axis(stiffness, apart):
    """It lies in one cell, beside a row of cells that are thin as the grid is geometric towards the axis."""
    points = solve(zoo.cubic(S(-1), S(1), S(stiffness)), field=apart)
    assert (points.status, points.notes) == (Status.OK, ())
    with mpmath.workdps(40):
        root = mpmath.sqrt(1 - 4 * mpf(apart))
        exact = sorted((1 + u, u / 3) for u in (mpf(0), (1 - root) / 2, (1 + root) / 2))
        found = sorted(tuple(p.order_parameters[name].value for name in "xy") for p in points)
        assert len(found) == 3
        assert all(
            abs(v - w) < mpf("1e-15") for p, q in zip(found, exact, strict=True) for v, w in zip(p, q, strict=True)
        )


@pytest.mark.parametrize(
    ("narrow", "place"),
    [(1000, ("5/2", "3/2")), (10**4, ("1/3", "2/7")), (2 * 10**4, ("3/2", "3/2")), (10**5, ("1", "1"))],
)
def test_a_well_much_narrower_than_a_cell_is_found(narrow, place):
    """With its saddle it leaves the degree around every cell of the grid as it is."""
    x, y = zoo.x, zoo.y
    u, v = map(Rational, place)
    well = exp(-narrow * ((x - u) ** 2 + (y - v) ** 2))
    points = solve(zoo.action((x**2 + y**2) / 2 - 6 * well, (zoo.box(x, 3), zoo.box(y, 3))), a=1)
    assert (points.status, points.notes) == (Status.OK, ())
    lowest, middle = points[0], points[1]
    assert {point.kind for point in (lowest, middle)} == {Kind.MINIMUM}
    assert len(points) == 3
    for name, at in zip("xy", (u, v), strict=True):
        assert abs(lowest.order_parameters[name].value - at) < mpf(1) / narrow
    depth = mpf(6) - mpf((u**2 + v**2).p) / (u**2 + v**2).q / 2
    assert abs(lowest.action.value + depth) < mpf(5) / narrow


def test_where_cells_are_left_unlooked_at_no_cover_is_complete(monkeypatch):
    action = zoo.cubic(S(-1), S(1), S(1))
    landscape = Landscape(action, action.setup({"field": "1/100"}))
    assert cover(landscape, landscape.control()).complete
    monkeypatch.setattr(plane, "_PRUNED_CELLS", 5)
    monkeypatch.setattr(touching, "_MOST_CELLS", 5)
    assert cover(landscape, landscape.control()).complete is None


# --- an action that is real on less than the box that is searched -----------------------------------------------------


def test_spins_between_the_walls_of_their_entropy():
    points = solve(zoo.bragg_williams(), a="1/2")
    assert sorted(p.kind for p in points) == sorted([Kind.MINIMUM, Kind.MINIMUM, Kind.MAXIMUM])
    for point in points[:2]:
        m = point.order_parameters["x"]
        with mpmath.workdps(30):
            exact = mpmath.findroot(lambda t: t - mpmath.tanh(2 * t), mpf("0.96")) * mpmath.sign(m.value)
            assert abs(mpf(m.text) - exact) <= mpf(m.bound) < mpf("1e-13")


@pytest.mark.parametrize("temperature", ("1/30", "1/100"))
def test_minima_that_double_precision_does_not_tell_from_a_wall(temperature):
    """1 - m is 2 exp(-2/T) to its own square: F'' = T/(1 - m^2) - 1."""
    points = solve(zoo.bragg_williams(), a=temperature)
    with mpmath.workdps(250):
        off = 2 / (mpmath.exp(2 / mpf(Rational(temperature).p) * Rational(temperature).q) + 1)
        exact = mpf(Rational(temperature).p) / Rational(temperature).q / (off * (2 - off)) - 1
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.MINIMUM, Kind.MAXIMUM]
    assert all(abs(p.hessian[0].value / exact - 1) < mpf("1e-13") for p in points[:2])


def test_a_square_root_ends_at_its_branch_points():
    points = solve(zoo.action(-(x**2) / 2 - a * sqrt(1 - x**2), (zoo.box(x, 1),)), a="1/2")
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.MINIMUM, Kind.MAXIMUM]
    assert all(
        agree(p.order_parameters["x"], lambda s=s: s * mpmath.sqrt(mpf(3)) / 2, 15)
        for p, s in zip(points, (-1, 1), strict=False)
    )


def test_where_the_action_is_not_real_between_its_bounds_the_message_says_where():
    with pytest.raises(
        BoxError, match=r"at x = .*, a = .*, between the declared bounds, where the action must be real"
    ):
        solve(zoo.action(x**2 + a * log(x - 1), (zoo.box(x, 2),)), a=1)


# --- what is printed --------------------------------------------------------------------------------------------------


def test_every_number_printed_has_a_bound_and_must_be_reached():
    ratio = Observable("ratio", x / (x + 1), "an observable that is undefined at -1")
    (point,) = solve(zoo.action(a * (x + 1) ** 2, (zoo.box(x, 4),), observables=(ratio,)), a=1)
    document = present.point_json(point)
    assert document["observables"] == document["observable_errors"] == {"ratio": None}
    assert (document["hessian"], document["hessian_errors"]) == (["2.00000000000000"], ["0"])
    assert point.reached
    loose = Number(mpf(2), mpf("1e-3"), 15)
    assert not replace(point, hessian=(loose,)).reached
    assert not replace(point, observables={"ratio": loose}).reached


def test_a_root_that_is_flat_to_all_orders_is_within_its_error():
    """exp(-1/x^2): Newton's steps are x^3/2, small at once at any precision."""
    (point,) = solve(zoo.action(exp(-1 / x**2) * a, (zoo.box(x, 1),)), a=1)
    at = point.order_parameters["x"]
    assert abs(at.value) <= at.error


@pytest.mark.parametrize(
    ("beside", "status"),
    [(exp(-1 / x**2), Status.COVER), (1 / (x - S.One / 3), Status.OK), (1 / (1 + exp(1 / (x - S.One / 3))), Status.OK)],
    ids=["a zero", "a pole", "a jump"],
)
def test_a_zero_of_the_slope_where_it_has_no_value_is_missing(beside, status):
    """A pole and a jump change the sign of the slope as well."""
    points = solve(zoo.action(a * (x**2 / 2 - x**4 / 4) + beside, (zoo.box(x, 2),)), a=1)
    assert points.status is status
    assert ("the stationary point there is not listed" in " ".join(points.notes)) == (status is Status.COVER)


def test_a_box_of_many_decades():
    points = solve(zoo.action(a * (x**4 / 4 - x**2 / 2 + x / 10), (zoo.box(x, S(10) ** 300),)), a=1)
    assert [p.kind for p in points] == [Kind.MINIMUM, Kind.MINIMUM, Kind.MAXIMUM]


def test_a_declared_bound_beside_the_end_of_the_domain_is_not_passed():
    """loggamma(x) is not real below zero, where its slope is: digamma(x) = 1 at 3.2031714683769..."""
    x = zoo.x
    action = zoo.action(loggamma(x) - zoo.a * x, (OrderParameter(x, "x", Rational(1, 100), S(50)),), lower=S(-10))
    (point,) = solve(action, a=1)
    with mpmath.workdps(30):
        exact = mpmath.findroot(lambda x: mpmath.digamma(x) - 1, 3.2)
        assert abs(point.order_parameters["x"].value - exact) < mpf("1e-14")

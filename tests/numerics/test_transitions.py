"""Transitions against exact answers, to all digits asked for."""

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

import mpmath
import pytest
from mpmath import mpf
from sympy import Eq, LambertW, Ne, Rational, S, Symbol, cos, cosh, exp, log

from derive.action import EffectiveAction, OrderParameter, Parameter, Phase, Symmetry
from derive.catalogue import find
from numerics import branches
from numerics import transitions as solver
from numerics.branches import survey
from numerics.landscape import BoxError, Landscape
from numerics.points import Kind, Status, TransitionKind
from numerics.stationary import minima
from numerics.transitions import _polished, transitions
from tests.numerics import zoo

LADDER = (15, 30, 100)
COEXISTENCE, SPINODAL = TransitionKind.COEXISTENCE, TransitionKind.SPINODAL
INSTABILITY, CROSSOVER, END = TransitionKind.INSTABILITY, TransitionKind.CROSSOVER, TransitionKind.CRITICAL_END_POINT


def solve(action, digits=15, over=None, **values):
    return transitions(action, action.setup(values), digits, over)


def texts(found, digits):
    return [replace(entry.value, digits=digits).text for entry in found]


def agree(number, exact, digits):
    with mpmath.workdps(digits + 20):
        value = exact()
        bound = mpf(number.bound)
        return abs(mpf(number.text) - value) <= bound <= mpf(10) ** (-digits + 1) * max(abs(value), mpf(10) ** -digits)


@pytest.mark.parametrize("digits", LADDER)
def test_first_order_transition_and_its_spinodal(digits):
    found = solve(zoo.landau_six(), digits)
    assert [(t.kind, t.order) for t in found] == [(COEXISTENCE, "first"), (SPINODAL, None)]
    coexistence, spinodal = found
    assert agree(coexistence.value, lambda: mpf(3) / 16, digits)
    assert [phase.name for phase in coexistence.phases] == ["ordered", "zero"]
    assert agree(coexistence.phases[0].order_parameters["x"], lambda: mpmath.sqrt(mpf(3)) / 2, digits)
    assert agree(spinodal.value, lambda: mpf(1) / 4, digits)
    assert spinodal.phase == "ordered"
    assert agree(spinodal.phases[0].order_parameters["x"], lambda: mpmath.sqrt(mpf(1) / 2), digits)
    assert agree(spinodal.phases[0].action, lambda: mpf(1) / 48, digits)
    assert found.status is Status.OK


@pytest.mark.parametrize("action", (zoo.pitchfork, zoo.curie_weiss))
@pytest.mark.parametrize("digits", LADDER)
def test_second_order_transition(action, digits):
    found = solve(action(), digits)
    assert [(t.kind, t.order) for t in found] == [(INSTABILITY, "second")]
    assert agree(found[0].value, lambda: mpf(1), digits)
    assert found.status is Status.OK


def test_the_order_of_an_instability_is_determined_not_assumed():
    found = solve(zoo.shifted_landau_six(), 30)
    assert [(t.kind, t.order) for t in found] == [(INSTABILITY, "first"), (COEXISTENCE, "first"), (SPINODAL, None)]
    assert texts(found, 12) == ["1.00000000000", "1.18750000000", "1.25000000000"]


@pytest.mark.parametrize(("k", "order"), [("1/3", "second"), ("1/5", "first")])
def test_order_with_a_second_order_parameter_relaxed(k, order):
    """The quartic coefficient k is lowered by 1/4; on its own it is positive in both cases."""
    found = solve(zoo.coupled_pitchfork(), 30, k=k)
    instability = next(t for t in found if t.kind is INSTABILITY)
    assert instability.order == order
    assert agree(instability.value, lambda: mpf(2), 30)
    assert any(t.kind is SPINODAL for t in found) == (order == "first")


def test_vanishing_quartic_coefficient_is_reported_as_such():
    found = solve(zoo.coupled_pitchfork(), k="1/4")
    assert [(t.kind, t.order, t.status) for t in found] == [(TransitionKind.TRICRITICAL, None, Status.UNDECIDED)]
    assert found.status is Status.UNDECIDED


@pytest.mark.parametrize("digits", LADDER)
def test_spinodals_in_a_field_in_closed_form(digits):
    """h = -+ (b m - artanh m) with m^2 = 1 - 1/b; the two phases coexist at h = 0."""
    found = solve(zoo.curie_weiss_in_field(), digits, b="3/2")
    assert [(t.kind, t.phase) for t in found] == [(SPINODAL, "up"), (COEXISTENCE, None), (SPINODAL, "down")]

    def edge():
        m = mpmath.sqrt(mpf(1) / 3)
        return mpf(3) / 2 * m - mpmath.atanh(m)

    assert agree(found[2].value, edge, digits)
    assert agree(found[0].value, lambda: -edge(), digits)
    assert found[1].value.text == "0"
    assert [phase.name for phase in found[1].phases] == ["down", "up"]


@pytest.mark.parametrize("digits", LADDER)
def test_critical_end_point_from_the_first_order_side(digits):
    found = solve(zoo.cusp(), digits, size=5)
    assert [(t.kind, t.phase) for t in found] == [
        (SPINODAL, "high"),
        (COEXISTENCE, None),
        (SPINODAL, "low"),
        (END, None),
    ]
    assert texts(found, 6) == ["1.00000", "3.00000", "5.00000", "3.00000"]
    assert agree(found[0].value, lambda: mpf(1), digits)
    assert agree(found[-1].value, lambda: mpf(3), digits)
    assert agree(found[-1].at["size"], lambda: mpf(2), digits)


@pytest.mark.parametrize(
    ("length", "digits"),
    [
        *(("5", digits) for digits in LADDER),
        ("1", 100),
        *(pytest.param("1", n, marks=pytest.mark.slow) for n in (15, 30)),
    ],
)
def test_critical_end_point_of_two_order_parameters(digits, length):
    """From the first-order side directly, from the continuous side through a larger size."""
    end = solve(zoo.cusp_along_a_diagonal(), digits, size=length).of("critical-end-point")
    assert agree(end.value, lambda: mpf(3), digits)
    assert agree(end.at["size"], lambda: mpf(2), digits)
    assert [number.text for number in end.phases[0].order_parameters.values()] == ["0", "0"]


@pytest.mark.parametrize(("length", "first_order"), [("2.01", True), ("1.99", False)])
def test_coexistence_on_one_side_of_the_end_point_only(length, first_order):
    found = solve(zoo.cusp_along_a_diagonal(), size=length)
    assert any(t.kind is COEXISTENCE for t in found) == first_order


def test_a_fold_of_a_state_that_is_never_lowest_has_no_end_point():
    found = solve(zoo.metastable_fold(), size=2)
    assert [t.kind for t in found] == [SPINODAL]
    assert agree(found[0].value, lambda: mpmath.sqrt(24), 15)
    assert "no value of size with a critical end point was found" in found.notes


@pytest.mark.parametrize("digits", LADDER)
def test_continuous_side_has_the_steepest_point_and_the_end_point(digits):
    found = solve(zoo.cusp(), digits, size="3/2")
    assert [t.kind for t in found] == [CROSSOVER, END]
    assert agree(found[0].value, lambda: mpf(3), digits)
    assert agree(found[1].at["size"], lambda: mpf(2), digits)
    assert "continuous" in found.notes[0]


@pytest.mark.parametrize("above", ("1e-2", "1e-4", "1e-6"))
def test_spinodals_close_to_the_end_point(above):
    found = solve(zoo.cusp(), 30, size=f"{2 + float(above):.7f}")
    assert [t.kind for t in found] == [SPINODAL, COEXISTENCE, SPINODAL, END]
    assert agree(found[2].value, lambda: 3 + 2 * (mpf(above) / 3) ** mpf("1.5"), 30)


@pytest.mark.parametrize("action", (zoo.cusp, zoo.cusp_along_a_diagonal))
@pytest.mark.parametrize("above", ("1e-3", "1e-12", "1e-30"))
def test_the_cusp_is_resolved_however_close_to_the_end_point(action, above):
    """Spinodals at a = 3 -+ 2 (above/3)^(3/2), coexistence of s = -+ sqrt(above) at a = 3; s is the mean of x and y."""
    found = solve(action(), 50, size=2 + Fraction(above))
    assert [t.kind for t in found] == [SPINODAL, COEXISTENCE, SPINODAL, END]
    assert found.status is Status.OK
    for spinodal, side in ((found[0], -1), (found[2], 1)):
        assert agree(spinodal.value, lambda side=side: 3 + side * 2 * (mpf(above) / 3) ** mpf("1.5"), 50)
    assert agree(found[1].value, lambda: mpf(3), 50)
    for phase, side in zip(found[1].phases, (-1, 1), strict=True):
        parts = [number.value for number in phase.order_parameters.values()]
        assert mpmath.almosteq(sum(parts) / len(parts), side * mpmath.sqrt(mpf(above)), rel_eps=1e-13)


def test_two_phases_of_one_name_are_told_apart():
    found = solve(zoo.cusp_along_a_diagonal(), size=3)
    assert [found.of("spinodal", f"minimum {side}") for side in ("above", "below")] == [found[0], found[2]]
    assert [phase.name for phase in found[1].phases] == ["minimum below", "minimum above"]


@pytest.mark.parametrize("below", ("1e-3", "1e-12", "1e-30"))
def test_the_change_is_continuous_however_close_to_the_end_point(below):
    found = solve(zoo.cusp(), 15, size=2 - Fraction(below))
    assert [(t.kind, t.value.text) for t in found] == [(CROSSOVER, "3.00000000000000"), (END, "3.00000000000000")]
    assert found.status is Status.OK


@pytest.mark.parametrize("action", (zoo.cusp, zoo.cusp_along_a_diagonal))
def test_at_the_end_point_itself_the_order_is_undecided(action):
    found = solve(action(), size=2)
    assert [(t.kind, t.status) for t in found] == [(END, Status.UNDECIDED)]
    assert found.status is Status.UNDECIDED
    assert "size is that of the critical end point to all digits known" in found.notes[0]


def test_what_is_not_solved_is_known_no_better_than_its_scale():
    landscape = Landscape(zoo.landau_six(), zoo.landau_six().setup({}))
    atlas = survey(landscape, *landscape.window())
    node = atlas.segments[0].nodes[0]
    solution = _polished(atlas, lambda y: ([mpf(1), mpf(1)], [[mpf(1), mpf(0)], [mpf(1), mpf(0)]]), [node], 15)
    assert solution.status is Status.DIVERGED
    assert solution.errors == (*atlas.chart.scales, solution.values[1])


SOFTMAX_END = Fraction("13.741525243430170401548590657080711677898777708010")


@pytest.mark.parametrize("above", ("1e-8", "1e-12", "1e-20"))
def test_softmax_head_above_its_end_point(above):
    found = solve(find("copy-head/softmax").action(), 40, L=SOFTMAX_END + Fraction(above), V=8)
    assert [(t.kind, t.phase) for t in found] == [
        (SPINODAL, "copy"),
        (COEXISTENCE, None),
        (SPINODAL, "uniform"),
        (END, None),
    ]
    assert found.status is Status.OK
    low, middle, high = (t.value.value for t in found[:3])
    assert low < middle < high
    # To leading order the coexistence lies half-way.
    assert abs((middle - low) / (high - low) - mpf(1) / 2) < 0.1 * mpmath.sqrt(mpf(above))


@pytest.mark.parametrize("below", ("1e-8", "1e-20"))
def test_softmax_head_below_its_end_point(below):
    found = solve(find("copy-head/softmax").action(), L=SOFTMAX_END - Fraction(below), V=8)
    assert [t.kind for t in found] == [CROSSOVER, END]
    assert found.status is Status.OK


def of_pooling(found):
    return [t.title for t in found if t.kind is COEXISTENCE or (t.phase or "").startswith("pooling")]


PAIR = ["spinodal (pooling above)", "coexistence", "spinodal (pooling below)"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("symbols", "length", "samples"),
    [
        (2, "57.4527309627578026566045250059", "1093.37066839690521121539197904"),
        (4, "211.842820944983213579355319296", "7834.11716346859093711632867175"),
        (8, "715.820894563991706901173381836", "60636.7377345717170395156244211"),
        (16, "2354.23702967274407054066865135", "482997.787239366199828366158476"),
    ],
)
@pytest.mark.parametrize(("distance", "pair"), [("1e-2", PAIR), ("1e-10", PAIR), ("-1e-10", [])])
def test_both_sides_of_the_linear_head_s_end_points(symbols, length, samples, distance, pair):
    found = solve(find("copy-head/linear").action(), 30, L=Fraction(length) + Fraction(distance), V=symbols)
    assert of_pooling(found) == pair
    assert (found[-1].value.text, found[-1].at["L"].text) == (samples, length)
    assert found.status is Status.OK
    if pair:
        low, middle, high = (
            found.of(*name) for name in (("spinodal", "pooling above"), ("coexistence",), ("spinodal", "pooling below"))
        )
        assert low.value.value < middle.value.value < high.value.value
        assert [phase.name for phase in middle.phases] == ["pooling below", "pooling above"]


@pytest.mark.slow
def test_a_warm_anti_copy_phase_exists_twice():
    """For P from 1064.366 to 1064.371 and from 1411.677 on, by covers at single values of P as well."""
    action = find("copy-head/linear").action()
    found = solve(action, L=32, V=8, T=10)
    edges = [t.value.text for t in found if t.phase == "anti-copy"]
    assert edges == ["1064.36609469157", "1064.37063343284", "1411.67727732229"]
    for samples, count in (
        ("1064.366", 0),
        ("1064.3661", 1),
        ("1064.3706", 1),
        ("1064.3707", 0),
        ("1411.67", 0),
        ("1411.68", 1),
    ):
        points = minima(action, action.setup({"L": 32, "V": 8, "T": 10, "P": samples}))
        assert sum(p.name == "anti-copy" and p.kind is Kind.MINIMUM for p in points) == count


def test_an_isolated_well_has_two_spinodals_and_two_coexistences():
    found = solve(zoo.isolated_well(), 20)
    assert texts([t for t in found if t.kind is SPINODAL], 6) == ["2.00000", "3.00000"]
    assert found.status is Status.OK


@pytest.mark.parametrize("digits", LADDER)
def test_crossover_of_an_observable(digits):
    found = solve(zoo.crossover(), digits)
    assert [(t.kind, t.observable) for t in found] == [(CROSSOVER, "square")]
    assert agree(found[0].value, lambda: mpf(2), digits)


@pytest.mark.parametrize("scale", ("1", "1e8", "1e400"))
def test_any_magnitude(scale):
    found = solve(zoo.extreme(), 30, scale=scale)
    assert [t.kind for t in found] == [SPINODAL]
    assert agree(found[0].value, lambda: mpf(scale) ** 2 * 2 * mpmath.sqrt(3) / 9, 30)


def test_two_hundred_digits():
    found = solve(zoo.curie_weiss_in_field(), 200, b=2)

    def edge():
        m = mpmath.sqrt(mpf(1) / 2)
        return 2 * m - mpmath.atanh(m)

    assert agree(found[-1].value, edge, 200)
    assert len(found[-1].value.text.replace("0.", "")) == 200


def test_a_window_without_a_transition_says_so():
    found = solve(zoo.landau_six(), over=("1", "2"))
    assert (len(found), found.status) == (0, Status.OK)
    assert "no transition between a = 1.0 and 2.0" in found.notes
    assert [t.kind for t in solve(zoo.landau_six(), over=("1/5", "2"))] == [SPINODAL]


def test_it_is_said_what_the_list_rests_on():
    found = solve(zoo.isolated_well())
    assert found.notes[-1].startswith(
        "branches start from all points found at 13 values of the control between a = 1.0 "
    )


def test_a_branch_that_is_lost_is_reported(monkeypatch):
    monkeypatch.setattr(branches, "trace", partial(branches.trace, limit=3))
    found = solve(zoo.pitchfork())
    assert found.status is Status.COVER
    assert re.match(r"(\d+) of \1 branches .* could not be followed to their ends", found.notes[-2])


def test_an_empty_window_is_an_error():
    with pytest.raises(BoxError, match="empty"):
        solve(zoo.landau_six(), over=("2", "1"))


def test_error_bounds_the_printed_string():
    (coexistence, _) = solve(zoo.landau_six(), 5)
    assert (str(coexistence.value), coexistence.error) == ("0.18750", "5e-6")
    assert texts([coexistence], 3) == ["0.188"]


def test_a_transition_is_found_by_its_kind_and_phase():
    action = zoo.landau_six()
    found = transitions(action, digits=50)
    assert str(found.of("coexistence").value) == "0.1875" + 46 * "0"
    assert found.of("spinodal", "ordered") is found[1]
    with pytest.raises(LookupError, match=r"no spinodal \(zero\); there is coexistence, spinodal \(ordered\)"):
        found.of("spinodal", "zero")
    with pytest.raises(LookupError, match="there is no transition"):
        solve(action, over=("1", "2")).of("coexistence")


def test_progress_is_reported():
    lines = []
    action = zoo.pitchfork()
    transitions(action, action.setup({}), progress=lines.append)
    assert lines
    assert all("a =" in line for line in lines)


@pytest.mark.parametrize(
    ("action", "over", "values", "kinds"),
    [
        (zoo.landau_six, ("0.2499", "10"), {}, [SPINODAL]),
        (zoo.landau_six, ("0.01", "0.18751"), {}, [COEXISTENCE]),
        (zoo.cusp, ("0.5", "1.0001"), {"size": 5}, [SPINODAL, END]),
        (zoo.cusp, ("4.9999", "9"), {"size": 5}, [SPINODAL, END]),
        (find("copy-head/softmax").action, ("1", "331"), {"L": 32, "V": 8}, [SPINODAL, COEXISTENCE, END]),
        (find("copy-head/softmax").action, ("200", "310"), {"L": 32, "V": 8}, [SPINODAL, END]),
        (find("copy-head/softmax").action, ("392", "1e6"), {"L": 32, "V": 8}, [SPINODAL, END]),
    ],
)
def test_what_begins_or_ends_next_to_an_end_of_the_window(action, over, values, kinds):
    found = solve(action(), over=over, **values)
    assert [t.kind for t in found] == kinds
    assert found.status is Status.OK


@pytest.mark.parametrize("action", (zoo.rotor, zoo.flat))
def test_stationary_points_that_fill_a_curve_are_no_answer(action):
    found = solve(action())
    assert (len(found), found.status) == (0, Status.DEGENERATE)
    assert "fill a curve or an interval" in found.notes[0]
    assert not any("no transition" in note for note in found.notes)


def test_copies_by_an_undeclared_symmetry_are_one_phase():
    found = solve(zoo.three_state_potts())
    assert [t.kind for t in found] == [SPINODAL, COEXISTENCE]
    assert agree(found[0].value, lambda: mpf(7) / 4, 15)
    assert agree(found[1].value, lambda: mpf(16) / 9, 15)
    assert found.notes[0].startswith("1 branches of minima have the action of another one all along")
    # At a = 2 both eigenvalues vanish.
    assert found.status is Status.DEGENERATE
    assert "more than one eigenvalue" in found.notes[1]


def test_two_branches_that_exchange_their_stability_are_one_instability():
    (instability,) = found = solve(zoo.transcritical())
    assert (instability.kind, instability.order, instability.value.text) == (INSTABILITY, "first", "1.00000000000000")
    assert found.status is Status.OK


@pytest.mark.parametrize("digits", LADDER)
def test_branches_that_cross_at_an_angle(digits):
    """Nothing is known of them but where they cross: a point beside the crossing moves the control by its distance."""
    (instability,) = found = solve(zoo.crossing_at_an_angle(), digits)
    assert (instability.kind, instability.order, found.status) == (INSTABILITY, "first", Status.OK)
    assert agree(instability.value, lambda: mpf(1), digits)
    assert agree(instability.phases[0].order_parameters["x"], lambda: mpf(1), digits)


@pytest.mark.parametrize("gap", [Rational(1, 4), Rational(1, 50), Rational(1, 500)])
def test_zero_that_is_unstable_in_a_short_interval(gap):
    """Along a branch that is straight a step of any length lands on it."""
    found = solve(zoo.reentrant(gap))
    assert [(t.kind, t.order) for t in found] == [(INSTABILITY, "second")] * 2
    assert agree(found[0].value, lambda: mpf(1), 15)
    assert agree(found[1].value, lambda: 1 + mpf(int(gap.p)) / int(gap.q), 15)


@pytest.mark.parametrize(
    "slope, shift, stiffness",
    [
        (S(-1), S(0), None),
        (S(1), S(0), None),
        (S(-1), Rational(1, 7), None),
        (Rational(7, 8), Rational(1, 7), None),
        (S(-1), S(0), S(1000)),
    ],
)
def test_exchange_of_stability_beside_a_fold(slope, shift, stiffness):
    """A secant that falls on the crossing, where Newton does not contract, still leads to it."""
    found = solve(zoo.cubic(slope, shift, stiffness))
    assert [t.kind for t in found] == [INSTABILITY, COEXISTENCE, SPINODAL]
    assert found.status is Status.OK
    square = mpf(int(slope.p)) ** 2 / int(slope.q) ** 2
    for entry, share in zip(found, (mpf(0), mpf(2) / 9, mpf(1) / 4), strict=True):
        assert abs(mpf(entry.value.text) - share * square) <= mpf(entry.value.bound) + mpf(10) ** -15


def test_a_branch_that_crosses_where_the_control_alone_changes():
    """The cover of the plane misses the minimum at rest, which crosses the branch that is followed at field = 0."""
    found = solve(zoo.cubic(S(-1), Rational(1, 7), S.One))
    assert [(t.kind, t.order) for t in found] == [(INSTABILITY, "first"), (COEXISTENCE, "first"), (SPINODAL, None)]
    for entry, exact in zip(found, (mpf(0), mpf(2) / 9, mpf(1) / 4), strict=True):
        assert abs(mpf(entry.value.text) - exact) <= mpf(entry.value.bound) + mpf(10) ** -15


def test_points_that_are_degenerate_at_every_control_are_no_answer():
    found = solve(zoo.degenerate_at_rest())
    assert (len(found), found.status) == (0, Status.DEGENERATE)
    assert "degenerate, on no branch" in found.notes[0]


def test_what_is_not_solved_is_no_value(monkeypatch):
    monkeypatch.setattr(solver, "fold", lambda *_: lambda y: ([mpf(1)] * 3, [[mpf(1)] * 3] * 3))
    found = solve(zoo.landau_six())
    assert [t.kind for t in found] == [COEXISTENCE]
    assert found.status is not Status.OK
    assert found.notes[0].startswith("spinodal (ordered) near a = 0.25 is not solved")


@pytest.mark.slow
@pytest.mark.parametrize(("warmth", "length"), [("1e5", "3602.39"), ("1e6", "11269.7"), ("1e10", "1.12028e+6")])
def test_an_end_point_at_a_much_larger_size(warmth, length):
    end = solve(find("copy-head/softmax").action(), L=32, V=8, T=warmth).of("critical-end-point")
    assert replace(end.at["L"], digits=6).text == length


@pytest.mark.slow
def test_one_name_for_a_phase_in_one_table():
    found = solve(find("copy-head/linear").action(), L=16384, V=8)
    assert of_pooling(found) == PAIR


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"L": 32, "V": 8, "P": "1e-6"}, "uniform"),
        ({"L": 32, "V": 8, "P": "1e-30"}, "uniform"),
        ({"L": "1e20", "V": 8, "P": "1e10"}, "uniform"),
        ({"L": 32, "V": 8, "P": 1, "gamma_w": "1e300"}, "uniform"),
        ({"L": 32, "V": 8, "P": 300}, "uniform"),
        ({"L": 32, "V": 8, "P": 400}, "copy"),
        # No softest point: nothing parts the phases.
        ({"L": 2, "V": 2, "P": 1}, "minimum"),
    ],
)
def test_a_lone_minimum_is_named_by_the_side_of_the_softest_point(values, name):
    action = find("copy-head/softmax").action()
    assert next(point.name for point in minima(action, action.setup(values)) if point.kind is Kind.MINIMUM) == name


def test_names_do_not_need_a_finite_window():
    action = replace(zoo.cusp(), window=(zoo.S.Zero, zoo.S.Infinity))
    assert [[point.name for point in minima(action, action.setup({"size": 1, "a": a}))] for a in (2, 5)] == [
        ["low"],
        ["high"],
    ]


def test_a_closed_form_is_held_against_the_numerics():
    """x^2 (1 - a)/2 + x^4/4 loses stability at a = 1; a wrong closed form is not passed over."""
    x, a = Symbol("x", real=True), Symbol("a", positive=True)

    def told(control):
        return transitions(
            EffectiveAction(
                "well",
                (1 - a) * x**2 / 2 + x**4 / 4,
                (OrderParameter(x, "x", -S(4), S(4)),),
                Parameter(a, "control"),
                (),
                (Rational(1, 2), S(3)),
                symmetries=(Symmetry("mirror", {x: -x}),),
                closed_forms=(("instability", control),),
            )
        )

    assert "the closed form of the instability is 1.00000000000000: agrees" in told(S.One).notes
    assert told(S.One).status is Status.OK
    assert told(Rational(10**6 + 1, 10**6)).status is Status.UNRESOLVED


# --- a wall of the domain ---


def on_half_line(value, window, edge=True):
    order = OrderParameter(zoo.x, "an order parameter", S.Zero, S(10), edge=edge)
    return zoo.action(value, (order,), window=window, lower=S(-10))


def test_the_wall_competes_with_minima():
    """a x - x^2 + x^3/3 on x >= 0: its minimum at 1 + sqrt(1 - a) is as deep as the wall at a = 3/4, where it is 3/2."""
    x, a = zoo.x, zoo.a
    found = solve(on_half_line(a * x - x**2 + x**3 / 3, (Rational(1, 10), S(2))), 30)
    jump = found.of("coexistence")
    assert agree(jump.value, lambda: mpf(3) / 4, 30)
    assert agree(jump.phases[0].order_parameters["x"], lambda: mpf(3) / 2, 30)
    assert [phase.name for phase in jump.phases] == ["minimum", "wall"]
    assert agree(found.of("spinodal").value, lambda: mpf(1), 30)
    assert found.status is Status.OK


@pytest.mark.parametrize("edge", [True, False])
def test_two_minima_above_a_wall_do_not_coexist(edge):
    """Wells at 2 and 4 are equally deep near a = 0; an action of -36 at zero is lower, if zero is the end of the domain."""
    x, a = zoo.x, Symbol("a", real=True)
    value = ((x - 3) ** 2 - 1) ** 2 - 100 * exp(-4 * x) + a * x
    order = OrderParameter(x, "an order parameter", S.Zero if edge else Rational(3, 2), S(10), edge=edge)
    found = solve(zoo.action(value, (order,), a, (-S.One, S.One), S(-10)))
    assert [entry.kind for entry in found if entry.kind == COEXISTENCE] == [] if edge else [COEXISTENCE]


def test_a_phase_over_a_short_range_of_the_control_is_found():
    """x^4/4 - 2 x^3 + (9 - 3/2 + 100 (a - .27)^2) x^2/2: a well at x = 3 for |a - .27| < .1225, the deeper one for < .0707."""
    x, a = zoo.x, Symbol("a", real=True)
    value = x**4 / 4 - 2 * x**3 + (9 - Rational(3, 2) + 100 * (a - Rational(27, 100)) ** 2) * x**2 / 2
    found = solve(zoo.action(value, (zoo.box(x, 10),), a, (S(-3), S(3)), S(-10)))
    assert [entry.kind for entry in found] == [SPINODAL, COEXISTENCE, COEXISTENCE, SPINODAL]
    offsets = [mpf(27) / 100 + side * mpmath.sqrt(mpf(3) / k) / 10 for side, k in ((-1, 2), (-1, 6), (1, 6), (1, 2))]
    assert all(agree(entry.value, lambda at=at: at, 15) for entry, at in zip(found, offsets, strict=True))


def test_a_closed_form_that_is_not_real_is_none():
    """The spinodal fields of the Curie-Weiss model, where there are none."""
    action = find("classical/curie-weiss-in-field").action()
    assert [entry.kind for entry in solve(action, T="3/2")] == [CROSSOVER]


def test_a_phase_told_by_an_order_parameter_that_vanishes():
    """Random field of two values: the first instability is that of m = 0 alone, by whichever branch it is reached."""
    m, T = Symbol("m", real=True), Symbol("T", positive=True)
    s = Rational(2, 5)
    value = m**2 / 2 - T / 2 * (log(2 * cosh((m + s) / T)) + log(2 * cosh((m - s) / T)))
    phases = (Phase("para", Eq(m, 0)), Phase("ferro", Ne(m, 0)))
    order = OrderParameter(m, "magnetisation", -S.One, S.One)
    found = solve(zoo.action(value, (order,), T, (Rational(1, 20), S(2)), phases=phases))
    assert [[phase.name for phase in entry.phases] for entry in found] == [["para"], ["ferro", "para"]]


def walled(value, **more):
    order = OrderParameter(zoo.x, "beyond a wall at zero nothing is", S.Zero, S(8), edge=True)
    return zoo.action(value, (order,), control=zoo.field, window=(S(-1), S(1)), lower=S(-5), **more)


def listed(found):
    return [(entry.kind, entry.order, [phase.name for phase in entry.phases]) for entry in found]


def test_a_minimum_that_reaches_the_wall_of_the_domain():
    """x = -field for a negative field: second order, with exponent one."""
    found = transitions(walled(zoo.field * zoo.x + zoo.x**2 / 2))
    assert listed(found) == [("instability", "second", ["minimum", "wall"])]
    assert (found[0].value.value, found[0].status) == (0, Status.OK)


def test_a_maximum_that_reaches_the_wall_ends_the_minimum_on_it():
    """Coexistence where field x - x^2/2 + x^3/3 has a double root in x = 3/4: field = 3/16; the fold is at 1/4."""
    found = transitions(walled(zoo.field * zoo.x - zoo.x**2 / 2 + zoo.x**3 / 3))
    assert listed(found) == [
        ("instability", "first", ["wall"]),
        ("coexistence", "first", ["minimum", "wall"]),
        ("spinodal", None, ["minimum"]),
    ]
    assert [entry.value.text for entry in found] == ["0", "0.187500000000000", "0.250000000000000"]


def test_what_is_beyond_a_wall_is_no_transition():
    value = zoo.field * zoo.x + zoo.x**2 / 2 - zoo.x**4 + zoo.x**6
    found = transitions(walled(value))
    assert [entry.kind for entry in found] == ["spinodal", "coexistence", "spinodal", "instability"]
    assert all(
        number.value >= 0 for entry in found for phase in entry.phases for number in phase.order_parameters.values()
    )


def test_an_action_that_falls_beyond_its_bounds_is_said_to():
    falling = zoo.action(zoo.a * zoo.x**2 / 2 - zoo.x**4 / 4, (zoo.box(zoo.x, 10),), symmetries=(zoo.MIRROR,))
    for found in (transitions(falling), minima(falling, falling.setup({"a": 1}))):
        assert sum("lowest between the bounds only" in note for note in found.notes) == 2
    assert not any("bounds only" in note for note in transitions(zoo.landau_six()).notes)


def test_a_phase_outside_of_its_bounds_is_said_to_be():
    found = transitions(replace(zoo.landau_six(), order_parameters=(zoo.box(zoo.x, Rational(1, 2)),)))
    assert found.of("coexistence").value.text == "0.187500000000000"
    assert any("a = 0.1875, lies outside of the declared bounds of x" in note for note in found.notes)
    beside = replace(zoo.crossover(), order_parameters=(zoo.box(zoo.x, 20),))
    assert any("lies outside" in note for note in minima(beside, beside.setup({"a": Rational(201, 10)})).notes)


def test_every_steepest_point_of_an_oscillation():
    """x = -cos(40 a) is steepest at the odd multiples of pi/80."""
    value = zoo.x**2 / 2 + zoo.x * cos(40 * zoo.field)
    window = {"control": zoo.field, "window": (-S.Half, S.Half), "lower": S(-5)}
    found = transitions(zoo.action(value, (zoo.box(zoo.x, 3),), **window))
    exact = [(2 * k + 1) * mpmath.pi / 80 for k in range(-6, 6)]
    assert [entry.observable for entry in found] == ["dx/dfield"] * 12
    assert all(abs(entry.value.value - place) <= mpf(entry.error) for entry, place in zip(found, exact, strict=True))


def test_a_tiny_action_is_known_as_well():
    value = (zoo.x**4 / 4 - zoo.x**2 / 2 + zoo.field * zoo.x) / S(10) ** 40
    window = {"control": zoo.field, "window": (S(-1), S(1)), "lower": S(-5)}
    assert transitions(zoo.action(value, (zoo.box(zoo.x, 3),), **window)).of("coexistence").value.value == 0


def test_a_pole_between_the_bounds():
    """x = field/(x - 1/3)^2 has one fold, at x = 1/9; the curve passes smoothly through the pole."""
    value = zoo.x**2 / 2 + zoo.field / (zoo.x - Rational(1, 3))
    window = {"control": zoo.field, "window": (S(-1), S(1)), "lower": S(-5)}
    found = transitions(zoo.action(value, (zoo.box(zoo.x, 3),), **window))
    assert [entry.value.text for entry in found] == ["0.00548696844993141"]
    assert any("jumps or has a pole" in note for note in found.notes)


@pytest.mark.parametrize("digits", LADDER)
def test_spins_between_the_walls_of_their_entropy_order_at_one(digits):
    (instability,) = solve(zoo.bragg_williams(), digits)
    assert (instability.kind, instability.order) == (INSTABILITY, "second")
    assert agree(instability.value, lambda: mpf(1), digits)


def test_the_spinodal_of_spins_in_a_field_has_its_closed_form():
    """h = m - T artanh(m) at m^2 = 1 - T."""
    (spinodal,) = solve(zoo.bragg_williams(), 30, field=Rational(1, 10))
    assert spinodal.kind is SPINODAL

    def exact():
        depth = lambda t: mpmath.sqrt(1 - t) - t * mpmath.atanh(mpmath.sqrt(1 - t)) - mpf(1) / 10  # noqa: E731
        return mpmath.findroot(depth, mpf("0.73"))

    assert agree(spinodal.value, exact, 30)


def test_three_minima_that_meet_at_one_control_coexist_in_pairs():
    found = solve(zoo.three_phases())
    assert [(t.kind, t.value.text, t.value.error) for t in found] == [(COEXISTENCE, "0", 0)] * 3
    places = {tuple(int(mpmath.nint(phase.order_parameters["x"].value)) for phase in t.phases) for t in found}
    # Each first the phase that is the lower one below.
    assert places == {(1, 0), (1, -1), (0, -1)}
    assert found.status is Status.OK


def test_a_third_minimum_that_lies_lower_rules_a_pair_out():
    """With x^2 for 10^-6 of it more, the minimum at 0 is lower by 1e-6 where the others meet."""
    action = zoo.three_phases()
    found = solve(replace(action, value=action.value + zoo.x**2 / 10**6))
    places = {tuple(int(mpmath.nint(phase.order_parameters["x"].value)) for phase in t.phases) for t in found}
    assert places == {(1, 0), (0, -1)}


@pytest.mark.parametrize("b", ["-1/10000", "-1/1000000"])
def test_a_jump_next_to_a_tricritical_point_is_found(b):
    """Coexistence at 3 b^2/16 and the fold at b^2/4 lie 10^-9 and 10^-13 of the window from the instability."""
    found = solve(find("classical/landau-6").action(), b=b)
    assert found.status is Status.OK
    assert [entry.kind for entry in found] == [INSTABILITY, COEXISTENCE, SPINODAL]
    square = mpf(Rational(b).p) ** 2 / mpf(Rational(b).q) ** 2
    for entry, exact in zip(found, (mpf(0), 3 * square / 16, square / 4), strict=True):
        assert abs(entry.value.value - exact) <= mpf("1e-15") * exact


def test_lambert_function_at_zero():
    """x^2/2 - a W(x^2) = (1 - 2 a) x^2/2 + a x^4 - ...: of second order at a = 1/2."""
    action = zoo.action(zoo.x**2 / 2 - zoo.a * LambertW(zoo.x**2), (zoo.box(zoo.x, 5),), window=(S.Zero, S(3)))
    (instability,) = solve(replace(action, symmetries=(zoo.MIRROR,)))
    assert (instability.kind, instability.order) == (INSTABILITY, "second")
    assert abs(instability.value.value - mpf("0.5")) <= instability.value.error

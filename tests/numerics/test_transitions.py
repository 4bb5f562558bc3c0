"""Transitions against exact answers, to all digits asked for."""

from dataclasses import replace

import mpmath
import pytest
from mpmath import mpf

from numerics.landscape import BoxError
from numerics.points import Status, TransitionKind
from numerics.transitions import transitions
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


@pytest.mark.parametrize("digits", LADDER)
@pytest.mark.parametrize("length", ("5", "1"))
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

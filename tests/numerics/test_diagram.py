"""Phase diagrams: Landau's sixth-order potential, whose curves are known, by the route of a state evolution."""

import mpmath
import pytest
from sympy import Rational, S, Symbol

from derive.action import Parameter, SetupError
from derive.state_evolution import Pair, Sector, StateEvolution, driven
from numerics.diagram import _zeros, diagram, rows
from numerics.evolution_transitions import transitions
from numerics.points import Number, Status
from numerics.present import diagram_table
from numerics.scan import parse_axis
from numerics.store import Store

alpha, c = Symbol("alpha", positive=True), Symbol("c", real=True)
m, mhat = Symbol("m", real=True), Symbol("mhat", real=True)
OVER = (Rational(1, 10), S(3))


def landau():
    """alpha = 1 - c m^2 + m^4: a fold at 1 - c^2/4, coexistence at 1 - 3 c^2/16, a tricritical point at c = 0."""
    potential = m * mhat - mhat**2 / 2 - alpha * m**2 / 2 - c * m**4 / 4 + m**6 / 6
    return StateEvolution(
        "landau",
        potential,
        (Pair(m, mhat, "order parameter"),),
        Parameter(alpha, "control"),
        (Parameter(c, "cubic term of the force", lower=S(-10)),),
        OVER,
        sectors=(Sector("disordered", (m,)), Sector("ordered")),
    )


EXACT = {
    "spinodal (ordered)": lambda c: 1 - c**2 / 4,
    "coexistence: disordered/ordered": lambda c: 1 - 3 * c**2 / 16,
    "instability (m): disordered": lambda c: 1,
}


@pytest.fixture(scope="module")
def found():
    return diagram(landau(), {}, parse_axis("c=-1/2:1:7"), OVER, 8, transitions)


def test_curves_of_landau(found):
    assert {curve.name for curve in found.curves} == set(EXACT)
    for curve in found.curves:
        for c, entry in curve.points:
            assert entry.status is Status.OK
            assert abs(entry.value.value - mpmath.mpf(str(EXACT[curve.name](float(c))))) <= 2 * entry.value.error


def test_first_order_curves_end_at_the_tricritical_point(found):
    """They begin above c = 0, seen from the upper end only, and the order of the instability changes there."""
    places = {curve.name: [c for c, _ in curve.points] for curve in found.curves}
    assert min(places["spinodal (ordered)"]) == min(places["coexistence: disordered/ordered"]) == Rational(1, 4)
    assert sum("ends between c = 0 and 1/4" in note for note in found.notes) == 2
    assert found.notes[0].startswith("curves are looked for at c = -1/2, 1/4, 1 only")
    (pitchfork,) = (curve for curve in found.curves if curve.name.startswith("instability"))
    assert [entry.order for c, entry in pitchfork.points if c] == ["second"] * 2 + ["first"] * 4
    (point,) = (meeting for meeting in found.meetings if len(meeting.curves) == 1)
    assert point.curves == (pitchfork.name,)
    assert abs(point.y.value) <= 2 * point.y.error < 1e-2
    assert abs(point.x.value - 1) <= 2 * point.x.error < 1e-6
    for c, entry in pitchfork.points:
        assert (entry.bend is None) == (c == 0)
        assert entry.bend is None or abs(float(entry.bend) + float(c)) <= 2 * float(entry.bend.error) < 0.02
    assert f"{pitchfork.name} is tricritical at alpha = 1.0000000 +- " in diagram_table(found, "alpha", "c")
    (turn,) = (note for note in found.notes if "tricritical" in note)
    assert turn.startswith("instability (m): disordered: the order changes from second to first between c = -1/4 and ")


def test_what_reaches_neither_end_is_seen_in_the_middle():
    """Above alpha = 9/10 the first-order transition and its spinodal are there from c = 0 to sqrt(8/15) or sqrt(2/5)."""
    found = diagram(landau(), {}, parse_axis("c=-1/4:5/4:7"), (Rational(9, 10), S(3)), 8, transitions)
    places = {curve.name: [c for c, _ in curve.points] for curve in found.curves}
    assert places["spinodal (ordered)"] == places["coexistence: disordered/ordered"] == [Rational(1, 4), Rational(1, 2)]
    assert len(places) == len(found.curves) == 3


@pytest.mark.parametrize("low", ["1/10", "9/10"])
def test_the_coexistence_is_seen_whatever_the_stations_of_the_branches(low):
    """Next to the pitchfork of one of its phases, with stations on both sides of it far apart."""
    entries = transitions(landau(), landau().setup({"c": "1/2"}), 8, over=(low, 3))
    assert [entry.title for entry in entries] == ["spinodal (ordered)", "coexistence", "instability (m)"]


def test_a_branch_that_leaves_the_window_has_no_fold_at_its_pitchfork():
    entries = transitions(landau(), landau().setup({"c": "5/4"}), 8, over=("9/10", 3))
    assert [entry.title for entry in entries] == ["instability (m)"]


def test_a_stored_diagram_goes_on_and_is_the_same(tmp_path, found):
    axis, store = parse_axis("c=-1/2:1:7"), Store.create(tmp_path, {})

    class StoppedError(Exception):
        pass

    def stopping(text):
        if text.startswith("c = 1/2"):
            raise StoppedError

    with pytest.raises(StoppedError):
        diagram(landau(), {}, axis, OVER, 8, transitions, store, stopping)
    assert sum(store.count().values()) == 4
    again = diagram(landau(), {}, axis, OVER, 8, transitions, store)
    assert sum(store.count().values()) == rows(landau(), axis) == 21
    assert again.curves == found.curves


def test_any_parameter_may_be_the_control():
    """Along c at alpha = 3/4 the ordered phase appears at 1 and is the stable one from sqrt(4/3) on."""
    theory = driven(landau(), "c")
    entries = transitions(theory, theory.setup({"alpha": "3/4"}), 8, over=("1/2", "2"))
    assert [entry.title for entry in entries] == ["spinodal (ordered)", "coexistence"]
    for entry, exact in zip(entries, (1, mpmath.sqrt(mpmath.mpf(4) / 3)), strict=True):
        assert abs(entry.value.value - exact) <= 2 * entry.value.error < 1e-7
    with pytest.raises(SetupError, match="not sought along 'b'"):
        driven(landau(), "b")
    with pytest.raises(SetupError, match="needs alpha"):
        theory.setup({})


def test_where_two_curves_meet():
    """The instabilities of two independent overlaps, at alpha = 1 and at alpha = k, meet at k = 1."""
    n, nhat, k = Symbol("n", real=True), Symbol("nhat", real=True), Symbol("k", positive=True)
    potential = m * mhat - mhat**2 / 2 - alpha * m**2 / 2 + m**4 / 4
    potential += n * nhat - nhat**2 / 2 - alpha * n**2 / k / 2 + n**4 / 4
    sectors = (Sector("none", (m, n)), Sector("m", (n,)), Sector("n", (m,)), Sector("both"))
    pairs = (Pair(m, mhat, "one"), Pair(n, nhat, "another"))
    theory = StateEvolution(
        "two", potential, pairs, Parameter(alpha, "control"), (Parameter(k, "ratio"),), OVER, sectors=sectors
    )
    meetings = diagram(theory, {}, parse_axis("k=4/5:7/5:5"), OVER, 8, transitions).meetings
    pitchforks = ("instability (m): none", "instability (n): none")
    (meeting,) = (meeting for meeting in meetings if set(meeting.curves) == set(pitchforks))
    assert abs(meeting.x.value - 1) <= 2 * meeting.x.error < 1e-4
    assert abs(meeting.y.value - 1) <= 2 * meeting.y.error < 1e-2


def test_zeros_of_a_gap_lie_within_their_errors_also_at_an_end():
    """y/4 - y^3 on a control e^y; at y = -1/2 it vanishes exactly at a place."""
    places = [-0.5, -0.3, 0.1, 0.2, 0.4, 0.9]
    points = [(y, y / 4 - y**3, 1e-6, Number(mpmath.exp(y), mpmath.mpf("1e-9"), 9)) for y in places]
    found = list(_zeros(points, 9))
    for (x, y), exact in zip(found, (-0.5, 0, 0.5), strict=True):
        assert abs(y.value - exact) <= y.error
        assert abs(x.value - mpmath.exp(exact)) <= x.error < 0.3

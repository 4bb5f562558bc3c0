"""Phase diagrams: Landau's sixth-order potential, whose curves are known, by the route of a state evolution."""

import mpmath
import pytest
from sympy import Rational, S, Symbol

from derive.action import Parameter, SetupError
from derive.state_evolution import Pair, Sector, StateEvolution
from numerics.diagram import diagram, driven, rows
from numerics.evolution_transitions import transitions
from numerics.points import Status
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
    assert found.notes[0].startswith("curves are looked for at c = -1/2 and 1 only")
    (pitchfork,) = (curve for curve in found.curves if curve.name.startswith("instability"))
    assert [entry.order for c, entry in pitchfork.points if c] == ["second"] * 2 + ["first"] * 4


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
    assert sum(store.count().values()) == rows(landau(), axis) == 14
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

"""Phase diagrams whose curves are known: Landau's sixth-order potential as a state evolution, theory files as actions."""

import mpmath
import pytest
from sympy import Rational, S, Symbol

from derive import copy_head
from derive.action import Parameter, SetupError
from derive.catalogue import find
from derive.state_evolution import Pair, Sector, StateEvolution, driven
from numerics.diagram import _zeros, diagram, rows
from numerics.evolution_transitions import transitions
from numerics.points import Number, Status, TransitionKind
from numerics.present import diagram_table
from numerics.scan import parse_axis
from numerics.store import Store
from numerics.transitions import transitions as transitions_of_actions

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


# --- actions ---

FILE = """
[theory]
name = "case"
summary = "a case"
source = "this test"
action = "{action}"
window = ["-1", "1"]
[control.{control}]
meaning = "what is driven"
lower = -1000
upper = 1000
[parameters.{second}]
meaning = "what is followed"
lower = -1000
upper = 1000
[order_parameters.x]
meaning = "an order parameter"
lower = -{box}
upper = {box}
"""
MIRROR = """[[symmetries]]
name = "mirror"
image = {x = "-x"}
"""


@pytest.fixture
def mapped(tmp_path):
    """The diagram of a theory file with one order parameter, and at how many rows it was solved anew."""

    def mapped(action, over, axis, box=4, more="", digits=15):
        second = axis.partition("=")[0]
        control, _, ends = over.partition("=")
        path = tmp_path / "case.toml"
        path.write_text(FILE.format(action=action, control=control, second=second, box=box) + more)
        return followed(find(str(path)).action(), tuple(ends.split(":")), axis, digits)

    return mapped


def followed(action, over, axis, digits=15, **parameters):
    anew = []

    def solve(problem, setup, **options):
        anew.append(setup)
        return transitions_of_actions(problem, setup, **options)

    return diagram(action, parameters, parse_axis(axis), tuple(map(Rational, over)), digits, solve), len(anew)


def places(found, kind):
    """All (second parameter, control) of the transitions of a ``kind``, in order."""
    pairs = ((y, e.value.value) for curve in found.curves for y, e in curve.points if e.kind == kind)
    return sorted(pairs, key=lambda pair: (pair[0], pair[1]))


def assert_places(found, kind, exact):
    """The curves of a ``kind`` hold what ``exact`` maps each value of the second parameter to, and nothing else."""
    points = [(y, e) for curve in found.curves for y, e in curve.points]
    got = sorted(((y, e) for y, e in points if e.kind == kind), key=lambda pair: (pair[0], pair[1].value.value))
    ys = sorted({y for y, _ in points})
    wanted = [(y, value) for y in ys for value in sorted(map(mpmath.mpf, exact(mpmath.mpf(y.p) / y.q)))]
    assert [y for y, _ in got] == [y for y, _ in wanted]
    for (_, entry), (_, known) in zip(got, wanted, strict=True):
        assert entry.status is Status.OK
        assert abs(entry.value.value - known) <= mpmath.mpf(entry.error) + mpmath.mpf("1e-15") * abs(known) < 1e-13


def special(found, kind):
    return [m for m in found.meetings if m.kind == kind]


LANDAU_SIX = "a*x^2/2 + b*x^4/4 + x^6/6"


@pytest.mark.parametrize("more", [MIRROR, ""])
def test_pitchforks_on_both_sides_of_a_tricritical_point(mapped, more):
    """First order for b < 0, at 3 b^2/16, second order at a = 0 above; mirror twins are one phase, named or not."""
    found, anew = mapped(LANDAU_SIX, "a=-1:1", "b=-1:1:12", more=more)
    assert (found.status, anew) == (Status.OK, 4)
    assert_places(found, TransitionKind.INSTABILITY, lambda b: [0])
    assert_places(found, TransitionKind.COEXISTENCE, lambda b: [3 * b**2 / 16] if b < 0 else [])
    assert_places(found, TransitionKind.SPINODAL, lambda b: [b**2 / 4] if b < 0 else [])
    (pitchfork,) = (curve for curve in found.curves if curve.name.startswith("instability"))
    assert [entry.order for _, entry in pitchfork.points] == ["first"] * 6 + ["second"] * 6
    (point,) = found.meetings
    assert (point.kind, point.x.value, point.y.value, len(point.curves)) == ("tricritical", 0, 0, 3)


def test_the_row_of_a_tricritical_point_itself(mapped):
    found, _ = mapped(LANDAU_SIX, "a=-1:1", "b=-1:1:5", more=MIRROR)
    (pitchfork,) = (curve for curve in found.curves if curve.name.startswith("instability"))
    kinds = [entry.kind.value for _, entry in pitchfork.points]
    assert kinds == ["instability"] * 2 + ["tricritical"] + ["instability"] * 2
    assert [m.kind for m in found.meetings] == ["tricritical"]


def test_an_imperfect_pitchfork_is_one_in_one_row_only(mapped):
    """With a field h the branches part: spinodals at -3 (h/2)^(2/3) to either side of the cusp."""
    found, _ = mapped("x^4/4 + a*x^2/2 - h*x", "a=-4:1", "h=-1:1:9")
    assert_places(found, TransitionKind.SPINODAL, lambda h: [-3 * mpmath.cbrt(h**2 / 4)] if h else [])
    assert_places(found, TransitionKind.INSTABILITY, lambda h: [] if h else [0])
    (point,) = found.meetings
    assert (point.kind, point.x.value, point.y.value) == ("critical-end-point", 0, 0)
    assert sum("imperfect" in note for note in found.notes) == 2


def test_a_cusp_in_the_field(mapped):
    found, anew = mapped("x^4/4 + a*x^2/2 - h*x", "h=-1:1", "a=-1:1:12")
    assert (found.status, anew) == (Status.OK, 4)
    assert_places(found, TransitionKind.COEXISTENCE, lambda a: [0] if a < 0 else [])
    fold = lambda a: 2 * mpmath.sqrt((-a / 3) ** 3)  # noqa: E731
    assert_places(found, TransitionKind.SPINODAL, lambda a: [-fold(a), fold(a)] if a < 0 else [])
    (point,) = found.meetings
    assert (point.kind, point.x.value, point.y.value, point.stable) == ("critical-end-point", 0, 0, True)


def test_transcritical_branches_exchange_their_stability(mapped):
    """First order at 2 c^2/9 for either sign of c; continuous at the Landau point only."""
    found, _ = mapped("a*x^2/2 + c*x^3/3 + x^4/4", "a=-1:1", "c=-1:1:10")
    assert_places(found, TransitionKind.INSTABILITY, lambda c: [0])
    assert_places(found, TransitionKind.COEXISTENCE, lambda c: [2 * c**2 / 9])
    assert_places(found, TransitionKind.SPINODAL, lambda c: [c**2 / 4])
    (point,) = found.meetings
    assert (point.kind, point.x.value, point.y.value) == ("landau-point", 0, 0)


def test_an_isola_shrinks_to_a_point(mapped):
    """(x - 5)^2 + (a - 5/2)^2 = 1/4 - g."""
    found, _ = mapped("x^4/4 - 10*x^3/3 + (25 + (a - 2)*(a - 3) + g)*x^2/2", "a=1:4", "g=-1:1:10", box=8)
    radius = lambda g: mpmath.sqrt(mpmath.mpf(1) / 4 - g)  # noqa: E731
    half = mpmath.mpf(5) / 2
    assert_places(found, TransitionKind.SPINODAL, lambda g: [half - radius(g), half + radius(g)] if g < 0.25 else [])
    assert any("turns back at a = 2.5, g = 0.25" in note for note in found.notes)


def test_a_deeper_isolated_well_has_a_coexistence_that_turns(mapped):
    """Symmetric about a = 3; where the well is too shallow at its deepest there is none."""
    action = "x^2/2 - (30 + g - 10*(a - 3)^2)*exp(-(x - 5)^2)"
    found, _ = mapped(action, "a=1:5", "g=-25:5:7", box=20)
    pairs = places(found, TransitionKind.COEXISTENCE)
    assert {y for y, _ in pairs} == {-15, -10, -5, 0, 5}
    for y in {y for y, _ in pairs}:
        low, high = (value for at, value in pairs if at == y)
        assert abs(low + high - 6) < 1e-14
    assert any(note.startswith("a curve (coexistence) turns back at a = 3.0, g = -18.0") for note in found.notes)


def test_a_curve_beneath_another_phase_is_cut_at_the_triple_point(mapped):
    """x^6/6 - x^4/4 + a x^2/2 - h x: at h = 0 two phases coexist below a = 3/16, at two fields above, up to a = 9/20."""
    found, _ = mapped("x^6/6 - x^4/4 + a*x^2/2 - h*x", "h=-1/4:1/4", "a=1/16:1/2:8", box=3)
    assert found.status is Status.OK  # next to a metastable minimum, a pair that never crosses is no coexistence
    pairs = places(found, TransitionKind.COEXISTENCE)
    assert [value for y, value in pairs if y < Rational(3, 16)] == [0, 0]
    for y in (Rational(1, 4), Rational(5, 16), Rational(3, 8), Rational(7, 16)):
        low, high = (value for at, value in pairs if at == y)
        assert abs(low + high) < 1e-14 < high
    (triple,) = special(found, "triple")
    assert triple.x.value == 0
    assert abs(triple.y.value - mpmath.mpf(3) / 16) <= triple.y.error
    assert len(triple.curves) == 3
    wings = special(found, "critical-end-point")
    assert len(wings) == 2
    with mpmath.workdps(40):
        assert all(abs(wing.y.value - mpmath.mpf(9) / 20) <= 2 * wing.y.error < 1e-15 for wing in wings)


def test_the_starter_file_has_its_tricritical_point(tmp_path):
    """Blume-Capel: T = 1/3 at D = (2/3) ln 2; the line of instabilities turns a little beyond."""
    from derive.files.theory import starter

    path = tmp_path / "mine.toml"
    path.write_text(starter("mine"))
    found, anew = followed(find(str(path)).action(), ("1/10", "1"), "D=0:49/100:40", 30)
    assert (found.status, anew) == (Status.OK, 5)  # at the ends, in the middle and beside the point
    (point,) = found.meetings
    with mpmath.workdps(60):
        assert abs(point.x.value - mpmath.mpf(1) / 3) <= point.x.error < 1e-30
        assert abs(point.y.value - 2 * mpmath.log(2) / 3) <= point.y.error < 1e-30
    assert (point.kind, point.phases[0].name, len(point.curves)) == ("tricritical", "paramagnet", 4)
    for y, entry in (p for c in found.curves if c.name.startswith("instability") for p in c.points):
        price = mpmath.exp(-mpmath.mpf(y.p) / y.q / entry.value.value)
        assert abs(entry.value.value * (1 + 2 * price) - 2 * price) < 1e-15
    assert any("turns back at T = 0.316" in note for note in found.notes)


@pytest.mark.parametrize(("count", "seen"), [(25, True), (7, False)])
def test_a_line_that_reaches_no_end_is_seen_from_its_special_point(tmp_path, count, seen):
    """The first-order line of the same model lies between D = .462 and 1/2: in one row, or in none, which is said."""
    from derive.files.theory import starter

    path = tmp_path / "mine.toml"
    path.write_text(starter("mine"))
    found, _ = followed(find(str(path)).action(), ("1/10", "1"), f"D=0:3/5:{count}", 10)
    assert [str(y) for c in found.curves if c.name.startswith("coexistence") for y, _ in c.points] == ["19/40"] * seen
    assert any("no row cuts the first-order line" in note for note in found.notes) != seen


def test_rows_that_are_followed_are_those_solved_anew():
    """Softmax copy head in the length: phases, their names and every digit."""
    action = copy_head.softmax.action()
    found, anew = followed(action, ("50", "2000"), "L=10:60:6", V=8)
    assert (found.status, anew) == (Status.OK, 4)
    for y in (Rational(20), Rational(50)):
        alone = transitions_of_actions(action, action.setup({"L": y, "V": 8}), over=("50", "2000"))
        row = [entry for curve in found.curves for at, entry in curve.points if at == y]
        assert {(e.title, e.value.text, e.phases[0].name) for e in row} == {
            (e.title, e.value.text, e.phases[0].name) for e in alone if e.kind is not TransitionKind.CRITICAL_END_POINT
        }
    (end,) = found.meetings
    assert (end.kind, end.x.text, end.y.text) == ("critical-end-point", "104.554959314157", "13.7415252434302")
    assert len(end.curves) == 4


def test_the_size_of_a_critical_end_point_is_followed_in_another_parameter():
    found, _ = followed(copy_head.softmax.action(), ("50", "2000"), "V=4:9:6", L=32)
    (curve,) = (curve for curve in found.curves if curve.name.startswith("critical-end-point"))
    (eight,) = (entry for y, entry in curve.points if y == 8)
    assert (eight.value.text, eight.at["L"].text) == ("104.554959314157", "13.7415252434302")


@pytest.mark.slow
def test_the_linear_head_has_a_first_order_line_in_long_sequences():
    found, _ = followed(copy_head.linear.action(), ("1000", "100000"), "L=512:900:4", V=8)
    (end,) = special(found, "critical-end-point")
    assert abs(end.y.value - mpmath.mpf("715.8208945639917")) < 1e-12
    assert len(end.curves) == 3
    lengths = [y for y, _ in places(found, TransitionKind.COEXISTENCE)]
    assert lengths == [Rational(2312, 3), 900]


def test_two_instabilities_cross_where_two_orders_begin(tmp_path):
    """The y axis of order below k = 0, the x axis above; both beyond their second instabilities at a = 3 k."""
    text = FILE.format(action="(a-k)*x^2/2 + (a+k)*y^2/2 + x^4/4 + y^4/4 + x^2*y^2/4", control="a", second="k", box=3)
    text += '[order_parameters.y]\nmeaning = "another"\nlower = -3\nupper = 3\n'
    text += MIRROR + MIRROR.replace("mirror", "other").replace("x", "y")
    path = tmp_path / "two.toml"
    path.write_text(text)
    found, _ = followed(find(str(path)).action(), ("-2", "1"), "k=-1/2:1/2:4")
    assert_places(found, TransitionKind.INSTABILITY, lambda k: [-3 * abs(k), abs(k)])
    (point,) = found.meetings
    assert (point.kind, point.x.value, point.y.value) == ("tetracritical", 0, 0)
    assert len(point.curves) == 4


def test_a_diagram_of_an_action_goes_on_from_its_store(tmp_path):
    action, axis, store = copy_head.softmax.action(), parse_axis("V=6:9:5"), Store.create(tmp_path, {})
    over = (S(50), S(2000))
    first = diagram(action, {"L": 32}, axis, over, 12, transitions_of_actions, store)
    assert sum(store.count().values()) == rows(action, axis) == 6
    again = diagram(action, {"L": 32}, axis, over, 12, None, store)
    assert again.curves == first.curves


def test_where_a_minimum_reaches_the_wall_of_the_domain_is_a_curve(mapped):
    """(a - b) u + u^2/2 beyond u = x + 4 = 0, continuous; with -u^2/2 + u^3/3 a maximum reaches the wall there instead."""
    for rest, order in (("(x+4)^2/2", "second"), ("(x+4)^3/3 - (x+4)^2/2", "first")):
        found, _ = mapped(f"(a-b)*(x+4) + {rest}", "a=-1:1", "b=-1/2:1/2:4", more="edge = true\n")
        assert_places(found, TransitionKind.INSTABILITY, lambda b: [b])
        (curve,) = (curve for curve in found.curves if curve.name.startswith("instability"))
        assert {entry.order for _, entry in curve.points} == {order}


def test_a_diagram_says_where_its_action_falls_beyond_the_bounds(mapped):
    found, _ = mapped("a*x^2/2 + b - x^4/4", "a=-1:1", "b=-1/2:1/2:2", more=MIRROR)
    assert sum("the row b = -1/2: the action falls beyond" in note for note in found.notes) == 2

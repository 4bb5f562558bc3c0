"""Certificates: what is proven agrees with exact answers, and what is not true is refused."""

import hashlib
import json
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from flint import arb, arb_mat, ctx
from sympy import (
    Abs,
    And,
    Eq,
    Heaviside,
    LambertW,
    Max,
    Piecewise,
    Rational,
    S,
    acos,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    cot,
    coth,
    csc,
    csch,
    erf,
    erfc,
    exp,
    gamma,
    log,
    loggamma,
    pi,
    sec,
    sech,
    sin,
    sinh,
    sqrt,
    symbols,
    tan,
    tanh,
)

from derive.action import Phase, Symmetry
from derive.catalogue import find
from derive.copy_head import linear, softmax
from derive.files.theory import parsed
from numerics.certify.certificate import CertificateError, read, written
from numerics.certify.intervals import Interval, ProofError, interval_newton, krawczyk
from numerics.certify.methods import PROOF, VERIFICATION
from numerics.certify.prove import certified_points, certified_transitions
from numerics.certify.taylor import UncertifiableError, derivatives_at, refuse_uncertifiable
from numerics.certify.theorem import POINTS, Theorem, established
from numerics.certify.verify import verified
from numerics.emit import EmissionError, emit
from numerics.jets import indices, jet
from numerics.landscape import Landscape
from numerics.points import Status, Transitions
from numerics.stationary import minima
from numerics.transitions import transitions
from tests.numerics import zoo

x, y = symbols("x y", real=True)


def certified(action, digits=30, **values):
    setup = action.setup(values)
    found, certificate = certified_transitions(action, setup, transitions(action, setup, digits), digits)
    return found, certificate


def holds(interval, exact):
    """Whether an exact number lies in a proven interval."""
    return abs(Fraction(interval.middle) - Fraction(exact)) <= Fraction(interval.radius)


def refusals(action, certificate, tmp_path, change=lambda document: None, sealed=True):
    """What a verifier says of each theorem of a certificate that was changed, and sealed again."""
    document = json.loads(written(certificate, action))
    seal = document.pop("seal")
    change(document)
    if sealed:
        seal = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps({**document, "seal": seal}))
    return [verdict.refused for verdict in verified(read(file), action)]


# --- derivatives and operators ---------------------------------------------------------------------------------------

_EVERY = [
    exp(x * y),
    log(x + y),
    sin(x) * cos(y) + tan(x * y / 3),
    sinh(x - y) + cosh(x) * tanh(x * y),
    asin(x / 3) + acos(y / 4) + atan(x * y) + asinh(x) + atanh(y / 5),
    erf(x) * erfc(y - x),
    sech(x) + csch(y) + coth(x * y),
    sec(x) + csc(y) + cot(x * y),
    LambertW(x * y),
    gamma(x + 1) + loggamma(y + x),
    sqrt(x + y) + (x * y) ** Rational(-2, 3) + x**y + y ** (-3),
    pi * x**5 - Rational(1, 3) * exp(1) * y,
]


@pytest.mark.parametrize("expression", _EVERY, ids=str)
def test_taylor_arithmetic_gives_the_derivatives(expression):
    wanted = indices(2, ((), 4))
    with mpmath.workdps(60), ctx.workprec(160):
        at = mpmath.mpf(7) / 8, mpmath.mpf(5) / 4
        known = jet(expression, (x, y), wanted, (x, y))(at)
        found = derivatives_at(expression, [(x, arb(7) / 8), (y, arb(5) / 4)], {}, 4)
        for index in wanted:
            assert found[index].rad() < 1e-30
            assert abs(found[index] - arb(mpmath.nstr(known[index], 55))) < 1e-40 * (1 + abs(found[index]))


@pytest.mark.parametrize("expression", _EVERY, ids=str)
def test_taylor_arithmetic_over_a_box_holds_what_it_is_at_points(expression):
    draw = random.Random(3)
    over = derivatives_at(expression, [(x, arb(0.875, 0.125)), (y, arb(1.25, 0.125))], {}, 2)
    for _ in range(20):
        place = [(x, arb(draw.uniform(0.75, 1))), (y, arb(draw.uniform(1.125, 1.375)))]
        assert all(over[index].overlaps(value) for index, value in derivatives_at(expression, place, {}, 2).items())


def test_a_power_of_a_ball_around_zero_is_no_less_than_zero():
    assert derivatives_at(x**4, [(x, arb(0, 0.5))], {}, 0)[()] < 0.1
    assert not derivatives_at(1 / x, [(x, arb(0, 0.5))], {}, 1)[()].is_finite()
    assert not derivatives_at(log(x), [(x, arb(0, 0.5))], {}, 1)[(0,)].is_finite()


def parabola(level):
    """x^2 - level as a system."""
    return lambda unknowns: ([unknowns[0] ** 2 - level], arb_mat([[2 * unknowns[0]]]))


@pytest.mark.parametrize("operator", [krawczyk, interval_newton])
@pytest.mark.parametrize(
    "level, middle, radius, proven",
    [
        (2, "1.41421356", "1e-7", True),
        (2, "1.4142136", "1e-8", False),  # the root is not in the box
        (2, "0", "2", False),  # two roots are
        (0, "0", "1e-9", False),  # a double one is
        (-1, "0.01", "1e-3", False),  # none is
        (2, "1.5", "0.5", True),
        (2, "1.5", "0", False),  # a box without an interior
    ],
)
def test_both_operators_prove_a_root_where_there_is_one(operator, level, middle, radius, proven):
    with ctx.workprec(100):
        assert operator(parabola(level), (Interval(Decimal(middle), Decimal(radius)),)) is proven


# --- exact answers ---------------------------------------------------------------------------------------------------


def boxes(certificate):
    return {each.theorem.kind: each.theorem.box for each in certificate.theorems}


@pytest.mark.parametrize("digits", [15, 50])
def test_landau_six_in_closed_form(digits, tmp_path):
    action = zoo.landau_six()
    found, certificate = certified(action, digits)
    assert all(entry.certified for entry in found)
    box = boxes(certificate)
    assert holds(box["spinodal"][-1], "1/4")
    assert holds(box["coexistence"][-1], "3/16")
    assert box["coexistence"][-1].radius <= Decimal(10) ** -digits
    assert refusals(action, certificate, tmp_path) == [None] * len(found)


@pytest.mark.parametrize(
    "action, exact, order",
    [
        (zoo.pitchfork(), 1, "second"),
        (zoo.curie_weiss(), 1, "second"),
        (zoo.shifted_landau_six(), 1, "first"),
    ],
)
def test_instabilities_with_their_order(action, exact, order, tmp_path):
    found, certificate = certified(action)
    assert found.of("instability").certified
    (proven,) = [each for each in certificate.theorems if each.theorem.kind == "instability"]
    assert holds(proven.theorem.box[-1], exact)
    assert any(f"of {order} order" in sentence for sentence in proven.sentences)
    assert proven.theorem.lowest is (order == "second")
    assert not any(refusals(action, certificate, tmp_path))


@pytest.mark.parametrize("quartic, order", [("1/3", "second"), ("1/5", "first")])
def test_order_with_an_order_parameter_that_relaxes(quartic, order):
    _, certificate = certified(zoo.coupled_pitchfork(), k=quartic)
    (proven,) = [each for each in certificate.theorems if each.theorem.kind == "instability"]
    assert any(f"of {order} order" in sentence for sentence in proven.sentences)


@pytest.mark.parametrize("action", [zoo.cusp(), zoo.cusp_along_a_diagonal()])
def test_critical_end_point_with_the_size_free(action, tmp_path):
    found, certificate = certified(action, size=3)
    assert found.of("critical-end-point").certified
    n = len(action.variables)
    box = boxes(certificate)["critical-end-point"]
    assert holds(box[n], 3)
    assert holds(box[n + 1], 2)
    assert {each.theorem.kind for each in certificate.theorems if each.theorem.lowest} == {
        "coexistence",
        "critical-end-point",
    }
    assert refusals(action, certificate, tmp_path) == [None] * len(found)


def test_two_branches_that_cross_without_a_symmetry(tmp_path):
    """The gradient vanishes at zero for every control; the cubic term says that another branch crosses there."""
    action = zoo.transcritical()
    found, certificate = certified(action)
    assert found.of("instability").certified
    (proven,) = [each for each in certificate.theorems if each.theorem.kind == "instability"]
    assert holds(proven.theorem.box[-1], 1)
    assert "another branch crosses" in proven.sentences[1]
    assert not proven.theorem.lowest
    lowest = replace(proven.theorem, lowest=True)
    with pytest.raises(ProofError, match="cubic"):
        established(Landscape(action, action.setup({})), lowest, PROOF)
    assert not any(refusals(action, certificate, tmp_path))


def test_spinodals_in_a_field_in_closed_form():
    found, certificate = certified(zoo.curie_weiss_in_field(), 40, b=2)
    with mpmath.workdps(50):
        m = mpmath.sqrt(mpmath.mpf(1) / 2)
        exact = mpmath.atanh(m) - 2 * m
        spinodals = [each.theorem.box[-1] for each in certificate.theorems if each.theorem.kind == "spinodal"]
        for interval, sign in zip(spinodals, (1, -1), strict=True):
            assert abs(mpmath.mpf(str(interval.middle)) - sign * exact) <= mpmath.mpf(str(interval.radius))
    assert holds(boxes(certificate)["coexistence"][-1], 0)
    assert found.of("coexistence").certified


def test_a_crossover_of_an_observable(tmp_path):
    action = zoo.crossover()
    _, certificate = certified(action)
    assert holds(boxes(certificate)["crossover"][-1], 2)
    assert refusals(action, certificate, tmp_path) == [None]


def test_the_steepest_point_below_an_end_point(tmp_path):
    action = zoo.cusp()
    found, certificate = certified(action, size=1)
    assert [entry.certified for entry in found] == [True, True]
    assert holds(boxes(certificate)["steepest"][1], 3)
    assert not any(refusals(action, certificate, tmp_path))


_KNOWN = {
    ("spinodal", "copy"): "304.5638461756313353253533",
    ("coexistence", None): "330.378233888447345057072399177",
    ("spinodal", "uniform"): "392.1534194074142939676934",
    ("critical-end-point", None): "104.5549593141569053270946",
}


def test_the_softmax_head_to_fifty_digits(tmp_path):
    action = softmax.action()
    found, certificate = certified(action, 50, L=32, V=8)
    assert {(entry.kind, entry.phase) for entry in found} == _KNOWN.keys()
    for entry in found:
        assert entry.certified
        assert entry.value.text.startswith(_KNOWN[entry.kind, entry.phase][:-1])
        assert entry.value.error <= mpmath.mpf("1.01e-50")
    assert [each.theorem.lowest for each in certificate.theorems] == [False, True, False, True]
    assert refusals(action, certificate, tmp_path) == [None] * 4


_CLASSICAL = {
    "curie-weiss": {"instability": S.One},
    "landau-4": {"instability": S.Zero},
    "landau-6": {"instability": S.Zero, "coexistence": Rational(3, 16), "spinodal": Rational(1, 4)},
    "potts": {"instability": Rational(1, 3), "coexistence": 1 / (4 * log(2))},
    "spherical-p-spin": {"spinodal": sqrt(Rational(3, 8))},
    "spiked-wigner-gaussian": {"instability": S.One},
    "spiked-wishart": {"instability": S.One},
}


@pytest.mark.parametrize("name", [*_CLASSICAL, pytest.param("perceptron-capacity", marks=pytest.mark.slow)])
def test_classical_models_to_thirty_digits(name, tmp_path):
    action = find(f"classical/{name}").action()
    found, certificate = certified(action)
    assert all(entry.certified for entry in found)
    for kind, exact in _CLASSICAL.get(name, {"instability": S(2)}).items():
        control = boxes(certificate)[kind][-1]
        assert abs(control.rational - exact).evalf(50) <= Rational(str(control.radius))
    assert not any(refusals(action, certificate, tmp_path))


@pytest.mark.parametrize(
    "name, lowest",
    [
        ("potts", {"coexistence"}),
        ("spiked-wigner-gaussian", {"instability"}),
        ("spiked-wishart", {"instability"}),
    ],
)
def test_a_phase_on_the_wall_may_be_the_lowest(name, lowest, tmp_path):
    """The instability of the disordered Potts phase, on the wall, too, is that of a state that is not the lowest."""
    action = find(f"classical/{name}").action()
    found, certificate = certified(action)
    ranked = {each.theorem.kind for each in certificate.theorems if each.theorem.lowest}
    assert (ranked, any("lies lower" in note for note in found.notes)) == (lowest, name == "potts")
    assert not any(refusals(action, certificate, tmp_path))


@pytest.mark.slow
def test_the_linear_head_to_fifty_digits(tmp_path):
    action = linear.action()
    found, certificate = certified(action, 50, L=32, V=8)
    assert all(entry.certified for entry in found)
    lowest = {each.theorem.kind for each in certificate.theorems if each.theorem.lowest}
    assert lowest == {"instability", "crossover", "critical-end-point"}
    assert refusals(action, certificate, tmp_path) == [None] * len(found)


@pytest.mark.parametrize(
    "action, values",
    [
        (zoo.landau_six(), {"a": "1/5"}),
        (zoo.two_wells(), {"a": "1/3"}),
        (zoo.isolated_well(), {"a": "5/2"}),
        (softmax.action(), {"L": 32, "V": 8, "P": 330}),
        (linear.action(), {"L": 32, "V": 8, "P": 1000}),
    ],
)
@pytest.mark.parametrize("digits", [15, 50])
def test_all_stationary_points(action, values, digits, tmp_path):
    setup = action.setup(values)
    found, certificate = certified_points(action, setup, minima(action, setup, digits), digits)
    assert all(point.certified for point in found)
    ((theorem, sentences),) = [(each.theorem, each.sentences) for each in certificate.theorems]
    assert theorem.names[0] == found[0].name
    assert len(theorem.others) == len(found)
    assert len(sentences) == len(found) + 2
    assert refusals(action, certificate, tmp_path) == [None]


# --- what is not true ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proven():
    action = softmax.action()
    _, certificate = certified(action, 30, L=32, V=8)
    return action, certificate


def theorem_of(document, kind="coexistence"):
    return next(each for each in document["theorems"] if each["kind"] == kind)


def moved(entry, by):
    entry["value"] = str(Decimal(entry["value"]) + Decimal(by))


def replaced(entry, **values):
    entry.update(values)


def exchanged(one, other):
    for key in ("value", "radius"):
        one[key], other[key] = other[key], one[key]


_PLANTED = {
    "a digit of the control": lambda d: moved(theorem_of(d)["box"][-1], "1e-29"),
    "a digit of an order parameter": lambda d: moved(theorem_of(d)["box"][0], "2e-30"),
    "a box shifted": lambda d: [moved(entry, "1e-10") for entry in theorem_of(d)["box"]],
    "the phases exchanged": lambda d: exchanged(*theorem_of(d)["box"][:2]),
    "a box shrunk": lambda d: replaced(theorem_of(d)["box"][-1], radius="1E-40"),
    "a box widened": lambda d: replaced(theorem_of(d)["box"][-1], radius="0.001"),
    "more digits": lambda d: replaced(d, digits=31),
    "a digit of the size": lambda d: moved(theorem_of(d, "critical-end-point")["box"][-1], "1e-29"),
    "another point shifted": lambda d: moved(theorem_of(d)["others"][0][0], "1e-6"),
    "a stationary point left out": lambda d: theorem_of(d)["others"].clear(),
    "a sentence": lambda d: replaced(theorem_of(d), proven=["both points are minima", "P* is prime"]),
    "a sentence left out": lambda d: theorem_of(d)["proven"].pop(),
    "a metastable state that is to be the lowest": lambda d: replaced(theorem_of(d, "spinodal"), lowest=True),
    "a column that there is not": lambda d: replaced(theorem_of(d, "spinodal"), column=1),
    "a way that is none": lambda d: replaced(theorem_of(d, "spinodal"), via="magic"),
    "an unknown too few": lambda d: theorem_of(d)["box"].pop(),
    "another kind": lambda d: replaced(theorem_of(d, "spinodal"), kind="crossover", via="loss"),
}


@pytest.mark.parametrize("change", _PLANTED.values(), ids=_PLANTED.keys())
def test_what_was_changed_is_refused_even_with_a_new_seal(proven, change, tmp_path):
    assert any(refusals(*proven, tmp_path, change))


_OTHER = {
    "the hash": lambda d: replaced(d["action"], sha256=d["action"]["sha256"][::-1]),
    "the expression": lambda d: replaced(d["action"], expression=d["action"]["expression"] + " + 1"),
    "the assumptions": lambda d: d["assumptions"].clear(),
    "a parameter that there is not": lambda d: replaced(d["setup"], zeta="1"),
    "a parameter that is no number": lambda d: replaced(d["setup"], L="many"),
    "a control": lambda d: replaced(d["setup"], P="330"),
    "an interval that is no number": lambda d: replaced(theorem_of(d)["box"][0], value="nan"),
    "a number too large to be written out": lambda d: replaced(theorem_of(d)["box"][0], value="1e999999999"),
    "a negative radius": lambda d: replaced(theorem_of(d)["box"][0], radius="-1e-30"),
    "a float": lambda d: replaced(theorem_of(d)["box"][0], radius=1e-30),
    "a kind that there is not": lambda d: replaced(theorem_of(d), kind="miracle"),
    "a box exchanged": lambda d: theorem_of(d)["box"].reverse(),
    "a missing key": lambda d: theorem_of(d).pop("others"),
    "a list for a record": lambda d: replaced(d, theorems={"kind": 1}),
    "a label": lambda d: replaced(theorem_of(d)["box"][-1], name="s_1"),
    "a number written otherwise": lambda d: replaced(theorem_of(d)["box"][-1], radius="1.0e-30"),
    "a key more": lambda d: d.update(remark="proven by inspection"),
    "a module for a theory": lambda d: d.update(theory="module:antigravity"),
    "another schema": lambda d: replaced(d, schema=99),
}


@pytest.mark.parametrize("change", _OTHER.values(), ids=_OTHER.keys())
def test_what_is_no_certificate_of_the_theory_is_an_error(proven, change, tmp_path):
    with pytest.raises(CertificateError):
        refusals(*proven, tmp_path, change)


def test_another_setup_is_refused_where_it_matters(proven, tmp_path):
    found = refusals(*proven, tmp_path, lambda d: replaced(d["setup"], L="33"))
    assert [reason is None for reason in found] == [False, False, False, True]  # the end point's size is free


def test_a_file_that_was_changed_does_not_keep_its_seal(proven, tmp_path):
    with pytest.raises(CertificateError, match="was changed after it was written"):
        refusals(*proven, tmp_path, lambda d: moved(theorem_of(d)["box"][-1], "1e-33"), sealed=False)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"document": "certificate"}', "[" * 100_000])
def test_a_file_that_is_none(text, tmp_path):
    file = tmp_path / "file.json"
    file.write_text(text)
    with pytest.raises(CertificateError):
        read(file)
    with pytest.raises(CertificateError, match="No such file"):
        read(tmp_path / "none.json")


def test_a_certificate_of_another_theory(proven):
    _, certificate = proven
    with pytest.raises(CertificateError, match="another action"):
        list(verified(certificate, softmax.relaxed_action()))


@pytest.mark.parametrize("method", [PROOF, VERIFICATION])
def test_coexistence_of_two_minima_above_a_third_is_not_of_the_lowest_state(method):
    """x^2 (x^2 - 1)^2 tilted by nothing has three equal minima; a term that lowers the middle one leaves two above it."""
    action = zoo.action(x**2 * (x**2 - 1) ** 2 + zoo.a * x - x + exp(-100 * x**2) * Rational(-1, 10), (zoo.box(x, 3),))
    landscape = Landscape(action, action.setup({}))
    with mpmath.workdps(40):
        slopes = jet(action.value, (x, zoo.a), indices(1, ((), 1)), (x, zoo.a))
        right = mpmath.findroot(lambda s: slopes((s, mpmath.mpf(1)))[(0,)], 1)
    box = tuple(Interval(Decimal(mpmath.nstr(v, 25)), Decimal("1e-20")) for v in (-right, right, mpmath.mpf(1)))
    theorem = Theorem("coexistence", ("left", "right"), box, (), lowest=False)
    assert established(landscape, theorem, method)
    with pytest.raises(ProofError):
        established(landscape, replace(theorem, lowest=True), method)


@pytest.mark.parametrize("method", [PROOF, VERIFICATION])
def test_the_lowest_comes_first(method):
    action = zoo.landau_six()
    setup = action.setup({"a": "1/5"})
    _, certificate = certified_points(action, setup, minima(action, setup, 20), 20)
    theorem = certificate.theorems[0].theorem
    assert theorem.kind == POINTS
    for places in ((1, 0, 2), (2, 1, 0)):
        wrong = replace(theorem, others=tuple(theorem.others[k] for k in places))
        with pytest.raises(ProofError):
            established(Landscape(action, setup), wrong, method)


def test_the_wall_is_looked_at():
    """x^2 - 4 x^3/3 + x^4/2... on x >= 0 with a minimum that lies above the wall at zero."""
    order = zoo.OrderParameter(x, "on a half line", S.Zero, S(4), edge=True)
    action = zoo.action(zoo.a * (x**3 / 3 - 3 * x**2 / 2 + 2 * x), (order,))
    setup = action.setup({"a": 1})
    found, certificate = certified_points(action, setup, minima(action, setup), 15)
    assert not certificate.theorems
    assert "the action on the wall is not lower" in found.notes[-1]


@pytest.mark.parametrize(
    "action", [zoo.double_root(), zoo.two_roots()], ids=["a degenerate point", "a minimum that is not the lowest"]
)
def test_what_cannot_be_proven_is_said(action):
    setup = action.setup({"a": 1})
    found, certificate = certified_points(action, setup, minima(action, setup), 15)
    proven_it = action.name and bool(certificate.theorems)
    assert proven_it is not any(note.startswith("not proven") for note in found.notes)


def test_three_order_parameters():
    """The search has no claim there, the proof has."""
    x, y, z = zoo.x, zoo.y, zoo.z
    value = (x**2 - 1) ** 2 / 4 + (y**2 - x) ** 2 / 2 + z**2 * (1 + y**2) / 2 - zoo.a * z * x / 5 + y / 7
    action = zoo.action(value, (zoo.box(x, 3), zoo.box(y, 3), zoo.box(z, 3)))
    setup = action.setup({"a": 1})
    searched = minima(action, setup, 20)
    assert "not proved" in searched.notes[0]
    found, certificate = certified_points(action, setup, searched, 20)
    assert (found.notes, len(found), all(point.certified for point in found)) == ((), 3, True)
    assert not any(verdict.refused for verdict in verified(certificate, action))


@pytest.mark.parametrize("method", [PROOF, VERIFICATION])
def test_one_point_is_not_counted_twice(method):
    action = zoo.landau_six()
    setup = action.setup({"a": "1/5"})
    _, certificate = certified_points(action, setup, minima(action, setup, 20), 20)
    theorem = certificate.theorems[0].theorem
    twice = replace(theorem, names=(*theorem.names, "again"), others=(*theorem.others, theorem.others[-1]))
    with pytest.raises(ProofError, match="overlap"):
        established(Landscape(action, setup), twice, method)


def test_balls_take_whole_numbers_for_numbers():
    """A method of Arb's that is given a whole number for a ball reads memory that is not its own."""
    with ctx.workprec(100):
        (value,) = emit((sqrt(31) * sqrt(x) + log(2) * LambertW(5),), (x,), "arb")(arb(100))
        assert abs(value - (31 * arb(100)).sqrt() - arb(2).log() * arb(5).lambertw()) < 1e-25


@pytest.mark.parametrize("part", [Piecewise((x, x > 0), (0, True)), Heaviside(x)])
def test_what_branches_is_not_emitted_to_balls(part):
    with pytest.raises(EmissionError, match="arb has no"):
        emit((x + part,), (x,), "arb")


def test_the_bounds_of_a_box_may_have_kinks():
    order = zoo.OrderParameter(x, "an order parameter", -1 - Abs(zoo.a), Max(S.One, 2 * zoo.a))
    action = zoo.action(x**2 / 2 - zoo.a * x, (order,))
    setup = action.setup({"a": "1/3"})
    _, certificate = certified_points(action, setup, minima(action, setup), 15)
    assert certificate.theorems


@pytest.mark.parametrize("term", [Max(x, 0), Piecewise((x, x > 0), (0, True)), Abs(x)])
def test_functions_with_kinks_are_refused_by_name(term):
    action = zoo.action(x**2 / 2 - zoo.a * x + term, (zoo.box(x, 20),))
    with pytest.raises(UncertifiableError, match=type(term).__name__):
        refuse_uncertifiable(action)


COMPETING = """
[theory]
name = "competing"
summary = "two order parameters that exclude each other"
action = "g/2*(a^2 - b^2) - (a^2 + b^2)/2 + (a^4 + b^4)/4 + a^2*b^2"
window = [-2, 2]
[control.g]
meaning = "asymmetry"
lower = -3
upper = 3
[order_parameters.a]
meaning = "first"
lower = -3
upper = 3
[order_parameters.b]
meaning = "second"
lower = -3
upper = 3
[[symmetries]]
name = "a -> -a"
image = { a = "-a" }
[[symmetries]]
name = "b -> -b"
image = { b = "-b" }
[[phases]]
name = "first"
where = "a > 0 and b == 0"
[[phases]]
name = "second"
where = "b > 0 and a == 0"
"""


@pytest.fixture(scope="module")
def competing():
    action = parsed(COMPETING, "here").problem
    return action, *certified(action, 15)


def test_that_an_order_parameter_vanishes_is_proven_by_its_symmetry(competing, tmp_path):
    action, found, certificate = competing
    assert [entry.kind for entry in found if not entry.certified] == []
    (theorem,) = [each.theorem for each in certificate.theorems if each.theorem.kind == "coexistence"]
    assert theorem.names == ("first", "second")
    assert refusals(action, certificate, tmp_path) == [None] * len(certificate.theorems)


def test_beside_the_mirror_nothing_vanishes_by_symmetry(competing, tmp_path):
    action, _, certificate = competing
    (place,) = [k for k, each in enumerate(certificate.theorems) if each.theorem.kind == "coexistence"]

    def beside(document):
        side = document["theorems"][place]["box"][1]
        assert (side["name"], side["value"]) == ("b_1", "0")
        side["value"] = "1E-20"

    assert (
        "not proven whether a point belongs to the phase first"
        in refusals(action, certificate, tmp_path, beside)[place]
    )


def test_points_on_a_diagonal_that_a_symmetry_keeps_belong_to_its_phase():
    x, y = zoo.x, zoo.y
    value = (x - y) ** 2 / 2 + (x + y) ** 4 / 4 - (x + y) ** 2 / 2 - zoo.a * (x + y)
    action = replace(
        zoo.action(value, (zoo.box(x, 3), zoo.box(y, 3))),
        symmetries=(Symmetry("swap", {x: y, y: x}),),
        phases=(Phase("up", And(Eq(x, y), x > 0)), Phase("down", And(Eq(x, y), x < 0))),
    )
    setup = action.setup({})
    entry = next(each for each in transitions(action, setup, 15) if each.kind == "spinodal")
    found, certificate = certified_transitions(action, setup, Transitions((entry,)), 15)
    assert found.entries[0].certified
    assert not any(verdict.refused for verdict in verified(certificate, action))


def test_what_would_be_refused_is_not_written(monkeypatch):
    def refused(stage):
        raise ProofError("another phase")

    monkeypatch.setattr("numerics.certify.verify.refuse_phases", refused)
    action = zoo.landau_six()
    found, certificate = certified(action, 15)
    assert certificate.theorems == ()
    assert found.status is Status.UNPROVEN
    assert any("the verification refuses it: another phase" in note for note in found.notes)


@pytest.mark.parametrize(("theory", "values"), [("landau-6", {"b": "-1"}), ("potts", {}), ("curie-weiss-in-field", {})])
def test_that_no_other_state_lies_lower_is_proven_at_few_digits_too(theory, values):
    """Beside a coexistence there is a third point, which moves with the control by more than a box of its digits holds."""
    action = find(f"classical/{theory}").action()
    setup = action.setup(values)
    _, document = certified_transitions(action, setup, transitions(action, setup, digits=15), 15)
    (coexistence,) = (each for each in document.theorems if each.theorem.kind == "coexistence")
    assert coexistence.theorem.lowest
    assert len(coexistence.theorem.others) == 1

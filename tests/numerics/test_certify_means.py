"""Solutions of state evolutions with averages over one variable, proven: against mpmath's own averages and root finder."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import mpmath
import pytest
from flint import arb, ctx
from sympy import Symbol, exp, log, tanh

import spinodal
from derive.catalogue import find
from numerics.certify import certificate as room
from numerics.certify.average import average_over
from numerics.certify.intervals import ProofError, power_of_ten
from numerics.certify.means import as_action, by_price, derivatives_by, shifted
from numerics.certify.methods import PROOF, VERIFICATION
from numerics.certify.prove import certified_solutions, certified_transitions
from numerics.certify.taylor import UncertifiableError
from numerics.certify.theorem import UNPROVEN, Stage, established
from numerics.evolution_transitions import transitions
from numerics.landscape import Landscape
from numerics.sectors import minima

MODEL, SPIKED = "classical/sherrington-kirkpatrick", "classical/spiked-wishart-rademacher"
VALUES = {"T": "1/2", "h": "1/2"}
ENDS = [-12, -6, -3, -1, 0, 1, 3, 6, 12]
z = Symbol("z", real=True)
a = Symbol("a", positive=True)


def evolution(name):
    return find(name).state_evolution()


@pytest.fixture(scope="module")
def proven():
    theory = evolution(MODEL)
    setup = theory.setup(VALUES)
    points, found = certified_solutions(theory, setup, minima(theory, setup, digits=6), 20)
    return Landscape(as_action(theory), setup), points, found


@pytest.fixture(scope="module")
def crossing():
    theory = evolution(MODEL)
    setup = theory.setup({"h": "1/2"})
    found, document = certified_transitions(theory, setup, transitions(theory, setup, digits=6), 18)
    return Landscape(as_action(theory), setup), found, document


def mean(f):
    return mpmath.quad(lambda x: f(x) * mpmath.npdf(x), ENDS)


def test_digits_against_another_quadrature(proven):
    """q = E tanh^2(h/T + sqrt(q) z/T) by mpmath alone, and the replicon at its root."""
    _, points, _ = proven
    with mpmath.workdps(28):
        field = lambda q, x: 1 + 2 * mpmath.sqrt(q) * x  # noqa: E731
        q = mpmath.findroot(lambda q: mean(lambda x: mpmath.tanh(field(q, x)) ** 2) - q, 0.62)
        replicon = 4 * mean(lambda x: mpmath.sech(field(q, x)) ** 4)
        entropic = mean(lambda x: mpmath.log(2 * mpmath.cosh(field(q, x))))
        action = 2 * q - 2 * q**2 + q**2 - 1 - entropic
        (point,) = points
        for found, known in (
            (point.order_parameters["q"], q),
            (point.observables["replicon"], replicon),
            (point.action, action),
        ):
            assert found.error < mpmath.mpf("1e-18")
            assert abs(found.value - known) < found.error + mpmath.mpf("1e-22")
        assert point.certified


def test_both_routes_to_derivatives_agree(proven):
    landscape, _, _ = proven
    with ctx.workprec(160):
        at = [arb("0.6"), arb("2.4"), arb(1) / 2]
        blocks = (((), 3), ((2,), 1))
        one, other = (derivatives_by(r, landscape)(landscape.action.value, at, blocks) for r in (shifted, by_price))
        assert one.keys() == other.keys()
        for index, ball in one.items():
            assert ball.overlaps(other[index]), index
            assert max(ball.rad(), other[index].rad()) < arb(10) ** -25
    with mpmath.workdps(30):
        entropic = lambda r: mean(lambda x: mpmath.log(2 * mpmath.cosh(1 + mpmath.sqrt(r) * x)))  # noqa: E731
        known = -mpmath.diff(entropic, mpmath.mpf("2.4"), 2, h=mpmath.mpf("1e-8"))
        assert abs(known - mpmath.mpf(one[1, 1].str(25, radius=False))) < mpmath.mpf("1e-11")


def test_an_average_over_a_box_holds_those_at_its_ends():
    with ctx.workprec(100):
        over = average_over(log(1 + exp(a * z)), z, {a: arb(1, "0.01")})
        for end in ("0.99", "1", "1.01"):
            assert over.contains(average_over(log(1 + exp(a * z)), z, {a: arb(end)}))
        with pytest.raises((ProofError, UncertifiableError)):
            average_over(log(a + tanh(z) ** 2), z, {a: arb(0, "0.01")})


@pytest.mark.parametrize("method", [PROOF, VERIFICATION])
def test_a_shifted_box_and_a_shrunk_radius_are_refused(proven, method):
    landscape, _, found = proven
    (right,) = found.theorems
    (box,) = right.theorem.others
    assert established(landscape, right.theorem, method).sentences == right.sentences
    away = replace(box[0], middle=box[0].middle + 3 * box[0].radius)
    narrow = tuple(replace(side, radius=side.radius * power_of_ten(-9)) for side in box)
    with ctx.workprec(right.bits):
        equations = Stage(landscape, right.theorem, method.derivatives(landscape)).stationary([arb(1) / 2])
        assert method.proves(equations, box)
        for wrong in ((away, box[1]), (box[0], replace(box[1], middle=box[1].middle + Decimal("1e-15"))), narrow):
            assert not method.proves(equations, wrong)


def test_completeness_is_not_claimed(proven):
    _, points, found = proven
    assert not any(each.theorem.lowest for each in found.theorems)
    assert found.theorems[0].sentences[-1] == UNPROVEN
    assert UNPROVEN in points.notes


@pytest.mark.parametrize(
    "name, reason",
    [("classical/phase-retrieval", "several variables"), ("positional-semantic", "a proximal map, which may jump")],
)
def test_what_is_not_covered_is_refused(name, reason):
    with pytest.raises(UncertifiableError, match=reason):
        as_action(evolution(name))


def test_the_line_of_de_almeida_and_thouless(crossing):
    """q = E tanh^2 and T^2 = E sech^4 by mpmath alone."""
    _, found, _ = crossing
    with mpmath.workdps(28):
        field = lambda q, T, x: (mpmath.mpf("0.5") + mpmath.sqrt(q) * x) / T  # noqa: E731
        q, T = mpmath.findroot(
            lambda q, T: (
                mean(lambda x: mpmath.tanh(field(q, T, x)) ** 2) - q,
                mean(lambda x: mpmath.sech(field(q, T, x)) ** 4) - T**2,
            ),
            (0.6, 0.53),
        )
        (entry,) = found
        for number, known in ((entry.value, T), (entry.phases[0].order_parameters["q"], q)):
            assert number.error < mpmath.mpf("1e-17")
            assert abs(number.value - known) < number.error + mpmath.mpf("1e-22")
    assert entry.certified
    assert (entry.phases[0].name, [*entry.phases[0].order_parameters]) == ("all", ["q"])


def test_a_shifted_crossing_is_refused(crossing):
    landscape, _, document = crossing
    (right,) = document.theorems
    box = right.theorem.box
    away = (*box[:2], replace(box[2], middle=box[2].middle + 3 * box[2].radius))
    narrow = tuple(replace(side, radius=side.radius * power_of_ten(-9)) for side in box)
    with ctx.workprec(right.bits):
        equations = Stage(landscape, right.theorem, VERIFICATION.derivatives(landscape)).equations
        assert VERIFICATION.proves(equations, box)
        assert not any(VERIFICATION.proves(equations, wrong) for wrong in (away, narrow))


GAS = """
[theory]
name = "gas"
summary = "lattice gas in a random field, symmetric about h = 2, m = 1/2"
potential = "m*k - 4*m^2 - E[log(1 + exp(x)), x: N(k + h - 6, 1/4)]"
window = ["1", "4"]
digits = 8
[control.h]
meaning = "field"
[overlaps.m]
meaning = "density"
conjugate = "k"
conjugate_scale = 4
"""


def test_folds_and_coexistence_of_a_state_evolution(run):
    """m = E 1/(1 + e^-x) and 8 E (1/(1 + e^-x))' = 1 by mpmath alone; the densities of two solutions at h = 2 add up to one."""
    Path("gas.toml").write_text(GAS)
    code, out, _ = run("transitions", "gas.toml", "--digits", "18", "--certify", "--out", "g.json", "--json")
    document = json.loads(out)
    assert (code, [entry["kind"] for entry in document["transitions"]]) == (0, ["spinodal", "coexistence", "spinodal"])
    assert all(entry["certified"] for entry in document["transitions"])
    low, middle, high = document["transitions"]
    with mpmath.workdps(28):
        filling = lambda m, h, x: 1 / (1 + mpmath.exp(6 - h - 8 * m - x / 2))  # noqa: E731
        for entry, start in ((low, (0.85, 1.02)), (high, (0.15, 2.98))):
            m, h = mpmath.findroot(
                lambda m, h: (
                    mean(lambda x: filling(m, h, x)) - m,
                    8 * mean(lambda x: filling(m, h, x) * (1 - filling(m, h, x))) - 1,
                ),
                start,
            )
            found = entry["phases"][0]["order_parameters"]["m"]
            assert abs(mpmath.mpf(found) - m) < mpmath.mpf("1e-17")
            assert abs(mpmath.mpf(entry["value"]) - h) < mpmath.mpf("1e-17")
        densities = [mpmath.mpf(phase["order_parameters"]["m"]) for phase in middle["phases"]]
        assert abs(mpmath.mpf(middle["value"]) - 2) < mpmath.mpf("1e-17")
        assert abs(sum(densities) - 1) < mpmath.mpf("1e-16")
    code, out, _ = run("verify", "g.json")
    assert code == 0
    assert "two solutions that meet are there above this h and not on the other side" in out
    assert "the potential of the first is the lower one below this h" in out


# on the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            spinodal.main(arguments)
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


def test_certified_and_verified(run):
    code, out, err = run("minima", MODEL, "T=1/2", "h=1/2", "--digits", "15", "--certify", "--out", "a.json")
    assert code == 0
    assert "0.621523294292122" in out
    assert UNPROVEN in err
    code, out, _ = run("verify", "a.json")
    assert code == 0
    assert "there is one stationary point in the box, a saddle" in out
    assert UNPROVEN in out
    assert "seen again" not in out


def test_a_crossing_is_certified_and_verified(run):
    code, out, err = run("transitions", MODEL, "h=1/2", "--digits", "15", "--certify", "--out", "t.json")
    assert (code, "0.535104943115384" in out, UNPROVEN in err) == (0, True, True)
    code, out, _ = run("verify", "t.json")
    assert (code, "replicon is at its level" in out) == (0, True)


def test_other_transitions_are_said_to_be_unproven(run):
    code, out, _ = run("transitions", SPIKED, "--certify", "--out", "s.json", "--json")
    document = json.loads(out)
    assert (code, document["status"]) == (3, "not proven")
    assert not any(entry["certified"] for entry in document["transitions"])
    assert any("no theorem is known about a transition of this kind, instability" in note for note in document["notes"])


def _change_place(document):
    side = document["theorems"][0]["others"][0][0]
    side["value"] = str(Decimal(side["value"]) + Decimal("1e-14"))


def _change_name(document):
    document["theorems"][0]["names"] = ["the lowest"]


def _claim_more(document):
    document["theorems"][0]["proven"].pop()


@pytest.mark.parametrize(
    "change, reason",
    [(_change_place, "one stationary point"), (_change_name, "is named"), (_claim_more, "what is proven is")],
)
def test_what_somebody_changed_and_sealed_again_is_refused(run, change, reason):
    run("minima", MODEL, "T=1/2", "h=1/2", "--digits", "15", "--certify", "--out", "a.json", "--quiet")
    document = json.loads(Path("a.json").read_text())
    document.pop("seal")
    change(document)
    Path("a.json").write_text(json.dumps({**document, "seal": room.seal(document)}))
    code, _, err = run("verify", "a.json")
    assert (code, reason in err) == (3, True)


def test_a_solution_without_variance_is_said_to_be_unproven(run):
    code, out, _ = run("minima", SPIKED, "lambda=2", "--digits", "12", "--certify", "--out", "b.json", "--json")
    document = json.loads(out)
    assert (code, document["status"]) == (3, "not proven")
    assert [point.get("certified", False) for point in document["points"]] == [True, False]
    assert any("the solution trivial is not proven: an overlap vanishes" in note for note in document["notes"])
    assert run("verify", "b.json")[0] == 0


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (("transitions", MODEL, "T=1/2", "--over", "h=1/10:1"), "along h, which is not the control"),
        (("minima", "classical/phase-retrieval", "alpha=1"), "several variables"),
        (("minima", "classical/binary-perceptron", "alpha=6/5"), "is not seen to stay above zero"),
    ],
)
def test_refusals(run, arguments, reason):
    code, out, err = run(*arguments, "--certify", "--quiet")
    assert (code, out) == (2, "")
    assert reason in err
    assert not [*Path().iterdir()]

"""The classical models against the literature: every value that a file in ``derive/classical`` cites, and independent ones.

A cited value is compared to all the digits that it prints. Where the solvers carry any number of digits, closed forms are
compared to 30. The independent numbers come from fixed points and averages by mpmath's quadrature, in this file: the
formulas are those of the papers, in their own notation, and share nothing with the files.
"""

import re
from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from derive.catalogue import CLASSICAL, find
from derive.files.theory import parsed, read, starter
from derive.state_evolution import StateEvolution
from numerics import evolution_transitions, sectors, stationary
from numerics import transitions as action_transitions
from numerics.evolution import Evolution
from numerics.evolution_branches import surveyed
from numerics.points import Status

FILES = {path.stem: path for path in sorted(CLASSICAL.glob("*.toml"))}
CITED = [(name, reference) for name, path in FILES.items() for reference in read(path).references]


@cache
def solved(name, setup):
    """Transitions without a value of the control, points with one."""
    problem = find(f"classical/{name}").problem()
    values = problem.setup(dict(setup))
    evolution = isinstance(problem, StateEvolution)
    if values.control is None:
        room = evolution_transitions if evolution else action_transitions
        return room.transitions(problem, values, digits=problem.digits)
    return (sectors if evolution else stationary).minima(problem, values, digits=problem.digits)


def found(name, reference):
    """The numbers found for a cited quantity: a kind of transition, an order parameter or an observable."""
    entries = solved(name, tuple(sorted(reference.setup.items())))
    if reference.quantity in {"coexistence", "spinodal", "instability", "tricritical", "observable-crossing"}:
        entries = [entry for entry in entries if entry.kind == reference.quantity]
        return [
            entry.value
            for entry in entries
            if reference.phase is None or reference.phase in {phase.name for phase in entry.phases}
        ]
    points = [point for point in entries if reference.phase in (None, point.name)]
    return [{**point.order_parameters, **point.observables}[reference.quantity] for point in points]


def printed(text):
    """The number that a source prints and half a unit of its last digit: none, where it is exact as 2 or 3/16 are."""
    places = len(text.partition(".")[2])
    return mpf(Fraction(text).numerator) / Fraction(text).denominator, mpf("0.5") * mpf(10) ** -places if places else 0


@pytest.mark.parametrize(
    "name, reference",
    CITED,
    ids=[f"{name}-{r.quantity}-{'-'.join(r.setup.values())}" for name, r in CITED],
)
def test_cited_values(name, reference):
    numbers = found(name, reference)
    assert numbers
    assert all(number.reached for number in numbers)
    with mpmath.workdps(30):
        value, rounding = printed(reference.value)
        assert any(abs(n.value - value) <= n.error + rounding for n in numbers)


@pytest.mark.parametrize("name", FILES)
def test_every_file_cites_a_value_and_holds_its_checks(name):
    file = read(FILES[name])
    assert file.name == name
    assert file.references
    assert all(report.passed for report in file.derivation().check())


# --- closed forms, to 30 digits ---


def entries_of(name, digits=30, **values):
    action = find(f"classical/{name}").action()
    found = action_transitions.transitions(action, action.setup(values), digits=digits)
    assert found.status == Status.OK
    return list(found)


def margin(kappa):
    """<(kappa + z)^2> over z > -kappa, by quadrature."""
    return mpmath.npdf(0) * mpmath.quad(lambda z: (kappa + z) ** 2 * mpmath.exp(-z * z / 2), [-kappa, 0, 8, 20])


def field(temperature):
    """The field at which the minimum that it opposes ends: |h| = s - T artanh s at s^2 = 1 - T."""
    s = mpmath.sqrt(1 - temperature)
    return s - temperature * mpmath.atanh(s)


def superheated(q):
    """The largest T = s/y at which a field y of one colour keeps up itself: s = (e^y - 1)/(e^y + q - 1)."""
    kept = lambda y: mpmath.expm1(y) / (mpmath.exp(y) + q - 1) / y  # noqa: E731
    return kept(mpmath.findroot(lambda y: mpmath.diff(kept, y), mpmath.log(q) + 1))


def potts(q):
    """Ascending: stability of the disordered phase, Kihara, Midzuno and Shizume, and the end of the ordered phase."""
    return [
        ("instability", "first", lambda: mpf(1) / q),
        ("coexistence", "first", lambda: (q - 2) / (2 * (q - 1) * mpmath.log(q - 1))),
        ("spinodal", None, lambda: superheated(q)),
    ]


CLOSED = [
    ("curie-weiss", {}, [("instability", "second", lambda: mpf(1))]),
    (
        "curie-weiss-in-field",
        {"T": "2/3"},
        [
            ("spinodal", None, lambda: -field(mpf(2) / 3)),
            ("coexistence", "first", lambda: mpf(0)),
            ("spinodal", None, lambda: field(mpf(2) / 3)),
        ],
    ),
    (
        "landau-6",
        {"b": "-3/2"},
        [
            ("instability", "first", lambda: mpf(0)),
            ("coexistence", "first", lambda: mpf(27) / 64),
            ("spinodal", None, lambda: mpf(9) / 16),
        ],
    ),
    *(("potts", {"q": str(q)}, potts(q)) for q in (3, 4, 5, 6, 7, 8, 10, 16)),
    (
        "spherical-p-spin",
        {"p": "3"},
        [("coexistence", "first", None), ("spinodal", None, lambda: mpmath.sqrt(mpf(3) / 8))],
    ),
    (
        "spherical-p-spin",
        {"p": "4"},
        [("coexistence", "first", None), ("spinodal", None, lambda: mpmath.sqrt(mpf(8) / 27))],
    ),
    ("perceptron-capacity", {"kappa": "0"}, [("instability", "second", lambda: mpf(2))]),
    ("perceptron-capacity", {"kappa": "1/2"}, [("instability", "second", lambda: 1 / margin(mpf(1) / 2))]),
    ("spiked-wigner-gaussian", {}, [("instability", "second", lambda: mpf(1))]),
]


@pytest.mark.parametrize("name, values, expected", CLOSED, ids=[f"{name}-{values}" for name, values, _ in CLOSED])
def test_closed_forms_to_thirty_digits(name, values, expected):
    """Every transition, in ascending order, with its sign; ``None`` where no closed form is known."""
    entries = entries_of(name, **values)
    assert [(entry.kind, entry.order) for entry in entries] == [(kind, order) for kind, order, _ in expected]
    with mpmath.workdps(45):
        for number, exact in ((entry.value, form) for entry, (_, _, form) in zip(entries, expected, strict=True)):
            assert number.reached
            assert number.error <= mpf(10) ** -29 * max(1, abs(number.value))
            assert exact is None or abs(number.value - exact()) <= number.error + abs(exact()) * mpf(10) ** -40


def test_the_static_temperature_of_the_p_spin_model():
    """In the parametrisation y of Crisanti and Sommers: 2/p = -2 y (1 - y + ln y)/(1 - y)^2, from their equation for T_s."""
    with mpmath.workdps(40):
        p = 3
        y = mpmath.findroot(lambda y: 2 / mpf(p) + 2 * y * (1 - y + mpmath.log(y)) / (1 - y) ** 2, mpf("0.35"))
        exact = y * mpmath.sqrt(p / (2 * y)) * (1 - y) ** (mpf(p) / 2 - 1)
        (number,) = (entry.value for entry in entries_of("spherical-p-spin") if entry.kind == "coexistence")
        assert abs(number.value - exact) <= number.error + mpf(10) ** -35


# --- averages: independent fixed points by quadrature ---


def normal(f, width=11):
    return mpmath.npdf(0) * mpmath.quad(lambda z: f(z) * mpmath.exp(-z * z / 2), [-width, -4, 0, 4, width])


def transition(name, quantity, over=None, **values):
    theory = find(f"classical/{name}").state_evolution()
    entries = evolution_transitions.transitions(theory, theory.setup(values), over=over)
    return [entry.value for entry in entries if entry.kind == quantity]


def holds(number, value):
    """Whether what is printed is right within the error that is printed."""
    return abs(mpf(number.text) - value) <= mpf(number.bound)


def at_line(h, start):
    """de Almeida and Thouless: 1 = <sech^4(h/T + sqrt(q) z/T)>/T^2 at q = <tanh^2>; T and q."""

    def system(q, t):
        field = lambda z: (h + mpmath.sqrt(q) * z) / t  # noqa: E731
        return normal(lambda z: mpmath.tanh(field(z)) ** 2) - q, normal(lambda z: mpmath.sech(field(z)) ** 4) / t**2 - 1

    return mpmath.findroot(system, start)


AT_LINE = [("1/10", (0.21, 0.819)), ("1/2", (0.595, 0.535)), ("1", (0.84, 0.321))]


@pytest.mark.parametrize("h, start", AT_LINE, ids=[h for h, _ in AT_LINE])
def test_the_de_almeida_thouless_line(h, start):
    _, temperature = at_line(mpf(Fraction(h).numerator) / Fraction(h).denominator, start)
    numbers = transition("sherrington-kirkpatrick", "observable-crossing", h=h)
    assert any(holds(number, temperature) for number in numbers)


def test_a_level_may_be_zero(tmp_path):
    """The same line where the excess of the replicon over one vanishes."""
    text = (CLASSICAL / "sherrington-kirkpatrick.toml").read_text()
    assert text.count('/T^2"') == text.count("crossover = 1") == 1
    path = tmp_path / "excess.toml"
    path.write_text(text.replace('/T^2"', '/T^2 - 1"').replace("crossover = 1", "crossover = 0"))
    theory = read(path).state_evolution()
    (entry,) = evolution_transitions.transitions(theory, theory.setup({"h": "1/2"}))
    _, temperature = at_line(mpf(1) / 2, AT_LINE[1][1])
    assert holds(entry.value, temperature)


def test_the_de_almeida_thouless_line_at_small_fields():
    """(3/4) h^2 = (1 - T)^3 (de Almeida and Thouless 1978): the ratio of both sides tends to one."""
    ratios = []
    for h in ("1/10", "1/100"):
        (number,) = transition("sherrington-kirkpatrick", "observable-crossing", over=("1/2", 1), h=h)
        ratios.append(
            mpf(3) / 4 * mpf(Fraction(h).numerator) ** 2 / Fraction(h).denominator ** 2 / (1 - number.value) ** 3
        )
    assert abs(ratios[1] - 1) < abs(ratios[0] - 1) / 3 < 0.1


RHO = mpf(1) / 20


def sparse(snr, q):
    """Lesieur, Krzakala and Zdeborova: overlap and free energy of a Rademacher-Bernoulli spike at overlap q."""
    r, unit = snr * q, mpmath.sqrt(RHO)

    def likelihood(y):
        return 1 - RHO + RHO * mpmath.exp(-r / (2 * RHO)) * mpmath.cosh(y / unit)

    def overlap():
        seen = lambda z: r / unit + mpmath.sqrt(r) * z  # noqa: E731
        mean = lambda y: RHO * mpmath.exp(-r / (2 * RHO)) * mpmath.sinh(y / unit) / likelihood(y)  # noqa: E731
        return normal(lambda z: mean(seen(z)))

    def energy():
        log = lambda mean, z: mpmath.log(likelihood(mean + mpmath.sqrt(r) * z))  # noqa: E731
        return snr * q**2 / 4 - normal(lambda z: RHO * log(r / unit, z) + (1 - RHO) * log(0, z))

    return overlap, energy


def test_the_sparse_spike_is_seen_before_it_is_easy_to_find():
    """The free energy of the informed solution passes that of the blind one, zero, where the evidence says so."""
    (number,) = transition("spiked-wigner-sparse", "observable-crossing")
    signs = []
    for side in (-1, 1):
        snr = mpf(number.text) + side * mpf(number.bound)
        q = mpmath.findroot(lambda q, snr=snr: sparse(snr, q)[0]() - q, (0.583, 0.584), tol=1e-12)
        signs.append(mpmath.sign(sparse(snr, q)[1]()))
    assert signs == [1, -1]
    assert number.value < 1


def test_the_informed_sparse_solution_appears_at_a_fold():
    """The least snr(q) of q = overlap(snr, q), near its minimum."""
    fold = min(
        mpmath.findroot(lambda snr, q=q: sparse(snr, q)[0]() - q, (0.7214, 0.7215), tol=1e-12)
        for q in map(mpf, ("0.420", "0.421", "0.422"))
    )
    first = min(transition("spiked-wigner-sparse", "spinodal"), key=lambda number: number.value)
    assert holds(first, fold)


def test_the_dense_rademacher_spike():
    """q = <tanh(snr q + sqrt(snr q) z)>: the sparse model with no zeros left."""
    q = mpmath.findroot(lambda q: normal(lambda z: mpmath.tanh(1.5 * q + mpmath.sqrt(1.5 * q) * z)) - q, 0.4)
    theory = find("classical/spiked-wigner-sparse").state_evolution()
    points = sectors.minima(theory, theory.setup({"rho": 1, "lambda": "3/2"}), digits=5)
    assert holds(points[0].order_parameters["q"], q)


@pytest.mark.parametrize("over", [None, ("6/5", "8/5"), ("13/10", 2)])
def test_the_spinodal_of_the_binary_perceptron(over):
    """The largest alpha(q) of q = <tanh(r + sqrt(r) z)>, r = alpha 2/(1 - q) <G(u z)^2/H(u z)>, u^2 = q/(1 - q)."""

    def prior(r):
        return normal(lambda z: mpmath.tanh(r + mpmath.sqrt(r) * z))

    def labels(q):
        u = mpmath.sqrt(q / (1 - q))
        gain = lambda z: mpmath.npdf(u * z) ** 2 / (mpmath.erfc(u * z / mpmath.sqrt(2)) / 2)  # noqa: E731
        return 2 / (1 - q) * normal(gain, width=8)

    load = [r / labels(prior(r)) for r in (mpf("3.2") + mpf(k) / 50 for k in range(6))]
    top = max(load)
    assert load.index(top) not in (0, len(load) - 1)
    (number,) = transition("binary-perceptron", "spinodal", over=over)
    assert holds(number, top)
    assert transition("binary-perceptron", "coexistence", over=over) == []


@pytest.mark.parametrize("price", ["2/5", "9/20"])
def test_the_stability_of_the_paramagnet_in_the_starter(tmp_path, price):
    """Blume and Capel: D = T ln(2 (1 - T)/T), at two temperatures; between them the paramagnet is unstable."""
    path = tmp_path / "mine.toml"
    path.write_text(starter("mine"))
    action = read(path).action()
    entries = action_transitions.transitions(action, action.setup({"D": price}))
    numbers = [entry.value for entry in entries if entry.kind == "instability"]
    assert len(numbers) == 2
    with mpmath.workdps(60):
        level = mpf(Fraction(price).numerator) / Fraction(price).denominator
        for number, ends in zip(numbers, (("0.1", "0.3"), ("0.35", "0.6")), strict=True):
            exact = mpmath.findroot(lambda t: t * mpmath.log(2 * (1 - t) / t) - level, ends, solver="illinois")
            assert abs(number.value - exact) <= number.error


# --- where nothing is seen: overlaps that all vanish, and covariances with them ---

NOTHING = [
    ("spiked-wigner-sparse", {"rho": 1}, "lambda", [("1/2", "stable"), (1, "stable"), ("3/2", "unstable")], 1),
    ("phase-retrieval", {}, "alpha", [("1/4", "stable"), ("1/2", "stable"), (1, "unstable")], 2),
    ("sherrington-kirkpatrick", {"h": 0}, "T", [(2, "stable"), (1, "stable"), ("1/2", "unstable")], None),
]


@pytest.mark.parametrize("name, values, control, cases, rate", NOTHING, ids=[n for n, *_ in NOTHING])
def test_the_trivial_fixed_point_is_listed_with_its_stability(name, values, control, cases, rate):
    """A small overlap grows by lambda, 2 alpha and 1/T^2 in a round; at one it is the next order that decides."""
    theory = find(f"classical/{name}").state_evolution()
    for at, stability in cases:
        points = sectors.minima(theory, theory.setup({**values, control: at}))
        (trivial,) = (point for point in points if not point.order_parameters["q"].value)
        assert (trivial.name, str(trivial.stability)) == ("trivial", stability)
        growth = rate * Fraction(at) if rate else 1 / Fraction(at) ** 2
        assert abs(trivial.observables["growth"].value - float(growth)) <= mpf(trivial.observables["growth"].bound)


def test_in_a_field_nothing_is_no_fixed_point():
    theory = find("classical/sherrington-kirkpatrick").state_evolution()
    points = sectors.minima(theory, theory.setup({"h": "1/10", "T": 2}))
    assert [point.name for point in points] == ["all"]


def test_where_every_search_is_open_no_transition_is_no_answer():
    """Above its spinodal the binary perceptron has no solution but the teacher, to which iterations creep for ever."""
    theory = find("classical/binary-perceptron").state_evolution()
    found = evolution_transitions.transitions(theory, theory.setup({}), over=("8/5", 2))
    assert (len(found), found.status) == (0, Status.UNRESOLVED)
    assert "came to no end at alpha" in " ".join(found.notes)


@pytest.mark.parametrize("over, status", [(("1/2", "5/4"), Status.UNRESOLVED), (("1/4", "11/10"), Status.OK)])
def test_a_branch_that_is_lost_leaves_the_list_open(over, status):
    """What happens beyond the place where a branch is lost is not known, whatever was found elsewhere.

    Without its wall, the branch that runs to perfect recovery is lost on its way.
    """
    walled = find("classical/phase-retrieval").state_evolution()
    theory = replace(walled, pairs=tuple(replace(pair, wall=None) for pair in walled.pairs))
    found = evolution_transitions.transitions(theory, theory.setup({}), over=over)
    assert len(found) > 0
    assert all(entry.status is Status.OK for entry in found)
    assert (found.status, any("branch was lost" in note for note in found.notes)) == (status, status is not Status.OK)


@pytest.mark.parametrize("over", [None, ("2/5", "1/2"), ("1/2", "3/4")])
def test_a_critical_point_on_an_end_of_the_window(over):
    """Two colours order at T = 1/2, where the declared window ends, too."""
    action = find("classical/potts").action()
    found = action_transitions.transitions(action, action.setup({"q": 2}), over=over)
    (entry,) = found
    assert (entry.kind, entry.order, entry.value.text, found.status) == (
        "instability",
        "second",
        "0.500000000000000",
        Status.OK,
    )
    assert "is critical" in " ".join(found.notes)


@pytest.mark.parametrize("name", ["spiked-wigner-gaussian", "spiked-wishart"])
def test_on_a_wall_a_cubic_term_may_leave_the_order_second(name):
    """q = 1 - 1/lambda grows from zero, but q < 0 is no overlap."""
    action = find(f"classical/{name}").action()
    assert action_transitions.transitions(action, action.setup({})).of("instability").order == "second"


def test_signs_alone_recover_the_weights_from_one_projection_a_weight_on():
    """The unstable branch ends where perfect recovery begins: at alpha = 1 for real weights (Maillard et al. 2020).

    Next to q = 1 the update of the file's formulas leaves 1 - q = (1 - q)/(alpha (1 - C sqrt(1 - q))) to leading order,
    with C = <e^(bt) log(1 + e^(-2bt))> over two normal variables, so that sqrt(1 - q) = (1 - 1/alpha)/C.
    """
    theory = find("classical/phase-retrieval").state_evolution()
    evolution = Evolution(theory, theory.setup({}))
    survey = surveyed(evolution, 0.9, 2.0, lambda line: None)
    left = {station.control: 1 - station.x[0] for branch in survey.branches for station in branch.stations}
    near = {alpha: room for alpha, room in left.items() if 1e-6 < room < 5e-5}
    with mpmath.workdps(15):
        # The product of two normal variables has the density K_0(|s|)/pi.
        density = lambda s: mpmath.besselk(0, abs(s)) / mpmath.pi  # noqa: E731
        open_ = mpmath.quad(
            lambda s: density(s) * mpmath.exp(s) * mpmath.log1p(mpmath.exp(-2 * s)), [-30, -1, 0, 1, 30]
        )
    assert len(near) > 3
    for alpha, room in near.items():  # on the coarse rule to 1e-5 of 1 - q in an update, of which sqrt(1 - q) is left
        assert mpf(room) ** 0.5 * open_ / (1 - 1 / alpha) == pytest.approx(1, abs=0.02)
    (q,) = evolution.update(np.array([1 - 1e-8]), 1.0, evolution.ladder[0])
    assert (1 - q) / 1e-8 - 1 == pytest.approx(float(open_) * 1e-4, rel=1e-3)


def test_phase_retrieval_is_followed_to_its_wall():
    theory = find("classical/phase-retrieval").state_evolution()
    found = evolution_transitions.transitions(theory, theory.setup({}))
    assert found.status == Status.OK
    assert [entry.kind for entry in found] == ["instability", "spinodal"]
    assert any("runs to the wall of q at alpha = 1" in note for note in found.notes)


@pytest.mark.parametrize(
    "alpha, sectors_, walled",
    [("3/10", ["trivial"], False), ("9/10", ["all", "trivial"], False), ("21/20", ["all", "all", "trivial"], True)],
)
def test_what_phase_retrieval_has_at_a_control(alpha, sectors_, walled):
    theory = find("classical/phase-retrieval").state_evolution()
    found = sectors.minima(theory, theory.setup({"alpha": alpha}), digits=4)
    assert found.status == Status.OK
    assert sorted(point.name for point in found) == sectors_
    assert any("to its wall at 1" in note for note in found.notes) == walled


def test_the_random_field_ising_model_of_the_documentation():
    """T. Schneider and E. Pytte, Phys. Rev. B 15 (1977) 1519: the field vanishes where E[sech^2(s z/T)] = T."""
    page = (CLASSICAL.parents[1] / "docs" / "theory-files.md").read_text(encoding="utf-8")
    (text,) = (t for t in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if 'name = "random-field"' in t)
    theory = parsed(text, "random-field").state_evolution()
    (entry,) = evolution_transitions.transitions(theory, theory.setup({}))
    curie = mpmath.findroot(lambda t: normal(lambda z: mpmath.sech(z / (2 * t)) ** 2) - t, mpf("0.7"))
    assert (entry.kind, entry.order) == ("instability", "second")
    assert holds(entry.value, curie)
    points = sectors.minima(theory, theory.setup({"T": "1/2"}))
    m = mpmath.findroot(lambda m: normal(lambda z: mpmath.tanh(2 * m + z)) - m, mpf("0.7"))
    free = m**2 / 2 - normal(lambda z: mpmath.log(2 * mpmath.cosh(2 * m + z))) / 2
    assert [str(point.stability) for point in points] == ["stable", "unstable"]
    assert holds(points[0].order_parameters["m"], m)
    assert holds(points[0].action, free)

"""Positional and semantic learning: the derivation checked, live, and able to fail; its result in the field's form."""

import time

import mpmath
import pytest
from sympy import Basic, MatrixBase, Mul, Rational, S, Symbol, Tuple, exp, lambdify, sqrt

from derive.averages import GaussianAverage, JumpIntegral, MoreauEnvelope, Proximal, ProximalJacobian, Score
from derive.catalogue import THEORIES, find
from derive.checks import EVALUATORS
from derive.derivation import Derivation
from derive.positional_semantic import (
    asymptotics,
    canonical,
    derivation,
    general,
    potential,
    replicas,
    ridge,
    state_evolution,
)
from derive.positional_semantic.model import (
    DEFAULT,
    Eigenspace,
    Matrix,
    Model,
    alpha,
    isotropic,
    lambda_,
    omega,
    row_softmax,
    sigma,
)
from derive.positional_semantic.overlaps import fields
from numerics.emit.emitted import emit

q, V, m, theta = replicas.q, replicas.V, replicas.m, replicas.theta
qhat, Vhat, mhat, thetahat = replicas.qhat, replicas.Vhat, replicas.mhat, replicas.thetahat
A = Symbol("A_11", nonnegative=True)


def changed(model=DEFAULT, **fields):
    return Model(**{**{name: getattr(model, name) for name in model.__dataclass_fields__}, **fields})


def two_spaces():
    """Two eigenspaces, unequal tokens, and a teacher that overlaps with the positions."""
    third, share = Rational(1, 3), Rational(1, 5)
    spaces = (
        Eigenspace(
            third,
            (sigma**2, 2 * sigma**2),
            Matrix([[1, -1], [-1, 2]]) / 3,
            Matrix([[Rational(1, 2)]]),
            Matrix([share, 0]),
        ),
        Eigenspace(
            1 - third,
            (3 * sigma**2, sigma**2 / 2),
            Matrix([[1, third], [third, 1]]),
            Matrix([[Rational(3, 2)]]),
            Matrix([share, -third]),
        ),
    )
    return changed(spaces=spaces, target=Matrix([[Rational(7, 10), Rational(3, 10)], [Rational(1, 5), Rational(4, 5)]]))


MODELS = {
    "as published": DEFAULT,
    "loss factor 1": changed(loss_factor=S.One),
    "lambda doubled": changed(decay=2 * lambda_),
    "omega squared": changed(mixing=omega**2),
    "two eigenspaces": two_spaces(),
    "rank two": isotropic(2, 2, 2),
    "three tokens": isotropic(3, 2, 1),
}


def known(step):
    """The checks whose evaluators are exact; those that need averages over proximal maps come with the numerics."""
    return [check for check in step.checks if check.evaluator in EVALUATORS]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ("rank two", "three tokens"))) for n in MODELS]
)
def test_every_check_passes(name):
    chain = derivation(MODELS[name])
    reports = [chain.run(step, check) for step in chain.steps for check in known(step)]
    assert not [f"{r.step}: {r.check}: {r.detail}" for r in reports if not r.passed]


def test_every_step_has_a_check_and_a_reason():
    for step in derivation().steps:
        assert known(step), step.name
        assert step.reason, step.name


# --- mutations ---


def rebuilt(value: Basic, change):
    """``value`` with ``change`` applied to its scalar entries."""
    if isinstance(value, Tuple):
        return Tuple(*(rebuilt(item, change) for item in value))
    if isinstance(value, MatrixBase):
        return value.applyfunc(change)
    return change(value)


def shortened(item: Basic, place: int) -> Basic:
    """A sum without one of its terms; inside averages and envelopes too."""
    if isinstance(item, GaussianAverage):
        return item.of(shortened(item.integrand, place))
    if isinstance(item, MoreauEnvelope):
        return item.func(shortened(item.loss, place), *item.args[1:])
    if item.is_Mul and item.has(GaussianAverage):
        return Mul(*(shortened(factor, place) if factor.has(GaussianAverage) else factor for factor in item.args))
    return item.func(*(item.args[:place] + item.args[place:][1:])) if item.is_Add else item


MUTATIONS = {
    "times 8/7": lambda value: rebuilt(value, lambda item: Rational(8, 7) * item),
    "first term dropped": lambda value: rebuilt(value, lambda item: shortened(item, 0)),
    "second term dropped": lambda value: rebuilt(value, lambda item: shortened(item, 1)),
    "lambda doubled": lambda value: value.xreplace({lambda_: 2 * lambda_}),
}


def catching_check(chain: Derivation, name: str) -> str | None:
    """A check that fails, the mutated step's own first."""
    for step in sorted(chain.steps, key=lambda step: step.name != name):
        for check in known(step):
            if not chain.run(step, check).passed:
                return f"{step.name}: {check.name}"
    return None


def test_every_mutation_is_caught(capsys):
    chain, rows, survivors, steps = derivation(), [], [], set()
    for step in chain.steps:
        original = chain.value(step.name)
        for label, change in MUTATIONS.items():
            if change(original) == original:
                continue
            caught = catching_check(chain.altered(step.name, change), step.name)
            rows.append(f"{step.name:20} {label:20} {caught or 'SURVIVED'}")
            steps.add(step.name)
            if caught is None:
                survivors.append(rows[-1])
    with capsys.disabled():
        print("\nmutations of positional-semantic: step, mutation, check that caught it", *rows, sep="\n")
    assert not survivors
    assert steps == {step.name for step in chain.steps}


# --- the result, in the form the field knows ---


def scalars():
    """The four scalar updates as they are published: the prior, and what each conjugate averages."""
    D = lambda_ + sigma**2 * Vhat
    prior = {
        q: sigma**2 * (sigma**2 * qhat + mhat**2 + sigma**4 * thetahat**2) / D**2,
        V: sigma**2 / D,
        m: mhat / D,
        theta: sigma**4 * thetahat / D,
    }
    one, two = Symbol("f_1"), Symbol("f_2")
    (c_1, c_2), (Y_1, Y_2) = fields("c", 2, 1), fields("Y", 2, 1)
    channel = {
        qhat: one**2 + two**2,
        Vhat: -one * Score(c_1) - two * Score(c_2),
        mhat: one - two,
        thetahat: one * Score(Y_1) + two * Score(Y_2),
    }
    return prior, channel, (one, two)


def test_the_prior_side_in_scalars():
    prior, _, _ = scalars()
    for name, value in state_evolution().prior.items():
        assert (value - prior[name]).simplify() == 0, name


def test_the_channel_side_in_scalars():
    """alpha times an average over one measure of f = (z* - c)/V times 1, f, or a score: Stein's form."""
    theory = state_evolution()
    _, channel, forces = scalars()
    (envelope,) = theory.potential.atoms(MoreauEnvelope)
    place = {z: force * V + c for z, force, c in zip(envelope.minimiser(), forces, envelope.center, strict=True)}
    for name, value in theory.channel.items():
        nodes = value.atoms(GaussianAverage)
        assert {node.covariance for node in nodes} == {
            Matrix([[q, 0, theta, 0], [0, q, 0, theta], [theta, 0, sigma**2, 0], [0, theta, 0, sigma**2]])
        }
        assert {node.mean for node in nodes} == {Tuple(m, -m, 0, 0)}
        plain = value.xreplace({node: node.integrand for node in nodes}).xreplace(place)
        assert (plain - alpha * channel[name]).expand() == 0, name


def test_the_potential_in_scalars():
    theory = state_evolution()
    D = lambda_ + sigma**2 * Vhat
    (average,) = theory.potential.atoms(GaussianAverage)
    pairing = (Vhat * q - qhat * V) / 2 - m * mhat - theta * thetahat
    prior = (sigma**2 * qhat + mhat**2 + sigma**4 * thetahat**2) / (2 * D)
    assert (theory.potential.xreplace({average: S.Zero}) + pairing + prior).simplify() == 0
    assert theory.potential.coeff(average) == alpha


def test_the_loss_in_its_sufficient_form():
    """sigma^2 sum_i (p_i - t_i)^2 with p_1 = sigmoid(z_1 (z_1 - z_2)), checked at numbers."""
    (envelope,) = state_evolution().potential.atoms(MoreauEnvelope)
    z, Y = list(envelope.fields), list(fields("Y", 2, 1))
    ours = lambdify((*z, *Y, A, omega, sigma), envelope.loss, "mpmath")

    def sigmoid(x):
        return 1 / (1 + mpmath.exp(-x))

    def published(z_1, z_2, Y_1, Y_2, a, w, s):
        pairs = (
            (sigmoid(z_1 * (z_1 - z_2)), sigmoid(Y_1 * (Y_1 - Y_2))),
            (sigmoid(z_2 * (z_2 - z_1)), sigmoid(Y_2 * (Y_2 - Y_1))),
        )
        return s**2 * sum((p - w * a - (1 - w) * t) ** 2 for p, t in pairs)

    with mpmath.workdps(30):
        for point in ((0.3, -1.2, 0.8, 0.1), (-2.5, 1.1, -0.4, 1.9)):
            values = (*map(mpmath.mpf, point), mpmath.mpf(3) / 5, mpmath.mpf(3) / 10, mpmath.mpf(1) / 2)
            assert abs(ours(*values) - published(*values)) < 1e-28


def test_the_loss_is_emitted_without_overflow():
    """Fields of a thousand: attention is zero or one, and nothing warns (warnings are errors here)."""
    (envelope,) = state_evolution().potential.atoms(MoreauEnvelope)
    names = (*envelope.fields, *fields("Y", 2, 1), A, omega, sigma)
    slopes = tuple(envelope.loss.diff(z) for z in envelope.fields)
    loss, *gradient = emit((envelope.loss, *slopes), names)(1000, -1000, -1000, 999, 0.6, 0.3, 0.5)
    assert loss == pytest.approx(0.25 * 2 * (1 - 0.18 - 0.7) ** 2)
    assert gradient == [0, 0]


def test_the_linear_baseline_as_a_number():
    """.00804646667 (1 - omega)^2 at sigma = 1/2."""
    (mse,) = (o for o in state_evolution().observables if o.name == "mse")
    level = mse.crossover
    with mpmath.workdps(20):
        for name in level.atoms(GaussianAverage):
            level = level.xreplace({name: S(plane(name))})
        value = level.xreplace({sigma: Rational(1, 2), omega: Rational(3, 10)})
    assert abs(value / Rational(49, 100) - Rational("0.00804646667")) < 1e-11


def plane(node):
    """An average over (Y_1, Y_2) of variance 1/4 by the trapezoidal rule, which converges exponentially."""
    integrand = lambdify(tuple(node.variables), node.integrand.xreplace({sigma: Rational(1, 2)}), "mpmath")
    step, reach = mpmath.mpf(1) / 3, 24
    grid = [(k * step / 2, mpmath.npdf(k * step) * step) for k in range(-reach, reach + 1)]
    return mpmath.fsum(integrand(a, b) * u * v for a, u in grid for b, v in grid)


def test_stability_in_scalars():
    """alpha E|dz*/dc - 1|^2, and |z_+ - z_-|^2 integrated over the surface of jumps, over the root of q."""
    smooth, jumps = derivation().value("reduced worst direction")
    (envelope,) = state_evolution().potential.atoms(MoreauEnvelope)
    places = [(i, j) for i in range(2) for j in range(2)]
    square = sum(((ProximalJacobian(*envelope.problem, i, j) - int(i == j)) ** 2 for i, j in places), S.Zero)
    plain = smooth.xreplace({node: node.integrand for node in smooth.atoms(GaussianAverage)})
    assert (plain - alpha * square).expand() == 0
    plain = jumps.xreplace({node: node.integrand for node in jumps.atoms(JumpIntegral)})
    assert (plain - sum(z**2 for z in envelope.minimiser()) / sqrt(q)).expand() == 0


# --- a change of the model in one place ---


def test_the_loss_factor_moves_the_potential_as_it_must():
    """e(kappa, lambda) is homogeneous: with kappa doubled, e(lambda) = 2 e'(lambda/2), hats doubled and V halved."""
    ours, other = (state_evolution(model).potential for model in (DEFAULT, MODELS["loss factor 1"]))
    (average,), (twice,) = ours.atoms(GaussianAverage), other.atoms(GaussianAverage)
    assert twice.integrand.loss.expand() == (2 * average.integrand.loss).expand()
    X = Symbol("X")
    scaling = {lambda_: lambda_ / 2, Vhat: Vhat / 2, mhat: mhat / 2, thetahat: thetahat / 2, qhat: qhat / 4, V: 2 * V}
    scaled = 2 * ours.xreplace({average: X / 2}).xreplace(scaling)
    assert (other.xreplace({twice: X}) - scaled).simplify() == 0


def test_the_ridge_moves_prior_and_potential():
    ours, other = (state_evolution(model) for model in (DEFAULT, MODELS["lambda doubled"]))
    assert other.potential != ours.potential
    assert (other.potential - ours.potential.subs(lambda_, 2 * lambda_)).simplify() == 0
    for name, value in other.prior.items():
        assert (value - ours.prior[name].subs(lambda_, 2 * lambda_)).simplify() == 0
        assert (value - ours.prior[name]).simplify() != 0
    assert other.channel == ours.channel


def test_another_attention_goes_all_the_way():
    """A softmax at half the temperature is the same theory with scores doubled, in every field that it holds."""
    sharp = changed(attention=lambda scores: row_softmax(2 * scores))
    ours, other = ({o.name: o.value for o in state_evolution(model).observables} for model in (DEFAULT, sharp))
    assert other["mse"].xreplace({s: exp(s.args[0] / 2) for s in other["mse"].atoms(exp)}) == ours["mse"]
    assert other["mse"] != ours["mse"]
    (envelope,), (sharper,) = (state_evolution(model).potential.atoms(MoreauEnvelope) for model in (DEFAULT, sharp))
    assert sharper.loss.xreplace({s: exp(s.args[0] / 2) for s in sharper.loss.atoms(exp)}) == envelope.loss


def test_a_model_that_does_not_fit_is_refused():
    for change, message in (
        ({"target": Matrix([[1, 0, 0], [0, 1, 0]])}, "must be 2 x 2"),
        ({"target": Matrix([[1, 1], [0, 1]])}, "row 1 of A sums to 2"),
        ({"length": 1}, "at least two tokens"),
        ({"length": 3, "target": Matrix.eye(3)}, "does not fit 3 tokens"),
        ({"spaces": ()}, "do not sum to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            changed(**change)
    with pytest.raises(ValueError, match="use the general one"):
        state_evolution(two_spaces())


# --- what is handed on ---


def test_the_state_evolution_declares_what_solvers_need():
    theory = state_evolution()
    assert {p.name: str(p.default) for p in theory.parameters} == {
        "omega": "3/10", "sigma": "1/2", "lambda": "1/100", "A_11": "3/5",
    }  # fmt: skip
    assert [p.range_text for p in theory.parameters] == ["0 <= omega <= 1", "sigma > 0", "lambda > 0", "0 <= A_11 <= 1"]
    assert theory.control.symbol == alpha
    assert {s.name: set(s.vanishing) for s in theory.sectors} == {
        "semantic": {m}, "positional": {theta}, "uninformed": {m, theta}, "mixed": set(),
    }  # fmt: skip
    assert [o.name for o in theory.observables if o.crossover is not None] == ["mse"]
    assert next(pair.scale for pair in theory.pairs if pair.overlap == V) == sigma**2 / lambda_


@pytest.mark.parametrize("vanishing, conjugate, all_fields", [(m, mhat, True), (theta, thetahat, False)])
def test_sectors_are_preserved(vanishing, conjugate, all_fields):
    """Without m (theta) a flip of all fields (the teacher's) keeps loss and measure, and turns the integrand around."""
    theory = state_evolution()
    (envelope,) = theory.potential.atoms(MoreauEnvelope)
    places = {node: Symbol(f"place_{node.place}") for node in envelope.minimiser()}
    flip = {y: -y for y in fields("Y", 2, 1)}
    if all_fields:
        flip |= {x: -x for x in (*fields("z", 2, 1), *fields("c", 2, 1), *places.values())}
    assert envelope.loss.xreplace(flip) == envelope.loss
    for node in theory.channel[conjugate].atoms(GaussianAverage):
        plain = node.explicit().subs(vanishing, 0)
        signs = [-1 if x in flip else 1 for x in plain.variables]
        assert plain.covariance == Matrix.diag(*signs) * plain.covariance * Matrix.diag(*signs)
        assert list(plain.mean) == [sign * mean for sign, mean in zip(signs, plain.mean, strict=True)]
        odd = plain.integrand.xreplace(places)
        assert odd != 0
        assert (odd.xreplace(flip) + odd).expand() == 0


def test_the_general_route_builds_in_time():
    begin = time.process_time()
    theory = general(isotropic(3, 2, 1))
    theory.prior  # noqa: B018
    assert time.process_time() - begin < 10
    assert [overlap.name for overlap in theory.overlaps] == [
        *("q_11", "q_12", "q_22", "V_11", "V_12", "V_22"),
        *("m_11", "m_21", "m_22", "theta_1", "theta_2"),
    ]
    assert not any(value.has(Proximal) for value in theory.prior.values())


def test_the_general_route_is_the_reduced_one_where_both_apply():
    """Two tokens of rank one share q, V and theta and have opposite m, whether A is symmetric or not."""
    whole, reduced, place = general(DEFAULT), state_evolution(), potential.symmetric_place(DEFAULT)
    equal_targets = {Symbol("A_22", nonnegative=True): A}
    assert [pair.overlap for pair in whole.pairs] == [pair.overlap for pair in reduced.pairs]
    assert set(equal_targets) < set(place)
    for ours, theirs in ((whole.channel, reduced.channel), (whole.prior, reduced.prior)):
        for name, value in ours.items():
            assert (value.xreplace(equal_targets) - theirs[name]).expand() == 0, name


def test_the_general_sectors_follow_the_model():
    assert [sector.name for sector in general(two_spaces()).sectors] == ["mixed"]
    free = {sector.name: set(map(str, sector.vanishing)) for sector in general(isotropic(2, 2, 1)).sectors}
    beside, m_1, thetas = {"q_12", "V_12"}, {"m_1"}, {"theta_1", "theta_2"}
    assert free == {
        "semantic": beside | m_1 | {"theta_2"},
        "positional": beside | thetas,
        "uninformed": beside | m_1 | thetas,
        "mixed": beside | {"theta_2"},
    }


def test_matrices_are_diagonal_with_three_tokens_where_two_of_them_are_alike():
    """The sign of the second column is turned back by an exchange of the last two tokens, if A lets it."""
    free, equal = isotropic(3, 2, 2), Matrix(3, 3, lambda a, b: A if a == b else (1 - A) / 2)
    assert not canonical.is_diagonal(free, positions=True)
    assert canonical.is_diagonal(free, positions=False)
    assert canonical.is_diagonal(changed(free, target=equal), positions=True)
    lone = Matrix([[1, 0, 0], [0, 1, 1], [0, 1, 1]]).applyfunc(lambda entry: entry * Rational(1, 2))
    assert canonical.is_diagonal(changed(free, target=lone + Matrix.diag(Rational(1, 2), 0, 0)), positions=True)
    other = Matrix([[1, 0, 0], [0, 1, 0], [0, 1, 0]])
    assert not canonical.is_diagonal(changed(free, target=other), positions=True)


def test_unequal_tokens_keep_overlaps_of_their_own():
    names = {overlap.name for overlap in general(two_spaces()).overlaps}
    assert names == {"q_1", "q_2", "V_1", "V_2", "m_1", "m_2", "theta_1", "theta_2"}


def test_the_laws_hold_the_overlaps_of_their_limit_alone():
    """Those of few samples none, those of many the one that their sector leaves; terms are free of the control."""
    laws = asymptotics()
    assert [law.name for law in laws] == [
        *(f"{name}-few" for name in ("e", "q", "V", "Vhat", "growth_m")),
        *(f"{name}-positional" for name in ("e", "q", "m", "mse")),
        *(f"{name}-semantic" for name in ("e", "q", "theta", "mse")),
    ]
    parameters = {omega, sigma, lambda_, A}
    for law in laws:
        assert set(law.at) == {"uninformed": set(), "semantic": {theta}, "positional": {m}}[law.sector]
        following = [] if law.next_term is None else [law.next_term]
        for part in (*law.terms, *law.at.values(), *law.start.values(), *following):
            assert part.free_symbols <= parameters | set(law.at) | {alpha}, law.name
        assert not any(part.has(alpha) for part in (*law.terms, *law.at.values()))
        assert law.scale.free_symbols <= {alpha}


def test_ridge_instances_are_what_they_claim():
    """The textbook's resolvent s of a Gram matrix of n L rows: 1/s = lambda + alpha L sigma^2/(1 + sigma^2 s)."""
    with mpmath.workdps(30):
        values = ridge.solved(DEFAULT, 1).values
        width, decay = values[Symbol("V_1", real=True)], values[lambda_]
        pull = 2 * values[alpha] * values[sigma] ** 2 / (1 + width)
        assert abs(values[sigma] ** 2 / width - decay - pull) < 1e-25


def test_the_catalogue_finds_it():
    theory = find("positional-semantic")
    assert theory in THEORIES
    assert theory.state_evolution().potential == state_evolution().potential
    assert len(theory.derivation()) == len(derivation())
    assert [law.name for law in theory.asymptotics()] == [law.name for law in asymptotics()]
    with pytest.raises(TypeError, match="not an action"):
        theory.action()
    with pytest.raises(TypeError, match="not a state evolution"):
        find("copy-head/softmax").state_evolution()

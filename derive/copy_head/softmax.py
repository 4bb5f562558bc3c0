r"""The softmax head: its effective action over the score gap s of the copied position (claim C4 of arXiv 2606.12058).

.. math:: F(s) = \frac{\gamma_g}{2} (L-1) s^2 + D(1, a(s)), \qquad a(s) = \frac{e^s - 1}{e^s - 1 + L}, \quad s \ge 0
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import product

import mpmath
from sympy import Expr, Function, LambertW, Rational, S, Symbol, Tuple, cancel, exp, lambdify, log, solve, sqrt
from sympy.matrices import ImmutableDenseMatrix

from derive.action import EffectiveAction, Observable, OrderParameter, Phase
from derive.asymptotic import AsymptoticSeries, newton, series_terms
from derive.checks import Comparison
from derive.copy_head import fluctuations, linear, observables, posterior, relaxed, scaling, symmetry
from derive.copy_head.model import CONTROL, DEFAULT, PARAMETERS, SCORES, L, Model, P, T, V, c, gamma_g, gamma_w, s, u
from derive.copy_head.symbols import GLOSSARY
from derive.derivation import Check, Derivation, Step

__all__ = ["action", "asymptotics", "derivation", "relaxed_action"]


def score_gap_cost(model: Model) -> Expr:
    """The least |G|^2 that raises the copied score of every row by s over all others: row shifts are free."""
    shift = Symbol("r")
    row = (s + shift) ** 2 + (L - 1) * shift**2
    return (L * row.subs(shift, solve(row.diff(shift), shift)[0])).factor()


def softmax_attention(model: Model) -> Expr:
    """a(s): copied minus other entry of the softmax of (s, 0, ..., 0); the row sums to one, so u = 1 and c = a."""
    norm = exp(s) + (L - 1)
    copied, other = exp(s) / norm, 1 / norm
    return cancel(copied - other)


def softmax_action(model: Model, population: Expr, cost: Expr, attention: Expr) -> Expr:
    """Push-forward of the score posterior through the softmax: the data term at u = 1, c = a(s), and the cost of s."""
    return model.score_decay / 2 * cost + population.subs({u: S.One, c: attention}, simultaneous=True)


def gap_bound(model: Model, cost: Expr) -> Expr:
    """Bound on s at any stationary point.

    With b^2 <= L n and 1 - a <= L e^-s the slope of the data is at most 2 kappa (P/V) (V-1) (L-1) L e^-s, the entropy only
    adds to the slope of the cost; so s e^s is at most their ratio at s = 1.
    """
    majorant = 2 * model.loss_factor * (P / V) * (V - 1) * (L - 1) * L
    restoring = model.score_decay / 2 * cost.diff(s) / s
    return LambertW((majorant / restoring).factor())


def window(model: Model, cost: Expr) -> Tuple:
    """Range of P scanned for transitions.

    The copy phase needs a data slope of order V - 1 against the cost, P/V of order gamma_g/(2 kappa (V - 1)); uniform
    attention loses its stability at the latest where (P/V)^2/(P/V + gamma_w/(2 kappa)) is L times that.
    """
    strength = 2 * model.loss_factor * L
    low = model.score_decay * L / (strength * (V - 1))
    high = L * low + sqrt(L * low * model.weight_decay * L / strength) + T * V / strength
    return Tuple(V * low / 16, 16 * V * high)


# --- checks ---

_VALUES = {T: Rational(1, 3), gamma_w: Rational(6, 5), gamma_g: Rational(5, 7)}


def _gap_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Least norm over all (V+L)^2 scores such that every row of every sequence has gap one."""
    for length, symbols in ((2, 2), (3, 2)):
        size = symbols + length
        rows = set()
        for tokens, a, b in product(product(range(symbols), repeat=length), range(length), range(length)):
            copied = (a - derivation.model.shift) % length
            if b != copied:
                row = [0] * size**2
                for sign, key in ((1, copied), (-1, b)):
                    for i, j in product((tokens[a], symbols + a), (tokens[key], symbols + key)):
                        row[i * size + j] += sign
                rows.add(tuple(row))
        ours = derivation.value("score gap cost").subs({L: length, V: symbols, s: 1})
        yield f"L = {length}, V = {symbols}", ours, symmetry.least_norm(sorted(rows))


def _attention_claim(derivation: Derivation) -> Iterable[Comparison]:
    """u and c measured from the row-softmax of an explicit score matrix with arbitrary row shifts, e^s rational."""
    for length, growth in ((3, Rational(5, 2)), (5, S(7))):
        shift = symmetry.shift_matrix(derivation.model, length)
        rows = ImmutableDenseMatrix(
            length, length, lambda a, b, shift=shift, growth=growth: (a + 2) * (growth if shift[a, b] else 1)
        )
        matrix = ImmutableDenseMatrix(length, length, lambda a, b, rows=rows: rows[a, b] / sum(rows.row(a)))
        rest = matrix - ImmutableDenseMatrix.ones(length, length) / length
        measured = (rest.T * shift).trace() / (length - 1)
        yield f"L = {length}", derivation.value("softmax attention").subs(L, length).subs(exp(s), growth), measured


def _action_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The marginal action with all sequences enumerated, at explicit scores s Pi_perp and their row-softmax."""
    for length, symbols, growth in ((3, 2, 3), (3, 3, 6)):
        values = {**_VALUES, L: S(length), V: S(symbols), P: S(11), s: log(S(growth))}
        shift = symmetry.shift_matrix(derivation.model, length)
        flat = ImmutableDenseMatrix.ones(length, length)
        matrix = ((growth - 1) * shift + flat) / (growth + length - 1)
        gram, cross = (values[P] * moment for moment in symmetry.enumerated(matrix, shift, symbols))
        scores = ImmutableDenseMatrix.diag(
            ImmutableDenseMatrix.zeros(symbols, symbols), values[s] * (shift - flat / length)
        )
        explicit = posterior.at(
            derivation.value("marginal action"),
            values,
            {posterior.GRAM: gram, posterior.CROSS: cross, SCORES: scores},
        )
        yield f"L = {length}, V = {symbols}", derivation.value("softmax action").subs(values), explicit


def _bound_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Beyond the bound the action grows."""
    names = (L, V, P, *_VALUES)
    slope = lambdify((s, *names), derivation.value("softmax action").diff(s), "mpmath")
    bound = lambdify(names, derivation.value("gap bound"), "mpmath")
    draw = random.Random(2)
    for index in range(40):
        problem = {L: draw.randint(2, 60), V: draw.randint(2, 12), P: draw.randint(1, 9999), **_VALUES}
        numbers = [mpmath.mpf(value.p) / value.q for value in map(S, problem.values())]
        yield f"point {index}", slope(bound(*numbers) * draw.randint(100, 300) / 100, *numbers), mpmath.mpf(0)


def _balance_claim(derivation: Derivation) -> Iterable[Comparison]:
    """At the bound the slope of the cost equals the majorant of the slope of the data, V - 1 token modes at b^2 = L n."""
    model = derivation.model
    for length, symbols in ((5, 3), (40, 8)):
        values = {**_VALUES, L: S(length), V: S(symbols), P: S(600)}
        bound = derivation.value("gap bound").subs(values)
        cost = model.score_decay / 2 * derivation.value("score gap cost").diff(s)
        samples = 2 * model.loss_factor * P * L / V
        yield (
            f"L = {length}",
            cost.subs(values).subs(s, bound),
            samples.subs(values) * (symbols - 1) * (length - 1) * exp(-bound),
        )


def _window_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Copying: the unit of P*. Uniform attention: from the action at large L, where both ends of its stability are simple.

    Cold, a pull D e^(2s) against the force K s has a stable balance up to D = K/(2e), and D is of first order in P or,
    with gamma_w large, of second. Hot, the slope changes sign with P at any s between the two scales 0 and ln sqrt(L).
    """
    low, high = derivation.value("softmax window")
    action, law = (derivation.value(name) for name in ("softmax action", "sample law"))
    unit = series_terms(law, scaling.ELL)[0].subs(scaling.ELL, 1)
    values = {**_VALUES, L: S(300), V: S(7)}
    yield "copying appears", (16 * low).subs(values), (unit * L).subs(values)
    with mpmath.workdps(400):
        for ridge, margin in ((1, 2 * S.Exp1), (10**240, sqrt(2 * S.Exp1))):
            cold = {L: S(10) ** 80, V: S(7), T: S.Zero, gamma_w: S(ridge), gamma_g: Rational(5, 7)}
            scale = high.subs(cold) / 16
            start = (mpmath.mpf(1) / 2, mpmath.mpf((scale / margin).evalf(50)))
            slope = action.subs(cold).diff(s)
            (_, samples), _ = newton((slope, slope.diff(s)), (s, P), start)
            yield f"uniform attention ends, gamma_w = 10^{len(str(ridge)) - 1}", scale, margin * samples
        hot = {L: S(10) ** 140, V: S(7), T: S(10) ** 500, gamma_w: S.One, gamma_g: Rational(5, 7)}
        scale = high.subs(hot) / 16
        slope = action.diff(s).subs({**hot, s: log(hot[L]) / 4})
        (samples,), _ = newton((slope,), (P,), (mpmath.mpf(scale.evalf(50)),))
        yield "uniform attention ends, T = 10^500", scale, samples


_PAPER = "arXiv 2606.12058"

ACTION_STEPS = (
    Step(
        "score gap cost",
        Function("R")(s),
        score_gap_cost,
        "A row of scores may be shifted freely before the softmax; the cheapest gap s costs (1 - 1/L) s^2 in each of"
        " the L rows, which the position-position block carries.",
        checks=(
            Check("least norm over all (V+L)^2 scores, every row of every sequence a constraint", "exact", _gap_claim),
        ),
        source=_PAPER,
    ),
    Step(
        "softmax attention",
        Function("a")(s),
        softmax_attention,
        "Row-softmax of the scores: copied entry minus the others; rows sum to one, so u = 1 and c = a(s).",
        checks=(Check("u and c measured from explicit score matrices", "exact", _attention_claim),),
        source=_PAPER,
    ),
    Step(
        "softmax action",
        Function("F")(s),
        softmax_action,
        "Push-forward of the score posterior through the softmax on the plane: gamma_g/2 times the cost of the gap, and the"
        " data term at u = 1, c = a(s).",
        takes=("population action", "score gap cost", "softmax attention"),
        checks=(
            Check("marginal action with all V^L sequences enumerated at explicit scores", "numeric", _action_claim),
        ),
        source=f"{_PAPER}, claims C2 and C4",
    ),
    Step(
        "gap bound",
        Symbol(r"s_\max"),
        gap_bound,
        "At a stationary point the slope of the cost balances that of the data, which falls at least like e^-s.",
        takes=("score gap cost",),
        checks=(
            Check("beyond the bound the action grows", "positive", _bound_claim),
            Check("cost and majorant balance at the bound", "numeric", _balance_claim),
        ),
    ),
    Step(
        "softmax window",
        Tuple(Symbol(r"P_\mathrm{low}"), Symbol(r"P_\mathrm{high}")),
        window,
        "Search range of the control: a factor 16 around the scales at which copying appears and uniform attention ends.",
        takes=("score gap cost",),
        checks=(Check("scales of the action in four limits", "numeric", _window_claim),),
    ),
)


def derivation(model: Model = DEFAULT) -> Derivation:
    """The derivation of the softmax head from the joint posterior to its thresholds and scaling law."""
    steps = (
        *posterior.STEPS,
        *symmetry.STEPS,
        *ACTION_STEPS,
        *observables.SOFTMAX_STEPS,
        *relaxed.SOFTMAX_STEPS,
        *fluctuations.SOFTMAX_STEPS,
        *scaling.SOFTMAX_STEPS,
        linear.ACTION_STEPS[0],
        *scaling.COMPARISON_STEPS,
    )
    return Derivation("copy-head/softmax", model, steps, "Copy head with softmax attention", GLOSSARY)


def action(model: Model = DEFAULT) -> EffectiveAction:
    """The effective action of the softmax head over the score gap s, driven by P."""
    chain = derivation(model)
    return _effective("copy-head/softmax", chain, "softmax action", chain.value("gap bound"))


def relaxed_action(model: Model = DEFAULT) -> EffectiveAction:
    """The softmax action with the same-token coordinate at its optimum, to second order, instead of at zero.

    Twice the bound of the plane is a search box here; that it holds every stationary point shows in the degree of the
    gradient on it, which the solvers verify.
    """
    chain = derivation(model)
    return _effective("copy-head/softmax-relaxed", chain, "relaxed action", 2 * chain.value("gap bound"))


def _effective(name: str, chain: Derivation, value: str, bound: Expr) -> EffectiveAction:
    attention = chain.value("softmax attention")
    weight = chain.value("copy weight").subs({u: S.One, c: attention})
    return EffectiveAction(
        name=name,
        value=chain.value(value),
        order_parameters=(
            OrderParameter(s, "gap between the copied score and the others in a row", S.Zero, bound, edge=True),
        ),
        control=CONTROL,
        parameters=PARAMETERS,
        window=tuple(chain.value("softmax window")),
        size=L,
        phases=(Phase("uniform"), Phase("copy")),
        observables=(
            Observable("a_G", attention, "copy entry of the mean attention minus the others"),
            Observable("a_1", 1 - attention, "weight of the uniform part of the mean attention"),
            Observable("loss", chain.value("softmax loss"), "mean squared error per position on new sequences"),
            Observable("copy_weight", weight, "share of the copy pattern in |A|^2"),
        ),
    )


def asymptotics(model: Model = DEFAULT) -> tuple[AsymptoticSeries, ...]:
    """The scaling laws of the softmax head, as its derivation states them."""
    return scaling.softmax_series(derivation(model))

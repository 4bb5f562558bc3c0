r"""How many samples a long sequence needs: the thresholds of both heads as L grows (claim C5 of arXiv 2606.12058).

.. math::
    \frac{P_{pool}}{V^2} \to \sqrt{\gamma_w \gamma_g}, \qquad
    \frac{P_\times}{L^{3/2} V^{1/2}} \to \sqrt{\frac{\gamma_w \gamma_g V}{V - 1}}, \qquad
    \frac{P^*}{L \ln^2 L} \to \frac{\gamma_g V}{4 (V - 1)}

All at T = 0, each with its corrections, from the actions of the two heads by dominant balance. The crossover is a series
in L^(-1/6), of which the powers one and three vanish. In the softmax head the gap of the copy phase is
s = ln sqrt(L X) with X of order ln L, and the limit of its action at fixed X, s and P/L can be solved in closed form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import mpmath
from sympy import (
    QQ,
    Add,
    Basic,
    Expr,
    Integer,
    LambertW,
    Poly,
    Rational,
    S,
    Symbol,
    Tuple,
    binomial,
    cancel,
    diff,
    exp,
    expand,
    expand_mul,
    factor,
    factorial,
    fraction,
    lambdify,
    log,
    root,
    solve,
    sqrt,
    together,
)
from sympy.matrices import ImmutableDenseMatrix
from sympy.polys.ring_series import rs_log, rs_mul, rs_nth_root, rs_series_inversion, rs_trunc
from sympy.polys.rings import PolyElement, ring

from derive.asymptotic import AsymptoticSeries, newton, remainders, series_terms
from derive.checks import Comparison
from derive.copy_head.landau import mode_energies
from derive.copy_head.model import L, Model, P, T, V, c, gamma_g, gamma_w, s, u
from derive.derivation import Check, Derivation, Step

__all__ = ["COMPARISON_STEPS", "ELL", "LINEAR_STEPS", "LOAD", "SOFTMAX_STEPS", "X", "linear_series", "softmax_series"]

ELL = Symbol("ell", positive=True)
"""ln sqrt(L)."""
X = Symbol("X", positive=True)
"""(e^s/sqrt(L))^2, with e^s/L the attention on the copied key over that on all the others."""
UNPERTURBED = Symbol("X_0", positive=True)
"""X at gamma_w = 0."""
LOAD = Symbol("varpi", positive=True)
"""P/L."""
_CUBE = Symbol("a", positive=True)
"""(V - 1)^(1/3), in which all coefficients of the crossover are rational."""
_SMALL, _SCALED, _LOG = (Symbol(name, positive=True) for name in ("epsilon", "y", "Lambda"))

Series: TypeAlias = PolyElement
"""A truncated power series in ``_SMALL`` with coefficients in a field of rational functions."""


# --- power series ----------------------------------------------------------------------------------------------------


def _insert(polynomial: Poly, series: Series, shift: int, order: int) -> Series:
    """A polynomial in (small, unknown) at a power series for the unknown, divided by small^shift, by Horner's rule."""
    small, domain = series.ring.gens[0], series.ring.domain
    rows: dict[int, Series] = {}
    for (power, degree), coefficient in polynomial.terms():
        rows[degree] = rows.get(degree, series.ring(0)) + small ** (power - shift) * domain.from_sympy(coefficient)
    total = series.ring(0)
    for degree in range(max(rows), -1, -1):
        total = rs_mul(total, series, small, order) + rows.get(degree, series.ring(0))
    return rs_trunc(total, small, order)


def _lowest(polynomial: Poly) -> int:
    return int(min(power for (power, _), _ in polynomial.terms()))


def _quotient(expression: Expr, series: Series, order: int) -> tuple[Series, int]:
    """A rational function of (small, unknown) at a series for the unknown: a series, times a power of small."""
    above, below = (Poly(part, _SMALL, _SCALED) for part in fraction(cancel(expression)))
    up, down = _lowest(above), _lowest(below)
    small = series.ring.gens[0]
    inverse = rs_series_inversion(_insert(below, series, down, order), small, order)
    return rs_mul(_insert(above, series, up, order), inverse, small, order), up - down


def _root(equation: Expr, field: Sequence[Symbol], order: int) -> Series:
    """The positive root of a rational equation in (small, unknown), by Newton's method on power series."""
    polynomial = Poly(fraction(cancel(together(equation)))[0], _SMALL, _SCALED)
    shift = _lowest(polynomial)
    leading = Add(*(value * _SCALED**degree for (power, degree), value in polynomial.terms() if power == shift))
    (start,) = solve(leading, _SCALED)
    small = ring([_SMALL], QQ.frac_field(*field))[1]
    series, slope = small.ring(small.ring.domain.from_sympy(start)), polynomial.diff(_SCALED)
    for _ in range(order.bit_length()):
        inverse = rs_series_inversion(_insert(slope, series, shift, order), small, order)
        series -= rs_mul(_insert(polynomial, series, shift, order), inverse, small, order)
    return series


def _square_root(series: Series, order: int) -> tuple[Expr, Series]:
    """The root of the leading coefficient, and the series of the root in units of it."""
    leading = series.ring.domain.to_sympy(series.coeff(1))
    return sqrt(factor(leading)), rs_nth_root(series.quo_ground(series.coeff(1)), 2, series.ring.gens[0], order)


def _powers(series: Series) -> list[tuple[int, Expr]]:
    """Power and coefficient of each term, lowest power first."""
    return sorted((power, factor(value)) for (power,), value in Poly(series.as_expr(), _SMALL).terms())


def _exponents(series: Expr, variable: Symbol) -> list[tuple[Expr, Expr]]:
    """Power of ``variable`` and coefficient of each term of a sum, the highest power first."""
    powers: dict[Expr, Expr] = {}
    for term in Add.make_args(expand(series)):
        coefficient, exponent = term.as_coeff_exponent(variable)
        powers[exponent] = powers.get(exponent, S.Zero) + coefficient
    return sorted(powers.items(), key=lambda item: item[0], reverse=True)


# --- linear head -----------------------------------------------------------------------------------------------------

_POOLING_ORDERS, _CROSSOVER_ORDERS, _SIGNAL_ORDERS, _SAMPLE_ORDERS = 4, 7, 3, 6


def pooling_law(model: Model, at_zero: ImmutableDenseMatrix) -> Expr:
    """P_pool/V^2 in powers of 1/L: P^2 is a root of the determinant at T = 0."""
    determinant = at_zero.subs(T, 0).det().subs({P: sqrt(_SCALED), L: 1 / _SMALL})
    unit, series = _square_root(_root(determinant, (V, gamma_w, gamma_g), _POOLING_ORDERS), _POOLING_ORDERS)
    return Add(*(unit / V**2 * coefficient / L**power for power, coefficient in _powers(series)))


def crossover_law(model: Model, action: Expr, weight: Expr) -> Tuple:
    """P_x/(L^(3/2) V^(1/2)) and P u^2/L^(2/3) at the crossover, in powers of L^(-1/6).

    Where the copy weight is one half, c/u = (L - 1)^(-1/2) = epsilon^3. Each component of the gradient then reads
    A - P^2 G, with the score cost A and with G a function of P u^2 alone; P^2 drops out of A_u G_c = A_c G_u, which is
    an equation for P u^2, of order L^(2/3).
    """
    unit = model.weight_decay * V / (2 * model.loss_factor * L)
    scales = model.score_decay, model.weight_decay
    modes = mode_energies(model, action.subs(T, 0))
    (cost_u, gain_u), (cost_c, gain_c) = (_balance(modes, weight, name, unit, *scales) for name in (u, c))
    signal = _root(cost_u * gain_c - cost_c * gain_u, (_CUBE,), _CROSSOVER_ORDERS)
    square, shift = _quotient(cost_c / gain_c, signal, _CROSSOVER_ORDERS)
    leading, samples = _square_root(square, _CROSSOVER_ORDERS)
    above, below = fraction(factor(_in_symbols(leading**2) * scales[0] * scales[1] / V))
    return Tuple(
        _in_length(samples, Rational(shift, 2), Rational(3, 2), sqrt(above) / sqrt(below), _CROSSOVER_ORDERS),
        _in_length(signal, Integer(-4), Rational(2, 3), unit, _SIGNAL_ORDERS),
    )


def _balance(modes: Tuple, weight: Expr, name: Symbol, unit: Expr, price: Expr, ridge: Expr) -> tuple[Expr, Expr]:
    """A and G of the gradient component A - P^2 G, per u, at copy weight one half, where P u^2 = unit y/epsilon^4.

    The cost is in units of ``price``, the gain in units of 1/``ridge``.
    """
    copying = _copying(weight)

    def scaled(component: Expr) -> Expr:
        on_line = (component / u).subs(c, u * copying).subs(u, sqrt(unit * _SCALED * _SMALL**-4 / P))
        return on_line.subs(L, 1 + _SMALL**-6).subs(V, 1 + _CUBE**3)

    costs, gains = ([scaled(diff(term, name)) for term in modes if term.has(P) is data] for data in (False, True))
    return factor(Add(*costs) / price), factor(Add(*(cancel(-term / P**2 * ridge) for term in gains)))


def _copying(weight: Expr) -> Expr:
    """c/u > 0 where the copy weight is one half."""
    return next(slope for slope in solve(weight.subs(u, 1) - Rational(1, 2), c) if slope.subs(L, 2).is_positive)


def _in_length(series: Series, shift: Expr, power: Expr, unit: Expr, orders: int) -> Expr:
    """unit epsilon^shift (series in epsilon = (L - 1)^(-1/6)), over L^power, to ``orders`` powers of L^(-1/6)."""
    total = S.Zero
    for order, coefficient in _powers(series)[:orders]:
        exponent = -(order + shift) / 6
        for later in range((orders - 1 - order) // 6 + 1):
            total += coefficient * binomial(exponent, later) * (-1) ** later * L ** (exponent - later - power)
    return Add(*(unit * _in_symbols(coefficient) * L**exponent for exponent, coefficient in _exponents(total, L)))


def _in_symbols(coefficient: Expr) -> Expr:
    """A coefficient of the crossover as a function of V."""
    above, below = (expand(part).subs(_CUBE, root(V - 1, 3)) for part in fraction(cancel(coefficient)))
    return factor(above) / factor(below)


# --- softmax head ----------------------------------------------------------------------------------------------------


def softmax_balance(model: Model, action: Expr) -> Expr:
    """Limit of (F(s) - F(0))/L as L grows, at fixed X = e^(2s)/L, fixed s where it stands alone, and fixed P/L; T = 0."""
    half, ratio = (Symbol(name, positive=True) for name in ("half", "ratio"))
    cold = action.subs(T, 0)
    rational = (cold - cold.subs(s, 0)).subs(exp(s), half * ratio).subs({L: half**2, P: LOAD * half**2})
    limits = (_limit(term / half**2, half) for term in Add.make_args(expand_mul(rational)))
    return factor(cancel(Add(*limits).subs(ratio, sqrt(X))))


def _limit(term: Expr, growing: Symbol) -> Expr:
    """The limit of a rational function that stays bounded."""
    above, below = (Poly(part, growing) for part in fraction(cancel(term)))
    if above.degree() > below.degree():
        raise ValueError(f"{term} grows with {growing}")
    return above.LC() / below.LC() if above.degree() == below.degree() else S.Zero


def softmax_threshold(model: Model, balance: Expr) -> Tuple:
    """P/L and X at coexistence, as functions of the gap s of the copy phase.

    Both phases have the same action, so the balance vanishes; s is stationary, with dX/ds = 2 X. The ratio of the two
    conditions is linear in X.
    """
    cost = balance.subs(LOAD, 0)
    gain = cost - balance
    pull = cancel(gain * diff(cost, s) - cost * 2 * X * diff(gain, X))
    (odds,) = solve(fraction(pull)[0], X)
    conditions = fraction(factor(balance.subs(X, odds)))[0]
    (load,) = solve(conditions, LOAD)
    return Tuple(factor(load), factor(odds.subs(LOAD, load)))


def sample_law(model: Model, threshold: Tuple) -> Expr:
    """P*/L in powers of 1/ell and ln ell: s = ell + ln(X)/2 is solved by iteration, s = ell sigma with sigma near one."""
    load, odds = (part.subs(s, _SCALED / _SMALL) for part in threshold)
    small, logarithm = ring([_SMALL, _LOG], QQ.frac_field(V, gamma_w, gamma_g))[1:]
    gap = small.ring(1)
    for _ in range(_SAMPLE_ORDERS):
        growth, _ = _quotient(odds, gap, _SAMPLE_ORDERS)
        gap = 1 + rs_trunc(small * (logarithm + rs_log(growth, small, _SAMPLE_ORDERS)) / 2, small, _SAMPLE_ORDERS)
    samples, power = _quotient(load, gap, _SAMPLE_ORDERS)
    unit = factor(samples.ring.domain.to_sympy(samples.coeff(1)))
    terms = Poly(samples.as_expr(), _SMALL, _LOG).terms()
    return unit * Add(*(cancel(value / unit) * log(ELL) ** k / ELL ** (order + power) for (order, k), value in terms))


def resummed_law(model: Model, threshold: Tuple) -> Tuple:
    """X at gamma_w = 0 in closed form, and P*/L to second order in gamma_w as a function of that X.

    At gamma_w = 0, s = 1 + X and s = ell + ln(X)/2 give -2 X e^(-2 X) = -2 e^(2 - 2 ell), on the lower branch of the
    Lambert function. Each order in gamma_w is a total derivative along the solution of s = ell + ln(X(s))/2.
    """
    load, odds = threshold
    strength = Symbol("eta", positive=True)
    implicit = s - log(odds.subs(gamma_w, strength * gamma_w)) / 2
    response = -diff(implicit, strength) / diff(implicit, s)
    terms, order = [], load
    for power in range(3):
        terms.append(factor(order.subs(strength, 0).subs(s, 1 + UNPERTURBED)) / factorial(power))
        order = diff(order, strength) + response * diff(order, s)
    return Tuple(-LambertW(-2 * exp(2 - 2 * ELL), -1) / 2, Add(*terms))


def _by_ridge(law: Expr) -> list[Expr]:
    """The terms of the resummed law, by their power of gamma_w."""
    return sorted(Add.make_args(law), key=lambda term: term.as_coeff_exponent(gamma_w)[1])


def break_even(model: Model, threshold: Tuple, crossover: Tuple) -> Expr:
    """The length at which both heads need the same number of samples, as a function of the gap s of the softmax head.

    P*/L = L^(1/2) V^(1/2) times the constant of the crossover, to leading order; s and L are tied by e^(2s) = L X(s).
    """
    leading = series_terms(crossover[0], L)[0]
    return factor((threshold[0] / leading) ** 2 / V)


# --- checks ----------------------------------------------------------------------------------------------------------

_SETUPS: tuple[Mapping[Basic, Expr], ...] = (
    {V: Integer(3), gamma_w: Rational(7, 5), gamma_g: Rational(3, 7), T: Integer(0)},
    {V: Integer(8), gamma_w: Rational(1, 2), gamma_g: Rational(5, 3), T: Integer(0)},
)


def _number(expression: Expr, **values: mpmath.mpf) -> mpmath.mpf:
    """An expression at numbers, given by symbol name, at the current precision."""
    symbols = sorted(expression.free_symbols, key=str)
    return lambdify(symbols, expression, "mpmath")(*(values[str(symbol)] for symbol in symbols))


def _ladder(
    label: str, exact: mpmath.mpf, terms: Sequence[Expr], variable: Symbol, far: mpmath.mpf, order: Rational
) -> Iterable[Comparison]:
    """Every term is what remains after the earlier ones, up to the next term; in the end something of ``order`` is left."""
    numbers = [_number(term, **{variable.name: far}) for term in terms]
    for index, share in enumerate(remainders(exact, numbers)):
        yield f"{label}, term {index}", share, Integer(1)
    left = mpmath.log(abs(exact - sum(numbers))) / mpmath.log(far)
    yield f"{label}, order of what is left", Rational(int(mpmath.nint(order.q * left)), order.q), order


def _pooling_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The closed form at L = 10^45."""
    with mpmath.workdps(220):
        length = mpmath.mpf(10) ** 45
        for setup in _SETUPS:
            exact = _number(derivation.value("pooling transition").subs(setup), L=length)
            terms = series_terms(derivation.value("pooling law").subs(setup), L)
            yield from _ladder(
                f"V = {setup[V]}", exact / int(setup[V]) ** 2, terms, L, length, Integer(-_POOLING_ORDERS)
            )


def _crossover_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The crossover of the action itself at L = 10^240."""
    with mpmath.workdps(480):
        length = mpmath.mpf(10) ** 240
        for setup in _SETUPS:
            action = derivation.value("linear action").subs(setup)
            weight = derivation.value("copy weight").subs(setup) - Rational(1, 2)
            samples, signal = (value.subs(setup) for value in derivation.value("crossover law"))
            scale = mpmath.sqrt(length**3 * int(setup[V]))
            start = scale * _number(samples, L=length)
            pooling = mpmath.sqrt(_number(signal * L ** Rational(2, 3), L=length) / start)
            guess = (pooling, pooling / mpmath.sqrt(length), start)
            point, _ = newton((action.diff(u), action.diff(c), weight), (u, c, P), guess, {L: length})
            strength = point[2] * point[0] ** 2 / mpmath.root(length, 3) ** 2
            for label, exact, series, orders in (
                ("P_x", point[2] / scale, samples, _CROSSOVER_ORDERS),
                ("P u^2", strength, signal, _SIGNAL_ORDERS),
            ):
                label = f"V = {setup[V]}: {label}"
                yield from _ladder(label, exact, series_terms(series, L), L, length, Rational(-orders, 6))


def _balance_claim(derivation: Derivation) -> Iterable[Comparison]:
    """The action itself at L = 10^100."""
    with mpmath.workdps(220):
        length, ratio, load = mpmath.mpf(10) ** 100, mpmath.mpf(5) / 2, mpmath.mpf(7)
        gap = mpmath.log(length * ratio) / 2
        for setup in _SETUPS:
            action = derivation.value("softmax action").subs(setup)
            energies = (_number(action, L=length, P=load * length, s=value) for value in (gap, mpmath.mpf(0)))
            ours = _number(derivation.value("softmax balance").subs(setup), X=ratio, varpi=load, s=gap)
            yield f"V = {setup[V]}", ours, (next(energies) - next(energies)) / length


def _threshold_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Zero and minimum of the balance over X at ell = 20, as two equations for X and P/L."""
    with mpmath.workdps(60):
        for setup in _SETUPS:
            along = derivation.value("softmax balance").subs(setup).subs(s, ELL + log(X) / 2)
            start = mpmath.mpf(20), mpmath.mpf(500)
            (ratio, load), _ = newton((along, along.diff(X)), (X, LOAD), start, {ELL: mpmath.mpf(20)})
            gap = 20 + mpmath.log(ratio) / 2
            ours = (_number(part.subs(setup), s=gap) for part in derivation.value("softmax threshold"))
            yield f"V = {setup[V]}", tuple(ours), (load, ratio)


def _coexistence(derivation: Derivation, setup: Mapping[Basic, Expr], ell: mpmath.mpf) -> mpmath.mpf:
    """P*/L of the softmax action itself at L = e^(2 ell).

    The energy is measured from s = 0: the uniform phase, at s of order ell^2/L, lies lower by a part 1/L^2 of it.
    """
    action = derivation.value("softmax action").subs(setup)
    length = mpmath.exp(2 * ell)
    price = _number(derivation.model.score_decay.subs(setup)) * length
    guess = (ell + mpmath.log(ell) / 2, price * ell**2)
    (_, samples), _ = newton((action - action.subs(s, 0), action.diff(s)), (s, P), guess, {L: length})
    return samples / length


def _sample_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Coexistence in the softmax action at L = exp(2 10^40), all orders."""
    with mpmath.workdps(340):
        ell = mpmath.mpf(10) ** 40
        for setup in _SETUPS:
            terms = series_terms(derivation.value("sample law").subs(setup), ELL)
            yield from _ladder(
                f"V = {setup[V]}", _coexistence(derivation, setup, ell), terms, ELL, ell, Integer(2 - _SAMPLE_ORDERS)
            )


def _resummed_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Coexistence in the softmax action at L = exp(2 10^20), all three orders in gamma_w."""
    with mpmath.workdps(260):
        ell = mpmath.mpf(10) ** 20
        for setup in _SETUPS:
            root, law = derivation.value("resummed law")
            ratio = _number(root, ell=ell)
            terms = [term.subs(setup) for term in _by_ridge(law)]
            exact = _coexistence(derivation, setup, ell)
            yield from _ladder(f"V = {setup[V]}", exact, terms, UNPERTURBED, ratio, Integer(-5))


def _break_even_claim(derivation: Derivation) -> Iterable[Comparison]:
    """Both actions at their thresholds with one P and one L, at gamma_g/gamma_w = 10^160: five equations."""
    with mpmath.workdps(480):
        for symbols in (3, 8):
            ridges = {V: Integer(symbols), gamma_g: Integer(10) ** 160, gamma_w: Integer(1), T: Integer(0)}
            soft, linear = (derivation.value(name).subs(ridges) for name in ("softmax action", "linear action"))
            weight = derivation.value("copy weight").subs(ridges) - Rational(1, 2)
            length = derivation.value("break-even length").subs(ridges)
            load, odds = (part.subs(ridges) for part in derivation.value("softmax threshold"))
            gap = mpmath.mpf(190)
            for _ in range(300):
                gap = mpmath.log(_number(length * odds, s=gap)) / 2
            size = _number(length, s=gap)
            samples = _number(load, s=gap) * size
            signal = _number(derivation.value("crossover law")[1].subs(ridges), L=size) * mpmath.root(size, 3) ** 2
            pooling = mpmath.sqrt(signal / samples)
            start = (gap, pooling, pooling / mpmath.sqrt(size), samples, size)
            equations = (soft - soft.subs(s, 0), soft.diff(s), linear.diff(u), linear.diff(c), weight)
            point, _ = newton(equations, (s, u, c, P, L), start)
            yield f"V = {symbols}", _number(length, s=point[0]) / point[4], Integer(1)


# --- series for the comparison with exact transitions ----------------------------------------------------------------


def linear_series(derivation: Derivation) -> tuple[AsymptoticSeries, ...]:
    """Pooling transition and crossover of the linear head."""
    pooling = series_terms(derivation.value("pooling law"), L)
    samples, signal = derivation.value("crossover law")
    crossover = series_terms(samples, L)
    start = sqrt(signal * L ** Rational(2, 3) / P)
    return (
        AsymptoticSeries(
            name="P_pool",
            meaning="second-order transition from zero attention to pooling",
            kind="instability",
            size=L,
            scale=V**2,
            terms=tuple(pooling[:-1]),
            next_term=pooling[-1],
            starts=((S.Zero, S.Zero),),
            steps=("pooling transition", "pooling law"),
            holds={T: S.Zero},
        ),
        AsymptoticSeries(
            name="P_x",
            meaning="crossover from pooling to copying",
            kind="crossover",
            size=L,
            scale=L ** Rational(3, 2) * sqrt(V),
            terms=tuple(crossover[:-1]),
            next_term=crossover[-1],
            starts=((start, start * _copying(derivation.value("copy weight"))),),
            steps=("crossover law",),
            observable="copy_weight",
            holds={T: S.Zero},
        ),
    )


def _by_logarithms(term: Expr) -> list[Expr]:
    """The parts of a term with their own powers of ln ell, the highest first."""
    logarithm = Symbol("logarithm", positive=True)
    return [part.subs(logarithm, log(ELL)) for part in series_terms(term.subs(log(ELL), logarithm), logarithm)]


def softmax_series(derivation: Derivation) -> tuple[AsymptoticSeries, ...]:
    """First-order transition of the softmax head: in logarithms of L, and with those resummed."""
    laws = [term / (4 * ELL**2) for term in series_terms(derivation.value("sample law"), ELL)]
    root, resummed = derivation.value("resummed law")
    ridges = _by_ridge(resummed)
    starts = ((S.Zero,), (log(L) / 2 + log(log(L) / 2) / 2,))
    common = {"kind": "coexistence", "size": L, "starts": starts, "holds": {T: S.Zero}}
    return (
        AsymptoticSeries(
            name="P*",
            meaning="first-order transition from uniform attention to copying",
            scale=L * log(L) ** 2,
            terms=tuple(term.subs(ELL, log(L) / 2) for law in laws[:3] for term in _by_logarithms(law)),
            next_term=laws[3].subs(ELL, log(L) / 2),
            steps=("softmax balance", "softmax threshold", "sample law"),
            **common,
        ),
        AsymptoticSeries(
            name="P*-resummed",
            meaning="the same with all powers of ln L, in orders of gamma_w",
            scale=L,
            terms=tuple(term.subs(UNPERTURBED, root).subs(ELL, log(L) / 2) for term in ridges[:-1]),
            next_term=ridges[-1].subs(UNPERTURBED, root).subs(ELL, log(L) / 2),
            steps=("softmax balance", "softmax threshold", "resummed law"),
            **common,
        ),
    )


_CLAIM = "arXiv 2606.12058, claim C5"

_CROSSOVER = Step(
    "crossover law",
    Tuple(Symbol("P_{x}/(L^{3/2} V^{1/2})"), Symbol("P u^{2}/L^{2/3}")),
    crossover_law,
    "Copy weight one half on the branch of the global minimum, by dominant balance: P u^2 is of order L^(2/3), where the"
    " constant mode is saturated and the token modes are not. The corrections start at L^(-1/3).",
    takes=("linear action", "copy weight"),
    checks=(Check("crossover of the action at L = 10^240, every term", "numeric", _crossover_claim, quick=False),),
    source=_CLAIM,
)

LINEAR_STEPS = (
    Step(
        "pooling law",
        Symbol("P_{pool}/V^{2}"),
        pooling_law,
        "Expansion of the pooling transition in 1/L at fixed V.",
        takes=("stiffness at zero",),
        checks=(Check("closed form at L = 10^45, every term", "numeric", _pooling_claim),),
        source=_CLAIM,
    ),
    _CROSSOVER,
)

SOFTMAX_STEPS = (
    Step(
        "softmax balance",
        Symbol("(F(s) - F(0))/L"),
        softmax_balance,
        "Large L at fixed X = e^(2s)/L, P/L and s: the copied key and the sum of all others compete; corrections are of order"
        " L^(-1/2). The uniform phase has the energy of s = 0.",
        takes=("softmax action",),
        checks=(Check("the action at L = 10^100", "numeric", _balance_claim),),
        source=_CLAIM,
    ),
    Step(
        "softmax threshold",
        Tuple(LOAD, X),
        softmax_threshold,
        "Coexistence in the limit action, solved by its gap s for any gamma_w; s = ln sqrt(L X) closes the equations.",
        takes=("softmax balance",),
        checks=(Check("zero and minimum of the balance at ell = 20", "numeric", _threshold_claim),),
        source=_CLAIM,
    ),
    Step(
        "sample law",
        Symbol("P^{*}/L"),
        sample_law,
        "Series in 1/ell and ln ell with ell = ln sqrt(L); P*/(L ln^2 L) tends to a constant, but only logarithmically.",
        takes=("softmax threshold",),
        checks=(
            Check("coexistence in the action at L = exp(2 10^40), every order", "numeric", _sample_claim, quick=False),
        ),
        source=_CLAIM,
    ),
    Step(
        "resummed law",
        Tuple(UNPERTURBED, Symbol("P^{*}/L")),
        resummed_law,
        "All powers of ln L summed, order by order in gamma_w; what is left out is of relative order L^(-1/2).",
        takes=("softmax threshold",),
        checks=(
            Check(
                "coexistence in the action at L = exp(2 10^20), every order", "numeric", _resummed_claim, quick=False
            ),
        ),
        source=_CLAIM,
    ),
)

COMPARISON_STEPS = (
    _CROSSOVER,
    Step(
        "break-even length",
        Symbol("L_{=}"),
        break_even,
        "Where P* = P_x: beyond this length the softmax head needs fewer samples than the linear head. Leading order, for"
        " (V - 1) gamma_w/gamma_g small against one; the corrections are of order L^(-1/3).",
        takes=("softmax threshold", "crossover law"),
        checks=(
            Check("P* = P_x in both actions at gamma_g/gamma_w = 10^160", "numeric", _break_even_claim, quick=False),
        ),
        source=_CLAIM,
    ),
)

r"""A series as a derivation: equations, scaling ansatz, dominant balance, leading terms, and one step for each term.

.. math:: y = y_0 + \ldots + y_k: \qquad -G'(y)^{-1} G(y) = y_{k+1} + \ldots

The check of a term substitutes the sum up to it back into the equations: what they leave is the term that follows, so
that every order before it cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Add, Expr, S, Symbol, Tuple, oo

from derive.asymptotic import AsymptoticSeries
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.limits.balance import Balance
from derive.limits.constant import ONE
from derive.limits.quantity import LARGE, Limit, Quantity, correction
from derive.limits.series import Series, evaluate

__all__ = ["argument", "derived"]

_WIDTHS = (8, 16, 32, 64)


def argument(limit: Limit, large: Expr) -> Expr:
    """What a series is written in, at X = ``large``: the size, the distance from a limit, or what goes to zero itself."""
    return large if limit.to is oo else (limit.side if limit.to == 0 else 1) / large


def derived(
    problem: Quantity, limit: Limit, start: Balance, found: Sequence[Series], series: AsymptoticSeries
) -> Derivation:
    """The derivation of ``series``, of the quantity of a ``problem`` whose unknowns are ``found`` from their leading terms."""
    unknowns = Tuple(*problem.unknowns)
    steps = [_equation(problem, limit, place) for place in range(len(problem.equations))]
    steps += [
        Step(
            "scaling ansatz",
            unknowns,
            lambda _: _sums(start.ansatz),
            "Powers of X and of ln X, and numbers that are not open, are recognised from the exact solution far out.",
        ),
    ]
    if start.equations:
        steps.append(_balance(start))
    steps.append(_leading(start, unknowns))
    for k, term in enumerate(series.terms):
        steps.append(_term(problem, limit, start, found, series, k, term))
    return Derivation(f"series of {series.name}", problem, tuple(steps), series.meaning)


def _equation(problem: Quantity, limit: Limit, place: int) -> Step:
    what = f"One of those of a {problem.kind}" if len(problem.equations) > 1 else f"That of a {problem.kind}"
    return Step(
        f"equation {place + 1}",
        S.Zero,
        lambda _: problem.equations[place],
        f"{what}, with X = {limit.large}, which grows as {limit}.",
    )


def _sums(every: Sequence[Series]) -> Tuple:
    return Tuple(*(Add(*one.expressions(LARGE)) for one in every))


def _balance(start: Balance) -> Step:
    def several(derivation: Derivation) -> Iterable[Comparison]:
        for place, equation in enumerate(derivation.value("dominant balance"), 1):
            yield f"terms of equation {place}", S(len(Add.make_args(equation.expand()))), S.One

    return Step(
        "dominant balance",
        Tuple(*(S.Zero for _ in start.equations)),
        lambda _, ansatz: Tuple(*start.equations),
        "The leading terms of each equation cancel each other.",
        takes=("scaling ansatz",),
        checks=(Check("no term stands alone", "positive", several),),
    )


def _leading(start: Balance, unknowns: Tuple) -> Step:
    def cancelled(derivation: Derivation) -> Iterable[Comparison]:
        for place, equation in enumerate(derivation.value("dominant balance"), 1):
            yield f"equation {place}", equation.xreplace(dict(start.values)), S.Zero

    def near(derivation: Derivation) -> Iterable[Comparison]:
        return ((str(c), value, c.near) for c, value in start.values.items())

    def listed(names: Iterable[object]) -> str:
        return ", ".join(sorted(map(str, names)))

    solved = start.values.keys() - start.recognised
    reasons = [f"The balance gives {listed(solved)}."] if solved else []
    if start.recognised:
        reasons.append(f"Not solved for, but recognised from its digits: {listed(start.recognised)}.")
    checks = [Check("what the exact solution tends to", "numeric", near)] if start.values else []
    if start.equations:
        checks.append(Check("every equation of the balance holds", "numeric", cancelled))
    return Step(
        "leading terms",
        unknowns,
        lambda *_: _sums(start.point),
        " ".join(reasons) or "Nothing in them is open.",
        takes=("scaling ansatz", "dominant balance") if start.equations else ("scaling ansatz",),
        checks=tuple(checks),
    )


def _term(
    problem: Quantity,
    limit: Limit,
    start: Balance,
    found: Sequence[Series],
    series: AsymptoticSeries,
    k: int,
    term: Expr,
) -> Step:
    name = series.name

    def left(derivation: Derivation) -> Iterable[Comparison]:
        shown = Add(*(derivation.value(f"term {i}") for i in range(1, k + 2)))
        grown = {LARGE: Series.single(ONE, _WIDTHS[-1], power=1)}
        (partial,) = evaluate([shown.xreplace({series.size: argument(limit, LARGE)})], grown, _WIDTHS[-1])
        point = [one.known for one in found]
        point[problem.place] = partial
        following = found[problem.place].terms[k + 1 : k + 2]
        for width in _WIDTHS:
            move = correction(problem, point, width)
            if move is not None and (move.terms or move.bound is None):
                break
        else:
            raise ValueError(f"all that is carried cancels, to {width} terms")
        ours, other = (Add(*Series(terms, None, width).expressions(LARGE)) for terms in (move.terms[:1], following))
        yield f"what is left of {name} after term {k + 1}", ours, other

    given = len(start.point[problem.place].terms)
    reason = "Of the leading terms." if k < given else "What the equations leave of the sum before, by Newton's method."
    last = series.next_term is None and k + 1 == len(series.terms)
    check = Check("substituted back, the sum leaves the term that follows", "symbolic", left)
    return Step(
        f"term {k + 1}",
        Symbol(f"{name}_{k + 1}"),
        lambda *_: series.scale * term,
        f"{reason} The series ends here." if last else reason,
        takes=(f"term {k}",) if k else ("leading terms",),
        checks=(check,) if k + 1 >= given else (),  # else the leading terms are needed for a balance
    )

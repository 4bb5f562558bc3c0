r"""The theory put together: the derivation from the model to the potential, and the state evolutions it ends in.

.. math:: \partial_{\hat Q} e = 0 \;\Rightarrow\; Q = \Omega(\hat Q), \qquad
          \partial_Q e = 0 \;\Rightarrow\; \hat Q = \alpha\, \Psi(Q), \qquad Q = (q, V, m, \theta)

`state_evolution` is the one of two equivalent tokens and rank one, in four scalars; `general` that of any model. Source:
arXiv 2402.03902.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import replace
from functools import cache

from sympy import Derivative, Expr, Rational, S, Symbol, Tuple, oo

from derive.action import Observable, SetupError
from derive.asymptotic import LimitLaw
from derive.averages import GaussianAverage
from derive.catalogue import Choice
from derive.derivation import Derivation
from derive.exact import ExactnessError, parse_matrix, parse_rational
from derive.positional_semantic import (
    canonical,
    fields,
    finite_size,
    limits,
    many_samples,
    observables,
    potential,
    replicas,
    stability,
)
from derive.positional_semantic.model import CONTROL, DEFAULT, Model, alpha, equal_target, isotropic
from derive.positional_semantic.symbols import GLOSSARY
from derive.state_evolution import Pair, Sector, StateEvolution

__all__ = ["CHOICES", "asymptotics", "derivation", "general", "prepared", "state_evolution"]

STEPS = (*fields.STEPS, *replicas.STEPS, *potential.STEPS, *canonical.STEPS, *observables.STEPS, *stability.STEPS)
REDUCED_STEPS = (*potential.REDUCED_STEPS, *stability.REDUCED_STEPS, *limits.STEPS, *many_samples.STEPS)

_MEANINGS = {
    "q": "self-overlap of the student's fields",
    "V": "width of the student's fields",
    "m": "overlap with the positions",
    "theta": "overlap with the teacher",
}
_REPLICA_SYMMETRY = ((Rational(1, 1000), "exact in practice"), (S.One, "replica symmetry broken"))
"""What the overlap deficit says about a solution: two copies that lack so little are one to the digits of an experiment."""

_WINDOW = (Rational(1, 20), S(20))
"""Range of alpha scanned for transitions, over which positional, semantic and baseline change places."""


def derivation(model: Model = DEFAULT) -> Derivation:
    """From the model to the potential, what is measured and its stability; reduced to scalars where symmetry allows."""
    steps = STEPS + finite_size.STEPS * finite_size.is_isotropic(model) + REDUCED_STEPS * potential.is_reducible(model)
    meaning = "Positional and semantic learning in dot-product attention"
    return Derivation("positional-semantic", model, steps, meaning, GLOSSARY)


def state_evolution(model: Model = DEFAULT) -> StateEvolution:
    """The state evolution of two equivalent tokens at rank one, over q, V, m and theta.

    Raises `ValueError` for a model without the symmetry; `general` takes any.
    """
    if not potential.is_reducible(model):
        raise ValueError("the reduced state evolution needs two equivalent tokens and rank one; use the general one")
    chain = derivation(model)
    place = potential.symmetric_place(model)
    q, V, m, theta = replicas.q, replicas.V, replicas.m, replicas.theta
    (rho,) = model.teacher_variances[0]
    return StateEvolution(
        name="positional-semantic",
        potential=chain.value("reduced potential"),
        pairs=(
            Pair(q, replicas.Vhat, _MEANINGS["q"], rho),
            Pair(V, replicas.qhat, _MEANINGS["V"], chain.value("ridge width")),
            Pair(m, replicas.mhat, _MEANINGS["m"]),
            Pair(theta, replicas.thetahat, _MEANINGS["theta"], rho),
        ),
        control=CONTROL,
        parameters=tuple(parameter for parameter in model.parameters if parameter.symbol not in place),
        window=_WINDOW,
        sectors=_sectors(model, {m}, {theta}),
        observables=(
            *_observables(chain, place),
            *_stability(chain, chain.value("reduced worst direction")),
            *_shifts(chain, place),
        ),
        meaning="two tokens, rank one",
    )


def general(model: Model) -> StateEvolution:
    """The state evolution of any model, over the overlaps of `derive.positional_semantic.canonical`."""
    chain, place, pairs = derivation(model), canonical.place(model), canonical.pairs(model)
    return StateEvolution(
        name="positional-semantic/general",
        potential=chain.value("canonical potential"),
        pairs=tuple(
            Pair(overlap, conjugate, f"{_MEANINGS[kind]}, {overlap}", _scale(model, kind))
            for kind, overlap, conjugate in pairs
        ),
        control=CONTROL,
        parameters=model.parameters,
        window=_WINDOW,
        sectors=_sectors(
            model,
            {overlap for kind, overlap, _ in pairs if kind == "m"},
            {overlap for kind, overlap, _ in pairs if kind == "theta"},
            *(
                canonical.off_diagonal(model) if canonical.is_diagonal(model, positions) else set()
                for positions in (False, True)
            ),
        ),
        observables=(*_observables(chain, place), *_stability(chain, chain.value("worst direction"))),
        digits=5 if model.length * (model.student_rank + model.teacher_rank) <= 4 else 2,
        meaning=f"{model.length} tokens, student of rank {model.student_rank}, teacher of rank {model.teacher_rank}",
    )


CHOICES = (
    Choice("L", "number of tokens", "2", "L >= 2"),
    Choice("r", "rank of student and teacher", "1", "r >= 1"),
    Choice("r_s", "rank of the student", "1", "r_s >= 1"),
    Choice("r_t", "rank of the teacher", "1", "r_t >= 1"),
    Choice("A", "fixed matrix in the teacher, L x L", "[[3/5,2/5],[2/5,3/5]]", "rows sum to 1"),
)


def prepared(values: Mapping[str, str], axes: Collection[str] = ()) -> tuple[StateEvolution, dict[str, str]]:
    """The state evolution of the model `chosen` by ``values``, and the values that are its parameters.

    Two tokens of rank one with A_11 = A_22 have the reduced one.
    """
    model, left = chosen(values, axes)
    alike = model.target == equal_target(model.length)
    return (state_evolution() if alike and potential.is_reducible(model) else general(model)), left


_MOST_VARIABLES = 16


def chosen(
    values: Mapping[str, str], axes: Collection[str] = (), most: int = _MOST_VARIABLES
) -> tuple[Model, dict[str, str]]:
    """The model for the sizes L, r (of both, or r_s and r_t) and the matrix A in ``values``; and what is left.

    Where all tokens are alike, A has one symbol. Raises `SetupError` for a size that is none, for an A that is not L x L
    or has a row that does not sum to one or an entry outside [0, 1] or comes with entries of its own, and for a size or
    an A among ``axes``, the names of the parameters that are to vary. Of more than ``most`` fields, averages are out of
    reach, even of quasi-Monte Carlo.
    """
    left = dict(values)
    sizes = {"L": 2, "r_s": 1, "r_t": 1}
    for name in (*left, *axes):
        if "A" in left and name.startswith("A_"):
            raise SetupError(f"A and {name} exclude each other")
    for name in axes:
        if name in ("A", "r", *sizes):
            raise SetupError(f"{name} cannot be an axis: sizes and the matrix A are given as parameters, such as L=3")
    rows = _matrix(left.pop("A")) if "A" in left else None
    if "r" in left and ("r_s" in left or "r_t" in left):
        raise SetupError("give r, or r_s and r_t")
    for name, ours in {"L": ("L",), "r": ("r_s", "r_t"), "r_s": ("r_s",), "r_t": ("r_t",)}.items():
        if name in left:
            sizes |= dict.fromkeys(ours, _size(name, left.pop(name), 2 if name == "L" else 1))
        elif name == "L" and rows is not None:
            sizes["L"] = max(2, len(rows))
    variables = sizes["L"] * (sizes["r_s"] + sizes["r_t"])
    if variables > most:
        raise SetupError(
            f"L = {sizes['L']} tokens of ranks {sizes['r_s']} and {sizes['r_t']} have {variables} Gaussian fields;"
            f" more than {most} are out of reach (L = 3, r = 2 has 12)"
        )
    model = isotropic(sizes["L"], sizes["r_s"], sizes["r_t"])
    if rows is not None:
        left |= _entries(model, rows)
    others = {entry.name for entry in model.target if entry.is_Symbol} - {"A_11"}
    alike = _alike(rows) if rows else others.isdisjoint((*left, *axes))
    one_entry = "A_22" not in axes and left.get("A_22", left.get("A_11")) == left.get("A_11")
    if alike or (model.length == 2 and one_entry):
        model = replace(model, target=equal_target(model.length))
        left = {name: value for name, value in left.items() if name not in others}
    return model, left


def _size(name: str, text: str, least: int) -> int:
    try:
        size = parse_rational(text)
    except ExactnessError as error:
        raise SetupError(f"{name}: {error}") from None
    if not size.is_Integer or size < least:
        raise SetupError(f"{name} = {text} is no size; it must be a whole number, {least} or more")
    return int(size)


def _matrix(text: str) -> tuple[tuple[Rational, ...], ...]:
    try:
        return parse_matrix(text)
    except ExactnessError as error:
        raise SetupError(f"A: {error}") from None


def _alike(rows: tuple[tuple[Rational, ...], ...]) -> bool:
    """Whether all entries of A on the diagonal are equal, and all others."""
    return all(entry == rows[0][a != b] for a, row in enumerate(rows) for b, entry in enumerate(row))


def _entries(model: Model, rows: tuple[tuple[Rational, ...], ...]) -> dict[str, str]:
    """The free entries of A by name."""
    L = model.length
    if len(rows) != L or len(rows[0]) != L:
        raise SetupError(f"A is {len(rows)} x {len(rows[0])}; for L = {L} tokens it must be {L} x {L}")
    for place, row in enumerate(rows):
        outside = [entry for entry in row if not 0 <= entry <= 1]
        if outside:
            raise SetupError(f"row {place + 1} of A must have entries from 0 to 1, not {outside[0]}")
        if sum(row) != 1:
            raise SetupError(f"row {place + 1} of A must sum to 1, not to {sum(row)}")
    return {
        model.target[a, b].name: str(rows[a][b]) for a in range(L) for b in range(L) if model.target[a, b].is_Symbol
    }


def _scale(model: Model, kind: str) -> Expr:
    """A magnitude of the overlaps: the variance of a token, over the ridge for the width."""
    variance = model.token_variances[0]
    return {"q": variance, "V": variance / model.decay, "m": S.One, "theta": variance}[kind]


def _sectors(
    model: Model,
    m: Set[Symbol],
    theta: Set[Symbol],
    apart: Set[Symbol] = frozenset(),
    apart_with_m: Set[Symbol] = frozenset(),
) -> tuple[Sector, ...]:
    """Flipping the teacher's fields, or the positions, is a symmetry unless Q* has a component along the positions.

    ``apart`` are the overlaps that diagonal matrices do not have, where m vanishes; ``apart_with_m`` where it does not.
    """
    if any(entry != 0 for space in model.spaces for entry in space.cross):
        return (Sector("mixed"),)
    vanishing = {
        "semantic": m | apart,
        "positional": theta | apart_with_m,
        "uninformed": m | theta | apart,
        "mixed": apart_with_m,
    }
    return tuple(Sector(name, tuple(sorted(overlaps, key=str))) for name, overlaps in vanishing.items())


def _shifts(chain: Derivation, place: dict[Symbol, Expr]) -> tuple[Observable, ...]:
    if not finite_size.is_isotropic(chain.model):
        return ()
    test, training = (chain.value(name).xreplace(place) for name in ("test shift", "training shift"))
    return (
        Observable("shift_eps_g", test / chain.model.length, "explicit shift of eps_g at dimension d, times d"),
        Observable("shift_e", training, "explicit shift of e at dimension d, times d"),
    )


def _observables(chain: Derivation, place: dict[Symbol, Expr]) -> tuple[Observable, ...]:
    loss, norm, test, level = (
        chain.value(name).xreplace(place) for name in ("training loss", "norm", "test error", "linear baseline")
    )
    return (
        Observable("e", loss, "training loss per dimension, from the loss of the samples and the ridge"),
        Observable("norm", norm, "|Q|^2/d"),
        Observable("mse", test, "test error |y - f|^2/d, L times eps_g", crossover=level),
        Observable("eps_g", test / chain.model.length, "test error per token and dimension"),
    )


def _stability(chain: Derivation, worst: Tuple) -> tuple[Observable, ...]:
    """Of noise proportional to q, the only one at rank one; at most, where it has several directions."""
    most = ", at most" if chain.model.student_rank > 1 else ""
    return (
        Observable("replicon", worst[0], f"smooth response of the distance of two copies{most}"),
        Observable("jump_part", stability.jump_part(chain, worst), f"jumps' part in the distance of two copies{most}"),
        Observable(
            "deficit",
            stability.deficit(chain, worst),
            f"overlap that two copies lack for the jumps, relative to q{most}",
            readings=_REPLICA_SYMMETRY,
        ),
    )


@cache
def asymptotics() -> tuple[LimitLaw, ...]:
    """The laws of few and of many samples, of two equivalent tokens at rank one."""
    chain, theory = derivation(), state_evolution()
    return (*_few_laws(chain, theory), *_many_laws(chain, theory))


def _few_laws(chain: Derivation, theory: StateEvolution) -> tuple[LimitLaw, ...]:
    energy, overlap = chain.value("few samples")
    pull, growth = chain.value("chosen sign")
    width, root = chain.value("ridge width"), alpha ** Rational(1, 2)
    next_energy, next_overlap, next_width = (root * part for part in chain.value("corrected few samples"))
    steps = ("few samples", "chosen sign", "corrected few samples")
    start = {replicas.q: alpha * overlap, replicas.V: width}

    def law(name: str, meaning: str, quantity: Expr, scale: Expr, term: Expr, following: Expr | None) -> LimitLaw:
        return LimitLaw(
            name=f"{name}-few",
            meaning=f"{meaning}, few samples",
            theory=theory.name,
            holds=theory.meaning,
            sector="uninformed",
            control=alpha,
            limit=S.Zero,
            quantity=quantity,
            scale=scale,
            terms=(term,),
            next_term=following,
            start=start,
            steps=steps,
        )

    return (
        law("e", "training loss per dimension", theory.potential, alpha, energy, next_energy),
        law("q", _MEANINGS["q"], replicas.q, alpha, overlap, next_overlap),
        law("V", _MEANINGS["V"], replicas.V, S.One, width, next_width),
        law("Vhat", "conjugate of q", theory.channel[replicas.Vhat], root, pull, None),
        law(
            "growth_m",
            "factor by which an update multiplies m, which leaves zero at one",
            theory.growth(replicas.m),
            root,
            growth,
            None,
        ),
    )


def _many_laws(chain: Derivation, theory: StateEvolution) -> tuple[LimitLaw, ...]:
    sectors = (("positional", replicas.m, replicas.theta), ("semantic", replicas.theta, replicas.m))
    drifts = zip(sectors, chain.value("drift"), strict=True)
    return tuple(law for sector, move in drifts for law in _sector_laws(chain, theory, *sector, move))


def _sector_laws(
    chain: Derivation, theory: StateEvolution, sector: str, kept: Symbol, vanishing: Symbol, move: Expr
) -> Iterator[LimitLaw]:
    steps = ("population loss", "noiseless overlap", "corrected many samples", "drift")
    loss, overlap, (energy, noise, width, test) = (chain.value(step) for step in steps[:-1])
    start = {replicas.q: overlap + noise / alpha, replicas.V: width / alpha, kept: kept}
    start = {symbol: _within(value, vanishing) for symbol, value in start.items()}
    at = {kept: _within(Derivative(loss, kept), vanishing)}
    (mse,) = (observable.value for observable in theory.observables if observable.name == "mse")
    for name, meaning, quantity, scale, term, following in (
        ("e", "training loss per dimension", theory.potential, alpha, loss, energy),
        ("q", _MEANINGS["q"], replicas.q, S.One, overlap, noise + overlap.diff(kept) * move),
        (kept.name, _MEANINGS[kept.name], kept, S.One, kept, move),
        ("mse", "test error", mse, S.One, loss / chain.model.loss_factor, test),
    ):
        yield LimitLaw(
            name=f"{name}-{sector}",
            meaning=f"{meaning}, many samples",
            theory=theory.name,
            holds=theory.meaning,
            sector=sector,
            control=alpha,
            limit=oo,
            quantity=quantity,
            scale=scale,
            terms=(_within(term, vanishing),),
            next_term=_within(following, vanishing) / alpha,
            start=start,
            steps=steps,
            at=at,
        )


def _within(expression: Expr, vanishing: Symbol) -> Expr:
    """The expression in the sector where an overlap vanishes, with averages over what is left in them."""
    inside = many_samples.unfolded(expression).xreplace({vanishing: S.Zero})
    return inside.xreplace({node: node.marginal() for node in inside.atoms(GaussianAverage)})

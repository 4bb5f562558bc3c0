r"""Forms of an expression that neither overflow nor cancel in floating point.

A sum, product, power or logarithm that holds an exponential is carried as a mantissa and an exponent,

.. math:: f = m \, e^{q}, \qquad \sum_i m_i e^{q_i} = e^{Q} \sum_i m_i e^{q_i - Q}, \quad Q = \max_i q_i,

so that products add exponents, quotients subtract them, and a logarithm collapses to :math:`q + \log m`; only the final
exponent, that of the value itself, is ever exponentiated. What is left are the complements :math:`1 - f(u)` (`expm1`,
`erfc`, ...), logarithms near one, quotients 0/0, which take their limit (`removable`), and exponentials inside of a
function that saturates, which need not overflow. All rules are identities on the reals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sympy import (
    Abs,
    Add,
    Basic,
    Expr,
    Function,
    Heaviside,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    atan,
    cos,
    cosh,
    cot,
    coth,
    csc,
    csch,
    default_sort_key,
    erf,
    erfc,
    exp,
    log,
    sec,
    sech,
    sign,
    sin,
    sinc,
    sinh,
    tan,
    tanh,
)
from sympy.codegen.cfunctions import expm1, log1p

from numerics.emit.graph import Graph
from numerics.emit.nodes import Erfc, Erfcx, Exp, Facts, Largest, Logaddexp, Smallest, Xlog1py, Xlogy
from numerics.emit.removable import Zero, removable

__all__ = ["DEFINED_BY", "rewrite"]


# k + f(u) = g(u) without the cancellation: rows (k, g) for each f, f = tanh^2 at the key of a power
_COMPLEMENT: dict[type[Basic], tuple[tuple[int, Callable[[Expr], Expr]], ...]] = {
    erf: ((-1, lambda u: -Erfc(u)), (1, lambda u: Erfc(-u))),
    Erfc: ((-1, lambda u: -erf(u)), (-2, lambda u: -Erfc(-u))),
    tanh: ((-1, lambda u: -2 / (1 + exp(2 * u))), (1, lambda u: 2 / (1 + exp(-2 * u)))),
    Pow: ((-1, lambda u: -1 / cosh(u) ** 2),),
    cos: ((-1, lambda u: -2 * sin(u / 2) ** 2),),
    cosh: ((-1, lambda u: 2 * sinh(u / 2) ** 2),),
}
_EXPONENTIAL = {exp: ((-1, expm1),)}
DEFINED_BY: dict[type[Basic], Callable[..., Expr]] = {
    sec: lambda u: 1 / cos(u),
    csc: lambda u: 1 / sin(u),
    cot: lambda u: 1 / tan(u),
    sech: lambda u: 1 / cosh(u),
    erfc: Erfc,
    csch: lambda u: 1 / sinh(u),
    coth: lambda u: 1 / tanh(u),
    sinc: lambda u: sin(u) / u,
    Heaviside: lambda u, at_zero: Piecewise((0, u < 0), (1, u > 0), (at_zero, True)),
}
_SATURATING = (exp, tanh, erf, Erfc, atan)  # at +- exp(_SATURATED) as good as at +- infinity
_SATURATED = 700
_FEW = 6  # terms, and powers of one denominator, up to which a sum is put over it
_SURFACE = (exp, expm1, cosh, sinh, Erfc)  # functions that are an exponential times something tame


def rewrite(expressions: Sequence[Basic], bounded_exponents: bool, prints: Callable[[Basic], bool]) -> list[Basic]:
    """Stable forms of ``expressions``; mantissa and exponent are parted only where ``bounded_exponents`` asks for it.

    No limit holds a node that the target does not print.
    Every symbol is taken to be real, as the numbers that will be put in are.
    """
    rules = _Rules(bounded_exponents, prints)
    expressions = _normal(expressions, rules)
    for node in Graph(expressions).nodes:  # children first, so that the rules never recurse far
        rules.plain(node)
    stable = [rules.plain(expression) for expression in expressions]
    stable = _entropies(_saturated(stable, rules) if bounded_exponents else stable, bounded_exponents)
    return _powers_of_exponentials(stable, bounded_exponents)


def _entropies(expressions: Sequence[Basic], flat: bool) -> list[Basic]:
    """u^k log(u) with its limit 0 at u = 0."""
    graph = Graph(expressions)
    images: list[Basic] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        image = _rebuilt(node, [graph.nodes[child] for child in children], [images[child] for child in children], flat)
        images.append(_entropy(image) if isinstance(image, Mul) else image)
    return [images[root] for root in graph.roots]


def _entropy(product: Expr) -> Expr:
    for factor in product.args:
        near = isinstance(factor, log1p)
        if near or (isinstance(factor, log) and len(factor.args) == 1):
            base = 1 + factor.args[0] if near else factor.args[0]
            power = next(
                (p for p in product.args if p.as_base_exp()[0] == base and p.as_base_exp()[1].is_positive), None
            )
            if power is not None:
                others = (other for other in product.args if other is not factor and other is not power)
                return Mul(*others, (Xlog1py if near else Xlogy)(power, factor.args[0]), evaluate=False)
    return product


def _saturated(expressions: Sequence[Basic], rules: _Rules) -> list[Basic]:
    """No overflow of exp(x) in exp(-exp(x)): where a function is flat, exponents in its argument are cut off.

    Only if all exponentials there are terms of one sign: a difference of two may be of any size.
    """
    graph = Graph(expressions)
    images: list[Basic] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        image = _rebuilt(node, [graph.nodes[child] for child in children], [images[child] for child in children])
        images.append(image.func(_cut_off(image.args[0], rules)) if isinstance(image, _SATURATING) else image)
    return [images[root] for root in graph.roots]


def _cut_off(argument: Expr, rules: _Rules) -> Expr:
    terms = Add.make_args(argument)
    growing = [term for term in terms if rules.soft(term)]
    powers = [factor for term in growing for factor in Mul.make_args(term) if isinstance(factor, exp)]
    if len(powers) < len(growing) or abs(sum(map(rules.sign, growing))) < 2 * len(growing):
        return argument
    return argument.xreplace({power: exp(Smallest(power.args[0], _SATURATED), evaluate=False) for power in powers})


def _powers_of_exponentials(expressions: Sequence[Basic], flat: bool) -> list[Basic]:
    """Exponents that are small multiples of each other share one exponential; signs do not mix: 1/exp may overflow."""
    graph = Graph(expressions)
    parts = {node: node.args[0].primitive() for node in graph.nodes if isinstance(node, exp)}
    smallest: dict[Expr, Expr] = {}
    for coefficient, content in parts.values():
        smallest[content] = min(coefficient, smallest.get(content, coefficient))
    images: list[Basic] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        image = _rebuilt(node, [graph.nodes[child] for child in children], [images[child] for child in children], flat)
        if node in parts:
            coefficient, content = parts[node]
            ratio = coefficient / smallest[content]
            ratio = ratio if ratio.is_Integer and ratio <= _FEW else S.One
            image = Exp(image.args[0] / ratio) ** ratio
        images.append(image)
    return [images[root] for root in graph.roots]


def _normal(expressions: Sequence[Basic], rules: _Rules) -> list[Basic]:
    """Elementary functions only, and complements other than 1 - exp(u) taken."""
    graph = Graph(expressions)
    images: list[Basic] = []
    for node, children in zip(graph.nodes, graph.children, strict=True):
        old, new = [graph.nodes[child] for child in children], [images[child] for child in children]
        image = _rebuilt(node, old, new, rules.bounded)
        if type(image) in DEFINED_BY:
            image = DEFINED_BY[type(image)](*image.args)
        images.append(_with_limits(image, rules) if isinstance(image, Add | Mul) else image)
    return [images[root] for root in graph.roots]


def _with_limits(node: Expr, rules: _Rules, known: tuple[Zero, ...] = ()) -> Expr:
    """A sum or product whose quotients 0/0 have their limits, apart from those ``known``; its complements are taken."""
    found = removable(node, rules, known)
    if found is not None and all(map(rules.prints, Graph([found.limit]).nodes)):
        (value,), others = _normal([found.limit], rules), found.others
        branches = [(_with_limits(found.quotient, rules, (*known, found.zero)), found.away), (value, True)]
        series = found.series() if rules.bounded else None
        if series is not None and all(map(rules.prints, Graph([series.value]).nodes)):
            branches.insert(0, (*_normal([series.value], rules), series.good))  # SymPy multiplies out what it compares
        guarded = _with_limits(found.factor, rules, known) * Piecewise(*branches, evaluate=False)
        return Add(guarded, _with_limits(others, rules, known)) if others else guarded
    if isinstance(node, Add):
        node = _complements(node, _COMPLEMENT)
        node = _over_one_denominator(node, rules)
    return node


def _complements(node: Expr, table: Mapping[type[Basic], tuple[tuple[int, Callable[[Expr], Expr]], ...]]) -> Expr:
    """``node`` with pairs k r + r f(u) among its terms replaced by r g(u)."""
    terms: dict[Expr, None] = dict.fromkeys(node.args)
    found: list[Expr] = []
    for term in node.args:
        for factor in Mul.make_args(term) if term in terms else ():
            square = isinstance(factor, Pow) and factor.exp == 2 and isinstance(factor.base, tanh)
            if isinstance(factor, Pow) and not square:
                continue
            rest = Mul(*(other for other in Mul.make_args(term) if other is not factor))
            match = next(((k * rest, g) for k, g in table.get(type(factor), ()) if k * rest in terms), None)
            if match is not None:
                partner, complement = match
                del terms[term], terms[partner]
                found.append(rest * complement((factor.base if square else factor).args[0]))
                break
    return Add(*terms, *found) if found else node


def _rebuilt(node: Basic, old: Sequence[Basic], new: Sequence[Basic], flat: bool = True) -> Basic:
    """``node`` with other children: itself where none changed; sums and products merge with theirs if ``flat``."""
    numbers = bool(new) and isinstance(node, Add | Mul | Pow) and all(isinstance(part, Rational) for part in new)
    if numbers:
        return node.func(*new)
    if all(ours is theirs for ours, theirs in zip(old, new, strict=True)):
        return node
    # SymPy's simplification of a function at construction is slow, and has been through already
    nested = isinstance(node, Function) or (not flat and isinstance(node, Add | Mul | Pow))
    return node.func(*new, evaluate=False) if nested else node.func(*new)


def _over_one_denominator(node: Expr, rules: _Rules) -> Expr:
    """e/D - e^2/D^2 and the like, with an exponential in D, as one quotient if anything in its numerator cancels."""
    powers: dict[Expr, int] = {}
    for term in node.args if node.is_Add and len(node.args) <= _FEW else ():
        for factor in Mul.make_args(term):
            base, power = (factor.base, factor.exp) if isinstance(factor, Pow) else (factor, S.One)
            if isinstance(base, Add) and power.is_Integer and power < 0 and rules.soft(base):
                powers[base] = max(powers.get(base, 0), -int(power))
    if len(powers) != 1:
        return node
    ((base, power),) = powers.items()
    if len(base.args) > _FEW or power > _FEW:
        return node
    parts = [_spread(term * base**power) for term in node.args]
    numerator = Add(*(piece for part in parts for piece in part))
    result = Add.make_args(numerator)
    cancels = _weight(result) < sum(map(_weight, parts))
    return numerator * base**-power if cancels and len(result) <= 2 * _FEW else node


def _weight(terms: Sequence[Expr]) -> Expr:
    """What terms of one sign keep when they are collected, and terms that cancel lose."""
    return Add(*(abs(term.as_coeff_Mul()[0]) for term in terms))


def _spread(term: Expr) -> Sequence[Expr]:
    """The terms of a product of sums; given up as one term if they are many. Unlike `expand`, goes into nothing else."""
    pieces: Sequence[Expr] = (S.One,)
    for factor in Mul.make_args(term):
        whole = isinstance(factor, Pow) and factor.exp.is_Integer and 0 < factor.exp <= _FEW
        for part in [factor.base] * int(factor.exp) if whole else [factor]:
            pieces = Add.make_args(Add(*(piece * other for piece in pieces for other in Add.make_args(part))))
            if len(pieces) > 8 * _FEW:
                return (term,)
    return pieces


class _Rules(Facts):
    """The rules with their memos: `plain` gives a stable form, `pair` the mantissa and the exponent of one."""

    def __init__(self, bounded_exponents: bool, prints: Callable[[Basic], bool]) -> None:
        super().__init__()
        self.bounded, self.prints = bounded_exponents, prints
        self._plain: dict[Basic, Basic] = {}
        self._pair: dict[Expr, tuple[Expr, Expr]] = {}
        self._soft: dict[Basic, bool] = {}

    def soft(self, node: Basic) -> bool:
        """Whether ``node`` has an exponential at its surface: below sums, products and rational powers only."""
        if node not in self._soft:
            if isinstance(node, _SURFACE):
                result = self.varies(node.args[0])
            elif isinstance(node, Add | Mul):
                result = any(map(self.soft, node.args))
            elif isinstance(node, Piecewise):
                result = any(self.soft(value) for value, _ in node.args)
            else:
                result = isinstance(node, Pow) and isinstance(node.exp, Rational) and self.soft(node.base)
            self._soft[node] = result
        return self._soft[node]

    def plain(self, node: Basic) -> Basic:
        """A stable form of ``node``."""
        if node not in self._plain:
            if isinstance(node, Add):
                result = self._sum(node)
            elif isinstance(node, Mul | Pow):
                result = self._quotient(node)
            elif isinstance(node, log) and len(node.args) == 1:
                result = self._log(node.args[0])
            else:
                result = self._same(node)
            self._plain[node] = result
        return self._plain[node]

    def _same(self, node: Basic) -> Basic:
        return _rebuilt(node, node.args, [self.plain(argument) for argument in node.args], self.bounded)

    # sums: complements, and what cancels over one denominator

    def _sum(self, node: Expr) -> Basic:
        complemented = _complements(node, _EXPONENTIAL)
        return self._same(node) if complemented is node else self.plain(complemented)

    # products and powers: mantissa and exponent

    def _quotient(self, node: Expr) -> Expr:
        soft = [factor for factor in Mul.make_args(node) if self.soft(factor)] if self.bounded else []
        if len(soft) < 2 and not (soft and isinstance(soft[0], Pow) and soft[0].exp < 0):
            return self._same(node)
        mantissa, exponent = self.pair(node)
        return mantissa * exp(exponent)

    def pair(self, node: Expr) -> tuple[Expr, Expr]:
        """(m, q) with ``node`` = m exp(q), where m neither overflows nor underflows by virtue of an exponential."""
        if node not in self._pair:
            self._pair[node] = self._part(node) if self.soft(node) else (self.plain(node), S.Zero)
        return self._pair[node]

    def _part(self, node: Expr) -> tuple[Expr, Expr]:
        if isinstance(node, Mul):
            mantissas, exponents = zip(*map(self.pair, node.args), strict=True)
            return Mul(*mantissas), Add(*exponents)
        if isinstance(node, Pow):
            mantissa, exponent = self.pair(node.base)
            return mantissa**node.exp, exponent * node.exp
        if isinstance(node, Add):
            return self._scaled_sum(self._by_exponent(node.args))
        if isinstance(node, Piecewise):
            parts = [(*self.pair(value), condition) for value, condition in node.args]
            mantissa = Piecewise(*((m, condition) for m, _, condition in parts), evaluate=False)
            return mantissa, Piecewise(*((q, condition) for _, q, condition in parts), evaluate=False)
        u = self.plain(node.args[0])
        if isinstance(node, exp):
            return S.One, u
        if isinstance(node, expm1):
            return self._scaled_sum({u: S.One, S.Zero: S.NegativeOne})
        if isinstance(node, cosh):
            return (1 + exp(-2 * Abs(u))) / 2, Abs(u)
        if isinstance(node, sinh):
            return -sign(u) * expm1(-2 * Abs(u)) / 2, Abs(u)
        if self.sign(u) > 0:  # erfc
            return Erfcx(u), -(u**2)
        return Piecewise((Erfcx(u), u > 0), (Erfc(u), True), evaluate=False), -(Largest(u, S.Zero) ** 2)

    def _by_exponent(self, terms: Iterable[Expr]) -> dict[Expr, Expr]:
        groups: dict[Expr, Expr] = {}
        for term in terms:
            mantissa, exponent = self.pair(term)
            groups[exponent] = groups.get(exponent, S.Zero) + mantissa
        return {exponent: mantissa for exponent, mantissa in groups.items() if mantissa is not S.Zero}

    def _scaled_sum(self, groups: dict[Expr, Expr]) -> tuple[Expr, Expr]:
        top = self._largest(groups)
        # mantissas that add up to zero cancel near coinciding exponents: sum m e^q = sum m (e^q - 1)
        scaled = expm1 if Add(*groups.values()) is S.Zero else exp
        return Add(*(mantissa * scaled(exponent - top) for exponent, mantissa in groups.items())), top

    def _largest(self, exponents: Iterable[Expr]) -> Expr:
        candidates = sorted(exponents, key=default_sort_key)
        for candidate in candidates:
            if all(candidate is other or self.sign(candidate - other) > 0 for other in candidates):
                return candidate
        return Largest(*candidates)

    # logarithms

    def _log(self, node: Expr) -> Expr:
        if isinstance(node, Piecewise):
            return Piecewise(*((self._log(value), condition) for value, condition in node.args), evaluate=False)
        if not self.soft(node) or (isinstance(node, cosh) and not self.bounded):
            return self._log_of_function(node) or _log_near_one(self.plain(node))
        if isinstance(node, Add):
            return self._log_sum(node)
        if isinstance(node, Pow) and self.sign(node.base) == 2:
            return node.exp * self._log(node.base)
        half = isinstance(node, Mul) and len(node.args) == 2 and node.args[0] is S.Half
        if half and isinstance(node.args[1], Erfc) and self.bounded:
            u = self.plain(node.args[1].args[0])  # the logarithm of a normal distribution function
            return Piecewise((log(Erfcx(u) / 2) - u**2, u > 0), (log1p(-Erfc(-u) / 2), True), evaluate=False)
        if isinstance(node, Mul) and all(self.sign(factor) == 2 for factor in node.args):
            return self._log_product(node)
        if not self.bounded:
            return _log_near_one(self.plain(node))
        if isinstance(node, Erfc):
            u = self.plain(node.args[0])
            return Piecewise((log(Erfcx(u)) - u**2, u > 1), (log1p(-erf(u)), True), evaluate=False)
        if isinstance(node, cosh):
            u = Abs(self.plain(node.args[0]))
            near, far = log1p(2 * sinh(u / 2) ** 2), u + log1p(exp(-2 * u)) - log(2)
            return Piecewise((near, u < 1), (far, True), evaluate=False)
        mantissa, exponent = self.pair(node)
        return exponent + _log_near_one(mantissa)

    def _log_of_function(self, node: Expr) -> Expr | None:
        """log f(u) from f(u) - 1 where f(u) is nearer to one than to zero."""
        complement = next((g for k, g in _COMPLEMENT.get(type(node), ()) if k == -1), None)
        if complement is None or isinstance(node, Pow):
            return None
        near = log1p(self.plain(complement(node.args[0])), evaluate=False)
        if isinstance(node, cosh):
            return near
        value = self.plain(node)
        return Piecewise((near, 2 * value > 1), (log(value, evaluate=False), True), evaluate=False)

    def _log_product(self, node: Expr) -> Expr:
        """Exponentials are moved into a sum first: log(e^a/(e^a + e^b)) = -log(1 + e^(b-a)) is not a - a."""
        exponent = Add(*(factor.args[0] for factor in node.args if isinstance(factor, exp)))
        others = [factor for factor in node.args if not isinstance(factor, exp)]
        for place, factor in enumerate(others):
            base, power = factor.as_base_exp()
            if exponent is not S.Zero and isinstance(base, Add) and self.soft(base) and power.is_Rational:
                others[place] = Add(*(term * exp(exponent / power) for term in base.args)) ** power
                exponent = S.Zero
        return self.plain(exponent) + Add(*map(self._log, others))

    def _log_sum(self, node: Expr) -> Expr:
        groups = self._by_exponent(node.args)
        if len(groups) == 2 and Add(*groups.values()) is S.Zero:
            (first, mantissa), (second, other) = groups.items()
            if self.sign(mantissa) == -2:
                first, second, mantissa = second, first, other
            if self.sign(mantissa) == 2:
                return first + log(mantissa) + _log_one_minus_exp(second - first)
        if not self.bounded:
            return _log_near_one(self.plain(node))
        one = groups.get(S.Zero) is S.One
        if len(groups) > 1 and all(self.sign(mantissa) == 2 for mantissa in groups.values()):
            parts = sorted((exponent + log(mantissa) for exponent, mantissa in groups.items()), key=default_sort_key)
            result = parts[0]
            for part in parts[1:]:
                result = Logaddexp(result, part)
            return result
        if one:
            del groups[S.Zero]
            mantissa, exponent = self._scaled_sum(groups)
            if self.sign(exponent) <= 0:
                below = log1p(mantissa * exp(exponent))
                above = exponent + log(mantissa + exp(-exponent))
                return Piecewise((below, exponent <= 0), (above, True), evaluate=False)
            groups[S.Zero] = S.One
        mantissa, exponent = self._scaled_sum(groups)
        return exponent + _log_near_one(mantissa)


def _log_near_one(node: Expr) -> Expr:
    if node.is_Add and S.One in node.args:
        return log1p(Add(*(term for term in node.args if term is not S.One)))
    return S.Zero if node is S.One else log(node, evaluate=False)


def _log_one_minus_exp(u: Expr) -> Expr:
    """log(1 - e^u) for u < 0: each form is accurate on its side of e^u = 1/2."""
    return Piecewise((log1p(-exp(u)), u < -1), (log(-expm1(u)), True), evaluate=False)

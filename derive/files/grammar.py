r"""The grammar of formulas in theory files: text becomes SymPy by a whitelist, and nothing of it is ever executed.

.. math:: \texttt{E[log(2*cosh(x)), x: N(h, r)]} \;\longmapsto\; \langle \log 2 \cosh x \rangle_{x \sim \mathcal N(h, r)}

===========================  ==========================================================================================
``1/3  0.01  1e3  pi  e``    exact numbers
``+ - * / ^ **  ( )``        arithmetic; ``^`` and ``**`` are the same power
``log(x)  H(x) ...``         the functions of `algebra.FUNCTIONS`; H(x) = erfc(x/sqrt(2))/2, W is Lambert's function
``sum[f, k: (a, b)]``        the sum of f over whole numbers k from a to b
``E[f, z]  E[f, z, w]``      the average of f over independent standard normal z, w, ..., at most four
``E[f, x: N(m, v)]``         over x of mean m and variance v: derivatives in these go by Price's theorem
``E[f, (x, y): N((m, n), ((a, b), (b, c)))]``  jointly, with a covariance
``M[g, z: (c, V)]``          the Moreau envelope min_z (z - c)^2/(2 V) + g, inside of an average
``m > 0 and q == 0``         conditions: < <= > >= == != and or not
===========================  ==========================================================================================

Python's parser sees the operators, the brackets and the numbers of the `tokens`, no text of the user's; of its tree only
the nodes of the table above are read. It is read in two algebras: as a SymPy expression, and number by number with
mpmath, which is an independent check of the expression.
"""

from __future__ import annotations

import ast
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise, product
from typing import Any

import mpmath
import sympy
from sympy import Basic, Expr, I, Integer, Matrix, S
from sympy.logic.boolalg import And, Boolean, Not, Or

from derive.files.algebra import (
    BITS,
    COST,
    FUNCTIONS,
    INFINITE,
    NUMERIC,
    SYMBOLIC,
    WORK,
    Algebra,
    Budget,
    bits,
    number,
    powers_bounded,
    regular,
)
from derive.files.tokens import FORMS, FormulaError, Token, tokens, wrong
from derive.names import instead

__all__ = ["CONSTANTS", "DEPTH", "condition", "expression", "numeric"]

DEPTH = 60
"""Operations inside each other, those of definitions included."""
CONSTANTS = {"pi": S.Pi, "e": S.Exp1}
_VARIABLES = 4  # of an average
_COMPARED = {
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
}


@dataclass
class _Reader:
    """Reads the tree of one formula in an algebra, and says where it is none of the grammar."""

    text: str
    label: str
    algebra: Algebra
    budget: Budget

    def __post_init__(self) -> None:
        self.tokens = tokens(self.text, self.label)
        pieces = [
            f"_{index}" if token.kind in ("number", "name") else token.text.replace("^", "**")
            for index, token in enumerate(self.tokens)
        ]
        self.columns = [0, *accumulate(len(piece) + 1 for piece in pieces)]
        try:
            self.tree = ast.parse(" ".join(pieces), mode="eval").body
        except SyntaxError as error:
            raise self.wrong((error.offset or 1) - 1, "this cannot be read") from None
        except (RecursionError, MemoryError):
            raise self.wrong(0, f"more than {DEPTH} operations inside each other") from None

    def wrong(self, node: ast.AST | int, why: str) -> FormulaError:
        column = node if isinstance(node, int) else getattr(node, "col_offset", 0)
        return wrong(self.label, self.text, self.tokens[bisect(self.columns, column) - 1].place, why)

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        """Inside, what an algebra refuses is wrong at ``node``."""
        try:
            yield
        except FormulaError:
            raise
        except ZeroDivisionError:
            raise self.wrong(node, "this divides by zero") from None
        except (ValueError, OverflowError) as error:
            raise self.wrong(node, str(error)) from None

    def token(self, node: ast.AST, what: str = "a name") -> Token:
        if not isinstance(node, ast.Name):
            raise self.wrong(node, f"{what} has to stand here")
        return self.tokens[int(node.id[1:])]

    def value(self, node: ast.AST, names: Mapping[str, Any], depth: int = 0) -> Any:
        """The value of ``node``, where ``names`` have theirs."""
        if depth > DEPTH:
            raise self.wrong(node, f"more than {DEPTH} operations inside each other")
        with self.at(node):
            self.budget.spend(1)
            match node:
                case ast.Name():
                    return self.operand(node, names)
                case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                    sign = -1 if isinstance(node.op, ast.USub) else 1
                    return self.algebra.product(
                        [self.algebra.number(S(sign)), self.value(node.operand, names, depth + 1)]
                    )
                case ast.BinOp(op=ast.Add() | ast.Sub()):
                    return self.algebra.total(list(self.chain(node, (ast.Add, ast.Sub), names, depth)))
                case ast.BinOp(op=ast.Mult() | ast.Div()):
                    return regular(self.algebra.product(list(self.chain(node, (ast.Mult, ast.Div), names, depth))))
                case ast.BinOp(op=ast.Pow()):
                    base, exponent = (self.value(part, names, depth + 1) for part in (node.left, node.right))
                    return regular(self.algebra.power(base, exponent))
                case ast.Call(func=ast.Name(), keywords=[]):
                    return self.call(node, names, depth)
                case ast.Subscript(value=ast.Name()):
                    return self.form(node, names, depth)
                case ast.Compare() | ast.BoolOp() | ast.UnaryOp():
                    raise self.wrong(node, "a condition has no place in a formula")
                case _:
                    raise self.wrong(node, "this has no place in a formula")

    def chain(self, node: ast.expr, kinds: tuple[type, ...], names: Mapping[str, Any], depth: int) -> Iterator[Any]:
        """The terms of a sum, or the factors of a product, however long."""
        parts: list[tuple[ast.operator | None, ast.expr]] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
            parts.append((node.op, node.right))
            node = node.left
        for operator, part in reversed([*parts, (None, node)]):
            value = self.value(part, names, depth + 1)
            if isinstance(operator, ast.Sub):
                value = -value
            if isinstance(operator, ast.Div):
                if value == 0:
                    raise self.wrong(part, "this divides by zero")
                value = self.algebra.power(value, self.algebra.number(S.NegativeOne))
            yield value

    def operand(self, node: ast.Name, names: Mapping[str, Any]) -> Any:
        token = self.token(node)
        word = token.text
        if token.kind == "number":
            return self.algebra.number(number(word))
        if word in names:
            value = names[word]
            self.budget.spend(self.budget.size(value)[0] if isinstance(value, Basic) else 1)
            return value
        if word in CONSTANTS:
            return self.algebra.number(CONSTANTS[word])
        if word in FUNCTIONS:
            raise self.wrong(node, f"{word} is a function; write {word}(...)")
        if word.lower() in ("oo", "inf", "infinity", "nan"):
            raise self.wrong(node, "numbers are finite, and domains bounded")
        raise self.wrong(node, f"{word} is not declared; {instead(word, names)}")

    def call(self, node: ast.Call, names: Mapping[str, Any], depth: int) -> Any:
        word = self.token(node.func).text
        if word in names:
            also = "; as a function it needs the parameter to have another name" if word in FUNCTIONS else ""
            raise self.wrong(node, f"{word} is declared, and no function: a product is written {word}*(...){also}")
        if word not in FUNCTIONS:
            raise self.wrong(node, f"there is no function {word}; {instead(word, FUNCTIONS)}")
        count = FUNCTIONS[word].arguments
        if len(node.args) != count:
            raise self.wrong(node, f"{word} takes {count} argument{'s'[: count > 1]}, not {len(node.args)}")
        self.budget.spend(COST)
        return regular(self.algebra.called(word, [self.value(part, names, depth + 1) for part in node.args]))

    def form(self, node: ast.Subscript, names: Mapping[str, Any], depth: int) -> Any:
        """E[...], M[...] or sum[...]."""
        word = self.token(node.value).text
        if not isinstance(node.slice, ast.Tuple):
            raise self.wrong(node, f"{word} needs a formula and its variables: {FORMS[word]}")
        body, *binders = node.slice.elts
        return {"sum": self.summed, "E": self.average, "M": self.envelope}[word](node, body, binders, names, depth)

    def bound(self, node: ast.AST, names: Mapping[str, Any]) -> str:
        """The name of a variable that is bound here."""
        word = self.token(node, "a variable").text
        if word in names or word in CONSTANTS or self.token(node).kind != "name":
            raise self.wrong(node, f"{word} has a meaning already; a variable needs another name")
        return word

    def summed(
        self, node: ast.AST, body: ast.AST, binders: Sequence[ast.AST], names: Mapping[str, Any], depth: int
    ) -> Any:
        ranges: dict[str, range] = {}
        for binder in binders:
            match binder:
                case ast.Slice(lower=ast.Name() as name, upper=ast.Tuple(elts=[low, high]), step=None):
                    ends = [self.whole(end, names, depth) for end in (low, high)]
                    ranges[self.bound(name, names)] = range(ends[0], ends[1] + 1)
                case _:
                    raise self.wrong(binder, f"write {FORMS['sum']}")
        values = product(*ranges.values())
        terms = (dict(zip(ranges, map(S, place), strict=True)) for place in values)
        number = self.algebra.number
        return self.algebra.total(
            [self.value(body, {**names, **{k: number(v) for k, v in term.items()}}, depth + 1) for term in terms]
        )

    def whole(self, node: ast.AST, names: Mapping[str, Any], depth: int) -> int:
        value = self.value(node, names, depth + 1)
        if not (value == int(value) if isinstance(value, mpmath.mpf) else isinstance(value, Integer)):
            raise self.wrong(node, "a sum runs between whole numbers")
        if abs(value) > WORK * COST:
            raise self.wrong(node, f"a sum runs between numbers up to {WORK * COST}")
        return int(value)

    def average(
        self, node: ast.AST, body: ast.AST, binders: Sequence[ast.AST], names: Mapping[str, Any], depth: int
    ) -> Any:
        parts = [self.measure(binder, names, depth, "E", "N") for binder in binders]
        return self.binder(self.algebra.average, body, parts, names, depth)

    def envelope(
        self, node: ast.AST, body: ast.AST, binders: Sequence[ast.AST], names: Mapping[str, Any], depth: int
    ) -> Any:
        parts = [self.measure(binder, names, depth, "M", None) for binder in binders]
        return self.binder(self.algebra.envelope, body, parts, names, depth)

    def binder(self, make: Callable[..., Any], body: ast.AST, parts: Sequence[Any], names: Any, depth: int) -> Any:
        """What an algebra makes of a body over independent groups of variables, each with its mean and covariance."""
        variables = [name for group, _, _ in parts for name in group]
        if len(set(variables)) < len(variables) or len(variables) > _VARIABLES:
            raise ValueError(f"give one to {_VARIABLES} different variables")
        mean = [value for _, values, _ in parts for value in values]
        zero = self.algebra.number(S.Zero)
        covariance: list[list[Any]] = []
        for group, _, block in parts:
            before = len(covariance)
            after = len(variables) - before - len(group)
            covariance += [[zero] * before + row + [zero] * after for row in block]
        self.budget.spend(COST)
        return make(
            lambda *values: self.value(body, {**names, **dict(zip(variables, values, strict=True))}, depth + 1),
            variables,
            mean,
            covariance,
        )

    def measure(
        self, binder: ast.AST, names: Mapping[str, Any], depth: int, form: str, law: str | None
    ) -> tuple[list[str], list[Any], list[list[Any]]]:
        """The variables of one binder with mean and covariance: ``z``, ``x: N(m, v)``, ``(x, y): N((m, n), rows)``."""
        match binder:
            case ast.Name() if law is not None:
                number = self.algebra.number
                return [self.bound(binder, names)], [number(S.Zero)], [[number(S.One)]]
            case ast.Slice(
                lower=ast.AST() as left,
                upper=ast.Call(func=ast.Name() as name, args=[mean, square], keywords=[]),
                step=None,
            ) if law is not None and self.token(name).text == law:
                pass
            case ast.Slice(lower=ast.AST() as left, upper=ast.Tuple(elts=[mean, square]), step=None) if law is None:
                pass
            case _:
                raise self.wrong(binder, f"write {FORMS[form]}" + (" or E[f(x), x: N(mean, variance)]" if law else ""))
        rows = [[square]]
        if isinstance(left, ast.Tuple):
            rows = [self.items(row) for row in self.items(square)]
        variables = [self.bound(name, names) for name in self.items(left)]
        means = self.items(mean) if isinstance(left, ast.Tuple) else [mean]
        if {len(means), len(rows), *map(len, rows)} != {len(variables)}:
            raise self.wrong(binder, f"{len(variables)} variables need as many means and a square matrix of that size")
        matrix = [[self.value(entry, names, depth + 1) for entry in row] for row in rows]
        if any(matrix[i][j] != matrix[j][i] for i in range(len(matrix)) for j in range(i)):
            raise self.wrong(square, "this matrix is not symmetric")
        if _indefinite(matrix, law is None):
            what = "the width of a minimum is positive" if law is None else "a variance is not negative"
            raise self.wrong(square, f"{what}{', nor is an eigenvalue of a covariance' if len(matrix) > 1 else ''}")
        return variables, [self.value(entry, names, depth + 1) for entry in means], matrix

    def items(self, node: ast.AST) -> list[ast.expr]:
        return list(node.elts) if isinstance(node, ast.Tuple) else [node]  # type: ignore[list-item]

    def condition(self, node: ast.AST, names: Mapping[str, Any], depth: int = 0) -> Any:
        if depth > DEPTH:
            raise self.wrong(node, f"more than {DEPTH} conditions inside each other")
        match node:
            case ast.BoolOp():
                kind = And if isinstance(node.op, ast.And) else Or
                return kind(*(self.condition(part, names, depth + 1) for part in node.values))
            case ast.UnaryOp(op=ast.Not()):
                return Not(self.condition(node.operand, names, depth + 1))
            case ast.Compare():
                sides = [self.value(side, names) for side in (node.left, *node.comparators)]
                pairs = zip(node.ops, pairwise(sides), strict=True)
                # Unevaluated: whether a polynomial has a sign, SymPy would ask its roots.
                return And(*(_COMPARED[type(o)](one, two, evaluate=one == two) for o, (one, two) in pairs))
            case _:
                raise self.wrong(node, "this is no condition, such as m > 0")


def _indefinite(matrix: Sequence[Sequence[Any]], strict: bool) -> bool:
    """Whether a matrix of known numbers has an eigenvalue below zero, or at zero if ``strict``: by its principal minors."""
    if not all(isinstance(entry, Expr) and entry.is_number for row in matrix for entry in row):
        return False
    places = range(len(matrix))
    minors = (
        Matrix([[matrix[i][j] for j in chosen] for i in chosen]).det()
        for size in range(1, len(matrix) + 1)
        for chosen in combinations(places, size)
    )
    return any(minor.is_negative or (strict and minor.is_zero) for minor in minors)


def expression(text: str, names: Mapping[str, Expr], label: str, budget: Budget) -> Expr:
    """The SymPy expression that ``text`` writes in declared ``names``; ``label`` says in messages what it is.

    Raises `FormulaError`.
    """
    reader = _Reader(text, label, SYMBOLIC, budget)
    value = reader.value(reader.tree, names)
    with reader.at(reader.tree):
        regular(value)
        if budget.size(value)[1] > DEPTH:
            raise ValueError(f"more than {DEPTH} operations inside each other, with those of the definitions")
        powers_bounded(value)
        if bits(value) > BITS:
            raise ValueError(f"a number in this has more than {BITS} binary digits")
        if value.has(*INFINITE, I):
            raise ValueError("this is not a finite real number somewhere")
    return value


def condition(text: str, names: Mapping[str, Expr], label: str, budget: Budget) -> Boolean:
    """The condition that ``text`` writes; raises `FormulaError`."""
    reader = _Reader(text, label, SYMBOLIC, budget)
    value = reader.condition(reader.tree, names)
    if not value.free_symbols:
        raise reader.wrong(reader.tree, "this is always true, or never: it depends on no name")
    return value


def numeric(text: str, values: Mapping[str, Any], label: str) -> Any:
    """The number of `mpmath` that ``text`` has at ``values``, averages probed; computed from the text, without SymPy.

    Raises `FormulaError` where it is not real.
    """
    reader = _Reader(text, label, NUMERIC, Budget())
    return reader.value(reader.tree, values)

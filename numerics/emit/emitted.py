r"""Emission: from SymPy expressions to functions that compute numbers, through source text.

.. math:: f(x_1, \ldots, x_n) \;\longrightarrow\; \texttt{def emitted(a0, ..., an): ...}

The text is all that an `Emitted` is: it is compiled when first called, and pickled as it stands. Arguments are renamed,
so a parameter may be called ``lambda``, and no text of the user's reaches the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log10
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import Basic, Derivative, DiracDelta, Expr, Float, MatrixBase, Symbol, SympifyError, Tuple, sympify

from derive.exact import ExactnessError, refuse_floats, refuse_twins
from numerics.emit.graph import Graph
from numerics.emit.orders import orders
from numerics.emit.printers import TARGETS, Target
from numerics.emit.removable import NOT_SMOOTH
from numerics.emit.runtime import fill_numpy

__all__ = ["EmissionError", "Emitted", "PrecisionError", "emit"]


class Stack(NamedTuple):
    """The shape of a matrix: its entries are stacked in front of what they broadcast to."""

    rows: int
    columns: int


AUTOGRAD = "from numerics.emit.autograd import differentiable, gamma, lambertw, piecewise, polygamma, torch"
"""How source for torch begins: torch is imported when it is first called."""

Shape = None | Stack | tuple["Shape", ...]  # of one expression, a matrix, a tuple of any of these


class EmissionError(ExactnessError):
    """An expression cannot be emitted; the message names the node and where it sits."""


class PrecisionError(ArithmeticError):
    """Two working precisions did not agree below the ceiling."""


@dataclass(frozen=True)
class Emitted:
    """A compiled expression. It remembers its source, its target and the names of its arguments, and can be pickled.

    Called with one value per argument. Target ``numpy``: values are broadcast together and every expression comes back
    as a float64 array of the broadcast shape (matrices stacked in front: rows, columns, then the broadcast shape).
    Target ``mpmath``: int, Fraction, SymPy Rational, mpf or decimal string, evaluated at the caller's precision, which
    stays as it is; every expression comes back as an mpf. Target ``arb``: balls, which enclose the values over all that
    the arguments enclose; nothing that branches can be emitted there. Target ``torch``: as ``numpy``, with float64
    tensors, through which autograd works, and matrices as tuples of their rows; the first two derivatives are emitted
    as well (where they are functions), and are what ``numpy`` has for them. Tuples give tuples. Raises `TypeError` for a
    wrong number of values, and for mpmath `ValueError` where the value is not real or something is divided by zero;
    NumPy gives nan or an infinity there, with its warning. So it is where a value overflows, and where an argument is
    not finite: what the limit would be is not looked for. A softmax over a row that is all minus infinity has none:
    NumPy warns and gives nan, mpmath raises.
    """

    source: str
    target: str
    arguments: tuple[str, ...]
    shape: Shape

    def __call__(self, *values: Any) -> Any:
        if len(values) != len(self.arguments):
            raise TypeError(f"{len(values)} values for the {len(self.arguments)} arguments {', '.join(self.arguments)}")
        leaves = iter(TARGETS[self.target].call(self._function, self._statements, values))
        return _assembled(self.shape, leaves, stack=self.target == "numpy")

    def into(self, output: NDArray[np.float64], *values: Any) -> NDArray[np.float64]:
        """Write the expressions (none of them a matrix) into the rows of ``output``, which it returns: short of a call's cost.

        Every value is an array of the points of a row or a float. Target ``numpy`` only.
        """
        fill_numpy(self._function, output, values)
        return output

    def to_digits(self, *values: Any, digits: int, ceiling: int | None = None) -> Any:
        """The values to ``digits`` significant digits: the working precision doubles until two in a row agree.

        It starts at the digits of the arguments and ends at ``ceiling`` (default 1000 + 10 ``digits``, more for long
        arguments). A value that still disagrees there, but has sunk below 10^(-ceiling/2) at both precisions, is zero
        as far as this can tell, and is returned as 0; an exact 0 at low precision is not believed. Anything else raises
        `PrecisionError`. Target ``mpmath`` only; `ValueError` for less than one digit.
        """
        if self.target != "mpmath":
            raise TypeError(f"digits can be asked of target mpmath, not of {self.target}")
        if digits < 1:
            raise ValueError(f"{digits} digits: at least one can be asked")
        longest = max(map(_length, values), default=0)
        ceiling = ceiling or 1000 + 10 * digits + 4 * longest
        work = min(digits + longest + 15, ceiling // 2)
        with mpmath.workdps(work):
            result = list(_flat(self(*values)))
            while work < ceiling:
                work, previous = min(2 * work, ceiling), result
                mpmath.mp.dps = work  # until workdps restores it
                result = list(_flat(self(*values)))
                if all(new and _agree(new, old, digits) for new, old in zip(result, previous, strict=True)):
                    break
            for place, (new, old) in enumerate(zip(result, previous, strict=True)):
                if _agree(new, old, digits):
                    continue
                if not max(abs(new), abs(old)) < mpmath.mpf(10) ** (-ceiling // 2):
                    raise PrecisionError(
                        f"value {place} is {mpmath.nstr(old, 10)}, then {mpmath.nstr(new, 10)} at {work} digits: "
                        f"{digits} digits are out of reach below the ceiling of {ceiling}"
                    )
                result[place] = mpmath.mpf(0)
        with mpmath.workdps(digits + 5):
            return _assembled(self.shape, iter([+value for value in result]), stack=False)

    @cached_property
    def _function(self) -> Any:
        namespace = dict(TARGETS[self.target].namespace)
        exec(compile(self.source, f"<emitted to {self.target}>", "exec"), namespace)
        return namespace["emitted"]

    @cached_property
    def _statements(self) -> int:
        return self.source.count("\n")

    def __reduce__(self) -> tuple[type[Emitted], tuple[str, str, tuple[str, ...], Shape]]:
        return Emitted, (self.source, self.target, self.arguments, self.shape)


def emit(
    expressions: Any,
    arguments: Sequence[Symbol],
    target: str = "numpy",
    share: bool = True,
    definitions: Mapping[Symbol, Expr] | None = None,
) -> Emitted:
    """Emit an expression, a matrix or nested tuples of them as a function of ``arguments``.

    Equal sub-expressions become one temporary unless ``share`` is off. ``definitions`` are what further symbols stand for,
    each in the arguments and the symbols before it: they are computed first, once. Raises `EmissionError` for a node that the
    target's table lacks, a `Float`, symbols that print alike, and a symbol that is not among the arguments.
    """
    if target not in TARGETS:
        raise EmissionError(f"there is no target {target!r}; the targets are {', '.join(TARGETS)}")
    chosen, known = TARGETS[target], dict(definitions or {})
    leaves = [*known.values(), *leaves_of(expressions)]
    try:
        refuse(leaves, (*arguments, *known), chosen, target)
        _refuse_order(known)
        names = {symbol: f"a{place}" for place, symbol in enumerate(arguments)}
        printer = chosen.printer(chosen.functions, names, share)
        source = printer.source(chosen.stable(leaves), list(known))
        if chosen.orders:
            levels = ["emitted"]
            for slopes in _derivatives(leaves, arguments, known, chosen, target):
                levels.append(f"emitted{len(levels)}")
                source = printer.source(chosen.stable(slopes), name=levels[-1])
            source = f"{AUTOGRAD}\n\n{source}\nemitted = differentiable({', '.join(levels)})\n"
    except RecursionError:
        raise EmissionError("the expression nests so deeply that SymPy itself cannot take it apart") from None
    except OverflowError:
        raise EmissionError("the expression holds a number beyond the range of float64") from None
    return Emitted(source, target, tuple(symbol.name for symbol in arguments), _shape(expressions))


def _derivatives(
    leaves: Sequence[Any], arguments: Sequence[Symbol], known: Mapping[Symbol, Expr], target: Target, name: str
) -> Iterator[list[Basic]]:
    """The derivatives that are emitted, too, as far as the target can print them."""
    outputs = leaves[len(known) :]
    for symbol, part in reversed(list(known.items())):
        outputs = [output.xreplace({symbol: part}) for output in outputs]
    for slopes in orders(outputs, arguments, target.orders):
        try:
            refuse(slopes, arguments, target, name)
        except EmissionError:  # a kink or a jump has no further ones
            return
        yield slopes


def _refuse_order(definitions: Mapping[Symbol, Expr]) -> None:
    later = set(definitions)
    for symbol, part in definitions.items():
        for early in sorted(part.free_symbols & later, key=str):
            raise EmissionError(f"the definition of {symbol} holds {early}, which is not defined before it")
        later.remove(symbol)


def refuse(leaves: Sequence[Basic], arguments: Sequence[Symbol], target: Target, name: str) -> None:
    for argument in arguments:
        if not isinstance(argument, Symbol):
            raise EmissionError(f"the argument {argument!r} is not a Symbol")
        if argument.is_real is False:
            raise EmissionError(f"the argument {argument} is declared not to be real")
    if len(set(arguments)) < len(arguments):
        raise EmissionError("an argument is listed twice")
    graph = Graph(leaves)
    for index in reversed(range(len(graph.nodes))):  # the outermost offender is named
        node = graph.nodes[index]
        if isinstance(node, Float) or any(isinstance(graph.nodes[child], Float) for child in graph.children[index]):
            try:
                refuse_floats(node, graph.path(index))
            except ExactnessError as error:
                raise EmissionError(str(error)) from None
        if not target.prints(node):
            raise EmissionError(f"{graph.path(index)} is {_short(node)}: {_lack(node, name)}")
    symbols = [node for node in graph.nodes if isinstance(node, Symbol)]
    try:
        refuse_twins([*symbols, *arguments], "the expression with its arguments")
    except ExactnessError as error:
        raise EmissionError(str(error)) from None
    missing = sorted({symbol.name for symbol in symbols} - {argument.name for argument in arguments})
    if missing:
        raise EmissionError(f"the expression holds {', '.join(missing)}, which is not among the arguments")


def _lack(node: Basic, target: str) -> str:
    """Why ``target`` cannot have ``node``."""
    if isinstance(node, DiracDelta) or (isinstance(node, Derivative) and node.expr.has(*NOT_SMOOTH)):
        return "the derivative of a function with a kink or a jump, such as Abs, where only smooth ones will do"
    return f"{target} has no {type(node).__name__}"


def _short(node: Basic) -> str:
    text = str(node)
    return text if len(text) <= 80 else text[:77] + "..."


def leaves_of(expressions: Any) -> Iterator[Basic]:
    if isinstance(expressions, MatrixBase):
        yield from expressions.flat()
    elif isinstance(expressions, tuple | list | Tuple):
        for part in expressions:
            yield from leaves_of(part)
    elif isinstance(expressions, Expr):
        yield expressions
    else:
        yield _expression(expressions)


def _expression(value: Any) -> Basic:
    try:
        node = sympify(value, strict=True)
    except SympifyError:
        node = None
    if not isinstance(node, Expr):
        raise EmissionError(f"{value!r} is not a SymPy expression")
    return node


def _shape(expressions: Any) -> Shape:
    if isinstance(expressions, MatrixBase):
        return Stack(*expressions.shape)
    if isinstance(expressions, tuple | list | Tuple):
        return tuple(map(_shape, expressions))
    return None


def _assembled(shape: Shape, leaves: Iterator[Any], stack: bool) -> Any:
    if shape is None:
        return next(leaves)
    if not isinstance(shape, Stack):
        return tuple(_assembled(part, leaves, stack) for part in shape)
    matrix = tuple(tuple(next(leaves) for _ in range(shape.columns)) for _ in range(shape.rows))
    return np.array(matrix) if stack else matrix


def _flat(values: Any) -> Iterator[mpmath.mpf]:
    if isinstance(values, tuple):
        for value in values:
            yield from _flat(value)
    else:
        yield values


def _agree(new: mpmath.mpf, old: mpmath.mpf, digits: int) -> bool:
    return bool(new == old or abs(new - old) <= abs(new) * mpmath.mpf(10) ** -(digits + 1))


def _length(value: Any) -> int:
    """How many digits it takes to write ``value``: so many must be carried for 1 + value to know of it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, mpmath.mpf):
        bits = abs(mpmath.mag(value)) + int(value.man).bit_length() if value and mpmath.isfinite(value) else 0
        return int(bits * log10(2))
    numerator, denominator = getattr(value, "numerator", 1), getattr(value, "denominator", 1)
    return int((int(numerator).bit_length() + int(denominator).bit_length()) * log10(2))

"""Source text for each target, on SymPy's own code printers: one lookup table per target says what it can print.

A block of source is one walk over the expression graph. A node that is used twice becomes a temporary, as does one
whose text has grown too deep or too long for Python's own parser. A branch of a `Piecewise` is a function of its own,
with its own temporaries, so that nothing in it is evaluated where its condition does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from sympy import Add, And, Basic, Expr, Integer, Mul, Ne, Not, Or, Piecewise, Pow, Rational, S, Symbol
from sympy.core.numbers import NumberSymbol
from sympy.core.relational import Relational
from sympy.functions.elementary.miscellaneous import MinMaxBase
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom
from sympy.printing.numpy import SciPyPrinter
from sympy.printing.pycode import MpmathPrinter

from numerics.emit import arb, runtime
from numerics.emit.graph import Graph
from numerics.emit.nodes import Away
from numerics.emit.rewrite import DEFINED_BY, rewrite

__all__ = ["TARGETS", "Target"]

_LOW, _SUM, _PRODUCT, _ATOM = range(4)
_DEPTH, _LENGTH, _WIDTH = 12, 400, 32  # the largest nesting, text and number of terms of one statement


class Code(str):
    """Source text that knows how tightly it binds and how deeply it nests."""

    level: int
    depth: int

    def __new__(cls, text: str, level: int = _ATOM, depth: int = 0) -> Code:
        code = super().__new__(cls, text)
        code.level, code.depth = level, depth
        return code

    def within(self, level: int) -> str:
        return str(self) if self.level >= level else f"({self})"


@dataclass
class _Block:
    """One function of the source while it is written."""

    graph: Graph
    codes: list[Code] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: dict[str, Code] = field(default_factory=dict)

    def assign(self, code: Code) -> Code:
        """The temporary that holds ``code``; names and numbers stand for themselves."""
        if code.replace(".", "").isalnum():
            return Code(code)
        if code not in self.values:
            self.values[code] = Code(f"t{len(self.values)}")
            self.lines.append(f"{self.values[code]} = {code}")
        return self.values[code]


def _varies(factor: Basic) -> bool:
    return not isinstance(factor.base if isinstance(factor, Pow) else factor, Rational | NumberSymbol)


class GraphPrinter:
    """Mixed into a printer of SymPy's: prints a node from the codes of its children, which are there already."""

    largest, smallest = "largest", "smallest"
    _module: str  # where `sqrt` lives
    _multiplied: int  # up to this exponent a power is written as products
    _branches = 0

    def __init__(self, functions: Mapping[str, str], names: Mapping[Symbol, str], share: bool) -> None:
        settings = {"fully_qualified_modules": True, "allow_unknown_functions": False, "strict": True}
        super().__init__(settings)  # type: ignore[call-arg]
        self.known_functions = functions
        self._names, self._share = names, share
        self._blocks: list[str] = []
        self._block = _Block(Graph(()))

    def source(self, outputs: Sequence[Basic], defined: Sequence[Symbol] = (), name: str = "emitted") -> str:
        """A module whose function ``name`` returns the tuple of ``outputs``; the first define the symbols ``defined``.

        Functions of earlier calls are part of it.
        """
        parameters, names = list(self._names.values()), self._names
        self._names = {**names, **{symbol: f"d{place}" for place, symbol in enumerate(defined)}}
        self._write(name, parameters, outputs, as_tuple=True, defined=len(defined))
        self._names = names
        return "\n\n".join(self._blocks) + "\n"

    def _write(
        self, name: str, parameters: Sequence[str], outputs: Sequence[Basic], as_tuple: bool, defined: int = 0
    ) -> None:
        block, outer = _Block(Graph(outputs, opaque=(Piecewise,))), self._block
        self._block = block
        used, waiting = block.graph.references(), list(range(defined))
        for node, children, count in zip(block.graph.nodes, block.graph.children, used, strict=True):
            waiting = self._define(waiting)
            code = self._print(node)
            code.depth = 1 + max((block.codes[child].depth for child in children), default=-1)
            named = code.depth > _DEPTH or len(code) > _LENGTH or (count > 1 and self._share)
            block.codes.append(block.assign(code) if named and (children or isinstance(node, Piecewise)) else code)
        self._define(waiting)
        results = [block.codes[root] for root in block.graph.roots[defined:]]
        self._blocks.append(self._function(name, parameters, block.lines, results, as_tuple))
        self._block = outer

    def _function(
        self, name: str, parameters: Sequence[str], lines: Sequence[str], results: Sequence[str], as_tuple: bool
    ) -> str:
        result = f"({', '.join(results)}{',' if results else ''})" if as_tuple else results[0]
        return "\n    ".join([f"def {name}({', '.join(parameters)}):", *lines, f"return {result}"])

    def _define(self, waiting: list[int]) -> list[int]:
        """Bind the definitions whose code is there; those that still wait."""
        codes, roots = self._block.codes, self._block.graph.roots
        while waiting and roots[waiting[0]] < len(codes):
            self._block.lines.append(f"d{waiting[0]} = {codes[roots[waiting[0]]]}")
            waiting = waiting[1:]
        return waiting

    def _print(self, node: Basic, **_: object) -> Code:
        index = self._block.graph.find(node)
        if index is not None and index < len(self._block.codes):
            return self._block.codes[index]
        text = super()._print(node)  # type: ignore[misc]
        return text if isinstance(text, Code) else Code(text, _LOW if isinstance(node, And | Or | Not) else _ATOM)

    def parenthesize(self, node: Basic, level: int, strict: bool = False) -> str:
        return self._print(node).within(_ATOM if level else _LOW)

    def _print_Symbol(self, node: Symbol) -> str:
        return self._names[node]

    _print_Dummy = _print_Symbol

    def _print_Integer(self, node: Integer) -> Code:
        text = self._integer(int(node))
        return Code(text, _SUM if text.startswith("-") else _ATOM)

    def _print_Rational(self, node: Rational) -> Code:
        return self._fraction(node)

    _print_Zero = _print_One = _print_NegativeOne = _print_Integer
    _print_Half = _print_Rational

    def _print_Add(self, node: Add) -> Code:
        codes = sorted(map(self._print, node.args), key=lambda code: code.startswith("-"))  # a minus only between terms
        total = codes[0]
        for place, code in enumerate(codes[1:], 1):
            if place % _WIDTH == 0:
                total = self._block.assign(total)
            minus = code.startswith("-")
            term = Code(code[1:], _PRODUCT) if minus else code
            total = Code(f"{total} {'-' if minus else '+'} {term.within(_SUM)}", _SUM)
        return total

    def _print_Mul(self, node: Mul) -> Code:
        # Not by `as_coeff_mul`: what SymPy caches holds equal factors, but other objects, which have no code yet.
        coefficient = prod((factor for factor in node.args if isinstance(factor, Rational)), start=S.One)
        factors = [factor for factor in node.args if not isinstance(factor, Rational)]
        above: list[Code] = []
        below: list[Code] = []
        for factor in sorted(factors, key=_varies):  # constants first: one pass over an array instead of two
            code = self._print(factor)
            inverted = isinstance(factor, Pow) and isinstance(factor.exp, Rational) and factor.exp < 0
            if inverted and not code.isalnum():  # a temporary is used as it stands
                below.append(self._power(factor.base, -factor.exp))
            else:
                above.append(code)
        self._scale(abs(coefficient), above, below)
        numerator = self._chain(above) if above else Code("1")
        code = Code(f"{numerator}/{self._chain(below).within(_ATOM)}", _PRODUCT) if below else numerator
        return Code(f"-{code}", _SUM) if coefficient < 0 else code

    def _chain(self, factors: Sequence[Code]) -> Code:
        if len(factors) == 1:
            return factors[0] if factors[0].level >= _PRODUCT else Code(factors[0].within(_PRODUCT))
        product = Code(factors[0].within(_PRODUCT), _PRODUCT)
        for place, factor in enumerate(factors[1:], 1):
            if place % _WIDTH == 0:
                product = self._block.assign(product)
            product = Code(f"{product}*{factor.within(_ATOM)}", _PRODUCT)
        return product

    def _print_Pow(self, node: Pow) -> Code:
        if not isinstance(node.exp, Rational):
            return self._raised(self._print(node.base), self._print(node.exp).within(_ATOM))
        if node.exp > 0:
            return self._power(node.base, node.exp)
        return Code("1/" + self._power(node.base, -node.exp).within(_ATOM), _PRODUCT)

    def _raised(self, base: Code, exponent: str) -> Code:
        return Code(f"{base.within(_ATOM)}**{exponent}", _PRODUCT)

    def _power(self, base: Expr, exponent: Rational) -> Code:
        """A positive power: by multiplication and `sqrt` where that is exact and fast."""
        code = self._print(base)
        if exponent == 1:
            return code
        whole, rest = divmod(exponent, 1)
        if rest not in (0, S.Half):
            return self._raised(code, f"({self._fraction(exponent)})")
        root = [self._root(code)] if rest else []
        return self._chain([self._whole_power(code, int(whole)), *root]) if whole else root[0]

    def _root(self, code: str) -> Code:
        return Code(f"{self._module}.sqrt({code})")

    def _whole_power(self, code: Code, exponent: int) -> Code:
        if exponent == 1:
            return code
        if exponent > self._multiplied:
            return self._raised(code, self._integer(exponent))
        code = self._block.assign(code)
        if exponent <= 3:
            return self._chain([code] * exponent)
        half = self._block.assign(self._whole_power(code, exponent // 2))
        return self._chain([half, half] + [code] * (exponent % 2))

    def _print_Piecewise(self, node: Piecewise) -> str:
        symbols = {leaf for leaf in Graph([node]).nodes if isinstance(leaf, Symbol)}
        names = [name for symbol, name in self._names.items() if symbol in symbols]
        branches = ", ".join(f"({self._branch(c, names)}, {self._branch(value, names)})" for value, c in node.args)
        return f"piecewise(({''.join(f'{name}, ' for name in names)}), {branches})"

    def _print_Away(self, node: Away) -> str:
        return self._print(Ne(node.args[0], 0, evaluate=False))

    def _branch(self, part: Basic, names: Sequence[str]) -> str:
        self._branches += 1
        name = f"branch{self._branches}"
        self._write(name, names, [part], as_tuple=False)
        return name

    def _print_Max(self, node: Basic) -> str:
        return self._nested(self.largest, node)

    def _print_Min(self, node: Basic) -> str:
        return self._nested(self.smallest, node)

    def _nested(self, function: str, node: Basic) -> str:
        text, *others = map(self._print, node.args)
        for other in others:
            text = Code(f"{function}({text}, {other})")
        return text

    _print_Largest, _print_Smallest = _print_Max, _print_Min

    def _integer(self, value: int) -> str:
        raise NotImplementedError

    def _fraction(self, value: Rational) -> Code:
        raise NotImplementedError

    def _scale(self, coefficient: Rational, above: list[Code], below: list[Code]) -> None:
        raise NotImplementedError


class NumPy(GraphPrinter, SciPyPrinter):  # type: ignore[misc]
    largest, smallest = "numpy.maximum", "numpy.minimum"
    _module, _multiplied = "numpy", 64

    def _integer(self, value: int) -> str:
        return str(value) if abs(value) < 2**53 else repr(self._float(Rational(value)))

    def _print_NumberSymbol(self, node: NumberSymbol) -> str:
        return repr(float(node.evalf(30)))

    _print_Pi = _print_Exp1 = _print_EulerGamma = _print_GoldenRatio = _print_Catalan = _print_NumberSymbol

    def _float(self, value: Rational) -> float:
        return int(value.p) / int(value.q)  # correctly rounded, of integers of any size

    def _fraction(self, value: Rational) -> Code:
        p, q = int(value.p), int(value.q)
        if q == 1:
            return self._print_Integer(value)
        exact = q & (q - 1) == 0 or max(abs(p), q) >= 2**53
        text = repr(self._float(value)) if exact else f"{p}/{q}"
        return Code(text, _SUM if p < 0 else _ATOM if exact else _PRODUCT)

    def _scale(self, coefficient: Rational, above: list[Code], below: list[Code]) -> None:
        if coefficient.p == 1 and coefficient.q != 1 and (below or coefficient.q & (coefficient.q - 1)):
            below.insert(0, self._print_Integer(Integer(coefficient.q)))
        elif coefficient != 1:
            above.insert(0, self._fraction(coefficient))


class _Torch(NumPy):
    largest, smallest = "torch.maximum", "torch.minimum"
    _module = "torch"

    def _print_And(self, node: And) -> Code:
        return Code(" & ".join(f"({self._print(part)})" for part in node.args), _LOW)

    def _print_Or(self, node: Or) -> Code:
        return Code(" | ".join(f"({self._print(part)})" for part in node.args), _LOW)

    def _print_Not(self, node: Not) -> Code:
        return Code(f"torch.logical_not({self._print(node.args[0])})")


class _Mpmath(GraphPrinter, MpmathPrinter):  # type: ignore[misc]
    _module, _multiplied = "mpmath", 2
    _print_log1p = MpmathPrinter._print_Function  # by the table, not as `MpmathPrinter` has it

    def _print_Away(self, node: Away) -> str:
        return f"away({self._print(node.args[0])}, {node.args[1]})"

    def _integer(self, value: int) -> str:
        return str(value) if abs(value) < 10**4000 else hex(value)  # Python reads no longer decimal literal

    def _fraction(self, value: Rational) -> Code:
        whole = f"mpmath.mpf({self._integer(int(value.p))})"
        return Code(whole) if value.q == 1 else Code(f"{whole}/{self._integer(int(value.q))}", _PRODUCT)

    def _scale(self, coefficient: Rational, above: list[Code], below: list[Code]) -> None:
        if coefficient.p != 1:
            above.insert(0, self._print_Integer(Integer(coefficient.p)))
        if coefficient.q != 1:
            below.insert(0, self._print_Integer(Integer(coefficient.q)))


class _Arb(_Mpmath):
    _multiplied = 1  # the square of a ball around zero is not its product with itself

    def _raised(self, base: Code, exponent: str) -> Code:
        return Code(f"power({base}, {exponent})")


@dataclass(frozen=True)
class Target:
    """Where expressions are emitted to: the printer, its table of functions, and the run time.

    ``rounds``: it loses digits, and has expressions rewritten to a form in which that does no harm. ``orders``: so many
    derivatives in all arguments are emitted too.
    """

    printer: type[GraphPrinter]
    functions: Mapping[str, str]
    namespace: Mapping[str, Any]
    call: Callable[..., list[Any]]
    bounded_exponents: bool
    rounds: bool = True
    orders: int = 0

    def stable(self, expressions: Sequence[Any]) -> Sequence[Any]:
        """``expressions`` in the form that is printed."""
        return rewrite(expressions, self.bounded_exponents, self.prints) if self.rounds else expressions

    def prints(self, node: Basic) -> bool:
        """Whether the table has a row for ``node``; a function that only has the name of one of SymPy's is another."""
        if isinstance(node, (*_STRUCTURE, *_REWRITTEN) if self.rounds else _STRUCTURE):
            return not isinstance(node, Rational) or node.is_finite
        name = type(node).__name__
        return name in self.functions and str(type(node).__module__).startswith("sympy.")


_STRUCTURE = (Symbol, Rational, NumberSymbol, Add, Mul, Pow, MinMaxBase)
_REWRITTEN = (
    Piecewise,
    ExprCondPair,
    Relational,
    And,
    Or,
    Not,
    BooleanAtom,
    Away,
    *DEFINED_BY,
)  # a ball decides no condition
_NUMPY_FUNCTIONS = {
    **SciPyPrinter._kf,
    "Abs": "numpy.abs",
    "Erfc": "scipy.special.erfc",
    "Erfcx": "scipy.special.erfcx",
    "Exp": "numpy.exp",
    "LambertW": "lambertw",
    "Logaddexp": "numpy.logaddexp",
    "Xlogy": "scipy.special.xlogy",
    "Xlog1py": "scipy.special.xlog1py",
}
_IN_TORCH = ("erf", "erfc", "erfcx", "gammaln", "psi", "xlog1py", "xlogy")  # of SciPy's special functions
_TORCH_FUNCTIONS = {
    **{
        name: code.replace("numpy", "torch").replace("scipy", "torch")
        for name, code in _NUMPY_FUNCTIONS.items()
        if code.startswith("numpy") or code.rpartition(".")[2] in _IN_TORCH
    },
    "gamma": "gamma",
    "LambertW": "lambertw",
    "polygamma": "polygamma",
}
_MPMATH_FUNCTIONS = {
    **MpmathPrinter._kf,
    "Abs": "abs",
    "Erfc": "mpmath.erfc",
    "Exp": "mpmath.exp",
    "LambertW": "mpmath.lambertw",
    "expm1": "expm1",
    "log1p": "log1p",
    "polygamma": "mpmath.polygamma",
    "Xlogy": "xlogy",
    "Xlog1py": "xlog1py",
}
_ARB_FUNCTIONS = {
    **{name: code for name, code in _MPMATH_FUNCTIONS.items() if arb.knows(code)},
    **{name: f"mpmath.{name}" for name in ("sec", "csc", "cot", "sech", "csch", "coth", "sinc")},
}
TARGETS = {
    "numpy": Target(NumPy, _NUMPY_FUNCTIONS, runtime.NUMPY, runtime.call_numpy, bounded_exponents=True),
    "mpmath": Target(_Mpmath, _MPMATH_FUNCTIONS, runtime.MPMATH, runtime.call_mpmath, bounded_exponents=False),
    "torch": Target(_Torch, _TORCH_FUNCTIONS, {}, runtime.call, bounded_exponents=True, orders=2),
    "arb": Target(_Arb, _ARB_FUNCTIONS, arb.NAMESPACE, arb.call, bounded_exponents=False, rounds=False),
}

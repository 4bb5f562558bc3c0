r"""Source that depends on nothing of ours: a step of a derivation as a Python module, a JavaScript or C program or a
LaTeX formula.

.. math:: f(x_1, \ldots, x_n) \;\longrightarrow\; \texttt{double f(double x1, ..., double xn)}

It has the form that floating point needs (`rewrite`), what the language lacks is written beside it, and when run it
compares itself with a value that was computed with 30 digits from the formula as it stands.
"""

from __future__ import annotations

import hashlib
import keyword
import math
import re
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import scipy.special
from sympy import And, Basic, Not, Or, Piecewise, Rational, S, Symbol, preorder_traversal, srepr, sstr
from sympy.core.relational import Relational

from derive.action import Parameter
from derive.derivation import Result
from derive.present import plain_names
from derive.state_evolution import Problem
from numerics.emit import helpers, runtime
from numerics.emit.emitted import EmissionError, emit, leaves_of, refuse
from numerics.emit.printers import TARGETS, Code, NumPy, Target
from numerics.emit.reach import reach

__all__ = ["FORMS", "function", "standalone"]

WIDTH, LONGEST = 110, 1100  # of a line of the header, of the statement in it
DIGITS, TOLERANCE = 30, "1e-12"  # of the test value, and the relative deviation that a program allows itself
_TRIALS = [Rational(p, 8) for p in (6, 12, 3, 20, 2, 28, 5, 64, 1, 40)]  # arguments that nothing is declared of
_ATTEMPTS = 60
_RESERVED = {
    *keyword.kwlist,
    *dir(math),
    *helpers.C_WORDS.split(),
    *helpers.C_NAMES.values(),
    *helpers.JAVASCRIPT_WORDS.split(),
    *helpers.JAVASCRIPT_NAMES.values(),
    *("math", "scipy", "value", "computed", "expected", "good"),
}


class _Python(NumPy):
    largest, smallest = "max", "min"
    _module, _power_function = "math", "math.pow"
    _nan, _true, _false = "math.nan", "True", "False"
    _and, _or, _not = " and ", " or ", "not "

    def module(self, name: str, outputs: Sequence[Any]) -> str:
        """Functions, the last of which returns the ``outputs``: one number, or all of them."""
        self._write(name, list(self._names.values()), outputs, as_tuple=len(outputs) != 1)
        return "\n\n\n".join(self._blocks)

    def _function(
        self, name: str, parameters: Sequence[str], lines: Sequence[str], results: Sequence[str], as_tuple: bool
    ) -> str:
        inner = name.startswith("branch")
        values = list(results) if inner else [f"finite({', '.join(results)})"]
        return super()._function(name, parameters, lines, values, as_tuple and inner)

    def _raised(self, base: Code, exponent: str) -> Code:
        return Code(f"{self._power_function}({base}, {exponent})")

    def _print_Relational(self, node: Relational) -> Code:
        return Code(f"({self._print(node.lhs)} {node.rel_op} {self._print(node.rhs)})")

    def _print_And(self, node: And) -> Code:
        return Code(f"({self._and.join(map(self._print, node.args))})")

    def _print_Or(self, node: Or) -> Code:
        return Code(f"({self._or.join(map(self._print, node.args))})")

    def _print_Not(self, node: Not) -> Code:
        return Code(f"({self._not}{self._print(node.args[0])})")

    def _print_BooleanTrue(self, node: Basic) -> str:
        return self._true

    def _print_BooleanFalse(self, node: Basic) -> str:
        return self._false

    def _print_Piecewise(self, node: Piecewise) -> str:
        branches = [(self._called(condition), self._called(value)) for value, condition in node.args]
        text = self._nan
        for condition, value in reversed(branches):
            text = self._choice(condition, value, text)
        return text

    def _called(self, part: Basic) -> str:
        names = [name for symbol, name in self._names.items() if symbol in part.free_symbols]
        return f"{self._branch(part, names)}({', '.join(names)})"

    def _choice(self, condition: str, value: str, otherwise: str) -> str:
        return f"({value} if {condition} else {otherwise})"


class _JavaScript(_Python):
    largest, smallest = "Math.max", "Math.min"
    _module, _power_function = "Math", "Math.pow"
    _nan, _true, _false = "NaN", "true", "false"
    _and, _or, _not = " && ", " || ", "!"
    _constant = "const"

    def _function(
        self, name: str, parameters: Sequence[str], lines: Sequence[str], results: Sequence[str], as_tuple: bool
    ) -> str:
        result = f"[{', '.join(results)}]" if as_tuple else results[0]
        return self._braced(f"function {name}({', '.join(parameters)})", lines, [f"return {result};"])

    def _braced(self, heading: str, lines: Sequence[str], last: Sequence[str]) -> str:
        return "\n    ".join([f"{heading} {{", *(f"{self._constant} {line};" for line in lines), *last]) + "\n}"

    def _choice(self, condition: str, value: str, otherwise: str) -> str:
        return f"({condition} ? {value} : {otherwise})"


class _C(_JavaScript):
    largest, smallest = "fmax", "fmin"
    _power_function = "pow"
    _nan, _true, _false = "NAN", "1", "0"
    _constant = "const double"

    def _function(
        self, name: str, parameters: Sequence[str], lines: Sequence[str], results: Sequence[str], as_tuple: bool
    ) -> str:
        kind, given = ("void", ["double *value"]) if as_tuple else ("double", [])
        scope = "static " if name.startswith("branch") else ""
        heading = f"{scope}{kind} {name}({', '.join([*(f'double {name}' for name in parameters), *given]) or 'void'})"
        if as_tuple:
            last = [f"value[{place}] = {result};" for place, result in enumerate(results)]
        else:
            last = [f"return {results[0]};"]
        return self._braced(heading, lines, last)

    def _root(self, code: str) -> Code:
        return Code(f"sqrt({code})")

    def _integer(self, value: int) -> str:  # 1/2 would be zero
        return repr(self._float(Rational(value)))

    def _fraction(self, value: Rational) -> Code:
        quotient = super()._fraction(value)
        p, slash, q = quotient.partition("/")
        return Code(f"{self._integer(int(p))}/{self._integer(int(q))}", quotient.level) if slash else quotient


@dataclass(frozen=True)
class _Language:
    printer: type[_Python]
    functions: Mapping[str, str]
    comment: str
    helpers: Mapping[str, str]
    program: str

    @property
    def target(self) -> Target:
        return Target(self.printer, self.functions, {}, runtime.call, bounded_exponents=True)

    def written(self, name: str, names: Mapping[Symbol, str], outputs: Sequence[Any]) -> tuple[str, str]:
        """The function ``name``, and the helpers that it calls."""
        body = self.printer(self.functions, names, share=True).module(name, self.target.stable(outputs))
        return body, "\n".join(text for names, text in self.helpers.items() if re.search(rf"\b(?:{names})\(", body))

    def compiled(self, name: str, names: Mapping[Symbol, str], outputs: Sequence[Any]) -> Callable[..., Any]:
        """The function itself, of Python."""
        namespace: dict[str, Any] = {"math": math, "scipy": scipy}
        exec("\n".join(reversed(self.written(name, names, outputs))), namespace)
        function: Callable[..., Any] = namespace[name]
        return function


_SCIPY = {name: code for name, code in TARGETS["numpy"].functions.items() if code.startswith("scipy")}
_LANGUAGES = {
    "python": _Language(_Python, {**_SCIPY, **helpers.PYTHON_NAMES}, "# ", helpers.PYTHON, helpers.PYTHON_PROGRAM),
    "javascript": _Language(
        _JavaScript, helpers.JAVASCRIPT_NAMES, "// ", helpers.JAVASCRIPT, helpers.JAVASCRIPT_PROGRAM
    ),
    "c": _Language(_C, helpers.C_NAMES, "// ", helpers.C, helpers.C_PROGRAM),
}
FORMS = (*_LANGUAGES, "latex")
"""The forms that `standalone` writes."""


def standalone(theory: str, problem: Problem, result: Result, form: str) -> str:
    """The right-hand side of ``result``, a step of ``theory``, in one of `FORMS`, with a header and a test value.

    Raises `EmissionError` that names the node which no formula of that language can stand for.
    """
    try:
        return _standalone(theory, problem, result, form)
    except (RecursionError, OverflowError):
        raise EmissionError(f"step {result.name!r} nests too deeply, or holds a number beyond float64") from None
    except EmissionError as error:
        averages = any(type(node).__module__ == "derive.averages" for node in preorder_traversal(result.value))
        why = (
            "averages and inner minima need quadrature: `spinodal minima` and numerics.averages compute them"
            if averages
            else "it is no function of numbers there"
        )
        raise EmissionError(
            f"step {result.name!r} cannot be written as {form} source: {error}; {why}; --format text prints it"
        ) from None


def function(name: str, arguments: Sequence[Symbol], outputs: Sequence[Any], form: str) -> str:
    """The function ``name`` that returns all ``outputs``, with what it calls and without anything around it.

    Raises `EmissionError` that names the node which no formula of that language can stand for.
    """
    language = _LANGUAGES[form]
    refuse(outputs, arguments, language.target, form)
    return "\n".join(reversed(language.written(name, _argument_names(name, arguments), outputs)))


def _standalone(theory: str, problem: Problem, result: Result, form: str) -> str:
    outputs = list(leaves_of(result.value))
    declared = _declared(problem)
    free = {symbol for symbol in result.value.free_symbols if isinstance(symbol, Symbol)}  # and no matrices
    arguments = [*(symbol for symbol in declared if symbol in free), *sorted(free - declared.keys(), key=str)]
    if form == "latex":
        names = {argument: str(argument) for argument in arguments}
        try:
            tested = _tested(declared, outputs, arguments, None)
        except EmissionError:  # a formula that is no function of numbers is one all the same
            tested = None
        return _header(theory, declared, result, names, tested, "% ") + f"\n{result.latex()}"
    language = _LANGUAGES[form]
    refuse(outputs, arguments, language.target, form)
    name = _identifier(result.name, ())
    names = _argument_names(name, arguments)
    body, needed = language.written(name, names, outputs)
    run = _LANGUAGES["python"].compiled(name, names, outputs)
    tested = _tested(declared, outputs, arguments, run)
    powers = reach(emit(tuple(outputs), arguments, "mpmath"), run, tested[0], TOLERANCE)
    domain = [f"{names[argument]} 1e{power}" for argument, power in zip(arguments, powers, strict=True) if power]
    values, expected = (", ".join(repr(float(number)) for number in part) for part in tested)
    pointer = f"{name}({', '.join([values] * bool(values) + ['value'])})"
    return language.program.format(
        header=_header(theory, declared, result, names, tested, language.comment, domain),
        scipy="import scipy.special\n" if "scipy." in body else "",
        helpers=needed,
        body=body,
        name=name,
        arguments=values,
        expected=expected,
        outputs=len(outputs),
        tolerance=TOLERANCE,
        call=f"value[0] = {name}({values})" if len(outputs) == 1 else pointer,
    )


def _argument_names(function: str, arguments: Iterable[Symbol]) -> dict[Symbol, str]:
    names: dict[Symbol, str] = {}
    for argument in arguments:
        names[argument] = _identifier(str(argument), (function, *names.values()))
    return names


def _identifier(name: str, taken: Container[str]) -> str:
    """``name`` as a name in Python, JavaScript and C that is neither ``taken`` nor means anything there."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
    plain = f"x{plain}" if plain[0].isdigit() else plain
    while plain in _RESERVED or plain in taken or re.fullmatch(r"(t|branch)\d+", plain):
        plain += "_"
    return plain


def _declared(problem: Problem) -> dict[Symbol, Any]:
    """What the problem says of its symbols, in the order of the arguments."""
    known = (*problem.order_parameters, problem.control, *problem.parameters)
    return {declaration.symbol: declaration for declaration in known}


def _tested(
    declared: Mapping[Symbol, Any], outputs: Sequence[Any], arguments: Sequence[Symbol], run: Callable[..., Any] | None
) -> tuple[list[Rational], list[Any]]:
    """Arguments, which binary numbers hold, and the values there; the first of some points at which there are values.

    A formula may be real by way of complex numbers, which ``run``, its source, does not know.
    """
    exact = emit(tuple(outputs), arguments, "mpmath")
    for attempt in range(_ATTEMPTS):
        values = [_trial(declared.get(argument), attempt, place) for place, argument in enumerate(arguments)]
        try:
            if run is not None:
                run(*map(float, values))
            return values, list(exact.to_digits(*values, digits=DIGITS))
        except (ValueError, ArithmeticError):
            continue
    raise EmissionError("no arguments were found at which it has a value")


def _trial(declaration: Any, attempt: int, place: int) -> Rational:
    """A value inside the declared range; no default, which may be a zero that switches terms off."""
    value = _TRIALS[(attempt + place * (1 + attempt // len(_TRIALS))) % len(_TRIALS)]
    if isinstance(declaration, Parameter):
        width = S.One if declaration.upper is None else (declaration.upper - declaration.lower) / (1 + value)
        value = declaration.lower + width * value
    return Rational(float(value))


def _header(
    theory: str,
    declared: Mapping[Symbol, Any],
    result: Result,
    names: Mapping[Symbol, str],
    tested: tuple[list[Rational], list[Any]] | None,
    comment: str,
    domain: Sequence[str] = (),
) -> str:
    statement = f"{sstr(plain_names(result.step.left))} = {sstr(result.value)}"
    lines = [f"{theory}, {result.name}", result.reason]
    lines.append(statement if len(statement) <= LONGEST else f"{statement[:LONGEST]} ... ({len(statement)} characters)")
    for symbol, name in names.items():
        meaning = getattr(declared.get(symbol), "meaning", "")
        spelt = "" if name == str(symbol) else f" ({symbol})"
        lines.append(f"argument {name}{spelt}{': ' if meaning else ''}{meaning}")
    lines.append(f"sha256 of the expression: {hashlib.sha256(srepr(result.value).encode()).hexdigest()}")
    if tested is not None:
        at = ", ".join(f"{name} = {float(value)!r}" for name, value in zip(names.values(), tested[0], strict=True))
        lines.append(f"test value{' at ' if at else ''}{at}: " + ", ".join(mpmath.nstr(v, 15) for v in tested[1]))
    if domain:
        lines.append(
            f"right at powers of ten, the others being those of the test value, up to {', '.join(domain)}; where double "
            "precision overflows, Python raises an error and other languages give no finite number"
        )
    wrapped = (
        part for line in lines for part in textwrap.wrap(" ".join(line.split()), WIDTH, subsequent_indent="    ")
    )
    # A line that ended in a backslash, or what C takes for one, would make the next one part of the comment.
    return "\n".join(comment + part.rstrip("\\/") for part in wrapped)

r"""Theory files: an effective action or a state evolution written in TOML, with a derivation that checks it.

.. math:: \texttt{action = "m\^{}2/2 - T*log(2*cosh(m/T))"} \;\longmapsto\; F(m; T) = \frac{m^2}{2} - T \log 2 \cosh \frac{m}{T}

A file holds data, never code: its formulas are read by `derive.files.grammar`, and each is a step of the derivation whose
last result the solvers receive; `derive.files.keys` says what else it may hold. The checks of the steps are those of
`derive.files.trial`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from sympy import Basic, Expr, Function, S, Symbol, Tuple

from derive.action import EffectiveAction, Observable, OrderParameter, Parameter, Phase, SetupError, Symmetry
from derive.averages import GaussianAverage, MoreauEnvelope
from derive.checks import Comparison
from derive.derivation import Check, Derivation, Step
from derive.exact import ExactnessError
from derive.files import keys
from derive.files.algebra import Budget, kinks
from derive.files.grammar import CONSTANTS, condition, expression
from derive.files.tokens import NAME, WORDS
from derive.files.trial import Trial
from derive.limits.quantity import Limit, Wanted, sought
from derive.state_evolution import Pair, Problem, Sector, StateEvolution, pairing

__all__ = ["FORMULAS", "Reference", "TheoryFile", "parsed", "read", "starter"]

FORMULAS = 200
"""Formulas of a file."""

_PROVEN = 300  # parts of an action that SymPy may be asked to simplify
_TABLES = {
    "action": ("order_parameters", "symmetries", "phases", "closed_forms", "limits"),
    "potential": ("overlaps", "sectors"),
}
_CLOSED = ("coexistence", "spinodal", "instability", "crossover")


@dataclass(frozen=True)
class Reference:
    """A value from the literature: ``quantity`` (of ``phase``) at ``setup``, with all digits that its source prints."""

    quantity: str
    value: str
    source: str
    phase: str | None
    setup: Mapping[str, str]


@dataclass(frozen=True)
class TheoryFile:
    """What a theory file holds: its derivation, the problem that the solvers receive, values from the literature, limits."""

    name: str
    summary: str
    chain: Derivation
    problem: Problem
    references: tuple[Reference, ...]
    limits: tuple[Wanted, ...] = ()

    @property
    def kind(self) -> str:
        """What it gives: an action or a potential."""
        return "action" if isinstance(self.problem, EffectiveAction) else "potential"

    def derivation(self) -> Derivation:
        return self.chain

    def action(self) -> EffectiveAction:
        if not isinstance(self.problem, EffectiveAction):
            raise TypeError(f"{self.name} has a state evolution, not an action")
        return self.problem

    def state_evolution(self) -> StateEvolution:
        if not isinstance(self.problem, StateEvolution):
            raise TypeError(f"{self.name} has an action, not a state evolution")
        return self.problem


def read(path: Path) -> TheoryFile:
    """The theory in the file at ``path``; raises `SetupError` for whatever is wrong with it."""
    return parsed(keys.text(path), str(path))


@lru_cache(maxsize=32)
def parsed(source: str, label: str) -> TheoryFile:
    """The theory in the text of a file, which messages call ``label``."""
    data = keys.content(source, label)
    try:
        return _Draft(data, label).finished()
    except ExactnessError as error:
        raise SetupError(f"{label}: {error}") from None


class _Draft:
    """A file while it is read: the symbols that it declares, and its formulas in them."""

    def __init__(self, data: Mapping[str, Any], label: str) -> None:
        self.data, self.label, self.budget = data, label, Budget()
        self.theory = data["theory"]
        self.kind = "potential" if "potential" in self.theory else "action"
        self._refuse_tables()
        self.control, *others = self._parameters()
        self.parameters = tuple(others)
        variables = [*data["order_parameters"], *data["overlaps"], *(o["conjugate"] for o in data["overlaps"].values())]
        self._refuse_names([*(p.name for p in (self.control, *others)), *variables, *data["definitions"]])
        self.given = {parameter.name: parameter.symbol for parameter in (*others, self.control)}
        self.symbols = {**self.given, **{name: Symbol(name, real=True) for name in variables}}
        low, high = (self._formula(end, "theory.window", self.given) for end in self.theory["window"])
        self.window = (low, high)
        self.box = self._box() or {self.symbols[name]: (S.Zero, S.One) for name in variables}
        texts = {**data["definitions"], self.kind: self.theory[self.kind]}
        self.trial = Trial(label, texts, self.parameters, self.control, self.window, self.box)

    def _wrong(self, why: str) -> SetupError:
        return SetupError(f"{self.label}: {why}")

    def _refuse_tables(self) -> None:
        """Raises `SetupError` for tables that are missing, or belong to the other kind of theory."""
        if ("action" in self.theory) == ("potential" in self.theory):
            raise self._wrong("theory needs one of the keys action and potential")
        needed = _TABLES[self.kind][0]
        if not self.data[needed]:
            raise self._wrong(f"a theory with the key {self.kind} declares its variables in tables [{needed}.NAME]")
        for kind, tables in _TABLES.items():
            for table in tables:
                if kind != self.kind and self.data[table]:
                    raise self._wrong(f"{table} goes with the key {kind}, not with {self.kind}")
        for table in ("symmetries", "phases", "sectors", "observables"):
            names = [entry["name"] for entry in self.data[table]]
            for name in names:
                if names.count(name) > 1:
                    raise self._wrong(f"{table}.name: {name[:40]!r} is the name of two of them")
        if len(self.data["control"]) != 1:
            raise self._wrong("one control is declared, in a table such as [control.T]")
        if sum(map(len, self.data.values())) > FORMULAS:
            raise self._wrong(f"a file may have {FORMULAS} tables and formulas")

    def _refuse_names(self, names: list[str]) -> None:
        for name in names:
            if NAME.fullmatch(name) is None or name in (*CONSTANTS, *WORDS, self.kind):
                raise self._wrong(
                    f"{name[:40]!r} is no name for a quantity; a name has at most 32 letters, digits and single"
                    f" underscores, a letter first; {', '.join((*CONSTANTS, *WORDS, self.kind))} have a meaning already"
                )
            if names.count(name) > 1:
                raise self._wrong(f"{name} is declared twice")

    def _parameters(self) -> Iterable[Parameter]:
        """The control, and then the parameters."""
        for kind in ("control", "parameters"):
            for name, entry in self.data[kind].items():
                lower, strict = entry.get("lower", S.Zero), entry.get("strict", True)
                positive = lower > 0 or (lower == 0 and strict)
                signs = {"positive": True} if positive else {"nonnegative": True} if lower == 0 else {"real": True}
                upper, default = entry.get("upper"), entry.get("default")
                parameter = Parameter(Symbol(name, **signs), entry["meaning"], default, lower, strict, upper)
                if upper is not None and upper <= lower:
                    raise self._wrong(f"{kind}.{name}: nothing is in the range {parameter.range_text}")
                try:
                    yield parameter if default is None else replace(parameter, default=parameter.validate(default))
                except SetupError as error:
                    raise self._wrong(f"{kind}.{name}.default: {error}") from None

    def _formula(self, text: str, where: str, names: Mapping[str, Expr]) -> Expr:
        return expression(text, names, f"{self.label}: {where}", self.budget)

    def _box(self) -> dict[Symbol, tuple[Expr, Expr]]:
        """The bounds of each order parameter."""
        box = {}
        for name, entry in self.data["order_parameters"].items():
            where = f"order_parameters.{name}"
            low, high = (self._formula(entry[end], f"{where}.{end}", self.given) for end in ("lower", "upper"))
            box[self.symbols[name]] = (low, high)
        return box

    def finished(self) -> TheoryFile:
        chain = self._chain()
        values = {**self.symbols, **{name: chain.value(name) for name in self.trial.texts}}
        self.trial.window_in_range()
        if self.kind != "action" and not self.trial.above_zero(self.window[0], "the window"):
            raise SetupError(
                f"{self.trial.label}: theory.window: transitions of a state evolution are sought in the logarithm of its"
                f" control, so that the window begins above zero, not at {self.window[0]}"
            )
        for point in self.trial.points():
            self.trial.number(point)
        problem = self._action(chain, values) if self.kind == "action" else self._evolution(chain, values)
        references = tuple(
            Reference(r["quantity"], r["value"], r["source"], r.get("phase"), r.get("setup", {}))
            for r in self.data["references"]
        )
        limits = (
            ()
            if not isinstance(problem, EffectiveAction)
            else tuple(
                self._limit(problem, entry, f"limits, number {place}")
                for place, entry in enumerate(self.data["limits"], 1)
            )
        )
        return TheoryFile(chain.name, chain.meaning, chain, problem, references, limits)

    # --- the derivation ---

    def _chain(self) -> Derivation:
        steps: list[Step] = []
        for name, text in self.trial.texts.items():
            before = tuple(step.name for step in steps)
            same = Check("the same numbers from the text, without SymPy", "numeric", self.trial.same_numbers(name))
            steps.append(Step(name, Symbol(name), self._step(name, text, before), "A definition.", before, (same,)))
        if self.kind == "action":
            slopes = Check("slopes as difference quotients of the text", "numeric", self.trial.same_slopes)
            smooth = Check("no pole, jump or kink on lines between the bounds", "numeric", self.trial.smooth)
            left, checks = Function("F"), (*steps[-1].checks, slopes, smooth)
        else:
            left, checks = Function("phi"), steps[-1].checks
        steps[-1] = replace(
            steps[-1],
            left=left(*self.box),
            reason="As it is written in the file.",
            checks=checks,
            source=self.theory.get("source", ""),
        )
        if self.kind == "action":
            steps.append(self._bounds())
        chain = Derivation(self.theory["name"], self.symbols, tuple(steps), self.theory["summary"])
        if any(_both_averaged(chain.value(self.kind), *pair) for pair in self.pairs):
            chain = replace(chain, steps=(*chain.steps, self._doubling()))
        return chain

    def _step(self, name: str, text: str, before: tuple[str, ...]) -> Callable[..., Basic]:
        """Reads a text in the symbols and the results of the steps ``before``."""
        return lambda symbols, *values: expression(
            text, {**symbols, **dict(zip(before, values, strict=True))}, self.trial.where(name), self.budget
        )

    def _bounds(self) -> Step:
        edges = [self.symbols[name] for name, entry in self.data["order_parameters"].items() if entry.get("edge")]
        return Step(
            "bounds of the order parameters",
            Tuple(*(Symbol(f"{symbol}_{end}") for symbol in self.box for end in ("min", "max"))),
            lambda _: Tuple(*(end for ends in self.box.values() for end in ends)),
            "Between these lie all stationary points: from there on the action grows.",
            checks=(Check("slopes at the bounds point outwards", "positive", self.trial.outward_slopes(edges)),),
        )

    @property
    def pairs(self) -> list[tuple[Symbol, Symbol]]:
        """Overlaps and their conjugates."""
        return [(self.symbols[name], self.symbols[entry["conjugate"]]) for name, entry in self.data["overlaps"].items()]

    def _doubling(self) -> Step:
        copies = {_next(symbol): symbol for pair in self.pairs for symbol in pair}

        def same(derivation: Derivation) -> Iterable[Comparison]:
            before, after = derivation.value("potential"), derivation.value("doubled potential")
            yield "value where the copies are equal", after.xreplace(copies), before
            for symbol in copies:
                yield f"slope in {symbol} there", after.diff(symbol).xreplace(copies), S.Zero

        return Step(
            "doubled potential",
            Function("phi")(*self.box, *copies),
            lambda _, potential: _doubled(potential, self.pairs),
            "Averages over overlaps and over conjugates: both are updated, each from the others of the round before.",
            takes=("potential",),
            checks=(Check("the same stationary points and values", "symbolic", same),),
        )

    # --- the problem ---

    def _common(self, names: Mapping[str, Expr]) -> dict[str, Any]:
        """What actions and state evolutions have in common."""
        observables = tuple(
            Observable(
                entry["name"],
                self._formula(entry["value"], f"the observable {entry['name']!r}", names),
                entry["meaning"],
                self._formula(entry["crossover"], f"the level of {entry['name']!r}", names)
                if "crossover" in entry
                else None,
            )
            for entry in self.data["observables"]
        )
        common = {"control": self.control, "parameters": self.parameters, "window": self.window}
        digits = {"digits": self.theory["digits"]} if "digits" in self.theory else {}
        return {**common, **digits, "name": self.theory["name"], "observables": observables}

    def _action(self, chain: Derivation, names: Mapping[str, Expr]) -> EffectiveAction:
        value = chain.value("action")
        common = self._common(names)
        if any(f.has(GaussianAverage, MoreauEnvelope) for f in (value, *(o.value for o in common["observables"]))):
            raise self._wrong("an action is a closed form; what holds averages is a potential over [overlaps.NAME]")
        if kinks(value, self.box):
            raise self._wrong("an action is smooth: abs, max and min have kinks in the order parameters")
        size = self.theory.get("size")
        if size is not None and size not in self.data["parameters"]:
            raise self._wrong(f"the size {size[:40]!r} is none of the parameters")
        return EffectiveAction(
            value=value,
            order_parameters=tuple(
                OrderParameter(
                    self.symbols[name], entry["meaning"], *self.box[self.symbols[name]], entry.get("edge", False)
                )
                for name, entry in self.data["order_parameters"].items()
            ),
            size=None if size is None else self.symbols[size],
            symmetries=tuple(self._symmetry(entry, value) for entry in self.data["symmetries"]),
            phases=tuple(self._phase(entry, names) for entry in self.data["phases"]),
            closed_forms=tuple(self._closed_form(entry) for entry in self.data["closed_forms"]),
            **common,
        )

    def _symmetry(self, entry: Mapping[str, Any], value: Expr) -> Symmetry:
        """A symmetry of the action; whether it is one is seen at some points before SymPy is asked for a proof."""
        where = f"the symmetry {entry['name']!r}"
        for name in entry["image"]:
            if name not in self.data["order_parameters"]:
                raise self._wrong(f"{where} moves {name[:40]!r}, which is no order parameter")
        image = {self.symbols[name]: self._formula(text, where, self.symbols) for name, text in entry["image"].items()}
        gap = value.subs(image, simultaneous=True) - value
        if gap != 0 and not all(self.trial.unchanged(point, entry["image"]) for point in self.trial.points()):
            raise self._wrong(f"{where} changes the action")
        if gap != 0 and self.budget.size(gap)[0] > _PROVEN:
            raise self._wrong(f"{where} cannot be proven for an action of this length as it is written")
        return Symmetry(entry["name"], image)

    def _phase(self, entry: Mapping[str, Any], names: Mapping[str, Expr]) -> Phase:
        if "where" not in entry:
            return Phase(entry["name"])
        label = f"{self.label}: the phase {entry['name']!r}"
        return Phase(entry["name"], condition(entry["where"], names, label, self.budget))

    def _closed_form(self, entry: Mapping[str, Any]) -> tuple[str, Expr]:
        if entry["kind"] not in _CLOSED:
            raise self._wrong(f"closed_forms are of the kinds {', '.join(_CLOSED)}, not {entry['kind'][:40]!r}")
        return entry["kind"], self._formula(entry["value"], f"the closed form of the {entry['kind']}", self.given)

    def _limit(self, action: EffectiveAction, entry: Mapping[str, Any], where: str) -> Wanted:
        values = entry.get("setup", {})
        known = {parameter.name: parameter for parameter in (*action.parameters, action.control)}
        for key, name in (("parameter", entry["parameter"]), *(("setup", name) for name in values)):
            if name not in known:
                raise self._wrong(
                    f"{where}.{key}: {name[:40]!r} is none of {', '.join(known)}, which the file declares"
                )
        try:
            limit = Limit.parsed(action, f"{entry['parameter']}={entry['to']}")
            wanted = Wanted(
                entry["quantity"], limit, entry["meaning"], entry.get("order", 3), entry.get("phase"), values
            )
            sought(action, wanted, values)
            for name, value in values.items():
                known[name].validate(value)
        except SetupError as error:
            raise self._wrong(f"{where}: {error}") from None
        return wanted

    def _evolution(self, chain: Derivation, names: Mapping[str, Expr]) -> StateEvolution:
        common = self._common(names)
        for formula in (chain.value("potential"), *(o.value for o in common["observables"])):
            if formula.xreplace(dict.fromkeys(formula.atoms(GaussianAverage), S.One)).has(MoreauEnvelope):
                raise self._wrong("a minimum M[...] stands inside of an average E[...] that its center depends on")
        pairs = {
            name: tuple(self._paired(name, entry, chain.value("potential")))
            for name, entry in self.data["overlaps"].items()
        }
        for entry in self.data["sectors"]:
            for name in entry["vanishing"]:
                if name not in pairs:
                    raise self._wrong(f"the sector {entry['name']!r} lets {name[:40]!r} vanish, which is no overlap")
        sectors = tuple(
            Sector(entry["name"], tuple(pair.overlap for name in entry["vanishing"] for pair in pairs[name]))
            for entry in self.data["sectors"]
        )
        return StateEvolution(
            potential=chain.value(chain.steps[-1].name),
            pairs=tuple(pair for group in pairs.values() for pair in group),
            sectors=sectors or (Sector("all"),),
            **common,
        )

    def _paired(self, name: str, entry: Mapping[str, Any], potential: Expr) -> Iterable[Pair]:
        """An overlap with its conjugate, which is an overlap, too, in a doubled potential."""
        overlap, conjugate = self.symbols[name], self.symbols[entry["conjugate"]]
        scale, other = (
            self._formula(entry.get(key, "1"), f"overlaps.{name}.{key}", self.given)
            for key in ("scale", "conjugate_scale")
        )
        wall = self._wall(name, entry["wall"]) if "wall" in entry else None
        if _both_averaged(potential, overlap, conjugate):
            yield Pair(overlap, _next(conjugate), entry["meaning"], scale, wall)
            yield Pair(conjugate, _next(overlap), f"conjugate of {name}", other)
        else:
            yield Pair(overlap, conjugate, entry["meaning"], scale, wall)

    def _wall(self, name: str, text: str) -> Expr:
        given = {parameter.name: parameter.symbol for parameter in self.parameters}  # the control moves no wall
        wall = self._formula(text, f"overlaps.{name}.wall", given)
        if not self.trial.above_zero(wall, f"overlaps.{name}.wall"):
            raise self._wrong(f"overlaps.{name}.wall: a wall is a size above zero that the overlap cannot exceed")
        return wall


def _both_averaged(potential: Expr, overlap: Symbol, conjugate: Symbol) -> bool:
    """Whether averages depend on both: an update would average over what holds averages."""
    held = {symbol for node in potential.atoms(GaussianAverage) for symbol in node.free_symbols}
    return {overlap, conjugate} <= held


def _next(symbol: Symbol) -> Symbol:
    """What an update makes of ``symbol``; no name of the file's has a prime."""
    return Symbol(f"{symbol.name}'", real=True)


def _doubled(potential: Expr, pairs: Sequence[tuple[Symbol, Symbol]]) -> Expr:
    r"""The potential with a copy of each overlap and conjugate, so that averages depend on overlaps only.

    .. math:: \phi(q, r) + w\,(q r' + r q' - q r - r' q'), \qquad w = \partial_q \partial_r \phi

    It is stationary where r' = r, q' = q and the potential is, and has its value there.
    """
    for q, r in pairs:
        if _both_averaged(potential, q, r):
            weight = pairing(potential, q, r)
            potential += weight * (q * _next(r) + r * _next(q) - q * r - _next(r) * _next(q))
    return potential


def starter(name: str) -> str:
    """A theory file with comments, to begin one's own from."""
    return (Path(__file__).parent / "starter.toml").read_text(encoding="utf-8").format(name=name)

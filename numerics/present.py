"""Records on paper: points, transitions and asymptotic comparisons as tables for people and documents for scripts.

A document holds every number as the decimal string that its error bound belongs to; a table shows the same strings.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
from sympy import Basic, Symbol, default_sort_key
from tabulate import tabulate

from derive.asymptotic import AsymptoticSeries, LimitLaw
from derive.averages import GaussianAverage
from numerics.points import Number, PhasePoint, Point, Points, Status, Transition, TransitionKind, Transitions

if TYPE_CHECKING:
    from numerics.asymptotics import AsymptoticReport, Rung
    from numerics.diagram import Diagram, Meeting

__all__ = [
    "diagram_json",
    "diagram_table",
    "heading",
    "outcome",
    "point_json",
    "points_table",
    "report_json",
    "report_text",
    "table",
    "transition_json",
    "transitions_table",
]

_SHORT, _LONGEST = 24, 60


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of text under headers; nothing is taken for a number and rounded."""
    return tabulate(list(rows), headers, tablefmt="simple", disable_numparse=True)


def heading(theory: str, values: Mapping[str, str], digits: int, structure: str = "") -> str:
    """What a table is about: theory and, if it has several, the structure; parameters, digits."""
    given = f": {_shown(values)}" if values else ""
    return f"{theory}{structure and f' ({structure})'}{given}; {digits} digits"


def _shown(values: Mapping[str, str]) -> str:
    """The parameters in one line."""
    return ", ".join(f"{key} = {_written(value)}" for key, value in values.items())


def _written(text: str) -> str:
    """A long rational as its user may have written it: as a decimal if it is one, with an exponent if that is shorter.

    What has more than `_LONGEST` characters even so is shown by its first and last digits.
    """
    if len(text) <= _SHORT:
        return text
    value = Fraction(text)
    places = value.denominator.bit_length()
    whole, rest = divmod(abs(value.numerator) * 10**places, value.denominator)
    if rest:
        return "/".join(map(_cut, text.split("/")))
    sign, digits = "-" * (value < 0), str(whole).rstrip("0")
    exponent = len(str(whole)) - len(digits) - places
    plain = format(Decimal(f"{sign}{digits}e{exponent}"), "f")
    fraction = f".{digits[1:]}" if digits[1:] else ""
    scientific = f"{sign}{digits[0]}{_cut(fraction)}e{exponent + len(digits) - 1}"
    return plain if len(plain) <= min(_LONGEST, len(scientific)) else scientific


def _cut(digits: str) -> str:
    return digits if len(digits) <= _LONGEST else f"{digits[:16]}...{digits[-8:]}"


def _texts(numbers: Mapping[str, Number]) -> dict[str, str]:
    return {name: number.text for name, number in numbers.items()}


def _where_defined(number: Number, text: str) -> str | None:
    return None if mpmath.isnan(number.value) else text


def point_json(point: Point) -> dict[str, Any]:
    """One stationary point for a document: ``error`` is the largest of the ``errors`` of order parameters and action.

    An observable that is undefined at the point is null, and so is its bound.
    """
    observables = point.observables.items()
    numbers = {**point.order_parameters, "action": point.action}
    return {
        "name": point.name,
        "kind": point.kind.value,
        "stability": point.stability.value,
        "order_parameters": _texts(point.order_parameters),
        "action": point.action.text,
        "error": point.error,
        "errors": {name: number.bound for name, number in numbers.items()},
        "hessian": [eigenvalue.text for eigenvalue in point.hessian],
        "hessian_errors": [eigenvalue.bound for eigenvalue in point.hessian],
        "observables": {name: _where_defined(number, number.text) for name, number in observables},
        "observable_errors": {name: _where_defined(number, number.bound) for name, number in observables},
        **({"copies": point.copies, "symmetry": list(point.symmetry)} if point.copies > 1 else {}),
        **({"readings": dict(point.readings)} if point.readings else {}),
        **({"certified": True} if point.certified else {}),
    }


def points_table(found: Points) -> str:
    """One column per point, one row per quantity: many digits stay readable.

    The error is the largest of order parameters and action; below it, every digit printed is right to a unit of the
    last, or the status says that digits were not reached.
    """
    if not found:
        return "no points"
    rows = [
        ("kind", *(point.kind.value for point in found)),
        ("stability", *(point.stability.value for point in found)),
        *_rows(found, lambda point: _texts(point.order_parameters)),
        ("action", *(point.action.text for point in found)),
        ("error, at most", *(point.error for point in found)),
        *([("Hessian", *map(_spectrum, found))] if any(point.hessian for point in found) else []),
        *_rows(found, lambda point: {name: _read(point, name) for name in point.observables}),
    ]
    return table(("phase", *(point.name for point in found)), rows)


def _spectrum(point: Point) -> str:
    return "\n".join(eigenvalue.text for eigenvalue in point.hessian)


def _read(point: Point, name: str) -> str:
    """An observable, and below it what its value means."""
    number = point.observables[name]
    text = _where_defined(number, number.text) or "undefined"
    return f"{text}\n{point.readings[name]}" if name in point.readings else text


def _rows(found: Points, quantities: Callable[[Point], dict[str, str]]) -> Iterator[tuple[str, ...]]:
    columns = [quantities(point) for point in found]
    for name in columns[0]:
        yield name, *(column[name] for column in columns)


def transition_json(entry: Transition) -> dict[str, Any]:
    """One transition for a document; a phase, an observable or a size stands only where there is one."""
    row: dict[str, Any] = {"kind": entry.kind.value, "order": entry.order}
    if entry.phase is not None:
        row["phase"] = entry.phase
    if entry.observable is not None:
        row["observable"] = entry.observable
    row |= {"control": entry.control, "value": entry.value.text, "error": entry.error, "certified": entry.certified}
    if entry.at:
        row["at"] = _texts(entry.at)
    row["phases"] = _phases(entry.phases)
    return row


def _phases(phases: Sequence[PhasePoint]) -> list[dict[str, Any]]:
    return [
        {"name": phase.name, "order_parameters": _texts(phase.order_parameters), "action": phase.action.text}
        for phase in phases
    ]


def transitions_table(control: str, found: Transitions, within: str = "") -> str:
    """One row per transition; where none is of first order, a line that says so, ``within`` a range of the control."""
    rows = [(entry.title, entry.order or "", entry.value.text, entry.error, _where(entry)) for entry in found]
    text = table(("transition", "order", control, "error", "where"), rows)
    # A spinodal, or a level of the evidence, may go with a jump to a state that is not listed, as one on a wall.
    open_ = (TransitionKind.SPINODAL, TransitionKind.OBSERVABLE_CROSSING)
    if found.status is not Status.OK or any(entry.order == "first" or entry.kind in open_ for entry in found):
        return text
    return f"{text}\n\nThere is no first-order transition{within}."


def _where(entry: Transition) -> str:
    """The size at a critical end point, then each phase's order parameters; phases that meet share their lines."""
    lines = [f"{name} = {number.text} ({name} free)" for name, number in entry.at.items()]
    places: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for phase in entry.phases:
        places.setdefault(tuple(_texts(phase.order_parameters).items()), []).append(phase.name)
    for place, names in places.items():
        lines += [f"{', '.join(names)}: {name} = {text}" for name, text in place]
    return "\n".join(lines)


def diagram_json(found: Diagram, x: str, y: str) -> dict[str, Any]:
    """Every curve with its points, and where curves meet."""
    return {
        "curves": [
            {
                "name": curve.name,
                "points": [{y: str(at), "status": e.status.value, **transition_json(e)} for at, e in curve.points],
            }
            for curve in found.curves
        ],
        "meetings": [_meeting_json(m, x, y) for m in found.meetings],
    }


def _meeting_json(m: Meeting, x: str, y: str) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": m.kind, "curves": list(m.curves)}
    row |= {x: m.x.text, f"{x}_error": m.x.bound, y: m.y.text, f"{y}_error": m.y.bound}
    if m.phases:
        row |= {"stable": m.stable, "status": m.status.value, "phases": _phases(m.phases)}
    return row


def diagram_table(found: Diagram, x: str, y: str) -> str:
    """One row per value of the second parameter and transition, in ascending order, then where curves meet."""
    rows = [
        (
            float(at),
            float(e.value),
            (_written(str(at)), curve.name, e.order or "", e.value.text, e.error, e.status.value),
        )
        for curve in found.curves
        for at, e in curve.points
    ]
    lines = [table((y, "transition", "order", x, "error", "status"), [row for *_, row in sorted(rows)])]
    for m in found.meetings:
        place = f"{x} = {m.x.text} +- {m.x.bound}, {y} = {m.y.text} +- {m.y.bound}"
        if m.phases:
            where = "" if m.stable else ", where another state lies lower"
            lines.append(f"{m.kind} at {place}{where}; on {', '.join(m.curves) or 'no curve at these rows'}")
        else:
            lines.append(f"{' and '.join(m.curves)} {'meet' if m.curves[1:] else 'is tricritical'} at {place}")
    return "\n\n".join(lines)


def outcome(found: Points | Transitions | Diagram | AsymptoticReport) -> dict[str, Any]:
    """How a computation ended, for the end of a document."""
    return {"status": found.status.value, "notes": list(found.notes), "seconds": round(found.seconds, 3)}


_RUNG = ("value", "ratio", "leading", "partial", "difference", "next_term", "explained")


def _brief(number: Number | None) -> str:
    """A number for a column of a table, if there is one; the JSON document has all its digits."""
    return "" if number is None else replace(number, digits=min(number.digits, 10)).text


def _bound(number: Number | None) -> str:
    return "" if number is None else number.bound


def _rungs(report: AsymptoticReport) -> Iterator[tuple[str, Rung]]:
    from numerics.asymptotics import size_text

    return ((size_text(rung.size), rung) for rung in report.rungs)


def report_json(report: AsymptoticReport) -> dict[str, Any]:
    """A series or a law and its comparison with exact values, for a document; ``size`` is the control of a law.

    ``error`` bounds the value; ``errors`` has a bound for every entry.
    """
    series = report.series
    about: dict[str, Any]
    terms, following = _formulas(series)
    if isinstance(series, LimitLaw):
        about = {"sector": series.sector, "limit": str(series.limit)}
    else:
        about = {"transition": series.kind, **({"phases": list(report.phases)} if report.phases else {})}
    return {
        "name": series.name,
        "meaning": series.meaning,
        **about,
        "setup": dict(report.parameters),
        "scale": str(series.scale),
        "terms": terms,
        "next_term": following,
        "next": _next(series),
        "rungs": [
            {
                "size": size,
                **{name: number and number.text for name, number in _entries(rung)},
                "error": rung.value.bound,
                "errors": {name: number and number.bound for name, number in _entries(rung)},
            }
            for size, rung in _rungs(report)
        ],
        **outcome(report),
    }


def _entries(rung: Rung) -> list[tuple[str, Number | None]]:
    return [(name, getattr(rung, name)) for name in _RUNG]


def _formulas(series: AsymptoticSeries | LimitLaw) -> tuple[list[str], str | None]:
    """The terms and the next term, if it is known, with averages numbered."""
    every = [*series.terms, *([] if series.next_term is None else [series.next_term])]
    names: dict[Basic, Symbol] = {}
    for term in every:
        for node in sorted(term.atoms(GaussianAverage), key=default_sort_key):
            names.setdefault(node, Symbol(f"<{len(names) + 1}>"))
    texts = [str(term.xreplace(names)) for term in every]
    count = len(series.terms)
    return texts[:count], next(iter(texts[count:]), None)


def _next(series: AsymptoticSeries | LimitLaw) -> str:
    """What is said of the next term: ``known``, ``none`` where a series ends, ``unknown`` where a law was not taken on."""
    if series.next_term is not None:
        return "known"
    return "unknown" if isinstance(series, LimitLaw) else "none"


def _sum_lines(head: str, terms: Sequence[object], tail: str) -> Iterator[str]:
    """A sum with one line for each term, and more for a long one."""
    first, *others = map(str, terms)
    lines = [head + first, *(f"  - {term[1:]}" if term.startswith("-") else f"  + {term}" for term in others)]
    lines[-1] += tail
    for text in lines:
        yield from textwrap.wrap(text, 110, initial_indent="  ", subsequent_indent="        ", break_long_words=False)


def report_text(theory: str, report: AsymptoticReport) -> str:
    """A series or a law, and one row per size or control of its comparison with exact values."""
    series = report.series
    terms, following = _formulas(series)
    variable = series.control if isinstance(series, LimitLaw) else series.size
    same = {"partial"} if len(terms) == 1 else set()
    unknown = {"next_term", "explained"} if following is None else set()
    columns = [name for name in _RUNG[1:] if name not in same | unknown]
    rows = [
        (
            size,
            rung.value.text,
            rung.value.bound,
            *(_brief(getattr(rung, name)) for name in columns),
            _bound(getattr(rung, columns[-1])),
        )
        for size, rung in _rungs(report)
    ]
    legend = ["ratio = value / scale; leading: first term"]
    legend += [] if same else ["partial: all terms"]
    legend += [f"difference = ratio - {'leading' if same else 'partial'}"]
    legend += [] if unknown else ["explained = difference / next term, which tends to one"]
    legend += ["an error is that of the column before it"]
    headers = (variable.name, "value", "error", *(name.replace("_", " ") for name in columns), "error")
    law, shown = isinstance(series, LimitLaw), _shown(report.parameters)
    ends = _next(series) == "none"
    single = ends and len(terms) == 1
    summands = [str(series.scale * series.terms[0])] if single else terms
    head, tail = ("", "") if single or series.scale == 1 else (f"{series.scale} * (", ")")
    return "\n".join(
        [
            f"{theory}, {series.name}: {series.meaning}{shown and f' ({shown})'}\n",
            *_sum_lines(head, summands, ("" if ends else " + ...") + tail),
            *_sum_lines("next term: ", [following or _next(series)], ""),
            *([f"  <1>, ...: averages, of the steps {', '.join(series.steps)}"] if law else []),
            "",
            table(headers, rows),
            "",
            textwrap.fill("; ".join(legend), 110),
        ]
    )

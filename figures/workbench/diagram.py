r"""The phase diagram of any theory: its transitions in two parameters.

.. math:: \lambda^*_k(\mu)

``spinodal figure diagram --theory THEORY --x NAME=LO:HI --y NAME=LO:HI:N KEY=VALUE``, or ``--store DIR`` for what
``spinodal diagram`` has put into a record store.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpmath import mpf

from derive.action import SetupError
from derive.state_evolution import StateEvolution
from figures.plot import Plot, Work
from figures.style import CYCLE, logarithmic, sheet
from figures.table import Cell, Table, made
from figures.workbench.request import Request, requested, titled
from numerics import diagram as room
from numerics import evolution_transitions, transitions
from numerics.scan import Axis, parse_axis
from numerics.store import Store, StoreError

__all__ = ["PLOT"]

_DEFAULT = {"theory": "classical/landau-6", "x": "a=-1/2:1", "y": "b=-2:1:13"}
_NAN = float("nan")
_METASTABLE = "metastable"
"""In the place of the order, of a special point above which another state lies lower."""


def compute(work: Work) -> Table:
    """The curves and where they meet."""
    asked, store = work, None
    if "store" in work.chosen:
        store = _opened(work)
        asked = _of(store, work)
    chosen = asked.chosen or _DEFAULT
    if "y" not in chosen:
        raise SetupError("--y is missing: a diagram needs --y NAME=LO:HI:N")
    axis = parse_axis(chosen["y"])
    request = requested(asked, _DEFAULT, {}, [axis.name])
    digits = int(asked.chosen.get("digits", min(request.problem.digits, 6)))
    return made(
        PLOT.columns,
        _rows(request, axis, digits, store, work),
        [request.theory],
        theory=request.title,
        parameters=request.text,
        x=request.meaning(request.name),
        y=request.meaning(axis.name),
        logarithmic=str(axis.logarithmic),
    )


def _rows(request: Request, axis: Axis, digits: int, store: Store | None, work: Work) -> Iterator[tuple[Cell, ...]]:
    evolves = isinstance(request.problem, StateEvolution)
    solve = evolution_transitions.transitions if evolves else transitions.transitions
    found = room.diagram(request.problem, request.parameters, axis, request.over, digits, solve, store, work.say)
    for curve in found.curves:
        for y, entry in curve.points:
            order = entry.order or ""
            yield "curve", curve.name, order, float(entry.value), float(y), float(mpf(entry.error)), _NAN
    for meeting in found.meetings:
        name = " and ".join(meeting.curves)
        x, y = meeting.x, meeting.y
        yield (
            meeting.kind,
            name,
            "" if meeting.stable else _METASTABLE,
            float(x),
            float(y),
            float(mpf(x.bound)),
            float(mpf(y.bound)),
        )


def _opened(work: Work) -> Store:
    try:
        return Store.open(Path(work.chosen["store"]))
    except (StoreError, OSError) as error:
        raise SetupError(f"--store {work.chosen['store']}: {error}") from None


def _of(store: Store, work: Work) -> Work:
    """What a diagram's store was made for."""
    about = store.about()
    if "x" not in about:
        raise SetupError(f"--store {work.chosen['store']}: that is the store of a scan, not of a diagram")
    pairs = dict(text.split("=", 1) for text in about["parameters"].split(", ") if text)
    chosen = {"theory": about["theory"], "x": about["x"], "y": about["axes"], "digits": about["digits"]}
    return Work(work.quick, chosen, pairs, work.say)


def draw(table: Table) -> Figure:
    """Drawn through where a transition has an order, dashed where a state only loses its stability; special points are
    marked, open where another state lies lower."""
    special = Table(table.columns, tuple(row for row in table.rows if row[0] != "curve"))
    with sheet() as (figure, (axes,)):
        for look, (name, curve) in zip(CYCLE * 8, table.where(what="curve").groups("name"), strict=False):
            _stroke(
                axes, str(name), [*curve.rows, *(row for row in special.rows if name in row[1].split(" and "))], look
            )
        for marker, (kind, points) in zip("*Phd^vX<", special.groups("what"), strict=False):
            for inside, part in (("black", points.where(order="")), ("white", points.where(order=_METASTABLE))):
                if part.rows:
                    label = _label(str(kind)) + (", metastable" if inside == "white" else "")
                    style = {"color": "black", "markerfacecolor": inside, "markersize": 12, "zorder": 3}
                    axes.plot(part["x"], part["y"], marker, label=label, **style)
        axes.set_xlabel(table.about["x"])
        axes.set_ylabel(table.about["y"])
        if table.about["logarithmic"] == "True":
            logarithmic(axes.yaxis)
        spread = table["x"]
        if min(spread) > 0 and max(spread) > 30 * min(spread):
            logarithmic(axes.xaxis)
        axes.set_title(titled(table, 75))
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return figure


def _label(kind: str) -> str:
    words = kind.replace("-", " ")
    return words if words.endswith(("point", "end", "cusp", "meeting")) else f"{words} point"


def _stroke(axes: Axes, name: str, rows: list[tuple[Cell, ...]], look: tuple[str, str, str]) -> None:
    """A curve in pieces, drawn through and dashed."""
    colour, line, marker = look
    rows.sort(key=lambda row: float(row[4]))
    dashed = "--" if line == "-" else line
    ends = [row[2] == "second" or (row[2] == "first" and not name.startswith("instability")) for row in rows]
    through = [one or other for one, other in pairwise(ends)] or ends  # of a special point the other end decides
    label, begin = name, 0
    for solid, run in groupby(through):
        end = begin + len(list(run))
        x, y = ([float(row[place]) for row in rows[begin : end + 1]] for place in (3, 4))
        axes.plot(x, y, "-" if solid else dashed, color=colour, marker=marker, markersize=4.5, label=label)
        label, begin = "_", end


PLOT = Plot(
    "diagram",
    "Transitions of a theory in two of its parameters.",
    ("what", "name", "order", "x", "y", "x_error", "y_error"),
    compute,
    draw,
    options=("theory", "x", "y", "store"),
)

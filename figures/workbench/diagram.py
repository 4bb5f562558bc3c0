r"""The phase diagram of any theory: its transitions in two parameters.

.. math:: \lambda^*_k(\mu)

``spinodal figure diagram --theory THEORY --x NAME=LO:HI --y NAME=LO:HI:N KEY=VALUE``, or ``--store DIR`` for what
``spinodal diagram`` has put into a record store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure
from mpmath import mpf

from derive.action import SetupError
from derive.state_evolution import StateEvolution
from figures.plot import Plot, Work
from figures.style import CYCLE, logarithmic, sheet
from figures.table import Cell, Table, made
from figures.workbench.request import Request, requested
from numerics import diagram as room
from numerics import evolution_transitions, transitions
from numerics.scan import Axis, parse_axis
from numerics.store import Store, StoreError

__all__ = ["PLOT"]

_DEFAULT = {"theory": "classical/landau-6", "x": "a=1/100:3/2", "y": "b=-2:-1/4:8"}
_NAN = float("nan")


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
        yield "meeting", name, "", float(x), float(y), float(mpf(x.bound)), float(mpf(y.bound))


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
    """First-order and second-order lines are drawn through, all others dashed; meetings are marked."""
    with sheet() as (figure, (axes,)):
        for look, (name, curve) in zip(CYCLE * 8, table.where(what="curve").groups("name"), strict=False):
            colour, line, marker = look
            line = "-" if any(curve.distinct("order")) else line
            axes.plot(curve["x"], curve["y"], line, marker=marker, markersize=4.5, color=colour, label=str(name))
        meeting = table.where(what="meeting")
        if meeting.rows:
            axes.plot(
                meeting["x"], meeting["y"], "*", color="black", markersize=14, label="meeting or tricritical point"
            )
        axes.set_xlabel(table.about["x"])
        axes.set_ylabel(table.about["y"])
        if table.about["logarithmic"] == "True":
            logarithmic(axes.yaxis)
        spread = table["x"]
        if min(spread) > 0 and max(spread) > 30 * min(spread):
            logarithmic(axes.xaxis)
        axes.set_title(f"Transitions of {table.about['theory']}")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    return figure


PLOT = Plot(
    "diagram",
    "Transitions of a theory in two of its parameters.",
    ("what", "name", "order", "x", "y", "x_error", "y_error"),
    compute,
    draw,
    options=("theory", "x", "y", "store"),
)

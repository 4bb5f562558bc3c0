"""One figure: how its numbers are computed, how they are drawn, and where they are stored.

The two steps meet in a `Table` alone, so that a figure can be drawn again from its file without computing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from derive.action import SetupError
from figures.table import Table, current, read

__all__ = ["DATA", "Plot", "Work", "plot", "tables"]

DATA = Path(__file__).parent / "data"
"""Where tables lie that take long to compute: ``spinodal figure NAME --out figures/data --format csv`` writes them."""


@dataclass(frozen=True)
class Work:
    """How a table is computed: roughly and in seconds (``quick``) or in full; what is chosen; whom to tell of progress.

    ``known`` is what figures of the same work share.
    """

    quick: bool = False
    chosen: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = lambda text: None
    known: dict[Any, Any] = field(default_factory=dict)

    def seeds(self, text: str) -> dict[str, str]:
        """What a table says of its seeds; quickly there are no experiments."""
        return {} if self.quick else {"seeds": text}


@dataclass(frozen=True)
class Plot:
    """A figure by ``name``: ``caption`` says what is seen, ``options`` what may be chosen.

    ``compute`` makes its table, ``draw`` the picture of such a table, whose columns are ``columns``. Figures of one table
    say under which name it is ``kept``.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    compute: Callable[[Work], Table]
    draw: Callable[[Table], Figure]
    options: tuple[str, ...] = ()
    kept: str = ""

    @property
    def stored(self) -> str:
        """The file of its table by itself."""
        return f"{self.kept or self.name}.csv"


def plot(module: str) -> Plot:
    """The figure in a module, which is imported here."""
    found = import_module(module).PLOT
    assert isinstance(found, Plot)
    return found


def tables(plots: Iterable[Plot], work: Work, source: Path | None = None) -> Iterator[tuple[Plot, Table]]:
    """The table of each figure: from ``source``, a file or a folder of them, or stored, or computed.

    Quickly, a stored table does, as long as the theories have the expressions that it was computed from, and nothing is
    chosen. Raises `SetupError` for a file that is not of the figure.
    """
    computed: dict[Callable[[Work], Table], Table] = {}
    for one in plots:
        if source is not None:
            yield one, _given(one, _within(source, one) if source.is_dir() else source)
            continue
        table = computed.get(one.compute) or _stored(one, work) or one.compute(work)
        computed[one.compute] = table
        yield one, table


def _within(folder: Path, one: Plot) -> Path:
    """The file of a figure, or that of the table it shares with others."""
    beside = folder / f"{one.name}.csv"
    return beside if beside.exists() else folder / one.stored


def _given(one: Plot, path: Path) -> Table:
    table = read(path)
    if table.columns != one.columns:
        raise SetupError(f"{path} is no table of the figure {one.name}: its columns are not {', '.join(one.columns)}")
    return table


def _stored(one: Plot, work: Work) -> Table | None:
    path = DATA / one.stored
    if not work.quick or work.chosen or work.values or not path.is_file():
        return None
    table = _given(one, path)
    if current(table):
        return table
    work.say(f"{one.name}: a theory has changed since its stored numbers were computed; computing them again")
    return None

"""The catalogue: the one place where theories are found by name.

An entry names the module and the function that builds its action or its state evolution; nothing is imported before it
is asked for. A new theory is one folder under ``derive/`` and one line here, or one theory file: the classical models are
files in ``derive/classical``, and the path of any other file is a name, too. So is ``module:NAME``, a module on the
search path of Python. A module is code, which is run; a file is data.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from derive.names import instead

if TYPE_CHECKING:
    from derive.action import EffectiveAction
    from derive.asymptotic import AsymptoticSeries, LimitLaw
    from derive.derivation import Derivation
    from derive.limits.quantity import Wanted
    from derive.state_evolution import Problem, StateEvolution

__all__ = ["CLASSICAL", "MODULE", "THEORIES", "Choice", "Recipe", "Theory", "UnknownTheoryError", "classical", "find"]

T = TypeVar("T")

CLASSICAL = Path(__file__).parent / "classical"
"""The files of the classical models."""


_FILE, MODULE = ".toml", "module:"


class UnknownTheoryError(LookupError):
    """No theory has that name."""


class Choice(NamedTuple):
    """A size or a matrix that a theory is built for, given like a parameter."""

    name: str
    meaning: str
    default: str
    range_text: str


@dataclass(frozen=True)
class Theory:
    """A catalogue entry: ``module`` has ``derivation()``; ``builder`` and ``series`` name its functions that build the
    action and the asymptotic series, if there are any. A theory with a state evolution, built by ``evolution``, has no
    action. Where it is built for sizes, the module has ``CHOICES`` and ``prepared(values, axes)``. A theory file has the
    functions of a module; its path is the ``module``.
    """

    name: str
    summary: str
    module: str
    builder: str = "action"
    series: str | None = "asymptotics"
    evolution: str | None = None

    @property
    def room(self) -> Any:
        """The module, or what the file holds; raises `SetupError` for a file that is no theory."""
        if not self.module.endswith(_FILE):
            return import_module(self.module)
        from derive.files.theory import read

        return read(Path(self.module))

    def _built(self, builder: str, kind: type[T]) -> T:
        """What a function of the module returns; raises `SetupError` for whatever a user's module does wrong."""
        from derive.action import SetupError

        with _blamed(self.name):
            built = getattr(self.room, builder)()
        if not isinstance(built, kind):
            wanted = f"{kind.__module__}.{kind.__name__}"
            raise SetupError(f"{self.name}: {builder}() has to return a {wanted}, not a {type(built).__name__}")
        return built

    def derivation(self) -> Derivation:
        from derive.derivation import Derivation

        return self._built("derivation", Derivation)

    def action(self) -> EffectiveAction:
        if self.evolution is not None:
            raise TypeError(f"{self.name} has a state evolution, not an action")
        from derive.action import EffectiveAction

        return self._built(self.builder, EffectiveAction)

    def state_evolution(self) -> StateEvolution:
        if self.evolution is None:
            raise TypeError(f"{self.name} has an action, not a state evolution")
        from derive.state_evolution import StateEvolution

        return self._built(self.evolution, StateEvolution)

    def problem(self) -> Problem:
        """What the numerics receive: the action, or the state evolution."""
        return self.action() if self.evolution is None else self.state_evolution()

    def prepared(self, values: Mapping[str, str], axes: Collection[str] = ()) -> tuple[Problem, dict[str, str]]:
        """The problem, and the ``values`` that are its parameters; some theories are built for sizes given among them.

        Raises `SetupError` where a size is none, or is among ``axes``, the names of the parameters that are to vary.
        """
        build = getattr(self.room, "prepared", None)
        if build is None:
            return self.problem(), dict(values)
        problem, left = build(values, axes)
        return problem, left

    def recipe(self, values: Mapping[str, str], axes: Collection[str] = ()) -> Recipe:
        """What builds the problem of `prepared` elsewhere."""
        from derive.files import keys

        text = keys.text(Path(self.module)) if self.module.endswith(_FILE) else None
        return Recipe(self.name, tuple(values.items()), tuple(axes), text)

    @property
    def choices(self) -> tuple[Choice, ...]:
        chosen: tuple[Choice, ...] = getattr(self.room, "CHOICES", ())
        return chosen

    def asymptotics(self) -> tuple[AsymptoticSeries | LimitLaw, ...]:
        """Series of the transitions of an action, laws of the fixed points of a state evolution."""
        if self.series is None:
            return ()
        built: tuple[AsymptoticSeries | LimitLaw, ...] = getattr(self.room, self.series)()
        return built

    @property
    def limits(self) -> tuple[Wanted, ...]:
        """Limits that a theory file declares, in which series of its quantities are derived."""
        declared: tuple[Wanted, ...] = self.room.limits if self.module.endswith(_FILE) else ()
        return declared


@dataclass(frozen=True)
class Recipe:
    """How a problem is built, in words: called in another process or on another machine, it builds the same one there.

    ``text`` is that of the theory file, which need not be there; a theory without one is found by its name.
    """

    theory: str
    values: tuple[tuple[str, str], ...]
    axes: tuple[str, ...]
    text: str | None

    def __call__(self) -> Problem:
        if self.text is None:
            return find(self.theory).prepared(dict(self.values), self.axes)[0]
        from derive.files.theory import parsed

        return parsed(self.text, self.theory).problem


THEORIES: tuple[Theory, ...] = (
    Theory(
        "copy-head/linear",
        "one linear attention head on the copy task: second-order pooling transition, then a crossover to copying,"
        " which a first-order transition precedes in long sequences",
        "derive.copy_head.linear",
    ),
    Theory(
        "copy-head/softmax",
        "one softmax attention head on the copy task: first-order transition from uniform attention to copying",
        "derive.copy_head.softmax",
    ),
    Theory(
        "copy-head/softmax-relaxed",
        "the softmax head with the same-token coordinate relaxed to second order instead of held at zero",
        "derive.copy_head.softmax",
        "relaxed_action",
        series=None,
    ),
    Theory(
        "positional-semantic",
        "tied low-rank dot-product attention that learns from a teacher: from positional to semantic attention",
        "derive.positional_semantic",
        evolution="state_evolution",
    ),
)


def classical() -> tuple[Theory, ...]:
    """The classical models, each in a file."""
    return tuple(_in_file(f"classical/{path.stem}", path) for path in sorted(CLASSICAL.glob(f"*{_FILE}")))


def _in_file(name: str, path: Path) -> Theory:
    from derive.files.theory import read

    file = read(path)
    evolution = None if file.kind == "action" else "state_evolution"
    return Theory(name, file.summary, str(path), series=None, evolution=evolution)


def _in_module(name: str) -> Theory:
    """The module called ``name``, which is imported here; raises `UnknownTheoryError` where it holds no theory."""
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:  # it is code, and may do anything
        raise UnknownTheoryError(f"module:{name} cannot be imported: {_told(error)}") from None
    builders = [builder for builder in ("action", "state_evolution") if hasattr(module, builder)]
    if len(builders) != 1 or not hasattr(module, "derivation"):
        raise UnknownTheoryError(f"module:{name} is no theory: it needs derivation() and action() or state_evolution()")
    evolution = None if builders == ["action"] else "state_evolution"
    series = "asymptotics" if hasattr(module, "asymptotics") else None
    summary = (module.__doc__ or "").partition("\n")[0]
    theory = Theory(f"{MODULE}{name}", summary, name, series=series, evolution=evolution)
    theory.derivation()  # whether it has one
    return theory


@contextmanager
def _blamed(name: str) -> Iterator[None]:
    """Inside, what goes wrong is said of the user's module ``name``; a fault of ours is left as it is."""
    try:
        yield
    except (Exception, SystemExit) as error:
        if not name.startswith(MODULE):
            raise
        from derive.action import SetupError

        raise SetupError(f"{name}: {_told(error)}") from None


def _told(error: BaseException) -> str:
    """An error with the file and the line where it was raised, as far as that is code of a file."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    frames = [frame for frame in frames if frame.filename not in (__file__, import_module.__code__.co_filename)]
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def find(name: str) -> Theory:
    """The theory called ``name``, in the file ``name`` or in the module ``module:NAME``.

    Raises `UnknownTheoryError` with the nearest names where there is none, and `SetupError` for a file that is no theory.
    """
    for theory in THEORIES:
        if theory.name == name:
            return theory
    if name.startswith(MODULE):
        return _in_module(name.removeprefix(MODULE))
    files = {f"classical/{path.stem}": path for path in sorted(CLASSICAL.glob(f"*{_FILE}"))}
    if name in files or name.endswith(_FILE):
        return _in_file(name, files.get(name, Path(name)))
    names = [*(theory.name for theory in THEORIES), *files]
    raise UnknownTheoryError(
        f"no theory is called {name!r}; {instead(name, names)} (`spinodal list` shows all; a theory of your own is"
        f" the path of a file NAME{_FILE})"
    )

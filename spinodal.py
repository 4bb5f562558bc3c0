"""Spinodal's command line: thin verbs over the rooms.

``spinodal VERB [THEORY] [KEY=VALUE ...] [options]``. Results go to standard output, progress and notes to standard
error. Exit codes: 0 done; 2 bad input, with one message; 3 ran, but did not reach what was asked; 130 interrupted.
Everything but click is imported inside the verbs, so that help is instant.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

import click

if TYPE_CHECKING:
    from sympy import Rational
    from tqdm import tqdm

    from derive.action import EffectiveAction, Parameter, Setup
    from derive.catalogue import Theory
    from derive.derivation import CheckReport, Derivation, Result
    from derive.limits.quantity import Wanted
    from derive.state_evolution import Problem
    from numerics.asymptotics import AsymptoticReport
    from numerics.diagram import Diagram
    from numerics.points import Points, Transitions
    from numerics.store import Store
    from simulate.crosscheck.claims import Line

__version__ = "0.1.0"

BAD_INPUT, NOT_REACHED, INTERRUPTED = 2, 3, 130
LONGEST_MESSAGE, LONGEST_NAME = 500, 64
MOST_CERTIFIED = 5000
"""Digits of a certificate."""
_SOLVERS = {  # of an action, of a state evolution
    "minima": ("numerics.stationary", "numerics.sectors"),
    "transitions": ("numerics.transitions", "numerics.evolution_transitions"),
}
ROWS = 9
"""Values of the second parameter of a diagram, where their number is not given."""
INSIST = 0.2
"""Seconds after which an interrupt that something swallowed is raised again."""
SHOWN = 5
"""Points that are not ok, or damaged, which `status` shows."""
PULSE = 10.0
"""Seconds between two lines of progress where standard error is no terminal."""


class BadInput(click.ClickException):
    """An argument is wrong; the message names it and says what would be right."""

    exit_code = BAD_INPUT


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one verb; turn every refusal into one message and an exit code."""
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    words = list(sys.argv[1:] if arguments is None else arguments)
    code = 0
    try:
        if sys.stdout is None:
            raise BadInput("standard output is closed")
        # What `cli.main` would do, but for its own idea of a closed pipe.
        with _insistent_interrupt(), cli.make_context("spinodal", words) as context:
            cli.invoke(context)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except BrokenPipeError:  # the reader has had what it wanted
        _abandon(sys.stdout)
    except OSError as error:
        if error.filename is not None:  # not standard output; the verbs answer for all other files
            raise
        _abandon(sys.stdout)
        _complain(f"cannot write the output: {error.strerror}")
        code = BAD_INPUT
    except click.exceptions.NoArgsIsHelpError as error:
        _tell(error.format_message())
        code = BAD_INPUT
    except click.ClickException as error:
        _complain(error.format_message())
        code = BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted")
        code = INTERRUPTED
    sys.exit(code)


@contextmanager
def _insistent_interrupt() -> Iterator[None]:
    """Inside, Ctrl-C is raised again and again until it ends the work: some libraries swallow it in a bare ``except``.

    A request to terminate counts as one, so that what is kept for --resume is written.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(*_: object) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, INSIST)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _complain(message: str) -> None:
    """In one line; a formula and the caret below it stay as they are."""
    text, *pointing = message.split("\n    ")
    if len(pointing) != 2:
        text, pointing = message, []
    line = " ".join(text.split())
    if len(line) > LONGEST_MESSAGE:
        line = f"{line[: LONGEST_MESSAGE // 2]} ... {line[-LONGEST_MESSAGE // 2 :]}"
    _tell("\n    ".join((f"spinodal: {line}", *pointing)))


def _tell(text: str) -> None:
    """Write to standard error; where that cannot be, the exit code has to say it."""
    try:
        click.echo(text, err=True)
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: TextIO) -> None:
    """What is left in the buffer must not fail a second time when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_json(document: Mapping[str, Any]) -> None:
    click.echo(json.dumps(document, indent=1, allow_nan=False))


# --- arguments -------------------------------------------------------------------------------------------------------


class Digits(click.ParamType):
    """A number of significant digits."""

    name = "N"
    largest = 10_000

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        # The length is looked at first: int() itself refuses absurdly long numbers with an error of its own.
        if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= self.largest):
            raise BadInput(f"--digits {text}: give a whole number from 1 to {self.largest}")
        return int(text)


class Folder(click.ParamType):
    """Where to write: a folder, or a name that is free in one, that may be written; refused before the work is done."""

    name = "DIR"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        folder = Path(value)
        try:
            place = folder if folder.exists() else folder.parent
        except OSError as error:
            raise BadInput(f"--out {value}: {error.strerror}") from None
        if not value:
            raise BadInput("--out: give the name of a folder, such as '.'")
        if not place.exists():
            raise BadInput(f"--out {value}: there is no folder {place}")
        if not place.is_dir():
            raise BadInput(f"--out {value}: {place} is not a folder")
        if not os.access(place, os.W_OK):
            raise BadInput(f"--out {value}: {place} may not be written")
        return folder


class NewFile(click.ParamType):
    """A file to write, in a folder that may be written; refused before the work is done."""

    name = "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        file = Path(value)
        try:
            wrong = not file.name or file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)
        except OSError as error:
            raise BadInput(f"--out {value}: {error.strerror}") from None
        if wrong:
            raise BadInput(f"--out {value}: give the name of a file in a folder that may be written")
        return file


class Verb(click.Command):
    """A command that takes the value of an option once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in order:
            single = isinstance(option, click.Option) and not (option.is_flag or option.multiple)
            if single and order.count(option) > 1:
                raise BadInput(f"{option.opts[0]} is given twice")
        return super().parse_args(ctx, args)


class Verbs(click.Group):
    command_class = Verb


@contextmanager
def _arguments() -> Iterator[None]:
    """Inside, what the rooms refuse is a wrong argument of the user's."""
    from derive.action import SetupError
    from derive.exact import ExactnessError

    try:
        yield
    except (SetupError, ExactnessError) as error:
        raise BadInput(str(error)) from None


def _theory(name: str) -> Theory:
    from derive.action import SetupError
    from derive.catalogue import UnknownTheoryError, find

    try:
        return find(name)
    except (UnknownTheoryError, SetupError) as error:
        raise BadInput(str(error)) from None


def _pairs(words: Iterable[str]) -> dict[str, str]:
    """The texts of ``KEY=VALUE ...`` by key; they are parsed, never evaluated, where their meaning is known."""
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise BadInput(f"{word!r} is not of the form KEY=VALUE, such as L=32")
        if key in values:
            raise BadInput(f"{key} is given twice: {key}={values[key]} and {word}")
        values[key] = value
    return values


def _range(problem: Problem, text: str | None, option: str = "--over") -> tuple[Rational, Rational] | None:
    """The range of the control in ``--over CONTROL=LO:HI``."""
    if text is None:
        return None
    from derive.state_evolution import StateEvolution

    control = problem.control
    key, _, bounds = text.partition("=")
    ends = bounds.split(":")
    if key != control.name or len(ends) != 2:
        raise BadInput(
            f"{option} {text}: write {option} {control.name}=LO:HI, where {control.name} is the control of {problem.name}"
        )
    with _arguments():
        low, high = (control.validate(end) for end in ends)
    if low >= high:
        raise BadInput(f"{option} {text}: the lower end must lie below the upper one")
    if low <= 0 and isinstance(problem, StateEvolution):
        raise BadInput(
            f"{option} {text}: the lower end must be above zero: transitions of a state evolution are sought on a"
            " logarithmic scale"
        )
    return low, high


def _nearest(kind: str, name: str, known: Iterable[str]) -> BadInput:
    from derive.names import instead

    return BadInput(f"there is no {kind} {name!r}; {instead(name, known, repr)}")


@contextmanager
def _bar(quiet: bool, **how: Any) -> Iterator[tqdm[Any]]:
    """What is being done, on a terminal's standard error in a line that goes when it is done, elsewhere in lines now and
    then, which stay."""
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    with Path(os.devnull).open("w") as nowhere:
        stream = sys.stderr if terminal else nowhere
        bar = tqdm(file=stream, ascii=not terminal, unit="", leave=False, disable=quiet, **how)
        with bar, nullcontext() if quiet or terminal else _pulse(bar):
            yield bar


@contextmanager
def _pulse(bar: tqdm[Any]) -> Iterator[None]:
    """Inside, a bar's text goes to standard error every `PULSE` seconds."""
    done = threading.Event()

    def tell() -> None:
        while not done.wait(PULSE):
            _tell(str(bar))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """How a stage of the work is called, for as long as it takes."""
    with _bar(quiet, bar_format="{desc} ({elapsed})") as bar:
        yield bar.set_description_str


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every verb has."""
    command = click.option("--quiet", is_flag=True, help="No progress, no notes.")(command)
    command = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)
    return click.version_option(__version__, prog_name="spinodal")(command)


def _digits(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--digits", type=Digits(), help="Significant digits; the theory's own by default.")(command)


def _certify(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--out", type=NewFile(), metavar="FILE", help="With --certify: where the certificate goes.")(
        command
    )
    return click.option("--certify", is_flag=True, help="Prove every number, and write a certificate.")(command)


def _setup_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.argument("words", nargs=-1, metavar="[KEY=VALUE]...")(command)
    return click.argument("theory")(command)


# --- verbs -----------------------------------------------------------------------------------------------------------


@click.group(cls=Verbs)
@click.version_option(__version__, prog_name="spinodal")
def cli() -> None:
    """Phase transitions of attention heads, from SymPy derivations to any number of digits.

    Values are exact: gamma_g=1/3, T=0.01 and L=1e3 are read as rational numbers.
    """
    # A parameter may have more digits than Python converts by default; the length of a command line bounds them.
    sys.set_int_max_str_digits(0)


@cli.command("list")
@_options
def list_theories(as_json: bool, quiet: bool) -> None:
    """Every theory with its order parameters, control and parameters."""
    from derive.catalogue import THEORIES, classical
    from numerics import present

    entries = [_entry(theory) for theory in (*THEORIES, *classical())]
    if as_json:
        _print_json({"schema": 1, "theories": entries})
        return
    for entry in entries:
        described = [("control", entry["control"])]
        described += [(kind, each) for kind in ("parameter", "choice") for each in entry[f"{kind}s"]]
        rows = [("order parameter", order["name"], "", "", order["meaning"]) for order in entry["order_parameters"]]
        rows += [(kind, p["name"], p["range"], p["default"] or "", p["meaning"]) for kind, p in described]
        click.echo(f"{entry['name']}: {entry['summary']}\n")
        click.echo(present.table(("", "name", "range", "default", "meaning"), rows) + "\n")


def _entry(theory: Theory) -> dict[str, Any]:
    problem = theory.problem()

    def described(parameter: Any) -> dict[str, Any]:
        default = None if parameter.default is None else str(parameter.default)
        return {"name": parameter.name, "meaning": parameter.meaning, "default": default, "range": parameter.range_text}

    return {
        "name": theory.name,
        "summary": theory.summary,
        "order_parameters": [{"name": o.symbol.name, "meaning": o.meaning} for o in problem.order_parameters],
        "control": described(problem.control),
        "parameters": [described(parameter) for parameter in problem.parameters],
        "choices": [described(choice) for choice in theory.choices],
    }


@cli.command()
@click.argument("theory")
@click.option("--check", is_flag=True, help="Run every step's checks; exit 3 if one fails.")
@click.option("--quick", is_flag=True, help="With --check: only the checks that take no time.")
@click.option("--format", "form", metavar="text|latex|html|json", help="With --expr: text|latex|python|javascript|c.")
@click.option("--expr", metavar="STEP", help="Print one step's expression only; action: the one that is solved.")
@click.option("--no-cache", is_flag=True, expose_value=False, help="Without effect: nothing is cached as yet.")
@_options
def derive(
    theory: str, check: bool, quick: bool, form: str | None, expr: str | None, as_json: bool, quiet: bool
) -> None:
    """Walk a derivation from the model to the action; with --check and no --format, the table of its checks."""
    from derive import present

    if as_json and form not in (None, "json"):
        raise BadInput(f"--json and --format {form} exclude each other")
    if quick and not check:
        raise BadInput("--quick goes with --check")
    form = "json" if as_json else form
    if check and expr is not None:
        raise BadInput("--check runs the checks of all steps, --expr prints one: give one of them")
    if expr is not None:
        _print_expression(_theory(theory), expr, form or "text")
        return
    if form not in (None, "text", "latex", "html", "json"):
        raise BadInput(
            f"--format {form}: give text, latex, html or json (python, javascript and c go with --expr STEP)"
        )
    derivation = _theory(theory).derivation()
    reports = list(_run_checks(derivation, quick, quiet)) if check else []
    found = present.by_check(reports)
    if form == "json":
        _print_json(present.as_json(derivation, found))
    elif form == "latex":
        click.echo(present.as_latex(derivation, found))
    elif form == "html":
        click.echo(present.as_html(derivation, found))
    elif form == "text" or not check:
        click.echo(present.as_text(derivation, found))
    else:
        click.echo(_summary(derivation, reports))
    if any(not report.passed for report in reports):
        raise click.exceptions.Exit(NOT_REACHED)


def _print_expression(theory: Theory, name: str, form: str) -> None:
    from derive import present
    from numerics.emit import EmissionError
    from numerics.emit.standalone import FORMS, standalone

    if form not in (forms := ("text", *FORMS, "json")):
        raise BadInput(f"--format {form}: with --expr give {', '.join(forms[:-1])} or json")
    result = _step(theory, name)
    if form == "json":
        both = {form: present.source(result, form) for form in ("text", "latex")}
        _print_json({"schema": 1, "theory": theory.name, "step": result.name, "expression": both})
        return
    try:
        click.echo(
            present.source(result) if form == "text" else standalone(theory.name, theory.problem(), result, form)
        )
    except EmissionError as error:
        raise BadInput(str(error)) from None


def _step(theory: Theory, name: str) -> Result:
    """The step called ``name``; "action" and "potential" are also names of the one that the solvers receive."""
    derivation = theory.derivation()
    names = [step.name for step in derivation.steps]
    if name in names:
        return derivation[name]
    if name not in ("action", "potential"):
        raise _nearest("step", name, names)
    value = theory.problem().value
    found = next((result for result in derivation if result.value == value), None)
    if found is None:
        raise BadInput(f"--expr {name}: no step of {theory.name} is the expression that the solvers receive")
    return found


def _run_checks(derivation: Derivation, quick: bool, quiet: bool) -> Iterator[CheckReport]:
    wanted = [check for step in derivation.steps for check in step.checks if check.quick or not quick]
    evaluators: Mapping[str, Any] = {}
    if any(check.evaluator == "average" for check in wanted):  # the others need no arrays
        from numerics.averages import checks

        evaluators = checks.EVALUATORS
    with _bar(quiet, desc="checks", total=len(wanted)) as bar:
        for report in derivation.check(evaluators, quick):
            bar.update()
            yield report


def _summary(derivation: Derivation, reports: Sequence[CheckReport]) -> str:
    from numerics.present import table

    rows = [
        (r.step, textwrap.fill(r.check, 50), "pass" if r.passed else "FAIL", r.detail, f"{r.seconds:.1f} s")
        for r in reports
    ]
    left = sum(len(step.checks) for step in derivation.steps) - len(reports)
    failed = sum(not report.passed for report in reports)
    lines = [
        f"{derivation.name}: {derivation.meaning}\n",
        table(("step", "check", "", "how", "time"), rows),
        f"\n{len(derivation)} steps, {len(reports)} checks, {failed or 'none'} failed.",
    ]
    if left:
        lines.append(f"`spinodal derive {derivation.name} --check` runs {left} more.")
    return "\n".join(lines)


@cli.command()
@_setup_arguments
@_digits
@click.option("--sector", metavar="NAME", help="Of a state evolution: only the solutions in this sector.")
@_certify
@_options
def minima(
    theory: str,
    words: tuple[str, ...],
    digits: int | None,
    sector: str | None,
    certify: bool,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """All stationary points at one value of the control, minima first.

    With --certify of a state evolution, whose averages are over one variable each and smooth: that there is one solution
    within 10^-N of each that is printed, but not that these are all. Seconds; minutes where they are of a logarithm of
    exponentials.
    """
    problem, setup = _problem(theory, words)
    control, digits = problem.control, digits or problem.digits
    if setup.control is None:
        raise BadInput(f"{theory} needs {control.name} ({control.meaning}) here; give {control.name}=VALUE")
    sectors = [each.name for each in getattr(problem, "sectors", ())]
    if sector is not None and sector not in sectors:
        raise _nearest("sector", sector, sectors) if sectors else BadInput(f"--sector: {theory} has no sectors")
    from numerics import present

    chosen = {} if sector is None else {"sector": sector}
    file = _certificate_file(theory, problem, digits, certify, out)
    sought = _to_start_from(problem, digits, certify)
    with _progress(quiet) as progress, _solving():
        found = _solver("minima", problem)(problem, setup, digits=sought, progress=progress, **chosen)
        if file is not None:
            found, file = _certified(_theory(theory), problem, setup, found, digits, file, progress)
    at = {control.name: str(setup.control)}
    if as_json:
        head = {**_head(theory, problem, setup.as_text()), "control": at, "digits": digits, **_filed(file)}
        _print_json({**head, "points": [present.point_json(point) for point in found], **present.outcome(found)})
    else:
        heading = present.heading(theory, {**setup.as_text(), **at}, digits, problem.meaning)
        click.echo(f"{heading}\n\n{present.points_table(found)}")
        _tell_filed(file, quiet)
    _finish(found, silent=as_json or quiet)


@cli.command()
@_setup_arguments
@_digits
@click.option("--over", metavar="NAME=LO:HI", help="Look between these values only, of the control or a parameter.")
@_certify
@_options
def transitions(
    theory: str,
    words: tuple[str, ...],
    digits: int | None,
    over: str | None,
    certify: bool,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Every transition along the control; of a state evolution also along a parameter, at a value of the control.

    With --certify of a state evolution, whose averages are over one variable each and smooth: that there is one spinodal,
    coexistence or crossing of a level within 10^-N of each that is printed, but not which state is the lowest. Where an
    overlap vanishes, nothing is proven. Seconds, or minutes as with `minima`.
    """
    problem, setup = _problem(theory, words, over)
    name, digits = problem.control.name, digits or problem.digits
    if setup.control is not None:
        raise BadInput(
            f"{name} is the control, along which transitions are sought; to bound it give --over {name}=LO:HI"
        )
    bounds = _range(problem, over)
    from numerics import present
    from numerics.landscape import BoxError

    file, sought = _certificate_file(theory, problem, digits, certify, out), _to_start_from(problem, digits, certify)
    with _progress(quiet) as progress, _solving():
        try:
            found = _solver("transitions", problem)(problem, setup, digits=sought, over=bounds, progress=progress)
        except BoxError as error:
            raise BadInput(f"--over {over}: {error}" if over else str(error)) from None
        if file is not None:
            found, file = _certified(_theory(theory), problem, setup, found, digits, file, progress)
    if as_json:
        head = {**_head(theory, problem, setup.as_text()), "digits": digits, **_filed(file)}
        entries = [present.transition_json(entry) for entry in found]
        _print_json({**head, "transitions": entries, **present.outcome(found)})
    else:
        table = present.transitions_table(name, found, f" in {over}" if over else "")
        click.echo(f"{present.heading(theory, setup.as_text(), digits, problem.meaning)}\n\n{table}")
        _tell_filed(file, quiet)
    _finish(found, silent=as_json or quiet)


def _to_start_from(problem: Problem, digits: int, certify: bool) -> int:
    """Digits of what a proof starts from: of averages as many as their numbers have, for it finds the others itself."""
    from derive.action import EffectiveAction

    return digits if isinstance(problem, EffectiveAction) or not certify else min(digits, problem.digits)


def _certificate_file(theory: str, problem: Problem, digits: int, certify: bool, out: Path | None) -> Path | None:
    """Where a certificate goes, if one is asked for and there can be one."""
    if not certify:
        if out is not None:
            raise BadInput("--out goes with --certify")
        return None
    from derive.files.written import UnwritableError
    from numerics.certify.taylor import UncertifiableError

    if digits > MOST_CERTIFIED:
        raise BadInput(f"--certify: {digits} digits; a certificate may have {MOST_CERTIFIED}")
    try:
        _refuse_uncertifiable(theory, problem)
    except (UncertifiableError, UnwritableError) as error:
        raise BadInput(f"--certify: {error}") from None
    name = Path(theory).stem if theory.endswith(".toml") else re.sub(r"\W+", "-", theory)
    return out or cast(Path, NewFile().convert(f"{name}.certificate.json", None, None))


def _refuse_uncertifiable(theory: str, problem: Problem) -> None:
    from derive.action import EffectiveAction
    from derive.catalogue import MODULE
    from derive.files.written import in_text
    from numerics.certify.means import as_action
    from numerics.certify.taylor import UncertifiableError, refuse_uncertifiable

    if not isinstance(problem, EffectiveAction):
        as_action(problem)
        if problem.control.name != _theory(theory).problem().control.name:
            raise UncertifiableError(f"along {problem.control.name}, which is not the control, nothing is certified")
        if theory.startswith(MODULE):
            raise UncertifiableError("the state evolution of a module is not certified, that of a theory file is")
        return
    refuse_uncertifiable(problem)
    if theory.startswith(MODULE):
        in_text(problem)


def _certified(
    theory: Theory, problem: Any, setup: Setup, found: Any, digits: int, file: Path, progress: Callable[[str], None]
) -> tuple[Any, Path | None]:
    """What was found, as far as it is proven, and the file of the certificate, if it could be written."""
    from dataclasses import replace

    from numerics.certify.taylor import UncertifiableError
    from numerics.points import Status

    try:
        better, text = _proven(theory, problem, setup, found, digits, progress)
    except UncertifiableError as error:
        raise BadInput(f"--certify: {error}") from None
    try:
        _whole(file, text)
    except OSError as error:  # what was found is not lost with it
        note = f"not proven: the certificate {file} cannot be written: {error.strerror}"
        return replace(found, status=Status.UNPROVEN, notes=(*found.notes, note)), None
    return better, file


def _proven(
    theory: Theory, problem: Any, setup: Setup, found: Any, digits: int, progress: Callable[[str], None]
) -> tuple[Any, str]:
    """What was found, as far as it is proven, and the certificate; raises `UncertifiableError`."""
    from dataclasses import replace

    from derive.action import EffectiveAction
    from derive.catalogue import MODULE
    from derive.files import written
    from numerics.certify import certificate, prove
    from numerics.certify.means import as_action
    from numerics.points import Points

    points: Callable[..., Any] = (
        prove.certified_points if isinstance(problem, EffectiveAction) else prove.certified_solutions
    )
    proven = points if isinstance(found, Points) else prove.certified_transitions
    source, chain = None, theory.derivation()
    if theory.name.startswith(MODULE):
        control = {} if setup.control is None else {problem.control.name: str(setup.control)}
        source, filed = written.in_text(problem)
        problem, chain = filed.action(), filed.derivation()
        setup = problem.setup({**setup.as_text(), **control})
    better, document = proven(problem, setup, found, digits, progress)
    action = as_action(problem)
    steps = certificate.grounds(action, chain)
    document = replace(document, theory=theory.name, grounds=steps, source=source)
    return better, certificate.written(document, action)


def _filed(file: Path | None) -> dict[str, str]:
    return {} if file is None else {"certificate": str(file)}


def _tell_filed(file: Path | None, quiet: bool) -> None:
    if file is not None and not quiet:
        _tell(f"certificate: {file} (spinodal verify {file})")


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--theory", metavar="module:NAME", help="Import the certificate's module, and hold the text in it against it."
)
@_options
def verify(file: Path, theory: str | None, as_json: bool, quiet: bool) -> None:
    """Prove a certificate again, by other derivatives and another operator than those that it was written with.

    The action is the theory's own. Of a theory that is a module, which is not run, it is the text in the file; with
    --theory it is held against the module's. Proof and verification share what theorems claim and the branch and prune by
    which they are complete; what can be said of the action's values is seen a second time, in the intervals of mpmath.
    """
    from derive.files import written
    from derive.files.theory import parsed
    from numerics.certify import verify as room
    from numerics.certify.certificate import CertificateError, grounds, read
    from numerics.certify.means import as_action
    from numerics.certify.taylor import UncertifiableError

    try:
        found = read(file)
        if theory is not None and theory != found.theory:
            raise CertificateError(f"--theory {theory}: the certificate is about {found.theory}")
        with _arguments(), _progress(quiet) as progress:
            entry = _theory(found.theory) if found.source is None or theory is not None else None
            if found.source is not None:
                if entry is not None and (entry.evolution or written.text_of(entry.action()) != found.source):
                    raise CertificateError(f"the text in the file is not the action of {found.theory}")
                held = parsed(found.source, "the text in the certificate")
                problem, chain = held.problem, held.derivation()
            elif entry is not None:
                (problem, _), chain = entry.prepared(found.setup), entry.derivation()
            action = as_action(problem)
            verdicts = list(room.verified(found, action, progress))
        if found.grounds != grounds(action, chain):
            raise CertificateError("the steps that are named do not give what is assumed")
    except (CertificateError, UncertifiableError) as error:
        raise BadInput(str(error)) from None
    refused = [verdict.refused for verdict in verdicts if verdict.refused is not None]
    if as_json:
        rows = [room.as_json(verdict) for verdict in verdicts]
        head = {"schema": 1, "file": str(file), "theory": found.theory, "setup": dict(found.setup)}
        hashed = {"expression": found.expression, "sha256": found.sha256}
        others = {"other_versions": room.other_versions(found)}
        _print_json({**head, **hashed, **others, "theorems": rows, "status": "refused" if refused else "ok"})
    else:
        click.echo(room.as_text(found, action, verdicts))
        if found.source is not None:
            held_against = (
                f"{theory} gives the same" if theory else f"{found.theory} was not run (--theory {found.theory})"
            )
            click.echo(f"\nthe action is the text in the file; {held_against}")
    if refused:
        _complain(f"{len(refused)} of {len(verdicts)} theorems are not proven: {refused[0]}")
        raise click.exceptions.Exit(NOT_REACHED)


def _problem(theory: str, words: Iterable[str], over: str | None = None) -> tuple[Problem, Setup]:
    """The action or state evolution of a theory, driven by what is named in ``over``, and its parameters."""
    from derive.state_evolution import driven

    values, entry = _pairs(words), _theory(theory)
    axes = [] if over is None or entry.evolution is None else _names([over], values)
    with _arguments():
        problem, parameters = entry.prepared(values, axes)
        problem = driven(problem, axes[0]) if axes else problem
        return problem, problem.setup(parameters)


def _head(theory: str, problem: Problem, setup: Mapping[str, str]) -> dict[str, Any]:
    """How a document begins; it says which of a theory's problems this is, unless it is the default one."""
    structure = {"structure": problem.meaning} if problem.meaning and problem.name != theory else {}
    return {"schema": 1, "theory": theory, **structure, "setup": setup}


@contextmanager
def _solving() -> Iterator[None]:
    """Inside, a problem that no rule of integration or box can hold is bad input; one that breaks them is not solved."""
    from derive.action import SetupError
    from derive.exact import ExactnessError
    from numerics.emit.runtime import UndefinedError
    from numerics.landscape import BoxError
    from numerics.points import CostError, SolverError

    try:
        yield
    except (BoxError, CostError, ExactnessError, SetupError) as error:
        raise BadInput(str(error)) from None
    except (SolverError, UndefinedError) as error:
        _complain(str(error))
        raise click.exceptions.Exit(NOT_REACHED) from None


def _solver(verb: str, problem: Problem) -> Callable[..., Any]:
    """The function of the numerics that does ``verb`` for this kind of problem."""
    from derive.state_evolution import StateEvolution

    module = _SOLVERS[verb][isinstance(problem, StateEvolution)]
    return cast("Callable[..., Any]", getattr(import_module(module), verb))


def _finish(*results: Points | Transitions | Diagram | AsymptoticReport, silent: bool) -> None:
    """Notes to standard error; exit code 3 if a result is not what was asked for."""
    if not silent:
        for note in dict.fromkeys(note for result in results for note in result.notes):
            _tell(f"note: {note}")
    missed = [result.status.message for result in results if result.status.value != "ok"]
    if missed:
        _complain(missed[0])
        raise click.exceptions.Exit(NOT_REACHED)


@cli.command()
@click.argument("theory")
@click.argument("words", nargs=-1, metavar="[QUANTITY] [KEY=VALUE]...")
@click.option(
    "--upto",
    metavar="END",
    help="The end of the ladder: the largest size, 1e1000 by default; or for a state evolution the smallest or the largest"
    " control, 1e-5 and 1e3 by default.",
)
@click.option(
    "--limit",
    "towards",
    metavar="NAME=TO",
    help="Derive the series of QUANTITY, a kind of transition, an observable that crosses its level or an order parameter,"
    " as NAME goes to oo, 0, VALUE- or VALUE+.",
)
@click.option("--order", type=int, metavar="N", help="Terms of a series in a limit; 3 by default.")
@click.option("--phase", metavar="NAME", help="The phase whose series it is, with --limit, where there are several.")
@click.option(
    "--derivation", "steps", is_flag=True, help="Show how a series in a limit is derived, and check every step."
)
@_digits
@_options
def asymptotics(
    theory: str,
    words: tuple[str, ...],
    upto: str | None,
    towards: str | None,
    order: int | None,
    phase: str | None,
    steps: bool,
    digits: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """The derived series at large size, compared with the exact value along a ladder of sizes.

    Of a theory file that declares limits, the series in these. For a state evolution, the laws in the limits of its
    control, compared with its fixed points.
    """
    names = [word for word in words if "=" not in word]
    if len(names) > 1:
        raise BadInput(f"give one quantity at a time, or none for all: {' '.join(names)}")
    values = _pairs(word for word in words if "=" in word)
    entry = _theory(theory)
    if towards is None and phase is not None:
        raise BadInput("--phase goes with --limit")
    if towards is None and not entry.limits and (order is not None or steps):
        raise BadInput("--order and --derivation go with --limit, or with a theory that declares limits")
    every = () if towards else entry.asymptotics()
    if not (towards or every or entry.limits):
        raise BadInput(f"{theory} has no series of its own and declares no limits; --limit NAME=TO derives one")
    from derive import present as pages
    from numerics import present
    from numerics.asymptotics import chosen, ladder

    reports: list[AsymptoticReport] = []
    missed: list[str] = []
    with _arguments():
        problem, parameters = entry.prepared(values)
        digits = digits or problem.digits
        with _progress(quiet) as progress, _solving():
            if towards or entry.limits:
                wanted = (_wanted(problem, names, towards, phase),) if towards else chosen(entry.limits, *names)
                reports, missed = _limit_reports(problem, wanted, parameters, order, upto, digits, progress)
            elif entry.evolution is None:
                size = next(parameter for parameter in problem.parameters if parameter.symbol == problem.size)
                end = _ladder_end(size, upto or "1e1000")
                reports = [ladder(problem, one, parameters, end, digits, progress) for one in chosen(every, *names)]
            else:
                from numerics.evolution_asymptotics import law_ladders

                series = chosen(every, *names)
                end = None if upto is None else _ladder_end(problem.control, upto)
                reports = law_ladders(problem, series, problem.setup(parameters), end, digits, progress)
    chains = [report.derivation for report in reports if steps and report.derivation]
    checks = [list(_run_checks(chain, False, quiet)) for chain in chains]
    if as_json:
        quantities = [present.report_json(report) for report in reports]
        for quantity, chain, found in zip(quantities, chains, checks, strict=False):
            quantity["derivation"] = pages.as_json(chain, pages.by_check(found))
        status = next((report.status.value for report in reports if report.status.value != "ok"), "ok")
        status = "no root" if missed and status == "ok" else status
        _print_json({"schema": 1, "theory": theory, "digits": digits, "quantities": quantities, "status": status})
    else:
        shown = [pages.as_text(chain, pages.by_check(found)) for chain, found in zip(chains, checks, strict=True)]
        tables = [present.report_text(theory, report) for report in reports]
        click.echo("\n\n".join([*shown, *tables]))
    for text in missed:
        _complain(text)
    if missed or any(not check.passed for found in checks for check in found):
        raise click.exceptions.Exit(NOT_REACHED)
    _finish(*reports, silent=as_json or quiet)


def _wanted(problem: Problem, names: Sequence[str], towards: str, phase: str | None) -> Wanted:
    """The series that is meant by ``--limit``."""
    from derive.action import EffectiveAction
    from derive.limits.quantity import Limit, Wanted

    if not isinstance(problem, EffectiveAction):
        raise BadInput("--limit derives series of closed forms; the laws of a state evolution are part of its theory")
    if not names:
        raise BadInput(
            "--limit needs a quantity: coexistence, spinodal, instability, an observable or an order parameter"
        )
    return Wanted(names[0], Limit.parsed(problem, towards), phase=phase)


def _limit_reports(
    problem: EffectiveAction,
    wanted: Sequence[Wanted],
    parameters: Mapping[str, str],
    order: int | None,
    upto: str | None,
    digits: int,
    progress: Callable[[str], None] | None,
) -> tuple[list[AsymptoticReport], list[str]]:
    """The series that are derived in limits, and why others are not."""
    from derive.exact import exact
    from derive.limits.constant import LimitError
    from numerics.limits import limit_report

    end = None if upto is None else exact(upto, "--upto")
    if end is not None and end < 10:
        raise BadInput("--upto: a ladder ends at 10 or more, the size or one over the distance from the limit")
    reports, missed = [], []
    for one in wanted:
        one = one if order is None else replace(one, order=order)
        try:
            reports.append(limit_report(problem, one, parameters, end, digits, progress))
        except LimitError as error:
            missed.append(f"{one.name}, {one.limit}: {error}" if wanted[1:] else str(error))
    return reports, missed


def _ladder_end(parameter: Parameter, text: str) -> Rational:
    from derive.exact import exact

    try:
        with _arguments():
            return parameter.validate(exact(text, "--upto"))
    except BadInput as error:
        raise BadInput(f"--upto: {error}") from None


@cli.command()
@_setup_arguments
@_digits
@click.option("--x", required=True, metavar="NAME=LO:HI", help="The parameter along which transitions are sought.")
@click.option("--y", required=True, metavar="NAME=LO:HI[:N[:log]]", help="The one in which they are followed.")
@click.option("--out", type=Folder(), metavar="DIR", help="A record store for the rows.")
@click.option("--resume", is_flag=True, help="Go on with the store that is there.")
@_options
def diagram(
    theory: str,
    words: tuple[str, ...],
    digits: int | None,
    x: str,
    y: str,
    out: Path | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Curves of every transition in two parameters, and where they end, meet or change their order.

    Curves are looked for at both ends and in the middle of --y and followed from there. Those of an action are traced
    through their turns, and critical, tricritical, triple and bicritical points on them are solved; one that reaches none
    of these rows, and no special point of another, is not seen.
    """
    from derive.state_evolution import driven
    from numerics import diagram as room
    from numerics import present
    from numerics.scan import about, parse_axis

    values, entry = _pairs(words), _theory(theory)
    with _arguments():
        name, _ = names = _names((x, y), values)
        problem, parameters = entry.prepared(values, names)
        axis = parse_axis(y if y.count(":") > 1 else f"{y}:{ROWS}")
        problem = driven(problem, name)
        setups = [problem.setup({**parameters, axis.name: at}) for at in axis.values]
        over = _range(problem, x, "--x")
    assert over is not None
    digits, solve = digits or problem.digits, _solver("transitions", problem)
    meant = about(theory, problem, setups[0], [axis], digits) | {"x": x, "points": str(room.rows(problem, axis))}
    with _store(out, meant, resume) as store, _progress(quiet) as progress, _solving():
        found = room.diagram(problem, parameters, axis, over, digits, solve, store, progress)
    setup = {key: text for key, text in setups[0].as_text().items() if key != axis.name}
    if as_json:
        head = {**_head(theory, problem, setup), "x": x, "y": axis.text, "digits": digits}
        _print_json({**head, **present.diagram_json(found, name, axis.name), **present.outcome(found)})
    else:
        table = present.diagram_table(found, name, axis.name)
        heading = present.heading(theory, {**setup, "x": x, "y": axis.text}, digits, problem.meaning)
        click.echo(f"{heading}\n\n{table}")
    _finish(found, silent=as_json or quiet)


def _names(axes: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The names of axes ``NAME=...``, each of which is given once and has no value."""
    names = [text.partition("=")[0] for text in axes]
    for name in names:
        if name in values or names.count(name) > 1:
            raise BadInput(f"{name} is given twice")
    return names


def _damage(store: Store) -> str:
    """Which records do not count, since they have changed on the disk; empty where none has."""
    places = store.damaged()
    shown = ", ".join(map(str, places[:SHOWN])) + (f" and {len(places) - SHOWN} more" if len(places) > SHOWN else "")
    return f"damaged on the disk, and not counted: record {shown}; --resume solves it again" if places else ""


@contextmanager
def _store(out: Path | None, about: Mapping[str, str], resume: bool) -> Iterator[Store | None]:
    """The record store in ``--out``, which must be new unless the work is resumed; inside, its errors are bad input."""
    from numerics.store import Store, StoreError, UnwritableError

    if out is None:
        if resume:
            raise BadInput("--resume goes with --out DIR, the store to go on with")
        yield None
        return
    try:
        store = Store.create(out, about)
        with store.alone():
            if damage := _damage(store):
                _tell(f"note: {damage}")
            if store.count() and not resume:
                raise BadInput(
                    f"--out {out}: there are {sum(store.count().values())} records already; give --resume to go on"
                )
            try:
                yield store
            except UnwritableError as error:
                _complain(f"--out {out}: {error}; --resume goes on when there is room")
                raise click.exceptions.Exit(NOT_REACHED) from None
    except (StoreError, OSError) as error:
        raise BadInput(f"--out {out}: {error}") from None


@cli.command()
@_setup_arguments
@_digits
@click.option("--over", "axes", multiple=True, required=True, metavar="NAME=LO:HI:N[:log]", help="An axis of the grid.")
@click.option("--out", required=True, type=Folder(), metavar="DIR", help="The record store.")
@click.option("--resume", is_flag=True, help="Go on with the store that is there.")
@click.option("--retry", is_flag=True, help="Go on, and solve again what is there and not ok.")
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes of this machine; 1 by default.")
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers solve the points.")
@_options
def scan(
    theory: str,
    words: tuple[str, ...],
    digits: int | None,
    axes: tuple[str, ...],
    out: Path,
    resume: bool,
    retry: bool,
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """All stationary points over a grid, into a record store; without a value of the control, all transitions.

    What is stopped goes on with --resume. A point that fails is a record with the reason, which --resume leaves as it is
    and --retry solves again.
    """
    from numerics import scan as room
    from numerics import sweep

    values, entry = _pairs(words), _theory(theory)
    with _arguments():
        names = _names(axes, values)
        problem, parameters = entry.prepared(values, names)
        lines = [room.parse_axis(text) for text in axes]
        points = room.grid(lines)
        # The range of a parameter is an interval: where two corners are good, so is everything between them.
        corners = {line.name: line.low for line in lines}, {line.name: line.high for line in lines}
        first, _ = (problem.setup({**parameters, **corner}) for corner in corners)
    digits = digits or problem.digits
    meant = room.about(theory, problem, first, lines, digits)
    solve = _solver("minima" if first.control is not None else "transitions", problem)
    with _arguments():
        work = sweep.Work(entry.recipe(values, names), solve, digits, meant["expression"])
        spread = sweep.engine(problem, work, jobs, cluster)
    with (
        _arguments(),  # a worker refuses what this process could build
        _store(out, meant, resume or retry) as store,
        _bar(quiet, desc="scan", total=int(meant["points"])) as bar,
        _solving(),
    ):
        assert store is not None
        setups = (problem.setup({**parameters, **point}) for point in points)
        tally = room.scan(problem, setups, solve, store, digits, bar.update, retry, spread)
    if as_json:
        _print_json({"schema": 1, "theory": theory, "out": str(out), **vars(tally)})
    else:
        click.echo(f"{tally.solved} points solved, {tally.there} were there, {tally.amiss} are not ok: {out}")
    if tally.amiss:
        _complain("some points are not what was asked for; their records say why; --retry solves them again")
        raise click.exceptions.Exit(NOT_REACHED)


@cli.command()
@_setup_arguments
@click.option(
    "--method",
    default="lbfgs",
    show_default=True,
    metavar="NAME",
    help="lbfgs, gd, adam; mala or langevin, ula, sgld; message-passing.",
)
@click.option(
    "--init", "start", metavar="START[,START]", help="Where to begin: zero, copy; positional, semantic, random."
)
@click.option("--seeds", default=4, show_default=True, type=click.IntRange(1, 10_000), help="Independent data sets.")
@click.option("--restarts", type=int, metavar="N", help="Starts on each data set, of which the lowest minimum counts.")
@click.option("--chains", type=int, metavar="N", help="Chains on each data set, begun in every phase in turn.")
@click.option("--steps", type=int, metavar="N", help="The most steps; the method's own number by default.")
@click.option("--rate", type=float, metavar="X", help="The step; by default from the curvature.")
@click.option("--share", type=float, metavar="X", help="How much of each step message passing takes; 1 by default.")
@click.option("--tolerance", type=float, metavar="X", help="The gradient norm of a minimum.")
@click.option("--batch", type=int, metavar="N", help="Sequences in a mini-batch of sgld; by default half of them.")
@click.option("--rank", type=int, metavar="N", help="Factor the copy head, G = Q K^T/sqrt(N).")
@click.option("--joint", is_flag=True, default=None, help="Train or sample W too, instead of integrating it out.")
@click.option(
    "--chunk", type=int, metavar="N", help="Sequences worked on at a time; by default those that fit the memory."
)
@click.option(
    "--sweep",
    metavar="NAME=LO:HI:N[:log]",
    help="Minima along the control (P is rounded), up and down, each from the last.",
)
@click.option("--device", "on", default="cpu", show_default=True, metavar="NAME", help="cpu, cuda or auto.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes, a seed each.")
@click.option("--out", type=Folder(), metavar="DIR", help="A record store, with checkpoints.")
@click.option("--resume", is_flag=True, help="Go on with the store that is there.")
@_options
def simulate(
    theory: str,
    words: tuple[str, ...],
    seeds: int,
    sweep: str | None,
    workers: int,
    out: Path | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
    **how: Any,
) -> None:
    """Train or sample a model of the theory for some seeds, and observe it; d=500 sets the dimension where there is one.

    Of chains, R-hat and the effective sizes say whether they have met; where not, the exit code is 3.
    """
    values = _pairs(words)
    _theory(theory)
    from simulate import experiment as room
    from simulate import table
    from simulate.plan import planned

    with _experimenting():
        plan = planned(theory, values, ladder=_ladder(sweep, theory), **how)
    points = seeds * len(plan.places)
    with (
        _store(out, plan.about | {"--seeds": str(seeds), "points": str(points)}, resume) as store,
        _bar(quiet, desc="simulate", total=points) as bar,
        _experimenting(),
    ):
        records = []
        for record in room.run(plan, range(seeds), store, quiet, workers):
            records.append(record)
            bar.update()
    found = room.summaries(plan, records)
    unfinished = list(dict.fromkeys(record.status for record in records if record.status != "ok"))
    if as_json:
        about = {name: text for name, text in plan.about.items() if name not in plan.numbers or name in plan.chosen}
        head = {"schema": 1, "theory": theory, "setup": plan.values, "about": about, "seeds": seeds}
        _print_json({**head, **table.as_json(plan, found), "status": unfinished[0] if unfinished else "ok"})
    else:
        click.echo(f"{theory}: {plan.text}; {seeds} seed{'s' * (seeds > 1)}")
        if text := table.as_text(plan, found):
            click.echo(f"\n{text}" if quiet else f"\n{text}\n\n{table.legend(plan, found)}")
    if unfinished:
        missed = sum(record.status != "ok" for record in records)
        _complain(f"{missed} of {len(records)} runs did not reach what was asked: {unfinished[0]}")
        raise click.exceptions.Exit(NOT_REACHED)


def _ladder(sweep: str | None, theory: str) -> tuple[Rational, ...]:
    """The values of the control in ``--sweep``, whole ones where it counts something."""
    from numerics.scan import parse_axis
    from simulate.models import family_of

    if sweep is None:
        return ()
    axis, control = parse_axis(sweep), family_of(theory).control.name
    if axis.name != control:
        raise BadInput(f"--sweep {sweep}: a sweep goes along the control, {control}=LO:HI:N")
    return tuple(dict.fromkeys(map(round, axis.values))) if family_of(theory).whole else axis.values


@contextmanager
def _experimenting() -> Iterator[None]:
    """Inside, what cannot be done is bad input; what breaks down on the way is not reached."""
    try:
        yield
    except ValueError as error:
        raise BadInput(str(error)) from None
    except ArithmeticError as error:
        _complain(str(error))
        raise click.exceptions.Exit(NOT_REACHED) from None


@cli.command()
@click.argument("theories", nargs=-1, metavar="[THEORY]...")
@click.option("--quick", is_flag=True, help="The quick rows, in less than three minutes.")
@click.option("--list", "listing", is_flag=True, help="Print which independent check every exported expression has.")
@click.option("--row", metavar="NAME", help="One row only.")
@click.option("--published", metavar="TABLE", help="Hold the theory against a table of published descents instead.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 64), help="Processes that measure.")
@click.option("--out", type=Folder(), metavar="DIR", help="A record store for the measurements.")
@click.option("--resume", is_flag=True, help="Go on with the store that is there.")
@_options
def crosscheck(
    theories: tuple[str, ...],
    quick: bool,
    listing: bool,
    row: str | None,
    published: str | None,
    workers: int,
    out: Path | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Theory against trained and sampled models; exit 3 unless every comparison holds."""
    for name in theories:
        _theory(name)
    from simulate.crosscheck import claims as room
    from simulate.crosscheck import registry, table

    if listing:
        entries = registry.exported(theories)
        if as_json:
            _print_json({"schema": 1, "expressions": [table.entry_json(entry) for entry in entries]})
        else:
            click.echo(table.listed(entries))
        return
    if published is not None:
        if quick or row is not None or out is not None or set(theories) - {"positional-semantic"}:
            raise BadInput("--published TABLE is a row of positional-semantic by itself: give it alone")
        from simulate.crosscheck.published import published as against

        with _arguments(), _progress(quiet) as progress, _solving():
            found = against(Path(published), _theory("positional-semantic"), progress)
        _print_verdicts(found, as_json, quick)
        return
    try:
        claims = registry.chosen(theories, row, quick)
    except LookupError as error:
        raise BadInput(str(error.args[0])) from None
    todo = room.tasks(claims, quick)
    names = ", ".join(claim.name for claim in claims)
    about = {"what": "crosscheck", "rows": names, "quick": str(quick), "points": str(len(todo)), "code": room.made_of()}
    with _measurements(out, about, resume) as store:
        if not quiet:
            _tell(table.budgets(claims, quick))
        there = len(todo) - len(room.left(todo, store))
        with _solving(), _bar(quiet, desc="measurements", total=len(todo), initial=there) as bar:
            room.measure(todo, store, workers, lambda task: bar.update())
        with _progress(quiet) as progress:
            found = room.compared(claims, store, quick, progress)
    _print_verdicts(found, as_json, quick)


def _print_verdicts(lines: Sequence[Line], as_json: bool, quick: bool) -> None:
    """The table or the document; exit 3 unless every comparison holds."""
    from simulate.crosscheck import table

    if as_json:
        _print_json({"schema": 1, "quick": quick, "rows": [table.as_json(line) for line in lines]})
    else:
        click.echo(f"{table.verdicts(lines)}\n\n{table.summary(lines)}")
    if not table.all_hold(lines):
        _complain("not every comparison holds")
        raise click.exceptions.Exit(NOT_REACHED)


@contextmanager
def _measurements(out: Path | None, about: Mapping[str, str], resume: bool) -> Iterator[Store]:
    """The store in ``--out``, or one that goes with the process."""
    from numerics.store import Store

    with TemporaryDirectory() as nowhere, _store(out, about, resume) as store:
        yield store or Store.create(Path(nowhere), about)


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@_options
def status(folder: Path, as_json: bool, quiet: bool) -> None:
    """What a record store holds: done, failed, left; and which points failed, and why."""
    from numerics import present
    from numerics.store import Store, StoreError

    try:
        store = Store.open(folder)
        about, counts = store.about(), store.count()
        left = int(about.get("points", 0)) - sum(counts.values())
        amiss = ({"kind": record.kind, "inputs": record.inputs, "status": record.status} for record in store.failures())
        if as_json:
            head = {"schema": 1, "folder": str(folder), "about": about, "records": counts, "left": left}
            _print_json({**head, "amiss": list(amiss), "damaged": store.damaged()})
            return
        first, damage = list(islice(amiss, SHOWN)), _damage(store)
    except (StoreError, OSError) as error:
        raise BadInput(f"{folder}: {error}") from None
    kinds: Counter[str] = Counter()
    for name, count in counts.items():
        kinds[name.partition(":")[0]] += count  # without the reason
    click.echo(present.table(("", ""), [*about.items(), *((kind, str(count)) for kind, count in kinds.items())]))
    click.echo(f"{left} points left")
    for one in first:
        click.echo(f"{', '.join(f'{name}={text}' for name, text in one['inputs'].items())}; {one['status']}")
    more = sum(counts.values()) - counts.get("ok", 0) - len(first)
    if more > 0:
        click.echo(f"and {more} more; --json lists all")
    if damage:
        click.echo(damage)


@cli.command()
@click.argument("name")
@_options
def new(name: str, as_json: bool, quiet: bool) -> None:
    """Write NAME.toml, a theory file with comments that runs as it is, to make one's own of."""
    from derive.files.theory import starter

    stem = name.removesuffix(".toml")
    plain = stem[:1] + stem[1:].replace("-", "").replace("_", "")
    if not (plain.isascii() and plain.isalnum() and len(stem) <= LONGEST_NAME):
        raise BadInput(f"{name!r} is no name for a theory; give at most {LONGEST_NAME} letters, digits, - and _")
    path = Path(f"{stem}.toml")
    try:
        with path.open("x", encoding="utf-8") as file, _or_gone(path):
            file.write(starter(stem))
            file.flush()
    except FileExistsError:
        raise BadInput(f"{path} is there already, and is not overwritten") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    if as_json:
        _print_json({"schema": 1, "file": str(path)})
    else:
        click.echo(f"wrote {path}")


@contextmanager
def _or_gone(path: Path) -> Iterator[None]:
    """Inside, a new file is written, which is removed where that fails."""
    try:
        yield
    except OSError:
        path.unlink()
        raise


@cli.command()
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", required=True, type=Folder(), metavar="DIR", help="Where to write it.")
@click.option(
    "--format",
    "forms",
    metavar="png|pdf|svg|csv[,...]",
    help="Formats, png by default and png,pdf of all; csv for the data alone.",
)
@click.option("--quick", is_flag=True, help="From stored numbers where there are any, else roughly and in seconds.")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), metavar="PATH", help="Draw the data of this file, or folder."
)
@click.option(
    "--theory", metavar="THEORY", help="Of diagram, bifurcation and branches: the theory, with its KEY=VALUE."
)
@click.option("--x", metavar="NAME=LO:HI", help="Of the same: the control between two values.")
@click.option("--y", metavar="NAME=LO:HI:N[:log]", help="Of diagram: the second parameter.")
@click.option("--store", metavar="DIR", help="Of diagram: the record store of `spinodal diagram` to draw.")
@click.option("--published", metavar="DIR", help="Of published: the folder of the published tables.")
@_options
def figure(
    name: str,
    words: tuple[str, ...],
    out: Path,
    forms: str | None,
    quick: bool,
    source: Path | None,
    as_json: bool,
    quiet: bool,
    **options: str | None,
) -> None:
    """Draw the figure NAME (or all of them) and write it with its data beside it."""
    from figures import FIGURES, FORMATS

    if name != "all" and name not in FIGURES:
        raise _nearest("figure", name, (*FIGURES, "all"))
    wanted = (forms or ("png,pdf" if name == "all" else "png")).split(",")
    if unknown := [form for form in wanted if form not in (*FORMATS, "csv")]:
        raise BadInput(f"--format {unknown[0]}: give {', '.join(FORMATS)} or csv, several with commas")
    chosen, values = {key: text for key, text in options.items() if text is not None}, _pairs(words)
    from figures.plot import Work, plot, tables
    from figures.style import saved

    plots = [plot(module) for module in (FIGURES.values() if name == "all" else [FIGURES[name]])]
    takes = plots[0].options if len(plots) == 1 else ()
    for option in (*chosen, *(["theory"] if values else [])):
        if option not in takes:
            raise BadInput(f"the figure {name} takes no --{option}" + (f" and no {words[0]}" if values else ""))
    if (chosen or values) and source is not None:
        raise BadInput("--from draws what is there: give nothing to compute with it")
    if values and "theory" not in chosen:
        raise BadInput(f"{words[0]}: parameters go with --theory")
    written = []
    with _arguments(), _bar(quiet, desc="figures", total=len(plots)) as bar, _solving():
        work = Work(quick, chosen, values, bar.set_postfix_str)
        for one, table in tables(plots, work, source):
            try:
                written += saved(one, table, out, wanted)
            except OSError as error:
                raise BadInput(f"--out {out}: {error.strerror}") from None
            bar.update()
    if as_json:
        _print_json({"schema": 1, "figure": name, "files": [str(path) for path in written]})
    else:
        click.echo("\n".join(f"wrote {path}" for path in written))


@cli.command()
@_setup_arguments
@_digits
@click.option("--out", required=True, type=NewFile(), metavar="FILE.html", help="Where the page goes.")
@click.option(
    "--crosscheck", type=click.Path(path_type=Path), metavar="FILE.json", help="What `crosscheck --json` printed."
)
@click.option(
    "--quick",
    is_flag=True,
    help="Only what takes little time: of averages no proofs, over a proximal map no transitions and laws.",
)
@_options
def report(
    theory: str,
    words: tuple[str, ...],
    digits: int | None,
    out: Path,
    crosscheck: Path | None,
    quick: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write one page that needs no network: model, derivation with its checks, transitions with their certificate, figures."""
    from derive.action import EffectiveAction
    from derive.averages import MoreauEnvelope

    problem, setup = _problem(theory, words)
    if setup.control is not None:
        raise BadInput(f"{problem.control.name} is the control, along which transitions are sought; leave it out")
    from figures.gallery import pictures
    from figures.report import Contents, crosschecked, laws
    from figures.report import report as page

    entry, values, digits = _theory(theory), _pairs(words), digits or problem.digits
    with _arguments():
        compared = [] if crosscheck is None else crosschecked(crosscheck, entry)
    derivation = entry.derivation()
    checks = list(_run_checks(derivation, quick, quiet))
    found, certificate, series = None, "", ([], [])
    with _progress(quiet) as progress, _solving(), _arguments():
        if not quick or isinstance(problem, EffectiveAction) or not problem.potential.has(MoreauEnvelope):
            found = _solver("transitions", problem)(problem, setup, digits=digits, progress=progress)
            if (isinstance(problem, EffectiveAction) or not quick) and _certifiable(theory, problem, digits):
                found, certificate = _with_certificate(entry, problem, setup, found, digits, progress)
            series = laws(entry, values, digits, quick, progress)
        drawn = tuple(pictures(entry, values, found, progress))
        contents = Contents(checks, found, certificate, *series, drawn, compared, digits)
        text = page(entry, derivation, values, contents)
    _write(out, text, out)
    failed = sum(not each.passed for each in checks)
    if as_json:
        _print_json({"schema": 1, "theory": theory, "file": str(out), "checks": len(checks), "failed": failed})
    else:
        click.echo(f"wrote {out}")
    if failed:
        _complain(f"{failed} of {len(checks)} checks failed")
        raise click.exceptions.Exit(NOT_REACHED)
    if found is not None:
        _finish(found, silent=as_json or quiet)


@cli.command()
@click.option("--out", required=True, type=Folder(), metavar="DIR", help="Where index.html goes.")
@_options
def explore(out: Path, as_json: bool, quiet: bool) -> None:
    """Write DIR/index.html, an interactive page of landscapes and phases that needs no network and no server."""
    from figures.explorer.page import page

    with _progress(quiet) as progress, _solving():
        progress("emitting the actions")
        text = page(progress)
    file = out / "index.html"
    _write(file, text, out)
    if as_json:
        _print_json({"schema": 1, "file": str(file)})
    else:
        click.echo(f"wrote {file}")


def _write(file: Path, text: str, out: Path) -> None:
    """Write a file in a folder, which is made if its parent is there, whole or not at all."""
    try:
        file.parent.mkdir(exist_ok=True)
        _whole(file, text)
    except OSError as error:
        raise BadInput(f"--out {out}: {error.strerror}") from None


def _whole(file: Path, text: str) -> None:
    """Write a file whole or not at all, so that what stood there before is not lost; raises `OSError`."""
    if file.exists() and not file.is_file():  # a device or a pipe has nothing to lose
        file.write_text(text, encoding="utf-8")
        return
    with TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as scratch:
        draft = Path(scratch, file.name)
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)


def _with_certificate(
    theory: Theory, problem: Any, setup: Setup, found: Any, digits: int, progress: Callable[[str], None]
) -> tuple[Any, str]:
    """What was found, with what of it is proven, and the certificate; nobody asked for proofs, so a note says what is not."""
    from dataclasses import replace

    from numerics.certify.taylor import UncertifiableError

    try:
        better, certificate = _proven(theory, problem, setup, found, digits, progress)
    except UncertifiableError as error:
        return replace(found, notes=(*found.notes, f"nothing is proven: {error}")), ""
    return replace(better, status=found.status), certificate


def _certifiable(theory: str, problem: Problem, digits: int) -> bool:
    from derive.files.written import UnwritableError
    from numerics.certify.taylor import UncertifiableError

    try:
        _refuse_uncertifiable(theory, problem)
    except (UncertifiableError, UnwritableError):
        return False
    return digits <= MOST_CERTIFIED


if __name__ == "__main__":
    main()

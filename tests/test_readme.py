"""The README is true: every command and snippet in it runs, and every number in it is printed by its command."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

import spinodal

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]
ROWS = re.findall(r"^\| `spinodal (.*)` \| .* \| (\S+) \|$", README, re.MULTILINE)
NUMBERS = {command: [number for name, number in ROWS if name == command] for command, _ in ROWS}


def run(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        spinodal.main(shlex.split(command, comments=True))
    printed = capsys.readouterr()
    assert stopped.value.code == 0, printed.err
    return printed.out


def test_the_readme_was_read():
    assert len(COMMANDS) >= 9
    assert len(ROWS) >= 7
    assert len(blocks("python")) == 1


EXPERIMENTS = [line for line in COMMANDS if line.startswith("spinodal crosscheck") or "--sweep" in line]
VERBS = [line for line in COMMANDS if line.startswith("spinodal ") and line not in EXPERIMENTS]


@pytest.mark.parametrize("command", [*VERBS, *(pytest.param(line, marks=pytest.mark.slow) for line in EXPERIMENTS)])
def test_command(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(command.removeprefix("spinodal "), capsys)


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("make ")])
def test_make_target(command):
    """Running `make test` from a test would not end; that make knows how is what can be asked here."""
    outcome = subprocess.run(
        [*shlex.split(command, comments=True), "--dry-run"], cwd=ROOT, capture_output=True, text=True
    )
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize("command", NUMBERS)
def test_numbers(command, capsys):
    printed = run(command, capsys)
    for number in NUMBERS[command]:
        assert re.search(rf"(?<!\d){re.escape(number)}(?!\d)", printed)


def test_python_session(capsys):
    (session,) = blocks("python")
    exec(compile(session, "README.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    # Independent computation at 60 digits, cut to what is known of it.
    assert printed.startswith("330.3782338884473450570723991766")
    assert len(printed) == 51


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", README))
def test_link(target):
    assert (ROOT / target).exists()

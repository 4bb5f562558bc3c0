"""Theory files on the command line: from `new` to a phase diagram, and one message for what is wrong."""

import json
import shlex
from pathlib import Path

import pytest

import spinodal
from derive.catalogue import classical
from derive.files.theory import starter


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Runs a command in an empty folder; exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def command(line):
        with pytest.raises(SystemExit) as stopped:
            spinodal.main(shlex.split(line))
        return (stopped.value.code, *capsys.readouterr())

    return command


README = (Path(spinodal.__file__).parent / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)[1:] for line in README.partition("```bash\n")[2].partition("```")[0].splitlines()
]


def test_from_a_new_file_to_a_phase_diagram_in_the_five_commands_of_the_readme(run):
    assert [command[0] for command in COMMANDS] == ["new", "derive", "minima", "transitions", "diagram"]
    for command in COMMANDS:
        code, out, err = run(shlex.join(command))
        assert code == 0, err
        assert out
    found = json.loads(run("transitions mine.toml D=12/25 --json")[1])
    assert (found["theory"], found["transitions"][0]["kind"]) == ("mine.toml", "coexistence")


def test_the_starter_names_the_same_commands():
    comments = [line.split()[1:] for line in starter("mine").splitlines() if line.startswith("#     spinodal")]
    assert [words[1:] for words in comments] == COMMANDS[1:]


def test_a_file_is_not_overwritten(run, tmp_path):
    (tmp_path / "mine.toml").write_text("mine")
    for name in ("mine", "mine.toml"):
        code, _, err = run(f"new {name}")
        assert code == 2
        assert "not overwritten" in err
    assert (tmp_path / "mine.toml").read_text() == "mine"


@pytest.mark.parametrize("name", ["../mine", "a/b", "''", ".", "-", "a b", "'a\"b'", "'a\n[theory]'", "a.b", "x" * 300])
def test_a_name_is_a_name(run, tmp_path, name):
    code, _, err = run(f"new -- {name}")
    assert code == 2
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


VERBS = ["derive {}", "minima {} T=1", "transitions {}", "diagram {} --x T=1:2 --y D=0:1", "asymptotics {}"]


@pytest.mark.parametrize("verb", [*VERBS, "scan {} --over T=1:2:2 --out store", "simulate {}", "crosscheck {}"])
def test_every_verb_points_at_the_character(run, tmp_path, verb):
    (tmp_path / "mine.toml").write_text(starter("mine").replace("m^2/2", "m^2/2 + mm"))
    code, out, err = run(verb.format("mine.toml"))
    message, line, caret = err.rstrip("\n").split("\n")
    assert (code, out) == (2, "")
    assert message.startswith("spinodal: mine.toml: theory.action, character 9: mm is not declared")
    assert line[caret.index("^") :].startswith("mm - T*log")


def test_files_that_are_missing_or_no_theories(run, tmp_path):
    (tmp_path / "mine.toml").write_text("[theory")
    for name, why in (("mine.toml", "is no TOML"), ("other.toml", "no such file"), ("module:json", "is no theory")):
        code, out, err = run(f"minima {name} T=1")
        assert (code, out) == (2, "")
        assert why in err
        assert len(err.splitlines()) == 1


def test_the_list_shows_the_classical_models(run):
    code, out, _ = run("list --json")
    assert code == 0
    assert {theory.name for theory in classical()} <= {entry["name"] for entry in json.loads(out)["theories"]}

"""Published tables: units, averages over rows, and files that are none."""

import csv

import pytest

from derive.action import SetupError
from derive.catalogue import find
from simulate.crosscheck.published import published
from simulate.verdict import Outcome

THEORY = find("positional-semantic")
FIELDS = [
    "d",
    "sigma",
    "omega",
    "attention_lmbda",
    "alpha",
    "informed",
    "attention_train_error_mean",
    "attention_gen_error_mean",
    "attention_mag_mean",
    "attention_theta_mean",
]

# Independent solvers at alpha = 3/2: training loss, eps_g, m and theta of both solutions.
SEMANTIC = {"e": 0.0030538, "eps_g": 0.00196065, "m": 1e-3, "theta": 0.134549}
POSITIONAL = {"e": 0.0032966, "eps_g": 0.00343975, "m": 0.25473, "theta": 1e-3}


def write(path, factor=1.0, omega="0.3"):
    """Three rows of either start around the reference, the training loss of positional ones off by ``factor``."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(FIELDS)
        for name, seen, off in (("True", SEMANTIC, 1.0), ("False", POSITIONAL, factor)):
            for noise in (0.997, 1.0, 1.003):
                e, eps_g, m, theta = (noise * seen[key] for key in ("e", "eps_g", "m", "theta"))
                table.writerow([1000, 0.5, omega, 0.01, 1.5, name, off * e * 1000, eps_g, -m, theta / 0.25])
                table.writerow([1000, 0.5, 0.2, 0.01, 1.5, name, 1, 1, 1, 1])  # other parameters: not compared
    return path


def test_rows_that_agree_and_rows_that_are_five_per_cent_off(tmp_path):
    lines = published(write(tmp_path / "table.csv", factor=1.05), THEORY)
    outcomes = {(line.case.split()[1], line.quantity.split()[0]): line for line in lines}
    wrong = outcomes.pop(("positional", "e"))
    assert wrong.outcome is Outcome.FAILS
    assert wrong.verdict.measured.value == pytest.approx(0.05, abs=1e-3)
    assert len(outcomes) == 5
    assert all(line.outcome is Outcome.HOLDS for line in outcomes.values())
    assert all(abs(line.verdict.measured.value) < 1e-3 for line in outcomes.values())


def test_files_that_are_no_table(tmp_path):
    with pytest.raises(SetupError, match="No such file"):
        published(tmp_path / "nothing.csv", THEORY)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SetupError, match="lacks alpha"):
        published(tmp_path / "other.csv", THEORY)
    with pytest.raises(SetupError, match="no rows of semantic"):
        published(write(tmp_path / "elsewhere.csv", omega="0.4"), THEORY)


def changed(path, line, column, text):
    """The table with another cell."""
    rows = [row.split(",") for row in write(path).read_text().splitlines()]
    rows[line - 1][FIELDS.index(column)] = text
    path.write_text("\n".join(map(",".join, rows)))


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("attention_theta_mean", "x", "table.csv, line 2, column attention_theta_mean: 'x' is no finite number"),
        ("attention_mag_mean", "nan", "line 2, column attention_mag_mean: 'nan'"),
        ("alpha", "", "line 2, column alpha: ''"),
        ("d", "0", "line 2, column d: the dimension 0"),
        ("omega", "x", "line 2: omega"),
        ("omega", "7", "line 2: omega"),
        ("informed", "True,", "line 2: give 10 cells"),
    ],
)
def test_a_cell_that_is_wrong_is_named(tmp_path, column, text, message):
    path = tmp_path / "table.csv"
    changed(path, 2, column, text)
    with pytest.raises(SetupError, match=message):
        published(path, THEORY)


def test_rows_that_are_too_short_and_files_that_hold_nothing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(FIELDS) + "\n1000,0.5\n")
    with pytest.raises(SetupError, match="line 2: give 10 cells"):
        published(path, THEORY)
    path.write_text("")
    with pytest.raises(SetupError, match=r"table\.csv is empty: it lacks alpha"):
        published(path, THEORY)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SetupError, match="is no table of comma-separated values"):
        published(path, THEORY)
    with pytest.raises(SetupError, match=f"^{tmp_path}: Is a directory$"):
        published(tmp_path, THEORY)

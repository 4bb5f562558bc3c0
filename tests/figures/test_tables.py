"""Tables and pictures on the disk: read as they were written, used while they hold, written whole or not at all."""

from dataclasses import replace

import pytest

from derive.action import SetupError
from figures import FORMATS, plot
from figures.plot import Work, tables
from figures.style import saved
from figures.table import Table, made, read


@pytest.fixture
def table():
    rows = [("curve", 1.0, 0.1), ("curve", 2.0, float("nan")), ("point, marked", 1e-300, -3.0)]
    return made(("what", "x", "y"), rows, ["copy-head/softmax"], seeds="0 to 3")


@pytest.fixture
def figure(table):
    from matplotlib.figure import Figure

    def draw(data):
        figure = Figure()
        figure.add_subplot().plot(data["x"], data["y"])
        return figure

    return plot.Plot("some-figure", "What is seen.", table.columns, lambda work: table, draw)


def test_a_table_is_read_as_it_was_written(table, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text(table.text)
    again = read(path)
    assert again.text == table.text
    assert again.digest == table.digest
    assert again.about["seeds"] == "0 to 3"
    assert again.where(what="curve")["x"].tolist() == [1, 2]


def test_rows_have_as_many_cells_as_there_are_columns():
    with pytest.raises(ValueError, match="1 cells"):
        Table(("a", "b"), ((1.0,),))


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1\n", "a\n1\n", b"\xff\xfe\x00"])
def test_what_is_no_table_is_refused(tmp_path, text):
    path = tmp_path / "some.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SetupError, match=r"some\.csv is no table"):
        read(path)


def test_the_table_of_another_figure_is_refused(table, figure, tmp_path):
    (tmp_path / "some-figure.csv").write_text(replace(table, columns=("what", "x", "z")).text)
    with pytest.raises(SetupError, match="no table of the figure some-figure"):
        list(tables([figure], Work(), tmp_path))
    with pytest.raises(SetupError, match="No such file"):
        list(tables([figure], Work(), tmp_path / "missing.csv"))


def test_stored_numbers_are_used_quickly_while_their_theory_lasts(table, figure, tmp_path, monkeypatch):
    monkeypatch.setattr(plot, "DATA", tmp_path)
    told = []
    stored = replace(table, about={**table.about, "seeds": "stored"})
    (tmp_path / "some-figure.csv").write_text(stored.text)

    def seeds(quick, **chosen):
        ((_, found),) = tables([figure], Work(quick, chosen, say=told.append))
        return found.about["seeds"]

    assert seeds(quick=True) == "stored"
    assert seeds(quick=False) == "0 to 3"
    assert seeds(quick=True, theory="mine") == "0 to 3"
    changed = {name: "0" * 64 if name.startswith("expression") else text for name, text in stored.about.items()}
    (tmp_path / "some-figure.csv").write_text(replace(stored, about=changed).text)
    assert told == []
    assert seeds(quick=True) == "0 to 3"
    assert "changed" in told[0]


def test_figures_of_one_table_compute_it_once(table, figure):
    calls = []

    def compute(work):
        calls.append(work)
        return table

    both = [replace(figure, name=name, compute=compute) for name in ("one", "other")]
    assert [one.name for one, _ in tables(both, Work())] == ["one", "other"]
    assert len(calls) == 1


def test_data_alone_goes_where_figures_of_one_table_find_it(table, figure, tmp_path, monkeypatch):
    monkeypatch.setattr(plot, "DATA", tmp_path)
    both = [replace(figure, name=name, kept="shared", compute=None) for name in ("one", "other")]
    assert saved(both[0], table, tmp_path, ["csv"]) == [tmp_path / "shared.csv"]
    for work, source in ((Work(quick=True), None), (Work(), tmp_path)):
        assert [found.text for _, found in tables(both, work, source)] == [table.text] * 2


@pytest.mark.parametrize("form", FORMATS)
def test_saved_twice_is_the_same_file(table, figure, form, tmp_path):
    first, second = (saved(figure, table, tmp_path / name, [form]) for name in ("one", "two"))
    assert [path.name for path in first] == [f"some-figure.{form}", "some-figure.csv"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    origin = (first[0].read_bytes(), table.digest.encode())
    assert form == "pdf" or origin[1] in origin[0]  # of a PDF it is compressed or in an encoding of its own


def test_all_formats_from_one_call(table, figure, tmp_path):
    files = saved(figure, table, tmp_path, ["png", "pdf", "csv"])
    assert sorted(path.suffix for path in files) == [".csv", ".pdf", ".png"]
    assert all(path.stat().st_size > 100 for path in files)


def test_a_failure_leaves_what_was_there(table, figure, tmp_path):
    target = tmp_path / "some-figure.png"
    target.write_text("kept")

    def fail(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        saved(replace(figure, draw=fail), table, tmp_path, ["pdf", "png"])
    assert [path.name for path in tmp_path.iterdir()] == ["some-figure.png"]
    assert target.read_text() == "kept"

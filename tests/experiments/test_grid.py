"""Table 1 as a grid against one written by hand."""

from dgt.config import Config
from dgt.experiments.accuracy import accuracies
from dgt.experiments.average_rank import with_ranks
from dgt.experiments.grid import with_grid
from dgt.experiments.paper import PAPER, Figure
from dgt.experiments.record import Record
from dgt.experiments.table import Line, Setup
from dgt.report.sheet import markdown

FIGURES = {
    ("cora", "gcn"): Figure(80, 0.5, PAPER),
    ("cora", "dgt"): Figure(70, 0.5, PAPER),
    ("reddit", "gcn"): Figure(None, None, PAPER, "OOM"),
    ("reddit", "dgt"): Figure(90, 0.1, PAPER),
    ("ring", "dgt"): Figure(40, None, "a star (1900)"),
}


def line(dataset: str, model: str, tests: list[float], asked: int, refused: bool = False) -> Line:
    config = Config.of(model)
    records = [
        Record("t", dataset, model, 0, 0, test, test, 1, 1.0, config.to_dict(), {})
        for test in ({"accuracy": value} for value in tests)
    ]
    return Line(Setup(dataset, model, config), records, asked, refused)


LINES = [
    line("cora", "gcn", [0.75, 0.75], 2),
    line("cora", "dgt", [0.74, 0.78], 3),
    line("reddit", "gcn", [], 10, refused=True),
    line("reddit", "dgt", [0.8, 0.8], 2),
    line("ring", "dgt", [0.5], 1),
]


def figure(dataset: str, model: str) -> Figure | None:
    return FIGURES.get((dataset, model))


def test_one_row_per_model_and_one_column_per_graph():
    sheet = with_grid(with_ranks(accuracies(LINES, "Title", figure)))
    assert sheet.grid is not None
    assert sheet.grid.columns == ("model", "cora", "reddit", "ring", "average rank")
    assert sheet.grid.rows == [
        ("gcn", "75.00±0.00 (-5.0)", "OOM", "–", "2.0 (1.5)"),
        ("dgt", "**76.00±25.41*** (+6.0)", "**80.00±0.00** (-10.0)", "50.00 (+10.0)", "1.0 (1.5)"),
    ]
    assert sheet.grid.notes[1:] == (
        "On ring, compared with: a star (1900).",
        "* Not all runs are finished.",
    )
    text = markdown(sheet)
    assert text.startswith("| model | cora | reddit | ring | average rank |\n| --- | ---: |")
    assert text.index("<details>") < text.index("| data set | model | accuracy")
    assert text.endswith("\n\n</details>\n")


def test_part_of_the_table():
    sheet = with_grid(with_ranks(accuracies(LINES[1:2], "Title", figure)))
    assert sheet.grid is not None
    assert sheet.grid.columns == ("model", "cora")
    assert sheet.grid.rows == [("dgt", "**76.00±25.41*** (+6.0)")]
    assert "average ranks" not in sheet.grid.notes[0]

"""Tables of accuracies against numbers computed by hand."""

import dataclasses
import math

import pytest

from dgt.config import Config
from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import PAPER, Figure
from dgt.experiments.record import Record
from dgt.experiments.table import Line, Setup
from dgt.report.sheet import Sheet, markdown


def line(dataset: str, tests: list[float], asked: int) -> Line:
    config = Config.of("dgt")
    records = [
        Record(
            "t",
            dataset,
            "dgt",
            0,
            0,
            {"accuracy": test + 0.1},
            {"accuracy": test},
            1,
            1.0,
            config.to_dict(),
            {},
        )
        for test in tests
    ]
    return Line(Setup(dataset, "dgt", config), records, asked)


@pytest.fixture
def sheet() -> Sheet:
    figures = {
        "cora": Figure(72.5, 0.6, PAPER),
        "ring": Figure(40, None, "a star (1900)"),
        "path": Figure(50, None, "a star (1900)"),
    }
    return accuracies(
        [
            line("cora", [0.7, 0.72, 0.74], 3),
            line("ring", [0.375], 30),
            line("path", [], 30),
            line("new", [0.25, 0.75], 2),
        ],
        "Title",
        lambda dataset, variant: figures.get(dataset),
    )


def test_numbers(sheet: Sheet):
    cora, ring, path, new = sheet.numbers
    # mean 72, squared deviations 4 + 0 + 4, so std 2; t of 2 degrees of freedom is 4.30265
    assert cora == {
        "dataset": "cora",
        "model": "dgt",
        "mean": pytest.approx(72),
        "std": pytest.approx(2),
        "ci95": pytest.approx(4.302653 * 2 / math.sqrt(3), rel=1e-6),
        "runs": 3,
        "asked": 3,
        "stale": 0,
        "unknown_code": 0,
        "out_of_memory": False,
        "val_mean": pytest.approx(82),
        "paper": 72.5,
        "paper_ci95": 0.6,
        "source": PAPER,
        "difference": pytest.approx(-0.5),
    }
    assert (ring["mean"], ring["std"], ring["ci95"]) == (37.5, None, None)
    assert (ring["runs"], ring["asked"], ring["difference"]) == (1, 30, -2.5)
    assert (path["mean"], path["runs"], path["difference"], path["paper"]) == (None, 0, None, 50)
    assert (new["mean"], new["paper"], new["source"], new["difference"]) == (50, None, None, None)


def test_text(sheet: Sheet):
    assert sheet.rows == [
        ("cora", "dgt", "72.00±4.97", "2.00", "3", "72.50±0.60", "-0.50"),
        ("ring", "dgt", "37.50", "–", "1/30", "40.00†", "-2.50"),
        ("path", "dgt", "–", "–", "0/30", "50.00†", "–"),
        ("new", "dgt", "50.00±317.66", "35.36", "2", "–", "–"),
    ]
    assert sheet.notes[1:] == ("† Not in the paper: a star (1900).",)


def test_markdown(sheet: Sheet):
    lines = markdown(sheet).splitlines()
    assert lines[0] == "| data set | model | accuracy | std | runs | paper | difference |"
    assert lines[1] == "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    assert lines[2] == "| cora | dgt | 72.00±4.97 | 2.00 | 3 | 72.50±0.60 | -0.50 |"
    assert lines[6] == ""
    assert lines[7].startswith("Test accuracy in percent")
    assert lines[8].startswith("† ")


def test_out_of_memory():
    refused = line("cora", [], 10)._replace(refused=True)
    sheet = accuracies([refused], "Title", lambda dataset, variant: None)
    assert sheet.rows[0][2] == "OOM"
    assert sheet.numbers[0]["out_of_memory"]


def test_a_benchmark_is_compared_by_its_own_metric():
    own = line("minesweeper", [0.8, 0.8], 2)
    by_auroc = [
        dataclasses.replace(record, val=record.val | {"auroc": 0.5}, test={"auroc": value})
        for record, value in zip(own.records, (0.9, 0.92), strict=True)
    ]
    sheet = accuracies([own._replace(records=by_auroc)], "Title", lambda dataset, variant: None)
    assert sheet.numbers[0]["mean"] == pytest.approx(91)
    assert any("minesweeper" in note and "ROC" in note for note in sheet.notes)

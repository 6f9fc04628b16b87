"""Average ranks against those printed in the paper."""

import pytest

from dgt.experiments.average_rank import NAME, with_ranks
from dgt.experiments.paper import MODELS, PAPER, TABLE1
from dgt.report.sheet import Sheet
from tests.experiments.test_paper import AVERAGE_RANK


def test_ranks_of_the_papers_own_figures():
    numbers = []
    for dataset in {d for d, _ in TABLE1}:
        for model in MODELS:
            figure = TABLE1.get((dataset, model))
            mean = figure and figure.mean
            # ours in the opposite order
            row = {"mean": mean and -mean, "paper": mean, "source": PAPER}
            numbers.append({"dataset": dataset, "model": model, **row})
    numbers.append({"dataset": "other", "model": "dgt", "mean": 1.0, "paper": 2.0, "source": None})
    sheet = with_ranks(Sheet("Title", ("a",) * 7, [], (), numbers))
    last = sheet.numbers[-len(MODELS) :]
    assert {row["dataset"] for row in last} == {NAME}
    theirs = {row["model"]: row["paper_rank"] for row in last}
    assert theirs == pytest.approx(AVERAGE_RANK, abs=0.0051)
    assert min(last, key=lambda row: row["rank"])["model"] != "dgt"
    assert [row[1] for row in sheet.rows] == list(MODELS)


def test_one_model_has_no_rank():
    row = {"dataset": "cora", "model": "dgt", "mean": 1.0, "paper": 2.0, "source": PAPER}
    sheet = Sheet("Title", ("a",) * 7, [], (), [row])
    assert with_ranks(sheet) == sheet

"""Runs that an earlier version of the package trained: ``old`` was written by commit bf624f9."""

import csv
import json
from pathlib import Path

import pytest

from dgt import NodeClassifier
from dgt.cli import main
from dgt.data import load

OLD = Path(__file__).parent / "old"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("model", ["dgt", "gcn"])
def test_an_old_run_predicts_the_same(tmp_path: Path, model: str) -> None:
    out = tmp_path / "predictions.csv"
    assert main(["predict", str(OLD / model), str(OLD / "graph"), "--out", str(out)]) == 0
    before, now = rows(OLD / model / "predictions.csv"), rows(out)
    assert len({row["probability"] for row in before}) > 20
    for old, new in zip(before, now, strict=True):
        assert (new["id"], new["prediction"]) == (old["id"], old["prediction"])
        assert float(new["probability"]) == pytest.approx(float(old["probability"]), abs=1e-6)


@pytest.mark.parametrize("model", ["dgt", "gcn"])
def test_an_old_run_has_the_same_scores(model: str) -> None:
    run = NodeClassifier.load(OLD / model)
    metrics = json.loads((OLD / model / "metrics.json").read_text())
    data = load(str(OLD / "graph"))
    assert run.score(data) == pytest.approx(metrics["test_accuracy"])
    assert run.score(data, "val") == pytest.approx(metrics["val_accuracy"])

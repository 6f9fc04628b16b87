"""Several labels per node, and numbers per node."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import f1_score, mean_absolute_error, r2_score
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier, NodeRegressor
from dgt.cli import main
from dgt.training.multilabel import MultiLabel
from dgt.training.regression import Regression
from tests.small import QUICK, block_graph

LONGER = {**QUICK, "epochs": 60, "patience": 60, "lr": 0.02, "dropout": 0.0, "input_dropout": 0.0}


def with_numbers() -> Data:
    data = block_graph()
    data.y = 1000.0 + 50.0 * data.y.double() + data.x[:, 0].double()
    data.y[:5] = torch.nan
    return data


def with_labels() -> Data:
    data = block_graph()
    data.y = torch.stack([data.y == 0, data.y > 0, data.x[:, 0] > 0], dim=1).long()
    data.y[:5] = -1
    return data


def test_losses_against_their_definitions():
    logits, y = torch.randn(7, 3).double(), torch.randint(0, 2, (7, 3))
    p = logits.sigmoid()
    each = -(y * p.log() + (1 - y) * (1 - p).log())
    assert float(MultiLabel(3).loss(logits, y)) == pytest.approx(float(each.mean(1).sum()))
    values, z = torch.randn(7).double() * 3 + 5, torch.randn(7, 1).double()
    task = Regression(mean=5.0, scale=3.0)
    assert float(task.loss(z, values)) == pytest.approx(
        float((((values - 5) / 3 - z[:, 0]) ** 2).sum())
    )
    assert torch.allclose(task.predict(z), z[:, 0] * 3 + 5)


@pytest.fixture(scope="module")
def regressor(tmp_path_factory: pytest.TempPathFactory) -> tuple[NodeRegressor, Data, Path]:
    data, out = with_numbers(), tmp_path_factory.mktemp("regression") / "run"
    return NodeRegressor(**LONGER).fit(data, out=out), data, out


def test_regression(regressor: tuple[NodeRegressor, Data, Path]):
    fitted, data, out = regressor
    metrics = fitted.metrics_
    assert metrics["metric"] == "mae"
    assert metrics == json.loads((out / "metrics.json").read_text())
    found = fitted.predict()
    for part in ("train", "val", "test"):
        mask = fitted._data[f"{part}_mask"]
        assert not bool(mask[:5].any())  # without a number
        y, own = data.y[mask], found[mask]
        assert metrics[part]["mae"] == pytest.approx(mean_absolute_error(y, own))
        assert metrics[part]["r2"] == pytest.approx(r2_score(y, own))
        assert fitted.score(mask=part) == pytest.approx(metrics[part]["mae"])
    assert metrics["test"]["r2"] > 0.5
    best = min(fitted.history_, key=lambda row: (row["val_mae"], row["val_loss"]))
    assert best["epoch"] == metrics["best_epoch"]


def test_a_loaded_regressor(regressor: tuple[NodeRegressor, Data, Path], tmp_path: Path):
    fitted, data, out = regressor
    loaded = NodeRegressor.load(out)
    assert torch.equal(loaded.predict(data), fitted.predict())
    table = pq.read_table(out / "predictions.parquet")
    assert table.column_names == ["id", "prediction", "split"]
    assert torch.equal(
        torch.tensor(table["prediction"].to_pylist(), dtype=torch.float64), fitted.predict()
    )
    assert set(table["split"].to_pylist()[:5]) == {None}
    data = data.clone()
    data.y = None
    assert torch.equal(loaded.predict(data), fitted.predict())
    with pytest.raises(InputError, match="got settings for regression, expected classification or"):
        NodeClassifier.load(out)


def test_several_labels(tmp_path: Path):
    data = with_labels()
    fitted = NodeClassifier(task="multilabel", **LONGER).fit(data, out=tmp_path / "run")
    metrics, p, found = fitted.metrics_, fitted.predict_proba(), fitted.predict()
    assert metrics["metric"] == "f1"
    assert torch.equal(found, (p.double() >= 0.5).long())
    for part in ("train", "val", "test"):
        mask = fitted._data[f"{part}_mask"]
        truth = f1_score(data.y[mask], found[mask], average="micro")
        assert metrics[part]["f1"] == fitted.score(mask=part) == pytest.approx(truth)
    assert metrics["test"]["f1"] > 0.8
    with pytest.raises(InputError, match="predicts multilabel; only classes can be explained"):
        fitted.explain(0)
    table = pq.read_table(tmp_path / "run" / "predictions.parquet")
    names = ["0", "1", "2"]
    assert table.column_names == ["id", "prediction", "split", *map("probability:{}".format, names)]
    rows = (zip(names, row, strict=True) for row in found.tolist())
    assert table["prediction"].to_pylist() == [";".join(n for n, one in row if one) for row in rows]
    assert torch.equal(NodeClassifier.load(tmp_path / "run").predict(data), found)


@pytest.mark.parametrize(
    ("task", "metric", "labels"), [("regression", "mae", "{}.5"), ("multilabel", "f1", "a;b{}")]
)
def test_labels_of_a_table_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], task: str, metric: str, labels: str
):
    folder, data = tmp_path / "graph", block_graph()
    folder.mkdir()
    nodes = (f"{n},{float(x):.3f},{labels.format(n % 3)}\n" for n, x in enumerate(data.x[:, 0]))
    (folder / "nodes.csv").write_text("id,x,label\n" + "".join(nodes))
    edges = (f"{s},{t}\n" for s, t in data.edge_index.t().tolist())
    (folder / "edges.csv").write_text("source,target\n" + "".join(edges))
    out, file = tmp_path / task, tmp_path / "predictions.csv"
    short = ["--task", task, "--epochs", "3", "--length", "4", "--quiet"]
    assert main(["train", str(folder), "--out", str(out), *short]) == 0
    assert main(["predict", str(out), "--out", str(file), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["metric"] == found["metric"] == metric
    for part in ("train", "val", "test"):
        assert found["parts"][part]["metrics"] == pytest.approx(metrics[part])
    assert file.read_text().startswith('"id","prediction","split"')

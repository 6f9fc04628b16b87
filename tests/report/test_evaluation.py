"""``dgt evaluate``: metrics by split, class and group."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from dgt.cli import main
from tests.small import block_graph

NAMES = ["a & b", "c_d", "plain"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, data = tmp_path_factory.mktemp("evaluation"), block_graph()
    lines = [
        f"{n},{NAMES[int(y)]},{'north' if n % 2 else 'south'},{n / 7:.3f},{float(x):.3f}\n"
        for n, (y, x) in enumerate(zip(data.y, data.x[:, 0], strict=True))
    ]
    (folder / "nodes.csv").write_text("id,label,place,age,x\n" + "".join(lines))
    edges = (f"{s},{t}\n" for s, t in data.edge_index.t().tolist())
    (folder / "edges.csv").write_text("source,target\n" + "".join(edges))
    run = str(folder / "run")
    assert main(["train", str(folder), "--out", run, "--epochs", "8", "--quiet"]) == 0
    return folder


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    capsys.readouterr()
    assert main(["evaluate", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def truth(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns labels, predictions, probabilities and splits from the files."""
    table = pq.read_table(folder / "run" / "predictions.parquet")
    with open(folder / "nodes.csv") as file:
        labels = {row["id"]: NAMES.index(row["label"]) for row in csv.DictReader(file)}
    y = np.array([labels[str(i)] for i in table["id"].to_pylist()])
    predicted = np.array([NAMES.index(name) for name in table["prediction"].to_pylist()])
    p = np.stack([table[f"probability:{name}"] for name in NAMES], axis=1)
    return y, predicted, p, np.array(table["split"].to_pylist())


def test_classes_against_scikit_learn(folder: Path, capsys: pytest.CaptureFixture[str]):
    found = evaluated(capsys, folder / "run")
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    y, predicted, p, splits = truth(folder)
    for part in ("train", "val", "test"):
        own = found["parts"][part]
        assert own["metrics"] == pytest.approx(metrics[part])
        chosen = splits == part
        assert own["nodes"] == chosen.sum()
        assert own["confusion"] == confusion_matrix(y[chosen], predicted[chosen]).tolist()
        scores = precision_recall_fscore_support(y[chosen], predicted[chosen], zero_division=np.nan)
        for c, row in enumerate(own["classes"]):
            inside = y[chosen] == c
            expected = [each[c] for each in scores]
            expected += [roc_auc_score(inside, p[chosen, c])]
            expected += [average_precision_score(inside, p[chosen, c])]
            values = list(row.values())[1:]
            assert row["class"] == NAMES[c]
            for value, other in zip(values, expected, strict=True):
                assert value is None if np.isnan(other) else value == pytest.approx(other)


def test_groups(folder: Path, capsys: pytest.CaptureFixture[str]):
    found = evaluated(capsys, folder / "run", "--by", "place")["groups"]
    y, predicted, _, splits = truth(folder)
    assert set(found) == {"north", "south"}
    for name, odd in (("north", 1), ("south", 0)):
        chosen = (splits == "test") & (np.arange(90) % 2 == odd)
        assert found[name]["nodes"] == chosen.sum()
        accuracy = (y == predicted)[chosen].mean()
        assert found[name]["metrics"]["accuracy"] == pytest.approx(accuracy)
    ranges = evaluated(capsys, folder / "run", "--by", "age")["groups"]
    assert len(ranges) == 4
    assert sum(each["nodes"] for each in ranges.values()) == (splits == "test").sum()


def test_another_graph_is_evaluated_as_a_whole(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = str(tmp_path / "run")
    short = ["--labels", "none", "--epochs", "2", "--quiet"]
    assert main(["train", str(folder), "--out", run, *short]) == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "nodes.csv").write_text((folder / "nodes.csv").read_text())
    lines = (folder / "edges.csv").read_text().splitlines()
    (other / "edges.csv").write_text("\n".join(lines[:-20]) + "\n")
    found = evaluated(capsys, run, other)
    assert {name: part["nodes"] for name, part in found["parts"].items()} == {"all": 90}


def test_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = str(folder / "run")
    for name in ("e.json", "e.csv", "e.tex"):
        assert main(["evaluate", run, "--out", str(tmp_path / name)]) == 0
    shown = capsys.readouterr().out
    assert "calibration error" in shown
    assert "c_d" in shown
    whole = json.loads((tmp_path / "e.json").read_text())
    with open(tmp_path / "e.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9
    last = whole["parts"]["test"]["classes"][2]
    assert float(rows[-1]["recall"]) == pytest.approx(last["recall"])
    text = (tmp_path / "e.tex").read_text()
    assert r"a \& b" in text
    assert r"c\_d" in text
    assert text.count(r"\\") == 10
    for own in (folder / "nodes.csv", folder / "run" / "metrics.json"):
        before = own.read_bytes()
        assert main(["evaluate", run, "--out", str(own), "--overwrite"]) == 2
        assert f"{own} is an input of this command" in capsys.readouterr().err
        assert own.read_bytes() == before
    assert main(["evaluate", run, "--out", str(tmp_path / "e.csv")]) == 2
    assert main(["evaluate", run, "--out", str(tmp_path / "e.pdf")]) == 2
    assert main(["evaluate", run, "--by", "plaice"]) == 2
    errors = capsys.readouterr().err
    assert "exists" in errors
    assert "expected a .json, .csv or .tex file" in errors
    assert "has no column 'plaice'" in errors

"""Names of columns, the missing label, and columns that give the label away."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from dgt import NodeClassifier
from dgt.cli import main
from dgt.config import DataConfig
from dgt.data import load
from dgt.data.recipe import described
from dgt.errors import InputError
from dgt.system.notes import note_once
from tests.small import QUICK


def fraud(folder: Path, n: int = 120, extra: str = "") -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    rows = [f"node_id,is_fraud,country,amount{',' + extra if extra else ''}"]
    for i in range(n):
        label = i % 2
        cells = [f"u{i}", label, rng.choice(["NO", "IT"]), round(float(rng.normal()), 3)]
        rows.append(",".join(map(str, [*cells, *([f"case{label}"] if extra else [])])))
    (folder / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = "".join(f"u{a},u{b}\n" for a, b in rng.integers(0, n, (300, 2)))
    (folder / "edges.csv").write_text("src,dst\n" + edges)
    return folder


def test_a_missing_label_is_named_with_candidates(tmp_path: Path, capsys) -> None:
    path = fraud(tmp_path / "graph")
    with pytest.raises(InputError, match=r"found 0 classes: there is no column 'label'; did you m"):
        NodeClassifier().fit(load(str(path)))
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "--label is_fraud" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_names_are_set_and_guessed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = fraud(tmp_path / "graph")
    note_once.cache_clear()
    with caplog.at_level(logging.DEBUG, "dgt"):
        data = load(str(path), settings=DataConfig(label="is_fraud"))
    assert "edges.csv: using 'src' as source, 'dst' as target" in caplog.text
    assert "nodes.csv: using 'node_id' as id" in caplog.text
    assert data.class_names == ["0", "1"]
    assert data.table.features() == ["amount", "country"]
    with pytest.raises(InputError, match=r"no column 'fraud' for label; did you mean 'is_fraud'\?"):
        load(str(path), settings=DataConfig(label="fraud"))
    with pytest.raises(InputError, match="column 'node_id' cannot be both"):
        load(str(path), settings=DataConfig(id="node_id", label="node_id"))


def test_a_column_that_predicts_the_label_is_pointed_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = fraud(tmp_path / "graph", extra="verdict")
    settings = {**QUICK, "epochs": 1, "label": "is_fraud"}
    reading = DataConfig(label="is_fraud")
    NodeClassifier(**settings).fit(load(str(path), settings=reading))
    assert "column 'verdict' alone predicts the label of 100.0% of the training" in caplog.text
    assert "'amount' alone" not in caplog.text
    caplog.clear()
    NodeClassifier(**settings, ignore=["verdict"]).fit(load(str(path), settings=reading))
    assert "alone predicts" not in caplog.text


def test_another_column_label_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = fraud(tmp_path / "graph", extra="Label")
    reading = DataConfig(label="is_fraud")
    note_once.cache_clear()
    with caplog.at_level(logging.DEBUG, "dgt"):
        data = load(str(path), settings=reading)
    assert "nodes.csv: leaving out column 'Label', since 'is_fraud' is the label" in caplog.text
    columns = {name: (kind, becomes) for name, kind, becomes, _ in described(data, reading)}
    assert columns["Label"] == ("ignore", "left out, since is_fraud is the label")
    settings = {**QUICK, "epochs": 1}
    recipe = NodeClassifier(**settings, label="is_fraud").fit(data).facts_.recipe or ()
    assert {c["column"]: c["kind"] for c in recipe} == {
        "Label": "ignore", "amount": "number", "country": "category",
    }  # fmt: skip
    caplog.clear()
    chosen = DataConfig(label="is_fraud", columns=("Label=category",))
    data = load(str(path), settings=chosen)
    columns = {name: kind for name, kind, *_ in described(data, chosen)}
    assert columns["Label"] == "category"
    assert "leaving out" not in caplog.text
    NodeClassifier(**settings, label="is_fraud", columns=["Label=category"]).fit(data)
    assert "column 'Label' alone predicts the label" in caplog.text


def test_a_run_that_was_trained_with_a_column_label_still_uses_it(tmp_path: Path) -> None:
    path = fraud(tmp_path / "graph", extra="label")
    chosen = DataConfig(label="is_fraud", columns=("label=category",))
    settings = {**QUICK, "epochs": 1, "label": "is_fraud"}
    model = NodeClassifier(**settings, columns=["label=category"])
    expected = model.fit(load(str(path), settings=chosen)).predict_proba()
    data = load(str(path), settings=DataConfig(label="is_fraud"))
    assert np.array_equal(model.predict_proba(data), expected)


def test_info_shows_what_becomes_of_each_column(tmp_path: Path, capsys) -> None:
    path = fraud(tmp_path / "graph")
    flags = ["--label", "is_fraud", "--columns", "amount=ignore"]
    assert main(["info", str(path), "--json", *flags]) == 0
    columns = {c["column"]: c for c in json.loads(capsys.readouterr().out)["columns"]}
    assert columns["is_fraud"]["becomes"] == "used as label"
    assert columns["country"]["kind"] == "category"
    assert "2 categories (IT, NO)" in columns["country"]["becomes"]
    assert columns["amount"]["kind"] == "ignore"
    assert main(["info", str(path), *flags]) == 0
    assert "category" in capsys.readouterr().out


def test_settings_for_reading_that_come_too_late_are_refused(tmp_path: Path, capsys) -> None:
    path = fraud(tmp_path / "graph")
    data = load(str(path))
    with pytest.raises(InputError, match=r"label='is_fraud' has no effect.*DataConfig\(label='is_"):
        NodeClassifier(label="is_fraud", **QUICK).fit(data)
    data = load(str(path), settings=DataConfig(label="is_fraud"))
    with pytest.raises(InputError, match="weight='amount' has no effect"):
        NodeClassifier(weight="amount", **QUICK).fit(data)
    classifier = NodeClassifier(label="is_fraud", columns=["amount=ignore"], **QUICK).fit(data)
    assert {c["column"]: c["kind"] for c in classifier.facts_.recipe or ()}["amount"] == "ignore"
    cora = load("cora")
    with pytest.raises(InputError, match="label='y' has no effect: it is not a graph of tables"):
        NodeClassifier(label="y", **QUICK).fit(cora)
    with pytest.raises(InputError, match="got a kind for 'w', but the graph has no table"):
        NodeClassifier(columns=["w=ignore"], **QUICK).fit(cora)

"""The order of columns and rows does not matter, neither in training nor in prediction."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from dgt import NodeClassifier
from dgt.cli import main
from dgt.data import load
from tests.small import QUICK, block_graph, flags, write_folder

N = 80
HEADER = ["id", "label", "age", "city", "since", "note", "flag", "score"]


def rows_and_edges(seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(N):
        c = i % 2
        rows.append(
            [
                f"n{i}",
                "" if i % 9 == 8 else "ab"[c],
                "" if i % 7 == 3 else f"{rng.normal(30 + 5 * c, 9):.2f}",
                str(rng.choice(["Oslo", "Rome", "Bonn"])),
                f"20{rng.integers(10, 24)}-0{rng.integers(1, 9)}-1{rng.integers(0, 9)}",
                " ".join(rng.choice(["good", "bad", "fine", "odd"], 4)),
                str(rng.choice(["yes", "no"])),
                f"{rng.normal():.3f}",
            ]
        )
    edges = [[f"n{a}", f"n{b}"] for a, b in rng.integers(0, N, (3 * N, 2)) if (a - b) % 2 == 0]
    return rows, edges


def write(folder: Path, rows: list[list[str]], edges: list[list[str]], order: list[int]) -> Path:
    folder.mkdir()
    for name, table in (
        ("nodes.csv", [[row[i] for i in order] for row in [HEADER, *rows]]),
        ("edges.csv", [["source", "target"], *edges]),
    ):
        with open(folder / name, "w", newline="") as file:
            csv.writer(file).writerows(table)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same graph twice; the second one has shuffled columns, rows and edges."""
    path = tmp_path_factory.mktemp("shuffled")
    rows, edges = rows_and_edges()
    first = write(path / "first", rows, edges, list(range(len(HEADER))))
    rng = np.random.default_rng(1)
    swapped = [[b, a] if i % 2 else [a, b] for i, (a, b) in enumerate(edges)]
    second = write(
        path / "second",
        [rows[i] for i in rng.permutation(N)],
        [swapped[i] for i in rng.permutation(len(edges))],
        rng.permutation(len(HEADER)).tolist(),
    )
    return first, second


def by_id(classifier: NodeClassifier, folder: Path) -> dict[str, list[float]]:
    data = load(str(folder))
    return dict(zip(data.node_ids, classifier.predict_proba(data).tolist(), strict=True))


@pytest.mark.parametrize("encoding", ["katz", "laplacian"])
def test_shuffled_tables_give_the_same_bits(folders: tuple[Path, Path], encoding: str) -> None:
    first, second = folders
    settings = {**QUICK, "epochs": 6, "encoding": encoding, "text_columns": 16}
    trained = [NodeClassifier(**settings).fit(load(str(folder))) for folder in folders]
    expected = by_id(trained[0], first)
    assert by_id(trained[0], second) == expected
    assert by_id(trained[1], first) == expected
    assert by_id(trained[1], second) == expected
    assert trained[0].facts_.recipe == trained[1].facts_.recipe
    assert trained[0].score() == trained[1].score()


def test_results_are_in_the_order_of_the_file(folders: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = folders
    classifier = NodeClassifier(**{**QUICK, "epochs": 3}).fit(load(str(first)))
    classifier.save(tmp_path / "model")
    classifier = NodeClassifier.load(tmp_path / "model")
    data = load(str(second))
    assert data.node_ids != sorted(data.node_ids)
    classifier.write_predictions(tmp_path / "p.csv", data)
    with open(tmp_path / "p.csv") as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == data.node_ids
    predicted = classifier.predict(data)
    assert [row["prediction"] for row in written] == ["ab"[c] for c in predicted.tolist()]
    # A mask of the user is in the order of the file, too.
    for node in (data.y >= 0).nonzero()[:5, 0]:
        mask = torch.zeros(N, dtype=torch.bool)
        mask[node] = True
        expected = float(predicted[node] == data.y[node])
        assert classifier.score(data, mask=mask, metric="accuracy") == expected


def test_prediction_needs_no_column_of_labels(tmp_path: Path) -> None:
    """Not even if the column has another name than label. Training does."""
    graph = write_folder(tmp_path / "colors", block_graph())
    nodes = graph / "nodes.csv"
    header, *rows = nodes.read_text().splitlines()
    at = header.split(",").index("label")
    nodes.write_text("\n".join([header.replace("label", "color"), *rows]) + "\n")
    train = ["train", str(graph), "--label=color", "--quiet", *flags(epochs=2)]
    assert main([*train, "--out", str(tmp_path / "run")]) == 0
    predict = ["predict", str(tmp_path / "run"), str(graph), "--out"]
    assert main([*predict, str(tmp_path / "before.csv")]) == 0
    cells = [line.split(",") for line in nodes.read_text().splitlines()]
    nodes.write_text("".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in cells))
    assert main([*predict, str(tmp_path / "after.csv")]) == 0
    assert (tmp_path / "after.csv").read_text() == (tmp_path / "before.csv").read_text()
    assert main([*train, "--out", str(tmp_path / "again")]) == 2

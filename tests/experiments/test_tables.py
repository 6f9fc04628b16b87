"""The tables other than Table 1: their setups, and small runs of each from end to end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from dgt.config import Config
from dgt.estimator import NodeClassifier
from dgt.experiments import TABLES, attention, efficiency, reproduce
from dgt.experiments.paper import ENCODINGS, FLOPS, INTERPOLATION, NODESORT, TABLE1
from dgt.experiments.record import Record
from dgt.experiments.runner import train
from dgt.experiments.table import Run
from dgt.experiments.table1 import found
from tests.small import QUICK, block_graph

FOUR = ("cora", "citeseer", "chameleon", "squirrel")


def changes(name: str) -> dict[tuple[str, str], dict]:
    """Returns the settings of each line that differ from those found for its data set and model."""
    lines = {}
    for setup in TABLES[name].setups():
        model = setup.config.model.model
        start = found(setup.dataset, model).to_dict()
        now = setup.config.to_dict()
        lines[setup.dataset, setup.variant] = {
            key: value
            for table, values in now.items()
            for key, value in values.items()
            if start[table].get(key) != value
        }
    return lines


def test_nodesort_changes_the_criteria() -> None:
    criteria = {
        "AR": ("absolute-random",),
        "AB": ("absolute-bfs",),
        "AM": ("absolute-bfs", "absolute-ppr", "absolute-similarity"),
        "RB": ("bfs",),
        "RP": ("ppr",),
        "RF": ("similarity",),
    }
    truth = {(d, name): {"criteria": c} for d in FOUR for name, c in criteria.items()}
    assert changes("nodesort") == truth | {(d, "RM"): {} for d in FOUR}
    assert set(NODESORT) == set(changes("nodesort"))


def test_encodings_changes_the_encoding() -> None:
    lines = changes("encodings")
    assert set(lines) == set(ENCODINGS)
    for (dataset, variant), changed in lines.items():
        model, encoding = variant.split("/")
        start = found(dataset, model).encoding.encoding
        assert changed == ({} if encoding == start else {"encoding": encoding})
    assert len(lines) == 4 * 2 * 4


def test_interpolation_changes_the_kernel() -> None:
    lines = changes("interpolation")
    kinds = {place: c for place, c in lines.items() if not place[1].startswith("epsilon")}
    assert kinds == {
        (d, k): {} if k == "rbf" else {"interpolation": k}
        for d in (*FOUR, "twitch-gamers")
        for k in ("bilinear", "rbf")
    }
    assert set(kinds) == set(INTERPOLATION)
    start = found("cora", "dgt").model.epsilon
    widths = {int(v.split()[1]): c for (d, v), c in lines.items() if (d, v) not in kinds}
    assert widths == {e: {} if e == start else {"epsilon": float(e)} for e in range(1, 9)}


def test_efficiency_and_attention_have_the_settings_found() -> None:
    lines = changes("efficiency")
    models = ("transformer", "graphormer", "gt-full", "gt-sparse", "dgt-light", "dgt")
    datasets = (*FOUR, "twitch-gamers", "ogbn-arxiv")
    assert lines == {(d, m): {} for d in datasets for m in models}
    assert set(FLOPS) <= set(lines)
    trained = {s.dataset for s in TABLES["efficiency"].setups() if s.trained}
    assert trained == set(FOUR)
    assert changes("attention") == {("chameleon", m): {} for m in ("graphormer", "dgt", "dgt-plus")}


def test_the_papers_figures_agree_with_its_table1() -> None:
    for dataset in FOUR:
        ours = TABLE1[dataset, "dgt"]
        assert NODESORT[dataset, "RM"] == ENCODINGS[dataset, "dgt/katz"] == ours
        assert INTERPOLATION[dataset, "rbf"] == ours
        assert NODESORT[dataset, "RB"] == TABLE1[dataset, "dgt-light"]
        assert ENCODINGS[dataset, "transformer/none"] == TABLE1[dataset, "transformer"]
        assert ENCODINGS[dataset, "transformer/laplacian"] == TABLE1[dataset, "gt-full"]


def test_flops_from_sizes_alone() -> None:
    """Against a formula, the paper, and the count on a real graph of the same size."""
    N, F, classes, C = 168_114, 7, 2, 64
    by_hand = 2 * N * N * C + 6 * N * C * C + N * F * C + N * C * classes
    config = Config.of("transformer")
    count = efficiency.from_sizes(config, efficiency.SIZES["twitch-gamers"])
    assert count == by_hand
    assert count / 1e9 == pytest.approx(FLOPS["twitch-gamers", "transformer"], abs=0.5)

    data = block_graph(nodes=200, features=20)
    edges = data.edge_index.size(1)
    sizes = efficiency.Sizes(200, edges, 20, 3)
    for model in efficiency.MODELS:
        config = Config.of(model).replace(
            encoding="none" if model == "transformer" else "laplacian", epochs=1
        )
        counted = NodeClassifier(config).fit(data).multiply_adds()
        assert efficiency.from_sizes(config, sizes) == counted


@pytest.mark.parametrize("dataset", efficiency.SIZES)
@pytest.mark.parametrize("model", ["dgt", "dgt-light"])
def test_presets_of_large_graphs_take_no_more_flops_than_the_paper(dataset, model) -> None:
    count = efficiency.from_sizes(found(dataset, model), efficiency.SIZES[dataset])
    assert count / 1e9 <= FLOPS[dataset, model]


@pytest.fixture
def graph() -> Data:
    """A small graph with ten splits."""
    data = block_graph()
    masks = torch.stack([(torch.arange(90) // 3 + r) % 3 == 0 for r in range(10)], dim=1)
    data.train_mask, data.val_mask = masks, masks.roll(3, dims=0)
    data.test_mask = masks.roll(6, dims=0)
    return data


@pytest.fixture
def tiny(graph: Data, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Trains in this process, on a small graph with quick settings, and lists the runs."""
    runs: list[Run] = []

    def share(work, tasks: list[Run], workers: int | None) -> Iterator[tuple[Run, Record]]:
        for run in tasks:
            runs.append(run)
            yield run, train(run)

    def quick(dataset: str, model: str) -> Config:
        return Config.of(model).replace(**QUICK | {"epochs": 4})

    monkeypatch.setattr("dgt.experiments.runner._load", lambda name: graph)
    monkeypatch.setattr("dgt.experiments.runner.share", share)
    for name in ("attention", "efficiency", "encodings", "interpolation", "nodesort"):
        monkeypatch.setattr(f"dgt.experiments.{name}.found", quick)
    # Each width compiles its own fused op; these two are already compiled for other tests.
    monkeypatch.setattr("dgt.experiments.interpolation.EPSILONS", (1, 4))
    for name in ("attention", "efficiency"):
        monkeypatch.setattr(f"dgt.experiments.{name}.load", lambda *_: graph)
    return runs


def rows(folder: Path, name: str) -> dict[str, dict]:
    content = json.loads((folder / f"{name}.json").read_text())
    return {row["model"]: row for row in content["rows"]}


@pytest.mark.parametrize(
    ("name", "lines", "runs"), [("nodesort", 7, 7), ("encodings", 8, 8), ("interpolation", 4, 3)]
)
def test_ablations(name: str, lines: int, runs: int, tiny: list[Run], tmp_path: Path) -> None:
    sheet = reproduce(TABLES[name], runs=1, datasets=["cora"], results=tmp_path)
    assert len(sheet.rows) == lines
    assert len(tiny) == runs  # epsilon 4 is the default
    assert all(row["mean"] is not None for row in rows(tmp_path, name).values())
    figures = sorted(path.suffix for path in tmp_path.iterdir() if path.suffix in (".png", ".pdf"))
    assert figures == ([".pdf", ".png"] if name == "interpolation" else [])


def test_attention(tiny: list[Run], graph: Data, tmp_path: Path) -> None:
    reproduce(TABLES["attention"], runs=2, results=tmp_path)
    assert len(tiny) == 6
    found = rows(tmp_path, "attention")
    for model in ("graphormer", "dgt", "dgt-plus"):
        config = next(run.config for run in tiny if run.config.model.model == model)
        shares, others = [], []
        for split in range(2):
            classifier = NodeClassifier(config.replace(split=split)).fit(graph)
            mask = graph.val_mask[:, split]
            shares.append(classifier.same_label_share(mask))
            others.append(classifier.same_label_share(mask, itself=False))
        assert found[model]["share"] == pytest.approx(sum(shares) / 2)
        assert found[model]["others"] == pytest.approx(sum(others) / 2)
        assert found[model]["query_keys"] <= 20
    assert found["dgt"]["query"] == found["graphormer"]["query"]
    for kind in ("png", "pdf"):
        assert (tmp_path / f"attention.{kind}").stat().st_size > 1000


def test_the_query_is_the_node_most_similar_to_the_papers() -> None:
    data = block_graph()
    data.val_mask = torch.arange(90) % 2 == 0
    node = attention.query_node(data)

    def unlike(n: int) -> int:
        near = torch.cat([data.edge_index[1][data.edge_index[0] == n],
                          data.edge_index[0][data.edge_index[1] == n]])  # fmt: skip
        others = int((data.y[near] != data.y[n]).sum())
        return abs(len(near) - 7) + abs(others - 6)

    assert node == min(range(0, 90, 2), key=lambda n: (unlike(n), n))


def test_efficiency(
    tiny: list[Run], graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dgt.experiments.efficiency.processes", Here)
    arguments = {"datasets": ["cora", "ogbn-arxiv"], "models": ["dgt", "gt-full"]}
    sheet = reproduce(TABLES["efficiency"], runs=2, results=tmp_path, **arguments)
    assert [(row["dataset"], row["model"], row["runs"]) for row in sheet.numbers] == [
        ("cora", "gt-full", 2),
        ("cora", "dgt", 2),
        ("ogbn-arxiv", "gt-full", 0),
        ("ogbn-arxiv", "dgt", 0),
    ]
    for row in sheet.numbers[:2]:
        run = next(run for run in tiny if run.config.model.model == row["model"])
        classifier = NodeClassifier(run.config).fit(graph)
        assert row["flops"] == classifier.multiply_adds()
        assert row["epoch_seconds"] > 0
        assert row["peak_bytes"] > 10_000_000
    assert all(row["flops"] > 1e9 for row in sheet.numbers[2:])


class Here:
    """A process pool that runs tasks in this process."""

    def __init__(self, count: int) -> None: ...

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work, *arguments) -> "Here":
        self.value = work(*arguments)
        return self

    def result(self) -> dict[str, float]:
        return self.value

    def shutdown(self) -> None: ...

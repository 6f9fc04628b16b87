"""The paper's table on efficiency: FLOPs, accuracy, and the time and memory of an epoch."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from dgt.config import Config
from dgt.config.documents import require
from dgt.data import load
from dgt.encodings.anchors import FEW_ANCHORS
from dgt.estimator import NodeClassifier
from dgt.experiments.accuracy import NOTHING, interval, over_runs
from dgt.experiments.marks import code_counts, code_marks, code_notes
from dgt.experiments.nodesort import DATASETS
from dgt.experiments.paper import FLOPS, TABLE1
from dgt.experiments.table import Line, Run, Setup, Table
from dgt.experiments.table1 import found
from dgt.models import build
from dgt.nn.flops import multiply_adds
from dgt.report.sheet import Sheet
from dgt.system.workers import processes

NAME = "efficiency"
MODELS = ("transformer", "graphormer", "gt-full", "gt-sparse", "dgt-light", "dgt")
EPOCHS = 5
TITLE = "Efficiency with the settings found for each graph and model"
NOTES = (
    "FLOPs: multiply-adds of one forward pass over the graph in G (10^9), with features counted as "
    "dense.",
    "Accuracy: mean with 95% confidence interval over runs on the published splits, in percent.",
    "Epoch: seconds per epoch (one training step and one validation) on one core, mean of "
    f"{EPOCHS} epochs. Memory: peak memory of the training process in GB, including PyTorch.",
    "FLOPs on twitch-gamers and ogbn-arxiv are computed from the sizes of the graphs, without "
    "training.",
)


class Sizes(NamedTuple):
    """Size of a graph."""

    nodes: int
    edges: int
    features: int
    classes: int


SIZES = {
    "twitch-gamers": Sizes(168_114, 6_797_557, 7, 2),
    "ogbn-arxiv": Sizes(169_343, 1_166_243, 128, 40),
}

MEASURED = {"flops": int, "epoch_seconds": float, "peak_bytes": float}


def setups() -> list[Setup]:
    return [
        Setup(dataset, model, found(dataset, model), trained=dataset not in SIZES)
        for dataset in (*DATASETS, *SIZES)
        for model in MODELS
    ]


@cache
def from_sizes(config: Config, sizes: Sizes) -> int:
    """Returns the multiply-adds of a model on a graph of a given size."""
    if "joined" in config.record.inputs:  # fake tensors cannot be sparse
        return _from_sizes(config, sizes)
    with FakeTensorMode():
        return _from_sizes(config, sizes)


def _from_sizes(config: Config, sizes: Sizes) -> int:
    N, encoding = sizes.nodes, config.encoding
    columns = {
        "katz": encoding.anchors or FEW_ANCHORS,
        "laplacian": encoding.laplacian_columns,
        "node2vec": encoding.node2vec_channels,
        "none": 0,
    }[str(encoding.encoding)]

    def like(name: str) -> Tensor | None:
        if name == "x":
            return torch.zeros(N, sizes.features)
        if name == "sequences":
            shape = (len(config.criteria), N, config.sequences.length)
            return torch.zeros(shape, dtype=torch.int32)
        if name == "encoding":
            return torch.zeros(N, columns) if columns else None
        if name == "laplacian":
            return torch.zeros(N, encoding.laplacian_columns)
        if name == "degrees":
            return torch.zeros(N, dtype=torch.int64)
        if name == "distances":
            return torch.zeros(N, N, dtype=torch.uint8)
        assert name == "joined", name
        # Both directions and self-loops. The count does not depend on which nodes are connected.
        stored = 2 * sizes.edges + N
        ends = torch.arange(N + 1) * stored // N
        sources = torch.zeros(stored, dtype=torch.int64)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
            return torch.sparse_csr_tensor(
                ends, sources, torch.ones(stored), (N, N), check_invariants=False
            )

    model = build(config, sizes.features, sizes.classes, columns)
    return multiply_adds(model, {name: like(name) for name in config.record.inputs})


def measure(run: Run, classifier: NodeClassifier) -> dict[str, Any]:
    """Returns the FLOPs, and time and memory measured in a separate process."""
    with processes(1) as pool:
        cost = pool.submit(epoch_cost, run.dataset, run.config).result()
        pool.shutdown()  # waits, so that the worker cleans up its temporary files
    return {"flops": classifier.multiply_adds(), **cost}


def epoch_cost(dataset: str, config: Config) -> dict[str, float]:
    """Returns the time per epoch and the peak memory of this process."""
    data = load(dataset, "published")
    NodeClassifier(config.replace(epochs=1)).fit(data)  # compiles the fused ops
    metrics = NodeClassifier(config.replace(epochs=EPOCHS, patience=EPOCHS)).fit(data).metrics_
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "epoch_seconds": metrics["seconds"] / metrics["epochs"],
        "peak_bytes": 1024 * int(peak.split()[1]),
    }


def lay_out(lines: list[Line]) -> Sheet:
    numbers = [_numbers(line) for line in lines]
    columns = ("data set", "model", "FLOPs", "paper", "accuracy", "paper", "epoch", "memory")
    rows = [_text(row, mark) for row, mark in zip(numbers, code_marks(numbers), strict=True)]
    return Sheet(TITLE, columns, rows, (*NOTES, *code_notes(numbers)), numbers)


def _numbers(line: Line) -> dict[str, Any]:
    dataset, model = place = line.setup.dataset, line.setup.variant
    measured: dict[str, Any] = next(
        (r.measures[NAME] for r in line.records if NAME in r.measures), {}
    )
    if measured:
        require(measured, MEASURED, f"recorded run of {model} on {dataset}: measures: {NAME}")
    flops = measured.get("flops")
    if not line.setup.trained:
        flops = from_sizes(line.setup.config, SIZES[dataset])
    test: dict[str, Any] = {"mean": None, "ci95": None, "runs": 0}
    if line.records:
        test = over_runs(line)
    figure = TABLE1.get(place)
    return {
        "dataset": dataset,
        "model": model,
        "flops": flops,
        "paper_flops": FLOPS[place] * 1e9 if place in FLOPS else None,
        "mean": test["mean"],
        "ci95": test["ci95"],
        "runs": test["runs"],
        "asked": line.asked,
        **code_counts(line),
        "paper": figure and figure.mean,
        "paper_ci95": figure and figure.ci95,
        "epoch_seconds": measured.get("epoch_seconds"),
        "peak_bytes": measured.get("peak_bytes"),
    }


def _digits(flops: float | None) -> str:
    return ".0f" if flops is not None and flops > 1e11 else ".2f"


def _text(row: dict[str, Any], mark: str) -> tuple[str, ...]:
    def number(name: str, unit: float, form: str) -> str:
        return NOTHING if row[name] is None else format(row[name] / unit, form)

    return (
        row["dataset"],
        row["model"],
        number("flops", 1e9, _digits(row["flops"])),
        number("paper_flops", 1e9, _digits(row["paper_flops"])),
        interval(row["mean"], row["ci95"]) + mark,
        interval(row["paper"], row["paper_ci95"]),
        number("epoch_seconds", 1, ".3f"),
        number("peak_bytes", 1e9, ".2f"),
    )


TABLE = Table(NAME, setups, lay_out, measure=measure, measured=1)

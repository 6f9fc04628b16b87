"""Time to accuracy: from the edges of a graph in memory to a trained model, preparation included.

DGT, DGT-light, dgt-plus and peers train on the same synthetic graphs, with the sizes of
``peers.py`` and the same split (48% training, 32% validation nodes). Our models run as in ``dgt
train``: with their defaults, which for dgt-plus follow from the graph, and DGT and dgt-plus also
with the settings in ``SETTINGS``, the same for all sizes. ``dgt-near`` trains in batches: its steps
are those of an epoch, and it is validated on the whole graph at once. Peers run on a
``torch.sparse`` CSR adjacency matrix, their fastest form in ``peers.py``, with Adam, a learning
rate of 0.01 and the default weight decay of ``dgt train``.
After every step the validation accuracy is computed, and training stops when it has not improved
for 50 steps, or at a limit of CPU seconds. The clock starts when the graph is in memory and
includes checks, node sequences and encoding, or the normalized adjacency matrix. All code is
compiled beforehand. Every case runs in its own process, whose peak memory is measured. CPU seconds
are those of all threads; on a busy machine, they vary less than seconds.

Each finished case is appended to ``OUT/end_to_end.jsonl`` and not repeated: after Ctrl-C or a
crash, the same command resumes. The results are written to ``OUT/end_to_end.md`` and
``OUT/end_to_end.png``.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

import end_to_end_summary as summary
from cases import Case, finish, parser_of
from dgt.config import Config
from dgt.data import load
from dgt.data.splits import random_split
from dgt.models import build
from dgt.training.batching import Whole
from dgt.training.loop import parameter_groups, update_average
from dgt.training.problem import Problem
from dgt.training.steps import evaluate, step
from measure import in_own_process, limit, memory, reset_peak
from models import FORMS, setup
from peers import SIZES, SMALL, WARM_UP

DEFAULT_SIZES = ("10k", "100k", "arxiv", "twitch", "reddit", "1M")
SETTINGS: dict[str, dict[str, Any]] = {
    "dgt": {},
    "dgt-light": {},
    "dgt-plus": {},
    "dgt-tuned": {
        "model": "dgt",
        "criteria": ("ppr",),
        "length": 32,
        "encoding": "none",
        "feature_layers": 1,
        "blocks": 2,
        "mlp_ratio": 0.25,
        "dropout": 0.5,
        "input_dropout": 0.0,
        "node_dropout": 0.0,
    },
    "dgt-near": {
        "model": "dgt-plus",
        "criteria": ("neighbors",),
        "labels": "hide",
        "length": 16,
        "gamma": 64.0,
        "epsilon": 16.0,
        "encoding": "none",
        "feature_layers": 1,
        "blocks": 2,
        "mlp_ratio": 0.25,
        "norm": "layer",
        "dropout": 0.2,
        "input_dropout": 0.0,
        "node_dropout": 0.0,
        "value_dropout": 0.0,
        "batch_size": 1024,
        "average": 0.5,
    },
}
"""Our models, with the settings that differ from their defaults."""
MODELS = (*SETTINGS, "gcn", "sage", "sgformer", "polynormer")
PATIENCE = 50
CPU = torch.device("cpu")


def main() -> None:
    parser = parser_of(__doc__, "end-to-end")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=DEFAULT_SIZES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--steps", type=int, default=1000, help="most steps")
    parser.add_argument(
        "--most-seconds", type=float, default=7200.0, help="limit of CPU seconds for a case"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    common = {"seed": arguments.seed, "threads": arguments.threads}
    sizes = sorted(arguments.sizes, key=[*DEFAULT_SIZES, *SIZES].index)
    asked = [
        {"size": size, "model": model, **common} for size in sizes for model in arguments.models
    ]

    def compile_for(missing: Sequence[Case]) -> None:
        for model in {case["model"] for case in missing} & set(SETTINGS):
            in_own_process(compile_sequences, model, arguments)

    rows = finish(asked, one, arguments, "end_to_end.jsonl", summary.said, compile_for)
    results = summary.summarize(rows)
    summary.write(arguments.out, rows, results)
    if arguments.json:
        print(json.dumps({"cases": rows, "checks": results}, indent=2))
    else:
        summary.show(rows, results)


def compile_sequences(model: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Compiles the methods of large graphs, in a process of its own: their memory must not count.
    Other processes read the compiled code from numba's cache."""
    with tempfile.TemporaryDirectory(dir=arguments.out) as folder:
        os.environ["DGT_CACHE"] = folder
        Problem.of(load(WARM_UP), config_of(model, seed=0)).prepare(CPU)
    return {}


def config_of(model: str, seed: int) -> Config:
    """Returns the settings of one of our models."""
    given = {"model": model, **SETTINGS[model]}
    config = Config.of(given.pop("model")).replace(**given)
    return config.replace(seed=seed, splits="random", device="cpu")


def one(case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    limit(arguments.threads, arguments.memory)
    with tempfile.TemporaryDirectory(dir=arguments.out) as folder:
        os.environ["DGT_CACHE"] = folder  # empty: nothing is prepared yet
        train(load(SMALL), case, 2, arguments.most_seconds)  # compiles everything else
        data = load(SIZES[case["size"]])
        reset_peak()
        return train(data, case, arguments.steps, arguments.most_seconds)


class Peer:
    """A peer that is ready to train.

    Args:
        data: The graph.
        case: The model and the seed.
        nodes: The training nodes, int64.
    """

    def __init__(self, data: Data, case: Case, nodes: Tensor) -> None:
        config = Config()
        name = case["model"]
        self.model, self.inputs = setup(name, FORMS[name][-1], data, config)
        self.y, self.nodes = data.y, nodes
        self.optimizer = optimizer_of(self.model, config)

    def step(self, number: int) -> None:
        """Takes a training step; ``number`` starts at 1."""
        self.model.train()
        self.optimizer.zero_grad()
        logits = self.model(**self.inputs)[self.nodes]
        F.cross_entropy(logits, self.y[self.nodes]).backward()
        self.optimizer.step()

    @property
    def weights(self) -> dict[str, Tensor]:
        """The weights that are validated."""
        return self.model.state_dict()

    @torch.no_grad()
    def logits(self, nodes: Tensor) -> Tensor:
        """Returns the logits of some nodes with :attr:`weights`."""
        self.model.eval()
        return self.model(**self.inputs)[nodes]


class Ours:
    """One of our models that is ready to train, as in ``dgt train``; like :class:`Peer`."""

    def __init__(self, data: Data, case: Case, nodes: Tensor) -> None:
        problem = Problem.of(data, config_of(case["model"], case["seed"]))
        self.config, self.task = problem.config, problem.task()
        self.steps = problem.prepare(CPU)
        self.y, self.nodes = problem.data.y, nodes
        sizes = data.num_features, self.task.out_channels, problem.facts.encoding_channels
        torch.manual_seed(case["seed"])  # whatever the preparation has drawn
        self.model = build(self.config, *sizes)
        start_from = getattr(self.model, "start_from", None)
        if start_from is not None:
            start_from(self.task.constant(self.y[nodes]))
        self.optimizer = optimizer_of(self.model, self.config)
        self.average = {name: weight.clone() for name, weight in self.model.state_dict().items()}

    def step(self, number: int) -> None:
        """Takes a training step, or the steps of an epoch in batches; ``number`` starts at 1."""
        self.model.train()
        batches = list(self.steps.batches(self.nodes))
        kept = self.config.train.average ** (1 / len(batches))
        for taken, batch in enumerate(batches, start=(number - 1) * len(batches) + 1):
            self.optimizer.zero_grad()
            step(self.model, self.steps, self.task, batch, self.y)
            self.optimizer.step()
            if kept:
                update_average(self.average, self.model, kept, taken)

    @property
    def weights(self) -> dict[str, Tensor]:
        return self.average if self.config.train.average else self.model.state_dict()

    def logits(self, nodes: Tensor) -> Tensor:
        """Returns the logits of some nodes whose labels are not an input, with :attr:`weights`."""
        steps = Whole(self.steps.given)
        return evaluate(self.model, self.weights, steps, self.task, nodes, self.y)[1]


def optimizer_of(model: nn.Module, config: Config) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameter_groups(model, config.train), lr=config.train.lr, fused=True)


def train(data: Data, case: Case, most: int, most_seconds: float) -> dict[str, Any]:
    """Prepares and trains a model until its validation accuracy stops improving.

    Returns:
        ``prepare_seconds``; ``curve``, for each step the seconds and CPU seconds since the start
        and the validation accuracy; ``test_accuracy``, with the weights of the best step; and
        ``peak_bytes``. ``stopped`` says why training ended.
    """
    masks = random_split(data.y, case["seed"])
    learning, val, test = (mask.nonzero().squeeze(1) for mask in masks)

    def accuracy(nodes: Tensor) -> float:
        return float((training.logits(nodes).argmax(dim=1) == data.y[nodes]).double().mean())

    started, started_cpu = time.perf_counter(), time.process_time()
    torch.manual_seed(case["seed"])
    training = (Ours if case["model"] in SETTINGS else Peer)(data, case, learning)
    prepared, prepared_cpu = time.perf_counter() - started, time.process_time() - started_cpu

    torch.manual_seed(case["seed"])  # as in dgt train
    curve: list[tuple[float, float, float]] = []
    best, best_step, weights, stopped = -1.0, 0, {}, "steps"
    for number in range(1, most + 1):
        training.step(number)
        value = accuracy(val)
        now, cpu = time.perf_counter() - started, time.process_time() - started_cpu
        curve.append((round(now, 3), round(cpu, 3), value))
        if value > best:
            best, best_step = value, number
            weights = {name: weight.clone() for name, weight in training.weights.items()}
        if number - best_step >= PATIENCE:
            stopped = "patience"
            break
        if cpu > most_seconds:
            stopped = "time"
            break
    peak = memory("VmHWM")
    for name, weight in training.weights.items():
        weight.copy_(weights[name])
    return {
        "nodes": data.num_nodes,
        "edges": data.edge_index.size(1) // 2,
        "prepare_seconds": prepared,
        "prepare_cpu_seconds": prepared_cpu,
        "curve": curve,
        "stopped": stopped,
        "test_accuracy": accuracy(test),
        "peak_bytes": peak,
    }


if __name__ == "__main__":
    main()

"""dgt-plus compared with DGT: the attention operators at equal shapes, and a training step.

The default size is that of ogbn-arxiv. Sequences hold random nodes, the hardest case for the
caches, so that nothing has to be prepared. A step is a forward pass for the training nodes, 54% of
all, a backward pass and Adam, with the default settings of each model. Both run in turn in one
process, and the ratio is the median over the rounds; times are CPU seconds of all threads. The
memory is the peak of a process that takes steps of one model, with the inputs.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dgt.config import Config
from dgt.models import build
from dgt.nn.record import Sizes
from dgt.ops.deformable_attention import Kernel, deformable_attention
from dgt.ops.scored_attention import scored_attention
from dgt.ops.sparse import csr
from dgt.training.loop import parameter_groups
from dgt.training.steps import step, steps_for
from dgt.training.task import Classification
from measure import in_own_process, measure

FEATURES, CLASSES, ANCHORS, STORED = 128, 40, 128, 16
TRAIN = 0.54  # share of the training nodes
BARS = {"operator": 1.3, "step": 1.5, "memory": 1.3}
CPU = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plus", nargs="*", default=[], metavar="NAME=VALUE",
                        help="settings of dgt-plus, such as length=16")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    results = {
        "operator": in_own_process(operators, arguments),
        "step": in_own_process(training, arguments),
        "memory": peaks(arguments),
    }
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), **results}, indent=2))
        return
    table = Table("", "dgt", "dgt-plus", "ratio", "bar")
    for name, row in results.items():
        figures = (f"{row[each]:,.2f}" for each in ("dgt", "dgt-plus", "ratio"))
        table.add_row(name, *figures, f"{BARS[name]}")
    Console().print(table)


def config_of(model: str, arguments: argparse.Namespace) -> Config:
    """Returns the defaults of a model for a graph of this size, directed as ogbn-arxiv is."""
    config = Config.of(model)
    rule, criteria = config.record.rule, config.record.directed_criteria
    if rule is None:
        return config
    N = arguments.nodes
    sizes = Sizes(N, int(TRAIN * N), N // 2, FEATURES, CLASSES, directed=True)
    config, flat = config.by_rule(rule(sizes)).replace(criteria=criteria), config.flat()
    given = dict(each.split("=") for each in arguments.plus)
    return config.replace(**{name: type(flat[name])(value) for name, value in given.items()})


def alternate(first: Callable[[], Any], second: Callable[[], Any], rounds: int) -> dict[str, Any]:
    """Returns the least CPU seconds of both, and the median of the ratios of adjacent rounds."""
    seconds: list[list[float]] = []
    for _ in range(rounds + 1):
        row = []
        for work in (first, second):
            start = time.process_time()
            work()
            row.append(time.process_time() - start)
        seconds.append(row)
    kept = seconds[1:]  # the first round compiles
    dgt, plus = (min(each) for each in zip(*kept, strict=True))
    return {"dgt": dgt, "dgt-plus": plus, "ratio": statistics.median(b / a for a, b in kept)}


def operators(arguments: argparse.Namespace) -> dict[str, Any]:
    """The forward and backward pass of both operators, at the shapes of DGT's defaults."""
    torch.set_num_threads(arguments.threads)
    generator = torch.Generator().manual_seed(0)
    model, N, T, L = Config.of("dgt").model, arguments.nodes, 3, Config.of("dgt").sequences.length
    M, K, D = model.heads, model.keys, model.hidden_channels // model.heads

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    values, upstream = random(N, T, M, D).requires_grad_(), random(N, T, M, D)
    sequences, closeness = own_first(N, T, L, generator), -random(T, N, L).abs()
    spread = ((torch.arange(M * K) + 0.5) / (M * K)).view(K, M).T
    query = 0.1 * random(N, 2, T, M, K)
    query[:, 0] += torch.logit(spread)
    query.requires_grad_()
    probe = (0.1 * random(N, T, M, D + 1)).requires_grad_()

    def paper() -> None:
        out = deformable_attention(values, sequences, query, Kernel())
        torch.autograd.grad(out, [values, query], upstream)

    def scored() -> None:
        out = scored_attention(values, sequences, closeness, query, probe, Kernel())
        torch.autograd.grad(out, [values, query, probe], upstream)

    return alternate(paper, scored, arguments.rounds)


def training(arguments: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(arguments.threads)
    return alternate(*(work(m, arguments) for m in ("dgt", "dgt-plus")), arguments.rounds)


def peaks(arguments: argparse.Namespace) -> dict[str, Any]:
    """The peak memory of a process that takes steps of one model, in MB."""
    found = {m: in_own_process(peak, m, arguments)["megabytes"] for m in ("dgt", "dgt-plus")}
    return {**found, "ratio": found["dgt-plus"] / found["dgt"]}


def peak(model: str, arguments: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(arguments.threads)
    one = work(model, arguments)
    return {"megabytes": measure(one, 1, arguments.threads)["peak_bytes"] / 1e6}


def work(name: str, arguments: argparse.Namespace) -> Callable[[], Any]:
    """Returns a function that takes one training step."""
    config, N = config_of(name, arguments), arguments.nodes
    generator = torch.Generator().manual_seed(0)
    T, L = len(config.criteria), config.sequences.length
    y = torch.randint(CLASSES, (N,), generator=generator)
    nodes = torch.randperm(N, generator=generator)[: int(TRAIN * N)].sort().values
    inputs: dict[str, Any] = {
        "x": torch.randn(N, FEATURES, generator=generator),
        "sequences": own_first(N, T, L, generator),
    }
    if name == "dgt":
        columns = torch.randint(ANCHORS, (STORED * N,), generator=generator)
        rows = torch.arange(0, STORED * N + 1, STORED)
        inputs["encoding"] = csr(rows, columns, torch.rand(STORED * N), ANCHORS)
    else:
        inputs["encoding"] = torch.rand(N, 3, generator=generator)
        inputs["closeness"] = -torch.rand(T, N, L, generator=generator)
        labels = torch.zeros(N, CLASSES + 1)
        labels[nodes, y[nodes]] = labels[nodes, -1] = 1
        inputs["labels"] = labels
    torch.manual_seed(0)
    model = build(config, FEATURES, CLASSES, inputs["encoding"].size(1)).train()
    steps = steps_for(config, inputs, CPU)
    optimizer = torch.optim.Adam(parameter_groups(model, config.train), fused=True)
    task = Classification(CLASSES)

    def one() -> None:
        (batch,) = steps.batches(nodes)
        optimizer.zero_grad()
        step(model, steps, task, batch, y)
        optimizer.step()

    return one


def own_first(N: int, T: int, L: int, generator: torch.Generator) -> Tensor:
    sequences = torch.randint(N, (T, N, L), generator=generator, dtype=torch.int32)
    sequences[..., 0] = torch.arange(N)
    return sequences


if __name__ == "__main__":
    main()

"""One training step of DGT and DGT-light, compared with PyG's GCN and SGFormer.

The default graph is a power-law graph with the size of ogbn-arxiv. A step is a forward pass over
the whole graph, cross-entropy on all nodes, a backward pass and Adam, with dropout 0.5. DGT has its
default settings. GCN has two layers with 64 channels and caches its normalized edges; it is also
measured on a ``torch.sparse`` adjacency matrix. Each model runs in its own process; memory is the
peak of the process, including graph and inputs.
"""

import argparse
import json
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, SGFormer
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from dgt.config import Config, ModelConfig
from dgt.data.synthetic import Recipe, synthetic
from dgt.nn import build
from dgt.prepare import prepare
from measure import in_own_process, measure

MODELS = ("gcn", "gcn-csr", "sgformer", "dgt", "dgt-light")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--edges", type=int, default=1_166_243, help="undirected edges")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=40)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()

    in_own_process(prepare_sequences, arguments)  # not counted for any model
    results = {name: in_own_process(one, name, arguments) for name in arguments.models}
    if arguments.json:
        settings = vars(arguments)
        print(json.dumps({"settings": settings, "results": results, **ratios(results)}, indent=2))
    else:
        show(results)


def graph(arguments: argparse.Namespace) -> Data:
    sizes = {name: getattr(arguments, name) for name in ("nodes", "edges", "features", "classes")}
    return synthetic(Recipe(**sizes))


def prepare_sequences(arguments: argparse.Namespace) -> dict[str, Any]:
    """Writes the node sequences to the cache, from which the processes of the models read them."""
    torch.set_num_threads(arguments.threads)
    prepare(graph(arguments), Config.of("dgt"), progress=True)
    return {}


def one(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    data = graph(arguments)
    model, inputs = setup(name, data, arguments)
    y = data.y
    del data
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(**inputs), y).backward()
        optimizer.step()

    return measure(step, arguments.rounds, arguments.threads)


def setup(name: str, data: Data, arguments: argparse.Namespace) -> tuple[nn.Module, dict[str, Any]]:
    """Returns the model and its arguments by name."""
    sizes = (arguments.features, 64, arguments.classes)
    if name in ("gcn", "gcn-csr"):
        csr = name == "gcn-csr"
        model = GCN(sizes[0], 64, 2, sizes[2], dropout=0.5, cached=not csr, normalize=not csr)
        edges = data.edge_index
        if csr:
            edges, weights = gcn_norm(edges, num_nodes=arguments.nodes)
            edges = to_torch_csr_tensor(edges, weights, size=(arguments.nodes, arguments.nodes))
        return model, {"x": data.x, "edge_index": edges}
    if name == "sgformer":
        inputs = {"x": data.x, "edge_index": data.edge_index}
        return SGFormer(*sizes), {**inputs, "batch": torch.zeros(arguments.nodes, dtype=torch.long)}
    config = Config(model=ModelConfig(model=name))  # type: ignore[arg-type]
    inputs = prepare(data, config)
    encoding = inputs["encoding"]
    assert encoding is not None
    return build(config, sizes[0], sizes[2], encoding.size(1)), inputs


def ratios(results: dict[str, Any]) -> dict[str, float]:
    """Returns the time and memory of DGT and DGT-light as shares of each peer's."""
    found = {}
    for peer in ("gcn", "gcn-csr", "sgformer"):
        for name in ("dgt", "dgt-light"):
            if peer in results and name in results:
                own, other = results[name], results[peer]
                found[f"{name}_time_to_{peer}"] = own["seconds"] / other["seconds"]
                found[f"{name}_memory_to_{peer}"] = own["peak_bytes"] / other["peak_bytes"]
    return found


def show(results: dict[str, Any]) -> None:
    table = Table("model", "seconds per step", "peak memory")
    for name, row in results.items():
        table.add_row(name, f"{row['seconds']:.2f}", f"{row['peak_bytes'] / 2**20:,.0f} MiB")
    console = Console()
    console.print(table)
    for name, value in ratios(results).items():
        console.print(f"{name}: {value:.2f}")


if __name__ == "__main__":
    main()

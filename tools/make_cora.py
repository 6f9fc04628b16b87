"""Builds src/dgt/data/cora.npz from the two Parquet files in the wheel of `graphdatascience`.

pip download --no-deps graphdatascience==2.2
unzip graphdatascience-*.whl 'graphdatascience/resources/cora/*'
python tools/make_cora.py graphdatascience/resources/cora src/dgt/data/cora.npz
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from torch_geometric.data import Data

from dgt.data.files import info, normalize, write_npz

# Names of the classes 0, 1, ... in the column `subject`.
CLASSES = [
    "Neural_Networks",
    "Rule_Learning",
    "Reinforcement_Learning",
    "Probabilistic_Methods",
    "Theory",
    "Genetic_Algorithms",
    "Case_Based",
]

source, target = map(Path, sys.argv[1:])
nodes = pq.read_table(source / "cora_nodes.parquet.gzip")
links = pq.read_table(source / "cora_rels.parquet.gzip")

ids = nodes["nodeId"].to_numpy()
ends = np.stack([links["sourceNodeId"].to_numpy(), links["targetNodeId"].to_numpy()])
order = np.argsort(ids)
edges = order[np.searchsorted(ids, ends, sorter=order)]
assert (ids[edges] == ends).all()

data = normalize(
    Data(
        x=torch.tensor(nodes["features"].to_pylist(), dtype=torch.float32),
        y=torch.tensor(nodes["subject"].to_pylist()),
        edge_index=torch.from_numpy(edges),
        class_names=CLASSES,
        name="cora",
    )
)
write_npz(target, data)
print(info(data))

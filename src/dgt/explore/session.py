"""A finished run, opened with its graph."""

from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from dgt.data import load
from dgt.data.matrices import adjacency
from dgt.data.splits import PARTS, choose
from dgt.errors import InputError
from dgt.estimator import load_estimator
from dgt.inspection import Inspection, require_classes
from dgt.models import build
from dgt.nn import DGT, DGTPlus
from dgt.nn.ensemble import members_of
from dgt.runs.folder import CONFIG, read_settings
from dgt.runs.kept import find_kept, read_kept
from dgt.storage.tensors import require_like
from dgt.system.notes import note_once

KEPT_MODELS = 16  # models of other epochs in memory
NO_PART = len(PARTS)


class Session:
    """A run and its graph. What several views need is computed once.

    Args:
        run: Folder of the run.
        graph: Name or path of the graph (default: the one in the run's settings).
    """

    def __init__(self, run: Path, graph: str | None = None) -> None:
        settings = read_settings(run)
        name = settings.graph if graph is None else graph
        if name is None:
            raise InputError(f"{run}: {CONFIG} does not name a graph; pass it with --graph")
        self.run = run
        self.graph = name
        # Single nodes are computed in a few milliseconds, faster than a GPU could be started.
        self.classifier = load_estimator(run, device="cpu")
        require_classes(self.classifier.facts_, "be explored")
        members = members_of(self.classifier.model_)
        if len(members) > 1:
            note_once(
                f"{run}: holds {len(members)} networks; what follows is of the first one, whose "
                "predictions may differ from those of all together"
            )
        data = load(name, settings.config.train.splits, settings.config.data)
        self.inside: Inspection = self.classifier.inspect(data).of_first_member()
        self.num_nodes: int = self.inside.data.num_nodes
        self.model_at = lru_cache(KEPT_MODELS)(self._model_at)

    @property
    def config(self) -> Any:
        return self.inside.config

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """Symmetric, without self-loops. Shape: ``(N, N)``."""
        return adjacency(self.inside.data.edge_index, self.num_nodes)

    @cached_property
    def degrees(self) -> np.ndarray:
        return np.diff(self.adjacency.indptr)

    @cached_property
    def anchors(self) -> Tensor | None:
        """The nodes that the encoding measures distances to. Shape: ``(N',)``."""
        return self.inside.facts.find_anchors(self.inside.data)

    @cached_property
    def labels(self) -> np.ndarray:
        """The class of each node; -1: no label."""
        return self.inside.y.numpy()

    @cached_property
    def predictions(self) -> np.ndarray:
        return self.inside.predictions.numpy()

    @cached_property
    def probabilities(self) -> np.ndarray:
        """The probability of each class. Shape: ``(N, C)``."""
        return self.inside.probabilities.numpy()

    @cached_property
    def confidence(self) -> np.ndarray:
        """The probability of the predicted class. Shape: ``(N,)``."""
        return np.take_along_axis(self.probabilities, self.predictions[:, None], 1)[:, 0]

    @cached_property
    def parts(self) -> np.ndarray:
        """The part of the split that each node is in, as an index of PARTS, or NO_PART."""
        train = self.config.train
        data, _ = choose(self.inside.data, train.splits, train.split_index)
        parts = np.full(self.num_nodes, NO_PART, dtype=np.int8)
        for i, part in enumerate(PARTS):
            parts[data[f"{part}_mask"].numpy()] = i
        return parts

    @cached_property
    def feature_names(self) -> list[str]:
        names = self.inside.data.get("feature_names")
        count = self.inside.data.x.size(1)
        return [str(n) for n in names] if names is not None else [str(i) for i in range(count)]

    @cached_property
    def _index(self) -> dict[str, int] | None:
        ids = self.inside.ids
        return None if isinstance(ids, range) else {str(name): i for i, name in enumerate(ids)}

    def find(self, name: str) -> int | None:
        """Returns the node with an id, if there is one."""
        if self._index is not None:
            return self._index.get(name)
        plain = name.isascii() and name.isdigit() and str(int(name)) == name
        return int(name) if plain and int(name) < self.num_nodes else None

    def inputs_of(self, node: int) -> dict[str, Any]:
        """Returns the model's inputs for a look at a node, whose own label is hidden."""
        return self.inside.steps.inputs_of(torch.tensor([node]))

    @property
    def attention(self) -> str:
        """How the model attends to nodes: along ``sequences``, in ``full``, or ``none``."""
        if isinstance(self.inside.model, DGT | DGTPlus):
            return "sequences"
        return "full" if self.inside.has_attention else "none"

    @property
    def blocks(self) -> int:
        """The number of blocks whose attention can be shown."""
        model = self.inside.model
        return len(model.blocks) if isinstance(model, DGT | DGTPlus) else 1

    @cached_property
    def epochs(self) -> list[int]:
        """The epochs whose weights the run has kept."""
        return list(find_kept(self.run))

    def _model_at(self, epoch: int | None) -> nn.Module:
        """Returns the model with the weights of a kept epoch (default: the trained model)."""
        if epoch is None:
            return self.inside.model
        path = find_kept(self.run).get(epoch)
        if path is None:
            known = ", ".join(map(str, self.epochs)) or "none"
            raise InputError(f"epoch: got {epoch}, expected one of the kept epochs: {known}")
        facts, weights = self.inside.facts, read_kept(path)
        with torch.random.fork_rng(devices=()):
            columns = facts.encoding_sizes(self.config.record.several_encodings)
            model = build(self.config, facts.in_channels, len(facts.class_names), columns)
        require_like(path, weights, model.state_dict())
        model.load_state_dict(weights)
        return model.eval()

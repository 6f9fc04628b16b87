"""NodeClassifier: the library in one class."""

import logging
import platform
from pathlib import Path
from typing import Any

import numpy
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.data import Data

import dgt
from dgt import budget, distributed, folder
from dgt.checkpoint import fingerprint
from dgt.config import Config
from dgt.encodings import choose_anchors
from dgt.errors import InputError
from dgt.evaluate import accuracy
from dgt.explain import Explanation, explain, key_weights, same_label_share
from dgt.flops import multiply_adds
from dgt.io import normalise, write_predictions
from dgt.machine import trim
from dgt.modelfile import Facts, node_ids, read_model, write_model
from dgt.models import build, require_memory
from dgt.prepare import prepare, takes_anchors, takes_vectors
from dgt.splits import PARTS, choose
from dgt.steps import Batched, Chunked, Whole
from dgt.train import History, fit

log = logging.getLogger("dgt")

DEFAULT_MODEL = Config().model.model


class NodeClassifier:
    """Predicts the classes of a graph's nodes with a Deformable Graph Transformer, or
    another model.

    .. code-block:: python

        classifier = NodeClassifier(epochs=200).fit(data)
        print(classifier.score())

    Args:
        config: The settings (default: those of the model).
        **settings: Single settings by name, such as ``lr=0.005`` or ``model="gcn"``.

    Attributes:
        model_: The trained network.
        facts_: The classes, features and anchors that it was trained for.
        metrics_: Its accuracies, best epoch and more.
        history_: A row for each epoch of its training.
    """

    def __init__(self, config: Config | None = None, **settings: Any) -> None:
        model = settings.get("model", DEFAULT_MODEL)
        self.config = (config or Config.of(model)).replace(**settings)

    def fit(
        self,
        data: Data,
        *,
        out: Path | str | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: bool = False,
        graph: str | None = None,
    ) -> "NodeClassifier":
        """Trains on a graph.

        Args:
            data: Has ``x``, ``edge_index``, ``y`` (-1: no label) and, if it comes with splits,
                ``train_mask``, ``val_mask`` and ``test_mask`` of shape [N] or [N, splits].
            out: Folder for the run's files.
            resume: Continue the run in ``out``, if one was begun there.
            overwrite: Replace the run in ``out``, if there is one.
            progress: Show progress on stderr.
            graph: Name or path that the graph was loaded by, for the record in ``out``.
        """
        distributed.require_possible(self.config)
        named = isinstance(data, Data) and data.get("class_names") is not None
        train = self.config.train
        data = normalise(data)
        masks = data.get("train_mask")
        data, splits = choose(data, train.splits, train.split_index)
        split = train.split_index if splits != "given" else None
        if split is not None and splits == "published":
            split %= masks.size(1)
        require_memory(self.config, data.num_nodes)
        anchors = None
        if takes_anchors(self.config):
            count = self.config.encoding.anchors
            anchors = choose_anchors(data.edge_index, data.num_nodes, count)
        state = "new"
        if out is not None:
            out = path = Path(out)
            settings = folder.Settings(self.config, graph)
            state = distributed.by_first(lambda: folder.claim(path, settings, resume, overwrite))

        self._data = data
        self._steps = distributed.first_of_machine_first(
            lambda: self._prepare(data, anchors, progress)
        )
        columns = _columns(self._steps.given.get("encoding"))
        edges = fingerprint([data.edge_index]) if takes_vectors(self.config) else None
        if self.config.is_dgt and distributed.rank() == 0:
            self._warn_of_memory(int(data.train_mask.sum()), len(data.class_names))
        in_channels = data.x.size(1)
        if distributed.size() > 1:
            self._steps = distributed.Ranks(self._steps.given, train.chunk_size)
            # Its own rows are all that a process still needs.
            data.num_nodes, data.x, data.edge_index = data.num_nodes, None, None
        trim(from_now_on=isinstance(self._steps, Chunked | distributed.Ranks))
        if out is not None and state == "complete":
            return self._restore(out)
        names, ids = data.class_names, node_ids(data)
        self.facts_ = Facts(
            in_channels=in_channels,
            class_names=names,
            classes=list(range(len(names))) if named else [int(name) for name in names],
            feature_names=data.get("feature_names"),
            anchors=None if anchors is None else [ids[node] for node in anchors.tolist()],
            encoding_channels=columns,
            edges=edges,
        )
        self.model_ = _build(self.config, self.facts_)
        if distributed.rank() > 0:
            out = None  # the first process writes
        history = fit(
            self.model_,
            self._steps,
            data.y,
            data.train_mask,
            data.val_mask,
            train,
            out=out,
            resume=resume,
            progress=progress,
        )
        self.history_ = history.epochs
        logits = self._logits(self._steps)
        self.metrics_ = self._metrics(history, logits, graph or data.name, splits, split)
        if out is not None:
            self._finish(out, logits)
        return self

    def predict_proba(self, data: Data | None = None) -> Tensor:
        """The probability of each class for each node, shape [N, classes].

        Args:
            data: A graph with the features that the model was trained with and, unless it was
                trained without a positional encoding, with some of its nodes (default: the graph
                of :meth:`fit`).
        """
        _, steps = self._prepared(data)
        return self._logits(steps).softmax(dim=1)

    def predict(self, data: Data | None = None) -> Tensor:
        """The class of each node as a number, as in the ``y`` that :meth:`fit` was given."""
        _, steps = self._prepared(data)
        return torch.tensor(self.facts_.classes)[self._logits(steps).argmax(dim=1)]

    def score(self, data: Data | None = None, mask: str | Tensor = "test") -> float:
        """The accuracy.

        Args:
            data: A graph with labels (default: the graph of :meth:`fit`).
            mask: ``"train"``, ``"val"``, ``"test"``, ``"all"`` for all labelled nodes, or a
                boolean mask of shape [N].
        """
        graph, steps = self._prepared(data)
        y = self._y(graph)
        if isinstance(mask, str):
            if mask not in (*PARTS, "all"):
                raise InputError(f"mask: got {mask!r}, expected {', '.join(PARTS)} or all")
            if mask != "all" and data is not None:
                graph, _ = choose(graph, self.config.train.splits, self.config.train.split_index)
            mask = y >= 0 if mask == "all" else graph[f"{mask}_mask"]
        value = accuracy(self._logits(steps).argmax(dim=1), y, mask & (y >= 0))
        if value is None:
            raise InputError(f"{graph.name}: mask: there is no labelled node in it")
        return value

    def write_predictions(self, path: Path | str, data: Data | None = None) -> None:
        """Writes a row a node, with the columns ``id``, ``prediction`` and ``probability``.

        Args:
            path: A ``.csv`` or ``.parquet`` file.
            data: As in :meth:`predict_proba`.
        """
        graph, steps = self._prepared(data)
        self._write_predictions(path, graph, self._logits(steps))

    def _write_predictions(self, path: Path | str, graph: Data, logits: Tensor) -> None:
        probabilities, predictions = logits.softmax(dim=1).max(dim=1)
        names = [self.facts_.class_names[c] for c in predictions.tolist()]
        write_predictions(path, node_ids(graph), names, probabilities.tolist())

    def explain(self, node: int | str, top: int = 20, data: Data | None = None) -> Explanation:
        """The nodes that a node's prediction rests on most: those that it attends to in the last
        block, over all criteria and heads.

        Args:
            node: The node's own id.
            top: Number of nodes.
            data: As in :meth:`predict_proba`.
        """
        if top < 1:
            raise InputError(f"top: got {top}, expected at least 1")
        graph, steps = self._prepared(data)
        ids = node_ids(graph)
        # Whether ids are read as numbers or as text depends on the other ids in the file.
        query = next((n for n, name in enumerate(ids) if str(name) == str(node)), None)
        if query is None:
            raise InputError(f"{graph.name}: has no node {str(node)!r}")
        weights = self._key_weights(graph, steps, torch.tensor([query]))
        classes = self._logits(steps).argmax(dim=1).tolist()
        names = [self.facts_.class_names[c] for c in classes]
        return explain(weights[0], query, top, graph, ids, names)

    def same_label_share(
        self, mask: Tensor, data: Data | None = None, *, itself: bool = True
    ) -> float:
        """The mean, over the nodes of a mask, of the part of a node's attention that is on nodes
        with its label.

        Args:
            mask: Labelled nodes, bool [N].
            data: As in :meth:`predict_proba`.
            itself: Whether a node's attention on itself counts. If not, nodes that read nothing
                else are left out of the mean.
        """
        graph, steps = self._prepared(data)
        nodes = mask.nonzero().squeeze(1)
        weights = self._key_weights(graph, steps, nodes)
        return float(same_label_share(weights, nodes, graph.y, itself=itself).nanmean())

    def multiply_adds(self, data: Data | None = None) -> int:
        """The multiply-adds of one forward pass over a graph, the paper's FLOPs.

        Args:
            data: As in :meth:`predict_proba`.
        """
        return multiply_adds(self.model_, self._prepared(data)[1].given)

    def _key_weights(self, graph: Data, steps: Whole, nodes: Tensor) -> Tensor:
        attention: Any = getattr(self.model_.eval(), "attention", None)
        if attention is None:
            raise InputError(
                f"{self.config.model.model}: this model has no attention over nodes to explain it "
                "by; dgt, dgt-light and the transformers have"
            )
        heads = attention(**steps.given, nodes=nodes)
        return key_weights(heads, graph.num_nodes, nodes)

    def save(self, path: Path | str) -> None:
        """Writes ``config.toml`` and ``model.safetensors`` into a folder."""
        self._require_fitted()
        path = Path(path)
        if (path / folder.CONFIG).exists():
            folder.read_settings(path)  # refuses to replace a file that is not ours
        write_model(path / folder.MODEL, self.model_.state_dict(), self.facts_)
        folder.write_settings(path, folder.Settings(self.config))

    @classmethod
    def load(cls, path: Path | str) -> "NodeClassifier":
        """Reads what :meth:`save`, or a training run, has written into a folder."""
        path = Path(path)
        settings = folder.read_settings(path)
        if settings.runs > 1:
            raise InputError(
                f"{path}: holds {settings.runs} runs; choose one, as {path / 'run-00'}"
            )
        return cls(settings.config)._restore(path)

    def _restore(self, path: Path) -> "NodeClassifier":
        weights, self.facts_ = read_model(path / folder.MODEL)
        self.model_ = _build(self.config, self.facts_)
        try:
            self.model_.load_state_dict(weights)
        except RuntimeError:
            raise InputError(
                f"{path / folder.MODEL}: not the weights of the model in {folder.CONFIG}"
            ) from None
        self.model_.eval()
        if (path / folder.METRICS).is_file():
            self.metrics_ = folder.read_metrics(path)
        return self

    def _require_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError("this NodeClassifier is not fitted yet; call fit or load first")

    def _prepare(self, data: Data, anchors: Tensor | None, progress: bool = False) -> Whole:
        """The model's inputs, as the settings have them worked through."""
        inputs = prepare(data, self.config, anchors, progress=progress)
        settings = self.config.train
        if settings.batch_size is not None:
            return Batched(inputs, settings.batch_size, self.config.model.blocks)
        if settings.chunk_size is not None:
            return Chunked(inputs, settings.chunk_size)
        return Whole(inputs)

    def _warn_of_memory(self, queries: int, classes: int) -> None:
        x, sequences, encoding = self._steps.given.values()
        nodes = sequences.size(1)
        warning = budget.warning(
            self.config,
            nodes,
            queries,
            _stored(x) / nodes,
            0 if encoding is None else _stored(encoding) / nodes,
            classes,
            distributed.size(),
        )
        if warning is not None:
            log.warning(warning)

    def _prepared(self, data: Data | None) -> tuple[Data, Whole]:
        """A graph, or that of :meth:`fit`, checked against the model, and the model's inputs."""
        self._require_fitted()
        if data is not None:
            data = normalise(data)
            self.facts_.require_features(data)
            self.facts_.require_edges(data)
            require_memory(self.config, data.num_nodes)
            return data, self._prepare(data, self.facts_.find_anchors(data))
        if not hasattr(self, "_steps"):
            raise InputError("a loaded NodeClassifier has no graph of its own; pass one as data")
        return self._data, self._steps

    @torch.no_grad()
    def _logits(self, steps: Whole) -> Tensor:
        self.model_.eval()
        return steps.predict(self.model_)

    def _y(self, data: Data) -> Tensor:
        """The graph's labels as the model's classes, which may be numbered in another way."""
        known = {name: c for c, name in enumerate(self.facts_.class_names)}
        for name in data.class_names:
            if name not in known:
                raise InputError(f"{data.name}: class {name!r} was not in the training graph")
        table = torch.tensor([*(known[name] for name in data.class_names), -1])
        return table[data.y]  # the last entry is that of label -1

    def _metrics(
        self, history: History, logits: Tensor, graph: str, splits: str, split: int | None
    ) -> dict[str, Any]:
        data = self._data
        predictions = logits.argmax(dim=1)
        return {
            "graph": graph,
            "model": self.config.model.model,
            **{f"{p}_accuracy": accuracy(predictions, data.y, data[f"{p}_mask"]) for p in PARTS},
            "best_epoch": history.best_epoch,
            "epochs": len(history.epochs),
            "seconds": history.seconds,
            "seed": self.config.train.seed,
            "splits": splits,
            "split": split,
            "parameters": sum(p.numel() for p in self.model_.parameters()),
            "versions": {
                "dgt": dgt.__version__,
                "python": platform.python_version(),
                "torch": torch.__version__,
                "torch_geometric": torch_geometric.__version__,
                "numpy": numpy.__version__,
            },
        }

    def _finish(self, out: Path, logits: Tensor) -> None:
        """Writes a run's results; with its metrics, which come last, the run is complete."""
        write_model(out / folder.MODEL, self.model_.state_dict(), self.facts_)
        self._write_predictions(out / folder.PREDICTIONS, self._data, logits)
        folder.write_metrics(out, self.metrics_)
        (out / folder.CHECKPOINT).unlink(missing_ok=True)
        folder.remove_parts(out)


def _build(config: Config, facts: Facts) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.train.seed)
        columns = facts.encoding_channels
        if columns is None:
            columns = len(facts.anchors or [])
        return build(config, facts.in_channels, len(facts.class_names), columns)


def _columns(encoding: Tensor | None) -> int:
    return 0 if encoding is None else encoding.size(1)


def _stored(matrix: Tensor) -> int:
    """Number of values that a dense or sparse matrix holds."""
    return len(matrix.values()) if matrix.layout == torch.sparse_csr else matrix.numel()

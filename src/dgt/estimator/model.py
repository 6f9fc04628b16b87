"""Trains, evaluates and saves a model, whatever its task."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dgt.config import Config
from dgt.data.files import write_predictions
from dgt.data.splits import PARTS, choose, labeled_nodes, require_several
from dgt.errors import InputError
from dgt.estimator.parameters import Parameters
from dgt.inspection import Inspection
from dgt.models import build, require_memory, require_weights
from dgt.nn.ensemble import members_of, together
from dgt.nn.flops import multiply_adds
from dgt.prepare import carries_over, prepare, reads_labels
from dgt.runs.facts import Facts
from dgt.runs.features import with_features
from dgt.runs.files import Settings, read_metrics, read_settings
from dgt.runs.folder import RunFolder, State
from dgt.runs.modelfile import read_model
from dgt.storage.paths import as_path
from dgt.system.devices import device_of, seeded
from dgt.training import distributed
from dgt.training.batching import Whole
from dgt.training.loop import History
from dgt.training.members import fit_members, member_seeds
from dgt.training.problem import Problem, task_of
from dgt.training.results import named, of_run
from dgt.training.steps import require_logits, steps_for


class NodeModel(Parameters):
    """What :class:`NodeClassifier` and :class:`NodeRegressor` have in common.

    Args:
        config: The settings (default: those of the model).
        **settings: Settings by name. They take precedence over ``config``.
    """

    facts_: Facts
    config_: Config
    """The settings in use: those given, with what follows from the graph, such as criteria for each
    edge table."""

    def fit(
        self,
        data: Data,
        *,
        out: Path | str | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: bool = False,
        graph: str | None = None,
    ) -> Self:
        """Trains on a graph.

        Checks the graph, chooses its split, claims the folder, prepares the model's inputs, builds
        and trains the model, evaluates it and writes the results.

        Args:
            data: The graph, with ``x``, ``edge_index``, ``y`` (-1: no label) and optionally
                ``train_mask``, ``val_mask`` and ``test_mask`` of shape ``(N,)`` or ``(N, splits)``.
            out: Folder for the files of the run.
            resume: Continue the run in ``out``, if there is one.
            overwrite: Replace the run in ``out``, if there is one.
            progress: Show progress on stderr.
            graph: Name or path of the graph, for the files in ``out``.
        """
        if not isinstance(graph, str | None):
            raise InputError(f"graph: got {graph!r}, expected the name of the graph as text")
        problem = self._problem(data)
        if self._by_name.get("split") is not None:
            require_several(data, self.config.train.splits, "split")
        del data  # so that it can be freed
        with nullcontext() if out is None else RunFolder(out) as folder:
            state: State = "new"
            if folder is not None:
                settings = Settings(self.config_, graph)
                state = distributed.by_first(partial(folder.claim, settings, resume, overwrite))
            return self._fit(problem, folder, state, graph, progress)

    def _fit(
        self,
        problem: Problem,
        folder: RunFolder | None,
        state: State,
        graph: str | None,
        show: bool,
    ) -> Self:
        self._data, self._steps = problem.data, problem.prepare(self._device, show)
        if folder is not None and state == "complete":
            self._restore(folder).facts_.require_same(problem.facts, folder.path)
            return self
        self._start(problem)
        if distributed.rank() > 0:
            folder = None  # only rank 0 writes
        if folder is not None:
            folder.begin()
        resume = state == "begun"
        history, logits = self._train(problem, folder=folder, resume=resume, progress=show)
        self.metrics_ = of_run(problem, self._task, self.model_, history, logits, graph)
        if folder is not None:
            found = named(self._task, self.facts_, self._data, logits, own=True)
            folder.finish(self.model_.state_dict(), self.facts_, found, self.metrics_)
        return self

    def validate(self, data: Data, on_epoch: Callable[[int, float], None] | None = None) -> float:
        """Trains on a graph and returns the metric on the validation nodes, for searches. The
        labels of the test nodes are hidden first.

        Args:
            data: As in :meth:`fit`.
            on_epoch: Called after each epoch with its number and the best value of the metric so
                far. An error that it raises ends training without a result.
        """
        problem = self._problem(data)
        problem.hide_test_labels()
        self._data, self._steps = problem.data, problem.prepare(self._device)
        self._start(problem)
        _, logits = self._train(problem, on_epoch=on_epoch)
        (y, _, val), metric = problem.targets, self._task.metric
        return self._task.measure(logits[val], y[val], [metric])[metric]

    def _problem(self, data: Data) -> Problem:
        """Checks a graph and chooses its split, and the settings that follow from it."""
        self._device = device_of(self.config)
        problem = Problem.of(data, self.config)
        self.config_ = problem.config
        return problem

    def _start(self, problem: Problem) -> None:
        """Builds the model with its initial weights, and the task."""
        self._build(problem.facts)
        self._task = problem.task()
        y, train_mask, _ = problem.targets
        for member in members_of(self.model_):
            start_from = getattr(member, "start_from", None)
            if start_from is not None:
                start_from(self._task.constant(y[train_mask]))

    def _train(self, problem: Problem, **how: Any) -> tuple[History, Tensor]:
        """Trains, and chooses the threshold on the validation nodes. Returns the history and the
        logits of all nodes; further arguments as for :func:`dgt.training.loop.fit`."""
        y, train_mask, val_mask = problem.targets
        how |= {"y": y, "train_mask": train_mask, "val_mask": val_mask}
        history = fit_members(
            self.model_, self.config_.train, steps=self._steps, task=self._task, **how
        )
        self.history_ = history.epochs
        logits = self._logits(self._steps, self._data)
        problem.choose_threshold(self._task, logits)
        self.facts_ = problem.facts
        return history, logits

    def predict(self, data: Data | None = None) -> Tensor:
        """Returns the prediction for each node.

        Args:
            data: A graph with the features of the training graph (default: the graph of
                :meth:`fit`). With the Katz encoding, it must contain the training graph, with
                another encoding it must be the training graph, unless the encoding carries over.
        """
        logits = self.inspect(data).given_logits
        return self._task.predict(logits)

    def score(
        self, data: Data | None = None, mask: str | Tensor = "test", metric: str | None = None
    ) -> float:
        """Returns the value of a metric.

        Args:
            data: A graph with labels (default: the graph of :meth:`fit`).
            mask: ``"train"``, ``"val"``, ``"test"``, ``"all"`` for all labeled nodes, or a
                boolean mask of shape ``(N,)``.
            metric: Name of the metric (default: the one that selected the best epoch).
        """
        graph, steps = self._prepared(data)
        chosen = self._task.metric if metric is None else metric
        self.config_.replace(metric=chosen)  # raises if it is unknown
        self._task.require(chosen)
        y = self.facts_.labels(graph)
        if data is not None and isinstance(mask, str) and mask in PARTS:
            graph, _ = choose(graph, self.config_.train.splits, self.config_.train.split_index)
        nodes = labeled_nodes(graph, y, mask)
        return self._task.measure(self._logits(steps, graph)[nodes], y[nodes], [chosen])[chosen]

    def write_predictions(
        self, path: Path | str, data: Data | None = None, *, overwrite: bool = True
    ) -> None:
        """Writes one row per node with the columns ``id``, ``prediction``, ``probability``,
        ``split``, and ``probability:NAME`` for each class. For numbers, without probabilities.

        Args:
            path: A ``.csv`` or ``.parquet`` file.
            data: As in :meth:`predict`.
            overwrite: Replace an existing file, or raise an error.
        """
        graph, steps = self._prepared(data)
        found = named(self._task, self.facts_, graph, self._logits(steps, graph))
        write_predictions(path, found, overwrite)

    def inspect(self, data: Data | None = None) -> Inspection:
        """Opens the model on a graph for a look inside: logits, representations and attention.

        Args:
            data: As in :meth:`predict`.
        """
        graph, steps = self._prepared(data)
        return Inspection(self.config_, self.model_.eval(), self.facts_, self._task, graph, steps)

    def multiply_adds(self, data: Data | None = None) -> int:
        """Returns the multiply-adds of one forward pass over a graph, which the paper calls FLOPs.

        Args:
            data: As in :meth:`predict`.
        """
        _, steps = self._prepared(data)
        return multiply_adds(self.model_, steps.given)

    def save(self, path: Path | str) -> None:
        """Writes ``config.toml`` and ``model.safetensors`` into a folder."""
        self._require_fitted()
        RunFolder(path).save_model(self.model_.state_dict(), self.facts_, self.config_)

    @classmethod
    def load(cls, path: Path | str, device: str | None = None) -> Self:
        """Loads a model that was written by :meth:`save` or by a training run.

        Args:
            path: The folder.
            device: Device to predict on (default: ``device`` of the settings in the folder).
        """
        settings = read_settings(path := as_path(path, "path"))
        if settings.runs > 1:
            raise InputError(
                f"{path}: holds {settings.runs} runs; choose one, such as {path / 'run-00'}"
            )
        given = {} if device is None else {"device": device}
        model = cls(settings.config, **given)
        model.config_ = model.config
        return model._restore(RunFolder(path))

    def _build(self, facts: Facts) -> None:
        """Builds the model. Its weights are drawn on the CPU and thus equal on all devices."""
        self.facts_ = facts
        self._task = task_of(facts)
        sizes = self._sizes(facts)
        networks = []
        for seed in member_seeds(self.config_.train):
            with seeded(seed, torch.device("cpu")):
                networks.append(build(self.config_, *sizes).to(self._device))
        self.model_: nn.Module = together(networks)

    def _sizes(self, facts: Facts) -> tuple[int, int, int | tuple[int, ...]]:
        """Returns the numbers of features, of outputs and of columns of the encoding."""
        columns = facts.encoding_sizes(self.config_.record.several_encodings)
        return facts.in_channels, task_of(facts).out_channels, columns

    def _restore(self, folder: RunFolder) -> Self:
        self._device = device_of(self.config)
        weights, facts = read_model(folder.model)
        if (facts.known is not None) != reads_labels(self.config_):
            stored = "no labels" if facts.known is None else "labels"
            raise InputError(
                f"{folder.model}: holds {stored} of training nodes, which contradicts labels = "
                f"{self.config_.model.labels!r} in config.toml"
            )
        require_weights(folder.model, weights, self.config_, self._sizes(facts))
        self._build(facts)
        self.model_.load_state_dict(weights)
        self.model_.eval()
        if folder.is_complete():
            self.metrics_ = read_metrics(folder.path)
        return self

    def _require_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError(
                f"this {type(self).__name__} is not fitted yet; call fit or load first"
            )

    def _prepared(self, data: Data | None) -> tuple[Data, Whole]:
        """Returns a checked graph (default: that of :meth:`fit`) and the inputs of the model."""
        self._require_fitted()
        if data is not None:
            data = with_features(data, self.facts_, self.config_.data.directed)
            self.facts_.require_graph(data, carries_over(self.config_))
            require_memory(self.config_, data.num_nodes)
            anchors, known = self.facts_.find_anchors(data), self.facts_.known_columns(data)
            inputs = prepare(data, self.config_, anchors, known=known)
            self.facts_.require_columns(data, inputs.encoding_widths)
            return data, steps_for(self.config_, inputs, self._device)
        if hasattr(self, "_steps"):
            return self._data, self._steps
        name = type(self).__name__
        raise InputError(f"a loaded {name} has no graph of its own; pass one as data")

    @torch.no_grad()
    def _logits(self, steps: Whole, data: Data) -> Tensor:
        """Returns the logits of all nodes, on the CPU."""
        logits = steps.predict(self.model_.eval())
        require_logits(self.model_, logits, data.num_nodes, self._task.out_channels)
        return logits.cpu()

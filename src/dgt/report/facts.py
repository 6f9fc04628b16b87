"""Everything that a report shows about a run, collected from its folder and its model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import Config
from dgt.config.documents import parse_json, read_text, require
from dgt.data import load
from dgt.data.files import info
from dgt.data.matrices import adjacency
from dgt.data.splits import PARTS, choose
from dgt.errors import InputError
from dgt.estimator import load_estimator
from dgt.explain import Explanation, explain
from dgt.inspection import Inspection, require_classes
from dgt.nn import DGT, DGTPlus
from dgt.report import projection, surroundings
from dgt.report.attending import Attending, attending, sample
from dgt.report.keys import Keys, LeftOut, find_keys, leave_out
from dgt.report.measures import (
    Bin,
    ClassScore,
    ConfidenceBin,
    Outcome,
    by_class,
    by_group,
    calibration,
    confusion,
)
from dgt.runs.files import EPOCHS, Settings, read_metrics, read_settings
from dgt.runs.folder import Row

MISTAKES = 10
KEYS = 5  # of each mistake
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Mistake:
    """A test node with a confident but wrong prediction."""

    id: int | str
    label: str
    prediction: str
    probability: float
    explanation: Explanation | None
    """None if the model has no attention over nodes."""


@dataclass(frozen=True)
class MapPoint:
    """A node on the map of representations."""

    id: int | str
    label: int
    """Index of the class, -1 for none."""
    prediction: int
    probability: float
    part: str
    """train, val, test or none."""


@dataclass(frozen=True)
class Facts:
    """What a report shows about one folder, which holds one run or several."""

    path: Path
    graph: str
    config: Config
    metrics: dict[str, Any]
    """The content of ``metrics.json``."""
    sizes: dict[str, Any]
    """The size of the graph, and of each part of the split of the first run."""
    curves: list[list[Row]]
    """The epochs of each run."""
    class_names: list[str]
    classes: list[ClassScore]
    confusion: np.ndarray
    calibration: tuple[list[ConfidenceBin], float]
    groups: dict[str, list[Bin]]
    mistakes: list[Mistake]
    wrong: int
    """Number of test nodes of the first run that are predicted wrongly."""
    attending: Attending | None
    keys: Keys | None
    left_out: list[LeftOut]
    map: projection.Map
    points: list[MapPoint]
    notes: list[str]
    """What the reader should know before trusting the numbers."""

    @property
    def runs(self) -> int:
        """Number of runs in the folder."""
        return len(self.curves)

    @property
    def name(self) -> str:
        return self.path.resolve().name


def collect(
    path: Path, graph: str | None, method: projection.Method, most_points: int, device: str | None
) -> Facts:
    """Collects the facts about a run, or several runs in one folder.

    Args:
        path: Folder created by ``dgt train``.
        graph: The graph (default: the one that the run names).
        method: Method of the map.
        most_points: Maximum number of nodes on the map.
        device: Device to compute on (default: that of the run).
    """
    settings = read_settings(path)
    task = settings.config.train.task
    if task != "classification":
        raise InputError(f"{path}: the model predicts {task}; only classes can be reported")
    metrics = read_metrics(path, settings.runs)
    data = _load(path, graph, settings)
    several = [path / f"run-{r:02d}" for r in range(settings.runs)]
    folders = several if settings.runs > 1 else [path]
    outcomes: list[Outcome] = []
    pooled: Pooled = {}
    notes: list[str] = []
    A = adjacency(data.edge_index, data.num_nodes)
    first: Inspection | None = None
    if (members := settings.config.train.members) > 1:
        notes.append(
            f"The model is an ensemble of {members} networks. The curves and the attention by "
            "criterion and head are those of the first one, and keys are not shown."
        )
    for folder in folders:
        inside = _inspect(folder, data, device)
        notes += _differences(folder, inside, read_metrics(folder))
        outcomes.append(_outcome(inside))
        _pool(pooled, A, inside)
        first = first or inside
    assert first is not None
    names = first.facts.class_names
    queries = sample(first, _test(first))
    deformable = isinstance(first.model, DGT | DGTPlus)
    places = projection.project(first, method, most_points)
    return Facts(
        path=path,
        graph=str(metrics["graph"]),
        config=settings.config,
        metrics=metrics,
        sizes=info(first.data) | {p: int(first.data[f"{p}_mask"].sum()) for p in PARTS},
        curves=[_epochs(folder, metrics["metric"]) for folder in folders],
        class_names=names,
        classes=by_class(outcomes, len(names)),
        confusion=confusion(outcomes, len(names)),
        calibration=calibration(outcomes),
        groups={
            title: by_group(np.concatenate(right), np.concatenate(member), groups)
            for title, (groups, right, member) in pooled.items()
        },
        mistakes=_mistakes(first),
        wrong=int((~outcomes[0].correct).sum()),
        attending=attending(first.of_first_member(), A, queries) if first.has_attention else None,
        keys=find_keys(first, queries) if deformable else None,
        left_out=leave_out(first, _test(first)) if deformable else [],
        map=places,
        points=_points(first, places.nodes),
        notes=notes,
    )


def _load(path: Path, graph: str | None, settings: Settings) -> Data:
    name = settings.graph if graph is None else graph
    if name is None:
        raise InputError(f"{path}: config.toml does not name a graph; pass it with --graph")
    return load(name, settings.config.train.splits, settings.config.data)


def _inspect(folder: Path, data: Data, device: str | None) -> Inspection:
    model = load_estimator(folder, device)
    train = model.config.train
    inside = model.inspect(choose(data, train.splits, train.split_index)[0])
    require_classes(inside.facts, "be reported")
    return inside


def _test(inside: Inspection) -> np.ndarray:
    return inside.data.test_mask.nonzero().squeeze(1).numpy()


def _outcome(inside: Inspection) -> Outcome:
    nodes = _test(inside)
    confidence = _confidence(inside)[nodes]
    return Outcome(inside.y[nodes].numpy(), inside.predictions[nodes].numpy(), confidence.numpy())


def _confidence(inside: Inspection) -> Tensor:
    """Returns the probability of each predicted class, which a threshold may make the smaller."""
    return inside.probabilities.gather(1, inside.predictions[:, None]).squeeze(1)


def _differences(folder: Path, inside: Inspection, metrics: dict[str, Any]) -> list[str]:
    """Compares the accuracy of the model on the graph as it is now with that in its file."""
    notes = []
    for part in PARTS:
        nodes = inside.data[f"{part}_mask"]
        now = float((inside.predictions[nodes] == inside.y[nodes]).double().mean())
        then = metrics[part].get("accuracy")
        if then is not None and abs(now - then) > TOLERANCE:
            notes.append(
                f"{folder}: on its {part} nodes the model now has an accuracy of {now:.2%}, but "
                f"metrics.json says {then:.2%}. The graph or the machine is not the one that it "
                "was trained on, and the sections below need not agree with the metrics."
            )
    return notes


Pooled = dict[str, tuple[list[str], list[np.ndarray], list[np.ndarray]]]
"""The names of the groups, and for each run which test nodes are correct and their groups."""


def _pool(pooled: Pooled, A: Any, inside: Inspection) -> None:
    """Adds the test nodes of a run to the groups that accuracy is shown for."""
    nodes = _test(inside)
    right = (inside.predictions == inside.y).numpy()[nodes]
    for groups in (
        surroundings.by_degree(A),
        surroundings.by_homophily(A, inside.y.numpy()),
        surroundings.by_distance(A, inside.data.train_mask.numpy()),
    ):
        _, rights, members = pooled.setdefault(groups.title, (groups.names, [], []))
        rights.append(right)
        members.append(groups.member[nodes])


def _mistakes(inside: Inspection) -> list[Mistake]:
    """Returns the wrong predictions for test nodes with the highest probability."""
    nodes = inside.data.test_mask.nonzero().squeeze(1)
    wrong = nodes[inside.predictions[nodes] != inside.y[nodes]]
    confidence = _confidence(inside)
    order = confidence[wrong].argsort(descending=True, stable=True)[:MISTAKES]
    worst = wrong[order]
    names, found = inside.predicted_names, inside.facts.class_names
    weights = inside.weights(worst) if inside.has_attention and len(worst) else None
    return [
        Mistake(
            inside.ids[node],
            found[int(inside.y[node])],
            names[node],
            float(confidence[node]),
            None
            if weights is None
            else explain(weights[i], node, KEYS, inside.data, inside.ids, names),
        )
        for i, node in enumerate(worst.tolist())
    ]


def _points(inside: Inspection, nodes: np.ndarray) -> list[MapPoint]:
    y, predictions = inside.y[nodes].tolist(), inside.predictions[nodes].tolist()
    confidence = _confidence(inside)[nodes].tolist()
    masks = {part: inside.data[f"{part}_mask"].numpy() for part in PARTS}
    return [
        MapPoint(
            inside.ids[node],
            y[i],
            predictions[i],
            confidence[i],
            next((part for part in PARTS if masks[part][node]), "none"),
        )
        for i, node in enumerate(nodes.tolist())
    ]


def _epochs(folder: Path, metric: str) -> list[Row]:
    path = folder / EPOCHS
    columns = ("train_loss", "val_loss", f"train_{metric}", f"val_{metric}")
    rows = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        row = parse_json(line, f"{path}: line {number}")
        require(row, {"epoch": int} | dict.fromkeys(columns, float), f"{path}: line {number}")
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: is empty, expected a line for each epoch")
    return rows

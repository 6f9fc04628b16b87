"""The quality of a model's predictions by split, class and group of nodes: ``dgt evaluate``."""

import csv
import io
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.recipe.table import cells, has_table
from dgt.data.splits import PARTS
from dgt.errors import InputError
from dgt.evaluate import METRICS
from dgt.inspection import Inspection
from dgt.report.measures import Outcome, by_class, calibration, confusion
from dgt.runs.identity import node_ids
from dgt.storage.files import write_text

ALL = "all"
"""The name of the labeled nodes of a graph that was not trained on."""
MOST_GROUPS = 12
RANKED = ("auroc", "average-precision")
COLUMNS = ("precision", "recall", "f1", "support", "auroc", "average_precision")


def evaluation(inside: Inspection, groups: Mapping[str, Tensor] | None = None) -> dict[str, Any]:
    """Evaluates a model on a graph.

    Args:
        inside: The model and the graph.
        groups: Masks of nodes by name, bool ``(N,)``. Each is evaluated on its own, without nodes
            that the model was trained on or selected by.

    Returns:
        For each part of the split, or for all labeled nodes of another graph, and for each group:
        the metrics, the scores of each class, the confusion matrix and the calibration error.
    """
    parts = np.array([part or "" for part in inside.facts.parts(inside.data)])
    labeled = inside.labeled
    if not bool(labeled.any()):
        raise InputError(f"{inside.data.name}: has no labels, expected some to compare with")
    if parts.any():
        masks = {part: labeled & torch.from_numpy(parts == part) for part in PARTS}
        unseen = masks["test"]
    else:
        masks, unseen = {ALL: labeled}, labeled
    found = {
        "graph": inside.data.name,
        "model": inside.config.model.model,
        "metric": inside.task.metric,
        "parts": {name: _measure(inside, mask) for name, mask in masks.items()},
    }
    if groups is not None:
        found["groups"] = {name: _measure(inside, mask & unseen) for name, mask in groups.items()}
    return found


def _measure(inside: Inspection, mask: Tensor) -> dict[str, Any]:
    nodes, y = int(mask.sum()), inside.y[mask]
    if nodes == 0:
        return {"nodes": 0, "metrics": {}}
    found = {"nodes": nodes, "metrics": inside.task.measure(inside.logits[mask], y, quiet=True)}
    if inside.facts.task != "classification":
        return found
    names, scores = inside.facts.class_names, inside.probabilities[mask].double()
    predicted = inside.predictions[mask].numpy()
    confidence = scores.max(dim=1).values.numpy()
    outcome = Outcome(y.numpy(), predicted, confidence)
    rows = []
    for c, (name, score) in enumerate(zip(names, by_class([outcome], len(names)), strict=True)):
        ranked = (_against_rest(metric, scores[:, c], y == c) for metric in RANKED)
        values = (score.precision, score.recall, score.f1, int(score.nodes), *ranked)
        rows.append({"class": name, **dict(zip(COLUMNS, values, strict=True))})
    return {
        **found,
        "classes": rows,
        "confusion": confusion([outcome], len(names)).tolist(),
        "calibration_error": calibration([outcome])[1],
    }


def _against_rest(metric: str, scores: Tensor, inside: Tensor) -> float | None:
    """Returns a ranking metric of one class against the rest; None without nodes on both sides."""
    if not 0 < int(inside.sum()) < len(inside):
        return None
    return METRICS[metric].compute(torch.stack([1 - scores, scores], dim=1), inside.long())


def write_evaluation(path: Path, found: dict[str, Any]) -> None:
    """Writes an evaluation to a ``.json`` file or, one row per class, to a ``.csv`` or ``.tex``
    file."""
    check_path(path)
    writers = {".json": _json, ".csv": _csv, ".tex": _latex}
    write_text(path, writers[path.suffix](found))


def check_path(path: Path) -> None:
    """Raises an error if :func:`write_evaluation` does not support the file format."""
    if path.suffix not in (".json", ".csv", ".tex"):
        raise InputError(f"{path}: unknown format, expected a .json, .csv or .tex file")


def rows(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields one row per part or group, and class."""
    for kind in ("parts", "groups"):
        for name, measured in found.get(kind, {}).items():
            where = {"part": "", "group": "", kind.removesuffix("s"): name}
            for row in measured.get("classes", []):
                yield {**where, **row}


def _json(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=2) + "\n"


def _csv(found: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["part", "group", "class", *COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(found))
    return text.getvalue()


def _latex(found: dict[str, Any]) -> str:
    """Returns a table in the style of the package booktabs."""
    head = ["nodes", "class", *(name.replace("_", " ") for name in COLUMNS)]
    kinds = "ll" + "r" * len(COLUMNS)
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", _cells(head), r"\midrule"]
    for row in rows(found):
        cells = [_escaped(row["part"] or row["group"]), _escaped(row["class"])]
        lines.append(_cells([*cells, *(_number(row[name]) for name in COLUMNS)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _cells(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _number(value: float | int | None) -> str:
    if value is None:
        return "--"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _escaped(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {sign: "\\" + sign for sign in "&%$#_{}"}
    return "".join(special.get(sign, sign) for sign in " ".join(text.split()))


def groups_of(data: Data, column: str, ids: Sequence[int | str]) -> dict[str, Tensor]:
    """Groups nodes by a column of the node table.

    Numbers with more than ``MOST_GROUPS`` distinct values are grouped by their quartiles. Of other
    values, the most frequent ones are groups of their own.

    Args:
        data: The graph with its table.
        column: Name of the column.
        ids: Ids of the nodes in the order of the masks.

    Returns:
        Masks of the nodes of each group, bool ``(N,)``.
    """
    if not has_table(data) or column not in data.table.columns:
        there = ", ".join(map(repr, data.table.columns)) if has_table(data) else "none"
        raise InputError(f"by: {data.name} has no column {column!r}; its columns: {there}")
    found = cells(data, column)
    values = found.column.values.to_pylist()
    texts = ["" if code < 0 else str(values[code]) for code in found.codes.tolist()]
    by_id = dict(zip(map(str, node_ids(data)), texts, strict=True))
    own = np.array([by_id[str(name)] for name in ids], dtype=object)
    masks = _ranges(own) if len(values) > MOST_GROUPS else None
    if masks is None:
        frequent = Counter(text for text in own if text).most_common(MOST_GROUPS)
        masks = {text: own == text for text, _ in frequent}
        rest = (own != "") & ~np.isin(own, list(masks))
        masks |= {f"{len(set(own[rest]))} other values": rest} if rest.any() else {}
    masks |= {"(missing)": own == ""} if (own == "").any() else {}
    return {name: torch.from_numpy(mask.astype(bool)) for name, mask in masks.items()}


def _ranges(texts: np.ndarray) -> dict[str, np.ndarray] | None:
    """Groups numbers by their quartiles; None if some are not numbers."""
    try:
        numbers = np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return None
    bounds = np.unique(np.nanquantile(numbers, [0, 0.25, 0.5, 0.75, 1]))
    masks = {}
    for low, high in itertools.pairwise(bounds):
        last = high == bounds[-1]
        inside = (numbers >= low) & ((numbers <= high) if last else (numbers < high))
        masks[f"{low:.6g} to {high:.6g}"] = inside
    return masks

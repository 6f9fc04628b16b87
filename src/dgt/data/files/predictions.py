"""Writes predictions to CSV and Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dgt.errors import InputError
from dgt.storage.files import write_atomically
from dgt.storage.paths import as_path


@dataclass(frozen=True)
class Predictions:
    """The predictions for the nodes of a graph."""

    ids: Sequence[str | int]
    """Ids of the nodes, as given by the user."""
    predictions: pa.Array
    """The name of the predicted class, the names of the labels, or a number."""
    parts: Sequence[str | None]
    """``"train"``, ``"val"`` or ``"test"`` for nodes of the training graph, None for others."""
    probability: np.ndarray | None = None
    """Probability of the predicted class. Shape: ``(N,)``."""
    class_names: Sequence[str] = ()
    """Names of the classes or labels."""
    probabilities: np.ndarray | None = None
    """Probability of each class or label. Shape: ``(N, C)``."""


def write_predictions(path: Path | str, found: Predictions, replace: bool = True) -> None:
    """Writes one row per node with the columns ``id``, ``prediction``, ``probability`` of the
    predicted class, ``split``, and ``probability:NAME`` for each class, as far as there are such.

    Args:
        path: Path that ends with ``.csv`` or ``.parquet``.
        found: The predictions.
        replace: Replace an existing file, or raise an error.
    """
    path = as_path(path, "path")
    check_predictions_path(path)
    ids = found.ids
    whole = all(isinstance(i, int) and -(2**63) <= i < 2**63 for i in ids)
    columns = {
        "id": pa.array(ids, pa.int64()) if whole else pa.array([str(i) for i in ids]),
        "prediction": found.predictions,
    }
    if found.probability is not None:
        columns["probability"] = pa.array(found.probability, pa.float64())
    columns["split"] = pa.array(found.parts, pa.string())
    if found.probabilities is not None:
        for name, each in zip(found.class_names, found.probabilities.T, strict=True):
            columns[f"probability:{name}"] = pa.array(each, pa.float64())
    table = pa.table(columns)
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    write_atomically(path, lambda beside: write(table, beside), replace)


def check_predictions_path(path: Path | str) -> None:
    """Raises an error if :func:`write_predictions` does not support the file format."""
    if Path(path).suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: unknown format of predictions, expected a .csv or .parquet file")

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
    class_names: list[str]
    predicted: np.ndarray
    """The predicted class of each node. Shape: ``(N,)``."""
    probabilities: np.ndarray
    """Probability of each class. Shape: ``(N, classes)``."""
    parts: Sequence[str | None]
    """``"train"``, ``"val"`` or ``"test"`` for nodes of the training graph, None for others."""


def write_predictions(path: Path | str, found: Predictions, replace: bool = True) -> None:
    """Writes one row per node with the columns ``id``, ``prediction``, ``probability`` of the
    predicted class, ``split``, and ``probability:NAME`` for each class.

    Args:
        path: Path that ends with ``.csv`` or ``.parquet``.
        found: The predictions.
        replace: Replace an existing file, or raise an error.
    """
    path = as_path(path, "path")
    check_predictions_path(path)
    ids = found.ids
    whole = all(isinstance(i, int) and -(2**63) <= i < 2**63 for i in ids)
    own = np.take_along_axis(found.probabilities, found.predicted[:, None], axis=1)[:, 0]
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()) if whole else pa.array([str(i) for i in ids]),
            "prediction": pa.array(found.class_names).take(pa.array(found.predicted)),
            "probability": pa.array(own, pa.float64()),
            "split": pa.array(found.parts, pa.string()),
            **{
                f"probability:{name}": pa.array(found.probabilities[:, c], pa.float64())
                for c, name in enumerate(found.class_names)
            },
        }
    )
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    write_atomically(path, lambda beside: write(table, beside), replace)


def check_predictions_path(path: Path | str) -> None:
    """Raises an error if :func:`write_predictions` does not support the file format."""
    if Path(path).suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: unknown format of predictions, expected a .csv or .parquet file")

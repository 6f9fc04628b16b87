"""Writes predictions to CSV and Parquet files."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dgt.errors import InputError
from dgt.storage.files import write_atomically


def write_predictions(
    path: Path | str,
    ids: Sequence[str | int],
    predictions: Sequence[str],
    probabilities: Sequence[float],
    replace: bool = True,
) -> None:
    """Writes one row per node with the columns ``id``, ``prediction`` and ``probability``.

    Args:
        path: Path that ends with ``.csv`` or ``.parquet``.
        ids: Ids of the nodes, as given by the user.
        predictions: Name of the most likely class of each node.
        probabilities: Probability of that class.
        replace: Replace an existing file, or raise an error.
    """
    path = Path(path)
    check_predictions_path(path)
    whole = all(isinstance(i, int) and -(2**63) <= i < 2**63 for i in ids)
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()) if whole else pa.array([str(i) for i in ids]),
            "prediction": pa.array(list(predictions), pa.string()),
            "probability": pa.array(probabilities, pa.float64()),
        }
    )
    write = pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table
    write_atomically(path, lambda beside: write(table, beside), replace)


def check_predictions_path(path: Path | str) -> None:
    """Raises an error if :func:`write_predictions` does not support the file format."""
    if Path(path).suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: unknown format of predictions, expected a .csv or .parquet file")

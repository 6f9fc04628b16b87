"""Rows scaled to norm 1 and rounded, so that their products are exact."""

from typing import Any

import numpy as np
import scipy.sparse
from numba import njit

# Unit vectors are rounded to multiples of 1 / UNIT. Their products, in units of 1 / UNIT ** 2, are
# integers below 2 ** 53 and thus exact in float64, in any order of summation. The result does not
# depend on the chunk size, the number of threads or the machine.
UNIT = 2.0**26
# Similarities are rounded to multiples of 1 / GRID, about six decimals; equal ones tie.
GRID = 2.0**20


def unit_rows(x: Any) -> Any:
    """Scales dense or sparse rows to norm UNIT and rounds them to integers. Zero rows stay zero."""
    if scipy.sparse.issparse(x):
        return _sparse_unit_rows(x)
    unit = x.astype(np.float64)
    # Dividing by the largest value first avoids an overflow of its square.
    unit /= _or_one(np.abs(unit).max(axis=1, initial=0))[:, None]
    unit /= _or_one(np.sqrt(np.einsum("ij,ij->i", unit, unit)))[:, None]
    unit *= UNIT
    return np.rint(unit, out=unit)


def _sparse_unit_rows(x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    unit = x.astype(np.float64)
    unit.sum_duplicates()
    row = np.repeat(np.arange(unit.shape[0]), np.diff(unit.indptr))
    largest = np.zeros(unit.shape[0])
    np.maximum.at(largest, row, np.abs(unit.data))
    unit.data /= _or_one(largest)[row]
    norms = np.sqrt(np.bincount(row, weights=unit.data**2, minlength=unit.shape[0]))
    unit.data = np.rint(unit.data / _or_one(norms)[row] * UNIT)
    return unit


def _or_one(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, 1)


@njit(cache=True, nogil=True)
def on_grid(product):  # type: ignore[no-untyped-def]
    """The cosine similarity in units of 1 / GRID, rounded, from a product of unit rows."""
    return np.floor(product * (GRID / UNIT / UNIT) + 0.5)

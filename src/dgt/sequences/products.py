"""Products of a few rows with many columns, exact in single precision."""

import numpy as np
from numba import njit

# Integers below this value are exact in single precision, and so are sums of products below it.
EXACT = 2.0**24


def scale(features: int) -> float:
    """The largest norm of rows that are then rounded to integers, so that their products are exact
    in single precision, in any order of summation."""
    return float(np.floor(EXACT**0.5 - (features + 4) ** 0.5 / 2))


@njit(cache=True, nogil=True, fastmath=True)
def four_products(rows, a, b, c, d, columns, out):  # type: ignore[no-untyped-def]
    """Computes the products of rows a, b, c and d with all columns.

    Args:
        rows: float32 ``(N, F)``, where F is a multiple of 4.
        a: Index of a row, as are b, c and d.
        columns: float32 ``(F, M)``.
        out: The products, float32 ``(4, M)`` or wider.
    """
    F, M = columns.shape
    out0, out1, out2, out3 = out[0], out[1], out[2], out[3]
    for j in range(M):
        out0[j] = 0
        out1[j] = 0
        out2[j] = 0
        out3[j] = 0
    for f in range(0, F, 4):
        col0, col1, col2, col3 = columns[f], columns[f + 1], columns[f + 2], columns[f + 3]
        a0, a1, a2, a3 = rows[a, f], rows[a, f + 1], rows[a, f + 2], rows[a, f + 3]
        b0, b1, b2, b3 = rows[b, f], rows[b, f + 1], rows[b, f + 2], rows[b, f + 3]
        c0, c1, c2, c3 = rows[c, f], rows[c, f + 1], rows[c, f + 2], rows[c, f + 3]
        d0, d1, d2, d3 = rows[d, f], rows[d, f + 1], rows[d, f + 2], rows[d, f + 3]
        for j in range(M):
            x0, x1, x2, x3 = col0[j], col1[j], col2[j], col3[j]
            out0[j] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
            out1[j] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
            out2[j] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
            out3[j] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3

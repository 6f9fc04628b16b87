import numpy as np
import pytest
from numba import njit

from dgt.sequences.products import (
    LANES,
    SCALE,
    four_products,
    in_groups,
    lanes_from,
    lowest,
    rounded_rows,
)


@pytest.mark.parametrize("features", [1, 2, 7, 128])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_products_are_those_of_whole_numbers(features: int, groups: int) -> None:
    unit = np.random.default_rng(0).normal(size=(100, features))
    unit[3] = 0
    unit[4, 1:] = 0  # the largest value that occurs
    norms = np.linalg.norm(unit, axis=1, keepdims=True)
    unit /= np.where(norms > 0, norms, 1)
    rows = rounded_rows(unit, 1.0)
    np.testing.assert_allclose(rows[:, :features], unit * SCALE, atol=0.5)
    members = np.random.default_rng(1).integers(-1, 100, groups * LANES)
    out = np.empty((4, (groups + 1) * LANES), dtype=np.int32)
    four_products(rows, 3, 4, 4, 99, in_groups(rows, members), 0, groups, out)
    others = np.where(members[:, None] >= 0, rows[members], 0).astype(np.int64)
    expected = rows[[3, 4, 4, 99]].astype(np.int64) @ others.T
    np.testing.assert_array_equal(out[:, : groups * LANES], expected)


@njit
def found_lanes(products, row, place, least):  # type: ignore[no-untyped-def]
    lanes, found = lanes_from(products, row, place, least), []
    while lanes:
        found.append(lowest(lanes))
        lanes &= lanes - 1
    return found


def test_lanes_of_the_largest_products() -> None:
    products = np.random.default_rng(0).integers(-9, 9, (2, 3 * LANES)).astype(np.int32)
    for least in (-9, 0, 8):
        found = found_lanes(products, 1, LANES, np.int32(least))
        expected = np.flatnonzero(products[1, LANES : 2 * LANES] >= least)
        np.testing.assert_array_equal(found, expected)

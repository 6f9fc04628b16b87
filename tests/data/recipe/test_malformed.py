"""Malformed tables: a clear error for each, in training and in prediction."""

from pathlib import Path

import pytest
import torch

from dgt.config import DataConfig
from dgt.data import files
from dgt.data.recipe import Recipe
from dgt.errors import InputError
from tests.data.recipe.test_recipe import folder

GOOD: dict[str, list[object]] = {
    "age": [31, 25, 47, 52, 38, 29],
    "flag": ["yes", "no", "yes", "yes", "no", "no"],
    "city": ["Oslo", "Rome", "Oslo", "Bonn", "Rome", "Rome"],
    "day": [f"2024-0{i}-1{i}" for i in range(1, 7)],
    "at": [f"1{i}:30" for i in range(6)],
    "vector": [f"[{i}, {i + 1}]" for i in range(6)],
}
KINDS = tuple(
    f"{name}={kind}"
    for name, kind in zip(
        GOOD, ("number", "boolean", "category", "date", "time", "list"), strict=True
    )
)
BAD = {
    "age": (
        "x", "3,5", "$12", "12%", "1e400", "inf", "-inf", "1e16", "--3", "1 2", "0x1F", "1_000",
        "twelve", "3.4.5", "+", "e5", "yes", "2024-01-01", "[1]",
    ),
    "flag": ("maybe", "2", "-1", "truee", "0.5", "on/off", "x", "yes no", "nope", "[true]"),
    "day": (
        "2024-13-01", "2024-02-30", "2024-00-10", "24-01-01", "2024", "01/2024", "Jan 5 2024",
        "2024-01-01T25:00", "2024-01-01 10:61", "yesterday", "31.12.2024", "12/31/2024", "5",
        "2024-1-1-1", "2024-01-01 +", "0000-01-01",
    ),
    "at": ("24:00", "12:60", "12", "noon", "12:3", "12:30:99", "12:30pm", "1:2:3:4", "-1:30", "x"),
    "vector": (
        "[1]", "[1, 2, 3]", "[1, x]", "1, 2", "[1, 2", "1 2]", "[]", "[[1], 2]", "{1, 2}", "x",
        "[1, inf]", "[1, 1e300]", "[1 2]", "[, 1]",
    ),
}  # fmt: skip
CASES = [(name, cell) for name, cells in BAD.items() for cell in cells]


def good_recipe(path: Path) -> Recipe:
    data = files.read(folder(path, **GOOD), DataConfig(columns=KINDS))
    data.train_mask = torch.ones(6, dtype=torch.bool)
    return Recipe.fit(data, DataConfig())


@pytest.mark.parametrize(("name", "cell"), CASES)
def test_a_bad_cell(tmp_path: Path, name: str, cell: str) -> None:
    recipe = good_recipe(tmp_path)
    cells = {**GOOD, name: [*GOOD[name][:3], cell, *GOOD[name][4:]]}
    place = rf"nodes.csv: row \d, column '{name}': got .*, expected "
    with pytest.raises(InputError, match=place) as error:
        recipe.apply(files.read(folder(tmp_path, **cells), DataConfig(columns=KINDS)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("cell", BAD["age"])
def test_a_bad_cell_in_an_inferred_column(tmp_path: Path, cell: str) -> None:
    cells = [*GOOD["age"][:3], cell, *GOOD["age"][4:]]
    with pytest.raises(InputError, match=r"nodes.csv: row 5, column 'age': got .*, expected a "):
        files.read(folder(tmp_path, age=cells))


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_column(tmp_path: Path, name: str) -> None:
    recipe = good_recipe(tmp_path)
    rest = {column: cells for column, cells in GOOD.items() if column != name}
    with pytest.raises(InputError, match=f"no column '{name}', which the model was trained with"):
        recipe.apply(files.read(folder(tmp_path, **rest)))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("rows", [1, 6])
def test_missing_cells_are_filled_in(tmp_path: Path, name: str, rows: int) -> None:
    recipe = good_recipe(tmp_path)
    cells = {**GOOD, name: [None] * rows + GOOD[name][rows:]}
    data = recipe.apply(files.read(folder(tmp_path, **cells), DataConfig(columns=KINDS)))
    assert data.x.shape == (6, len(recipe.feature_names()))
    assert bool(data.x.isfinite().all())

"""Columns become features, with numbers from the training nodes only."""

import json
import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data import files
from dgt.data.recipe import Recipe, as_given, column_kinds, from_table, sorted_by_id
from dgt.errors import InputError


def folder(path: Path, **columns: list[object]) -> Path:
    """Writes a path of nodes with these columns as CSV; None is an empty cell."""
    path.mkdir(exist_ok=True)
    names, n = list(columns), len(next(iter(columns.values())))
    rows = [
        ",".join(
            [f"n{i}", *("" if columns[c][i] is None else _quoted(columns[c][i]) for c in names)]
        )
        for i in range(n)
    ]
    (path / "nodes.csv").write_text("\n".join([",".join(["id", *names]), *rows]) + "\n")
    edges = "".join(f"n{i},n{i + 1}\n" for i in range(n - 1))
    (path / "edges.csv").write_text("source,target\n" + edges)
    return path


def _quoted(value: object) -> str:
    return '"' + str(value).replace('"', '""') + '"'


def fitted(path: Path, train: list[int], **settings: object) -> tuple[Recipe, Data]:
    data = files.read(path, DataConfig(**settings))  # type: ignore[arg-type]
    data.train_mask = torch.zeros(data.num_nodes, dtype=torch.bool)
    data.train_mask[train] = True
    recipe = Recipe.fit(data, DataConfig(**settings))  # type: ignore[arg-type]
    stored = Recipe(tuple(json.loads(json.dumps(recipe.columns))))
    assert stored == recipe
    return recipe, stored.apply(data)


def column(data: Data, name: str) -> list[float]:
    return data.x[:, data.feature_names.index(name)].tolist()


def test_numbers_equal_scikit_learn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(50, 20, 40)
    cells = [None if i % 7 == 3 else v for i, v in enumerate(values.tolist())]
    train = list(range(0, 40, 2))
    recipe, data = fitted(folder(tmp_path, age=cells), train)
    whole = np.array([[np.nan if c is None else c] for c in cells])
    pipeline = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(whole[train])
    assert data.feature_names == ["age", "age: missing"]
    np.testing.assert_allclose(data.x[:, :1], pipeline.transform(whole), rtol=1e-6)
    assert column(data, "age: missing") == [float(c is None) for c in cells]
    assert recipe.described()[0][1] == "number"


def test_sparse_columns_keep_their_zeros(tmp_path: Path) -> None:
    counts = [0, 0, 4, 0, 0, 0, 2, 0, 8, 0]
    path = folder(tmp_path, word=[0, 1] * 5, count=counts, flag=["yes", "no"] * 5)
    _, data = fitted(path, list(range(8)))
    expected = (
        MaxAbsScaler().fit(np.array(counts[:8])[:, None]).transform(np.array(counts)[:, None])
    )
    assert column(data, "count") == expected[:, 0].tolist()
    assert column(data, "word") == [0, 1] * 5
    assert column(data, "flag") == [1, 0] * 5


def test_standardize_can_be_turned_off(tmp_path: Path) -> None:
    path = folder(tmp_path, age=[10, 20, 35, 50])
    assert column(fitted(path, [0, 1], standardize=False)[1], "age") == [10, 20, 35, 50]


def test_categories_equal_scikit_learn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cities = ["Oslo", "Rome", "Bonn", "Rome", "Oslo", "Lima", "Bonn", "Rome"]
    recipe, data = fitted(folder(tmp_path, city=cities), [0, 1, 2, 3, 4])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder.fit(np.array(cities[:5])[:, None])
    assert data.feature_names == ["city=Bonn", "city=Oslo", "city=Rome"]
    assert data.x.tolist() == encoder.transform(np.array(cities)[:, None]).tolist()
    with caplog.at_level(logging.WARNING):
        recipe.apply(files.read(tmp_path), warn=True)
    assert "column 'city': 1 nodes have a category that is not in the model's recipe ('Lima')" in (
        caplog.text
    )
    assert "encoded as zeros" in caplog.text


def test_many_categories_share_a_column(tmp_path: Path) -> None:
    cells = [f"c{i:03d}" for i in range(120)] + [f"c{i:03d}" for i in range(100)] * 2
    recipe, data = fitted(folder(tmp_path, code=cells), list(range(len(cells))))
    assert len(data.feature_names) == 101
    assert data.feature_names[-1] == "code=(other)"
    assert sum(column(data, "code=(other)")) == 20
    assert bool((data.x.sum(dim=1) == 1).all())
    other = files.read(folder(tmp_path / "new", code=["c001", "zzz", None, "c119"]))
    x = recipe.apply(other, warn=True).x
    assert x[:, -1].tolist() == [0, 1, 0, 1]
    assert x[2].sum() == 0  # missing cells were not in training


def test_missing_categories_have_a_column(tmp_path: Path) -> None:
    _, data = fitted(folder(tmp_path, city=["a", None, "b", None]), [0, 1, 2])
    assert data.feature_names == ["city=a", "city=b", "city=(missing)"]
    assert column(data, "city=(missing)") == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("texts", "analyzer", "ngrams"),
    [
        (["the cat sat down", "a dog ran far away", "the dog sat down there"] * 9, "word", (1, 2)),
        (["Ann Lee", "Bob Roe", "Cleo Moe"] * 9, "char_wb", (3, 4)),
    ],
)
def test_text_equals_scikit_learn(
    tmp_path: Path, texts: list[str], analyzer: str, ngrams: tuple[int, int]
) -> None:
    path = folder(tmp_path, note=[*texts, None])
    _, data = fitted(path, list(range(20)), columns=("note=text",), text_columns=64)
    pattern = r"(?u)\b\w+\b" if analyzer == "word" else None
    hashing = HashingVectorizer(
        analyzer=analyzer, ngram_range=ngrams, n_features=64, token_pattern=pattern
    )
    expected = hashing.transform([*texts, ""]).toarray()
    np.testing.assert_allclose(data.x.numpy(), expected, rtol=1e-6)


def test_dates(tmp_path: Path) -> None:
    days = ["2024-01-01", "2024-01-02T12:00:00Z", "2023-12-31 06:00", None]
    _, data = fitted(folder(tmp_path, seen=days), [0, 1, 2])
    seconds = np.array(["2024-01-01T00", "2024-01-02T12", "2023-12-31T06"], "datetime64[s]")
    numbers = seconds.astype(np.int64) / 86400
    scaler = StandardScaler().fit(numbers[:, None])
    np.testing.assert_allclose(
        column(data, "seen")[:3], scaler.transform(numbers[:, None])[:, 0], rtol=1e-4, atol=1e-6
    )
    angle = 2 * np.pi * np.array([0, 0.5, 0.25])
    np.testing.assert_allclose(column(data, "seen: cos of the day")[:3], np.cos(angle), atol=1e-6)
    assert column(data, "seen: cos of the day")[3] == 0
    # 1970-01-01, where the weeks start, was a Thursday, and so was 2024-01-04.
    _, data = fitted(folder(tmp_path, seen=["2024-01-04", "2024-01-11", "2024-01-06"]), [0, 1, 2])
    week = column(data, "seen: cos of the week")
    np.testing.assert_allclose(week, [1, 1, np.cos(4 * np.pi / 7)], atol=1e-6)


def test_the_order_of_day_and_month(tmp_path: Path) -> None:
    path = folder(tmp_path, d=["03/04/2024", "25/12/2023", "01/02/2024"])
    recipe, _ = fitted(path, [0, 1])
    assert recipe.columns[0]["fitted"]["order"] == "dmy"
    path = folder(tmp_path, d=["03/04/2024", "05/12/2023", "01/02/2024"])
    with pytest.raises(InputError, match=r"row 2, column 'd': got '03/04/2024', .*d=date:mdy"):
        fitted(path, [0, 1])
    recipe, data = fitted(path, [0, 1, 2], columns=("d=date:mdy",), standardize=False)
    first = (np.datetime64("2024-03-04") - np.datetime64("1970-01-01")).astype(int)
    assert column(data, "d")[0] == first


def test_times_of_day(tmp_path: Path) -> None:
    _, data = fitted(folder(tmp_path, at=["00:00", "6:00", "12:00:00", None]), [0, 1, 3])
    np.testing.assert_allclose(column(data, "at: sin of the day"), [0, 1, 0, 0], atol=1e-6)
    assert column(data, "at: missing") == [0, 0, 0, 1]


def test_lists_of_numbers_and_of_words(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        vector=["[1, 10]", "[3, 20]", "[5, nan]", None],
        tags=["[red, hot]", "[red]", "[]", "[cold]"],
        size=[1, 2, 3, 4],
    )
    _, data = fitted(path, [0, 1])
    assert column(data, "vector[0]") == [-1, 1, 3, 0]
    assert column(data, "vector[1]") == [-1, 1, 0, 0]
    assert column(data, "tags: red") == [1, 1, 0, 0]
    assert "tags: cold" not in data.feature_names


def test_parquet_has_types(tmp_path: Path) -> None:
    import datetime

    table = {
        "id": ["a", "b", "c"],
        "flag": [True, False, None],
        "amount": pa.array([1, 2, 3], pa.decimal128(10, 2)),
        "day": [datetime.date(2024, 1, d) for d in (1, 2, 3)],
        "at": [datetime.time(6), datetime.time(12), datetime.time(18)],
        "stamp": pa.array([0, 1, 2], pa.timestamp("ns", "Europe/Oslo")),
        "took": [datetime.timedelta(seconds=s) for s in (1, 2, 3)],
        "city": pa.array(["x", "y", "x"]).dictionary_encode(),
        "code": ["1", "2", "1"],
        "vector": [[1.0, 2.0], [3.0, None], None],
        "gaps": [1.0, float("nan"), 3.0],
        "empty": pa.nulls(3),
        "tags": [["a"], ["b"], []],
    }
    pq.write_table(pa.table(table), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    data = files.read(tmp_path)
    kinds = {name: kind for name, (kind, _) in column_kinds(data, DataConfig()).items()}
    assert kinds == {
        "flag": "boolean",
        "amount": "number",
        "day": "date",
        "at": "time",
        "stamp": "date",
        "took": "number",
        "city": "category",
        "code": "category",
        "vector": "list",
        "gaps": "number",
        "empty": "ignore",
        "tags": "list",
    }
    _, data = fitted(tmp_path, [0, 1, 2], standardize=False)
    assert column(data, "took") == [1, 2, 3]
    assert column(data, "gaps") == [1, 2, 3]
    assert column(data, "amount") == [1, 2, 3]
    assert bool(data.x.isfinite().all())


def test_kinds_of_csv_columns(tmp_path: Path) -> None:
    n = 30
    path = folder(
        tmp_path,
        age=range(n),
        name=[f"p{i}" for i in range(n)],
        person=[f"Ann {i}son" for i in range(n)],
        city=["Oslo", "Rome", "Bonn"] * 10,
        note=[f"this is note number {i}" for i in range(n)],
        flag=["TRUE", "false", "NA"] * 10,
        empty=[None] * n,
        code=["007", "7", "08"] * 10,
        reason=["paid in full", "not paid at all", "paid too late"] * 10,
    )
    kinds = column_kinds(files.read(path), DataConfig())
    assert {name: kind for name, (kind, _) in kinds.items()} == {
        "age": "number",
        "name": "ignore",
        "person": "text",
        "city": "category",
        "note": "text",
        "flag": "boolean",
        "empty": "ignore",
        "code": "number",
        "reason": "category",
    }
    assert kinds["name"][1] == "almost every node has a value of its own"
    _, data = fitted(path, list(range(n)), columns=("code=category",), ignore=("age",))
    assert {"code=007", "code=7", "code=08"} < set(data.feature_names)
    assert "age" not in data.feature_names


def test_only_training_nodes_count(tmp_path: Path) -> None:
    cells = {"a": [1, 2, 3, 4, 5, 6], "c": ["x", "y", "x", "y", "x", "y"]}
    first, _ = fitted(folder(tmp_path, **cells), [0, 1, 2])
    cells = {"a": [1, 2, 3, 400, 5, 60], "c": ["x", "y", "x", "z", "w", None]}
    second, _ = fitted(folder(tmp_path, **cells), [0, 1, 2])
    assert first == second


def test_columns_without_training_values_are_left_out(tmp_path: Path) -> None:
    recipe, data = fitted(folder(tmp_path, a=[1, 2, 3], b=[None, None, 5]), [0, 1])
    assert recipe.described()[1] == ("b", "ignore", "no values on training nodes")
    assert data.feature_names == ["a"]


def test_numbers_only_tables_also_have_x(tmp_path: Path) -> None:
    data = files.read(folder(tmp_path, b=[1, 2], a=["true", "false"]))
    assert data.x.tolist() == [[1, 1], [2, 0]]
    assert from_table(data)
    data.x = data.x / 2  # the user's own features
    assert not from_table(data)
    data.x = torch.tensor([[1.0, 1.0], [2.0, 0.0]]).to_sparse_coo()
    assert not from_table(data)
    data = files.read(folder(tmp_path, b=["x", "y"]))
    assert data.get("x") is None
    assert from_table(data)


def test_a_subgraph_keeps_its_cells(tmp_path: Path) -> None:
    data = files.read(folder(tmp_path, c=["x", "y", "z", "y"], a=[1, None, 3, 4]))
    part = data.subgraph(torch.tensor([1, 2, 3]))
    part.train_mask = torch.ones(3, dtype=torch.bool)
    recipe = Recipe.fit(files.normalize(part), DataConfig(standardize=False))
    assert recipe.apply(files.normalize(part)).x.tolist() == [
        [3.5, 1, 1, 0],
        [3, 0, 0, 1],
        [4, 0, 1, 0],
    ]


def test_sorting_by_id_can_be_undone(tmp_path: Path) -> None:
    data = files.read(folder(tmp_path, a=range(12)))  # n10 sorts before n2
    ordered = sorted_by_id(data)
    assert ordered.node_ids == sorted(data.node_ids)
    assert torch.equal(as_given(ordered, ordered.x), data.x)
    edges = {frozenset(ordered.node_ids[i] for i in e) for e in ordered.edge_index.t().tolist()}
    assert edges == {frozenset((f"n{i}", f"n{i + 1}")) for i in range(11)}

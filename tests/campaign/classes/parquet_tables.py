"""Folders with ``nodes.parquet`` and ``edges.parquet``: damaged, and columns of every type."""

import datetime
import decimal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.classes.training import same, some, train
from tests.campaign.material import arrow, copy, graph, tables

FILES = ("nodes.parquet", "edges.parquet")


def cases() -> Iterator[Case]:
    for file in FILES:
        content = _written(_table(file))
        for name, changed in mutations.damaged(content, file, 20):
            # A file without checksums: a flipped bit may just be another number.
            write = _with(file, lambda p, c=changed: p.write_bytes(c))
            names = (f"{file}|edges.parquet|graph",)
            yield train(f"{file} {name}", "either", write, names, lambda _: some())
    for column in ("id", "label", "split", "f1"):
        for name, values in _columns().items():
            yield _column("nodes.parquet", column, name, values, _expected(column, name))
    for name, values in _columns().items():
        yield _column("edges.parquet", "source", name, values, "refused")
    for column, file in (("id", FILES[0]), ("source", FILES[1]), ("target", FILES[1])):
        drop = lambda t, c=column: t.drop_columns([c])
        yield train(f"{file} without {column}", "refused", _changed(file, drop), (file, column))
        null = lambda t, c=column: _set(t, c, pa.array([None] * len(t), pa.string()))
        yield train(f"{file} {column} all null", "refused", _changed(file, null), (file, column))
    yield train(
        "nodes.parquet without rows",
        "refused",
        _changed(FILES[0], lambda t: t[:0]),
        ("nodes.parquet",),
    )
    yield train(
        "edges.parquet without rows",
        "refused",
        _changed(FILES[1], lambda t: t[:0]),
        ("edges.parquet",),
    )
    yield train(
        "nodes.parquet with a column twice",
        "refused",
        _changed(FILES[0], lambda t: t.append_column("f1", t["f1"])),
        ("nodes.parquet", "f1"),
    )
    yield train(
        "nodes.parquet with an index of pandas",
        "refused",
        _changed(FILES[0], lambda t: t.append_column("__index_level_0__", t["f1"])),
        ("nodes.parquet",),
    )
    yield train(
        "nodes.parquet with 0 columns",
        "refused",
        _changed(FILES[0], lambda t: t.select([])),
        ("nodes.parquet",),
    )
    yield train(
        "nodes.parquet is a folder",
        "refused",
        _with(FILES[0], lambda p: (p.unlink(), p.mkdir())),
        ("nodes",),
    )
    yield from _controls()


def _table(file: str) -> pa.Table:
    return arrow(tables(graph())[FILES.index(file)])


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _with(file: str, change: Callable[[Path], object]) -> Callable[[], None]:
    def prepare() -> None:
        copy("parquet")
        Path("parquet").rename("graph")
        change(Path("graph", file))

    return prepare


def _changed(
    file: str, change: Callable[[pa.Table], pa.Table], **options: Any
) -> Callable[[], None]:
    return _with(file, lambda path: pq.write_table(change(_table(file)), path, **options))


def _set(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(column), column, values)


def _columns() -> dict[str, Callable[[int], pa.Array]]:
    """Returns columns of many types, by their number of rows."""
    day = datetime.datetime(2024, 1, 1)
    return {
        "float16": lambda n: pa.array(np.arange(n) % 30, pa.float16()),
        "float32": lambda n: pa.array(np.arange(n) % 30 + 0.0, pa.float32()),
        "fractions": lambda n: pa.array(np.arange(n) + 0.5),
        "NaN": lambda n: pa.array(np.full(n, np.nan)),
        "infinite": lambda n: pa.array(np.full(n, np.inf)),
        "above float32": lambda n: pa.array(np.full(n, 1e300)),
        "int8": lambda n: pa.array(np.arange(n) % 30, pa.int8()),
        "uint64": lambda n: pa.array(np.arange(n) % 30, pa.uint64()),
        "largest uint64": lambda n: pa.array(np.uint64(2**64 - 1) - np.arange(n, dtype=np.uint64)),
        "booleans": lambda n: pa.array([i % 2 == 0 for i in range(n)]),
        "dates": lambda n: pa.array([day + datetime.timedelta(days=i) for i in range(n)]),
        "days": lambda n: pa.array([day.date()] * n),
        "times": lambda n: pa.array([datetime.time(1, i % 60) for i in range(n)]),
        "durations": lambda n: pa.array([datetime.timedelta(i) for i in range(n)]),
        "decimals": lambda n: pa.array([decimal.Decimal(i) for i in range(n)]),
        "bytes": lambda n: pa.array([bytes([i % 256]) for i in range(n)]),
        "bytes of one size": lambda n: pa.array([bytes([i % 256]) for i in range(n)], pa.binary(1)),
        "nulls": lambda n: pa.nulls(n),
        "text with a null": lambda n: pa.array([*(f"n{i}" for i in range(n - 1)), None]),
        "structs": lambda n: pa.array([{"a": i} for i in range(n)]),
        "maps": lambda n: pa.array(
            [[("a", i)] for i in range(n)], pa.map_(pa.string(), pa.int64())
        ),
        "lists": lambda n: pa.array([[1.0, 2.0]] * n),
        "empty lists": lambda n: pa.array([[]] * n, pa.list_(pa.float64())),
        "ragged lists": lambda n: pa.array([[1.0] * (i % 3) for i in range(n)]),
        "lists of text": lambda n: pa.array([["a"]] * n),
        "lists of lists": lambda n: pa.array([[[1.0]]] * n),
        "a dictionary": lambda n: pa.array([f"m{i}" for i in range(n)]).dictionary_encode(),
        "long text": lambda n: pa.array([f"m{i}" for i in range(n)], pa.large_string()),
    }


def _expected(column: str, name: str) -> Expect:
    if column == "split":
        return "either" if name == "nulls" else "refused"
    if column == "f1":
        # Other columns become features by a recipe.
        fine = ("float16", "float32", "fractions", "int8", "uint64")
        wrong = ("infinite", "above float32", "structs", "maps", "bytes", "lists of lists")
        return "accepted" if name in fine else "refused" if name in wrong else "either"
    if column == "label":
        return "either"
    return "refused"  # the edges still name the old ids


def _column(
    file: str, column: str, name: str, values: Callable[[int], pa.Array], expect: Expect
) -> Case:
    change = lambda t: _set(t, column, values(len(t)))
    title = f"{'control: ' if expect == 'accepted' else ''}{file} {column} of {name}"
    names = (f"{file}|edges.parquet|graph",)
    return train(title, expect, _changed(file, change), names, lambda _: some())


def _controls() -> Iterator[Case]:
    text = pa.large_string()
    cast = lambda t, k: t.cast(
        pa.schema([(f.name, k if f.type == pa.string() else pa.float64()) for f in t.schema])
    )
    for file in FILES:
        for codec in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
            yield train(
                f"control: {file} with {codec}",
                "accepted",
                _changed(file, lambda t: t, compression=codec),
            )
        yield train(
            f"control: {file} in small groups",
            "accepted",
            _changed(file, lambda t: t, row_group_size=3),
        )
        yield train(
            f"control: {file} of version 1", "accepted", _changed(file, lambda t: t, version="1.0")
        )
        yield train(
            f"control: {file} with large text", "accepted", _changed(file, lambda t: cast(t, text))
        )
        yield train(f"control: {file} with dictionaries", "accepted", _changed(file, _encoded))
        yield train(f"control: {file} columns reversed", "accepted", _changed(file, _turned))
    lists = _changed(FILES[0], _as_lists)
    yield train(
        "control: nodes.parquet with one column of lists", "accepted", lists, check=lambda _: same()
    )


def _encoded(table: pa.Table) -> pa.Table:
    for name in table.column_names:
        if table[name].type == pa.string():
            table = _set(table, name, table[name].dictionary_encode())
    return table


def _turned(table: pa.Table) -> pa.Table:
    texts = [f.name for f in table.schema if f.type == pa.string()]
    return table.select([*(n for n in table.column_names if n not in texts), *texts[::-1]])


def _as_lists(table: pa.Table) -> pa.Table:
    names = [name for name in table.column_names if name.startswith("f")]
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    return table.drop_columns(names).append_column("x", pa.array([list(row) for row in rows]))

"""Folders with ``nodes.csv`` and ``edges.csv``: bytes, rows, cells and columns changed."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaign.case import Case, Expect
from tests.campaign.classes.training import some, train
from tests.campaign.material import (
    copy,
    graph,
    tables,
    write_csv,
)

Rows = list[list[str]]


def cases() -> Iterator[Case]:
    yield from _bytes()
    yield from _cells()
    yield from _rows()
    yield from _columns()


def edited(file: str, edit: Callable[[bytes], bytes]) -> Callable[[], None]:
    """Returns a function that changes the bytes of a file of the graph."""

    def prepare() -> None:
        copy("graph")
        path = Path("graph", file)
        path.write_bytes(edit(path.read_bytes()))

    return prepare


def rewritten(file: str, edit: Callable[[Rows], Rows | None]) -> Callable[[], None]:
    """Returns a function that changes the rows of a file of the graph."""

    def prepare() -> None:
        copy("graph")
        rows = tables(graph())[0 if file == "nodes.csv" else 1]
        changed = edit(rows)
        write_csv(Path("graph", file), rows if changed is None else changed)

    return prepare


def _bytes() -> Iterator[Case]:
    wrong: dict[str, Callable[[bytes], bytes]] = {
        "empty": lambda text: b"",
        "only a line break": lambda text: b"\n",
        "only a header": lambda text: text.split(b"\n")[0] + b"\n",
        "zeros": lambda text: bytes(1000),
        "random bytes": lambda text: bytes(range(256)) * 4,
        "a zero byte in a cell": lambda text: text.replace(b"n7", b"n\x007"),
        "UTF-16": lambda text: text.decode().encode("utf-16"),
        "UTF-32": lambda text: text.decode().encode("utf-32"),
        "gzip": gzip.compress,
        "HTML": lambda text: b"<!DOCTYPE html><html><body>404</body></html>\n",
        "JSON": lambda text: b'{"id": [1, 2]}\n',
        "a Parquet file": lambda text: b"PAR1" + text + b"PAR1",
        "Latin-1 in row 5": lambda text: text.replace(b"n3,", b"n3\xe9,", 1),
        "cut UTF-8 sequence": lambda text: text.replace(b"n3,", b"n3\xe2\x82,", 1),
        "unclosed quote": lambda text: text.replace(b"n5", b'"n5', 1),
        "quote inside a cell": lambda text: text.replace(b"\nn4,", b'\n"n4"x,', 1),
        "no header": lambda text: text.split(b"\n", 1)[1],
        "a pickle": lambda text: b"\x80\x04\x95" + text,
    }
    for file in ("nodes.csv", "edges.csv"):
        for name, edit in wrong.items():
            # Other encodings may be detected.
            expect: Expect = "either" if name.startswith("UTF") else "refused"
            yield train(f"{file}: {name}", expect, edited(file, edit), (file,))
        for eighth in range(1, 8):
            cut = edited(file, lambda text, eighth=eighth: text[: len(text) * eighth // 8])
            yield train(
                f"{file}: cut at {eighth}/8",
                "either",
                cut,
                ("nodes.csv|edges.csv|graph",),
                lambda _: some(),
            )
        for separator in (";", "\t", "|", " "):
            edit = edited(file, lambda text, s=separator: text.replace(b",", s.encode()))
            yield train(f"{file}: separator {separator!r}", "either", edit, (file,))
        for flip in range(12):
            changed = edited(file, lambda text, flip=flip: _flipped(text, flip))
            yield train(
                f"{file}: flipped bit {flip}",
                "either",
                changed,
                ("nodes.csv|edges.csv|graph",),
                lambda _: some(),
            )


def _flipped(text: bytes, seed: int) -> bytes:
    place = (seed * 2654435761) % len(text)
    return text[:place] + bytes([text[place] ^ (1 << seed % 8)]) + text[place + 1 :]


def _cells() -> Iterator[Case]:
    bad = {
        "f1": [
            "",
            "x",
            "nan",
            "-inf",
            "inf",
            "1e39",
            "-4e38",
            "1.2.3",
            "0x1F",
            "1_000",
            "٣",
            "None",
            "NULL",
            "#REF!",
            "TRUE",
            "1 2",
            "--1",
            "1e",
            "=1+1",
            "[1]",
            "½",
            "1\u00a0000",
            "NaN",
            "1e999",
        ],
        "id": ["", "n4"],
        "split": ["Train", "valid", "dev", "training", "0", "TEST", "true", "train ", "nan"],
        "source": ["", "m7", "N7", "7", "n7 ", "n07", "n999", "nan", "None", "-1"],
        "target": ["", "m7", "n30", "n-1", "n7.0", "null", "\u200bn7"],
    }
    for column, values in bad.items():
        file = "edges.csv" if column in ("source", "target") else "nodes.csv"
        for row in (1, 8):
            for value in values if row == 8 else values[:3]:
                put = rewritten(
                    file, lambda rows, v=value, c=column, r=row: put_cell(rows, r, c, v)
                )
                # Features that are missing are filled in.
                missing = column == "f1" and value.lower() in ("", "nan", "none", "null")
                yield train(
                    f"{file}: {column} is {value!r} in row {row + 1}",
                    "either" if missing else "refused",
                    put,
                    (file, f"row {row + 1}|row {5 + 1}", column),
                    lambda _: some(),
                )
    # A class of a single node is refused where the split is random, and is fine where it is given.
    for value in ("purple", "1", "-1", "red ", "RED", "nan", "None"):
        put = rewritten("nodes.csv", lambda rows, v=value: put_cell(rows, 1, "label", v))
        yield train(
            f"nodes.csv: label {value!r}", "either", put, ("nodes.csv|graph",), lambda _: some()
        )


def put_cell(rows: Rows, row: int, column: str, value: str) -> None:
    rows[row][rows[0].index(column)] = value


def fill(rows: Rows, column: str, value: Callable[[int], str]) -> None:
    place = rows[0].index(column)
    for number, row in enumerate(rows[1:]):
        row[place] = value(number)


def _rows() -> Iterator[Case]:
    for file in ("nodes.csv", "edges.csv"):
        wrong: dict[str, Callable[[Rows], Rows | None]] = {
            "a row with too few cells": lambda rows: rows[4].pop() and None,
            "a row with too many cells": lambda rows: rows[4].append("1"),
            "the last row with too few cells": lambda rows: rows[-1].pop() and None,
            "the header twice": lambda rows: [rows[0], *rows],
            "the header at the end": lambda rows: [*rows, rows[0]],
            "a comment": lambda rows: [["# my graph"], *rows],
            "a row of separators": lambda rows: [*rows, [""] * len(rows[0])],
            "a single cell": lambda rows: [["x"]],
        }
        for name, edit in wrong.items():
            yield train(f"{file}: {name}", "refused", rewritten(file, edit), (file,))
    graphs: dict[str, tuple[str, Callable[[Rows], Rows | None]]] = {
        "no label": ("nodes.csv", lambda rows: fill(rows, "label", lambda _: "")),
        "one class": ("nodes.csv", lambda rows: fill(rows, "label", lambda _: "red")),
        "all nodes in train": (
            "nodes.csv",
            lambda rows: fill(rows[:-1], "split", lambda _: "train"),
        ),
        "no val": (
            "nodes.csv",
            lambda rows: fill(rows[:-1], "split", lambda i: ("train", "test")[i % 2]),
        ),
        "no test": (
            "nodes.csv",
            lambda rows: fill(rows[:-1], "split", lambda i: ("train", "val")[i % 2]),
        ),
        "no split filled in": ("nodes.csv", lambda rows: fill(rows, "split", lambda _: "")),
        "an unlabeled node in train": (
            "nodes.csv",
            lambda rows: put_cell(rows, 30, "split", "train"),
        ),
        "one class in train": (
            "nodes.csv",
            lambda rows: fill(rows[:-1], "split", lambda i: ("train", "val", "test")[i % 3]),
        ),
        "self-loops only": ("edges.csv", lambda rows: [rows[0], ["n1", "n1"], ["n2", "n2"]]),
        "one node": ("nodes.csv", lambda rows: rows[:2]),
        "two nodes": ("nodes.csv", lambda rows: rows[:3]),
    }
    for name, (file, edit) in graphs.items():
        yield train(f"graph: {name}", "refused", rewritten(file, edit), ("graph|.csv",))


def _columns() -> Iterator[Case]:
    for file, required in (("nodes.csv", ("id",)), ("edges.csv", ("source", "target"))):
        for column in required:
            for name in (
                "",
                column.upper(),
                f" {column}",
                f"{column}s",
                "x y",
                f"{column}\ufeff",
                "🦊",
            ):
                rename = rewritten(file, lambda rows, c=column, n=name: _rename(rows, c, n))
                if name.lower() == column:  # names are found in any case
                    yield train(f"control: {file}: {name}", "accepted", rename)
                    continue
                yield train(f"{file}: {column} named {name!r}", "refused", rename, (file,))
            double = rewritten(
                file,
                lambda rows, c=column: _rename(rows, rows[0][-1 if c != rows[0][-1] else 0], c),
            )
            yield train(f"{file}: {column} twice", "refused", double, (file, column))
    for name in ("f1", "", "__index_level_0__"):
        rename = rewritten("nodes.csv", lambda rows, n=name: _rename(rows, "f2", n))
        yield train(f"nodes.csv: f2 named {name!r}", "refused", rename, ("nodes.csv",))
    text = rewritten("nodes.csv", lambda rows: fill(rows, "f2", lambda i: f"city {i}"))
    yield train(
        "nodes.csv: a column of text", "either", text, ("nodes.csv", "f2"), lambda _: some()
    )
    lists = rewritten("nodes.csv", lambda rows: fill(rows, "f2", lambda i: '"[1, 2]"'))
    names = ("nodes.csv", "f2")
    yield train("nodes.csv: lists beside numbers", "either", lists, names, lambda _: some())
    for name, cell in {
        "ragged": "[1]",
        "empty": "[]",
        "text": "[a, b]",
        "nested": "[[1, 2]]",
        "unclosed": "[1, 2",
        "nan": "[nan, 1]",
        "missing": "[1,,2]",
        "nothing": "",
    }.items():
        one = rewritten("nodes.csv", lambda rows, c=cell: as_lists(rows, c))
        expect: Expect = "either" if name == "nothing" else "refused"
        names = ("nodes.csv", "row 4", "x")
        yield train(f"nodes.csv: {name} list in row 4", expect, one, names, lambda _: some())


def _rename(rows: Rows, column: str, name: str) -> None:
    rows[0][rows[0].index(column)] = name


def as_lists(rows: Rows, third: str | None = None) -> Rows:
    body = [[*row[:3], f'"[{", ".join(row[3:])}]"'] for row in rows[1:]]
    if third is not None:
        body[2][3] = f'"{third}"'
    return [["id", "label", "split", "x"], *body]

"""Folders that lack tables or hold other things, and valid tables of all kinds as controls."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaign.case import Case
from tests.campaign.classes.csv_tables import Rows, as_lists, edited, rewritten
from tests.campaign.classes.training import some, train
from tests.campaign.material import (
    copy,
    graph,
    predictions,
    tables,
    write_csv,
)


def cases() -> Iterator[Case]:
    yield from _folders()
    yield from _controls()


def _folders() -> Iterator[Case]:
    def without(*names: str) -> Callable[[], None]:
        def prepare() -> None:
            copy("graph")
            for name in names:
                Path("graph", name).unlink()

        return prepare

    def replaced(name: str, make: Callable[[Path], object]) -> Callable[[], None]:
        def prepare() -> None:
            copy("graph")
            Path("graph", name).unlink()
            make(Path("graph", name))

        return prepare

    def both(stem: str) -> Callable[[], None]:
        def prepare() -> None:
            copy("graph")
            copy("parquet")
            Path("parquet", f"{stem}.parquet").rename(Path("graph", f"{stem}.parquet"))

        return prepare

    yield train("folder: missing", "refused", lambda: None, ("graph",))
    yield train("folder: empty", "refused", lambda: Path("graph").mkdir(), ("graph",))
    yield train("folder: a file", "refused", lambda: Path("graph").write_text("x"), ("graph",))
    yield train(
        "folder: a broken link", "refused", lambda: Path("graph").symlink_to("nowhere"), ("graph",)
    )
    for file in ("nodes.csv", "edges.csv"):
        stem = file.removesuffix(".csv")
        yield train(f"folder: no {file}", "refused", without(file), (stem,))
        yield train(f"folder: {file} and Parquet", "refused", both(stem), (stem,))
        yield train(f"folder: {file} is a folder", "refused", replaced(file, Path.mkdir), (stem,))
        yield train(
            f"folder: {file} is a broken link",
            "refused",
            replaced(file, lambda p: p.symlink_to("nowhere")),
            (stem,),
        )
        yield train(
            f"folder: {file} is a pipe", "refused", replaced(file, lambda p: os.mkfifo(p)), (stem,)
        )
        yield train(
            f"folder: {file} links to itself",
            "refused",
            replaced(file, lambda p: p.symlink_to(p.name)),
            (stem,),
        )
        yield train(
            f"folder: {file} is a device",
            "refused",
            replaced(file, lambda p: p.symlink_to("/dev/zero")),
            (stem,),
        )


def _controls() -> Iterator[Case]:
    changes: dict[str, Callable[[], None]] = {}
    for file in ("nodes.csv", "edges.csv"):
        changes |= {
            f"{file}: unchanged": edited(file, lambda text: text),
            f"{file}: byte order mark": edited(file, lambda text: b"\xef\xbb\xbf" + text),
            f"{file}: CRLF": edited(file, lambda text: text.replace(b"\n", b"\r\n")),
            f"{file}: no line break at the end": edited(file, lambda text: text.rstrip()),
            f"{file}: empty lines at the end": edited(file, lambda text: text + b"\n\n"),
            f"{file}: all cells quoted": rewritten(file, _quoted),
            f"{file}: columns reversed": rewritten(file, _columns_reversed),
        }
    changes |= {
        "edges.csv: reversed": rewritten("edges.csv", lambda rows: [rows[0], *rows[:0:-1]]),
        "edges.csv: sorted": rewritten("edges.csv", lambda rows: [rows[0], *sorted(rows[1:])]),
        "edges.csv: other direction": rewritten(
            "edges.csv", lambda rows: [rows[0], *(r[::-1] for r in rows[1:])]
        ),
        "edges.csv: both directions": rewritten(
            "edges.csv", lambda rows: [*rows, *(r[::-1] for r in rows[1:])]
        ),
        "edges.csv: each twice": rewritten("edges.csv", lambda rows: [*rows, *rows[1:]]),
        "edges.csv: self-loops": rewritten(
            "edges.csv", lambda rows: [*rows, *([f"n{i}"] * 2 for i in range(30))]
        ),
        "edges.csv: a column more": rewritten(
            "edges.csv",
            lambda rows: [[*row, "weight" if not i else "1"] for i, row in enumerate(rows)],
        ),
        "nodes.csv: exponents": rewritten("nodes.csv", lambda rows: _fill_numbers(rows, "{:.8e}")),
        "nodes.csv: plus signs": rewritten(
            "nodes.csv", lambda rows: _fill_numbers(rows, "{:+.9g}")
        ),
        "nodes.csv: many digits": rewritten(
            "nodes.csv", lambda rows: _fill_numbers(rows, "{:.30f}")
        ),
        "nodes.csv: one column of lists": rewritten("nodes.csv", as_lists),
    }
    for name, prepare in changes.items():
        yield train(f"control: {name}", "accepted", prepare)
    for name, rename in {
        "integers": lambda i: str(i),
        "large integers": lambda i: str(10**17 + i),
        "leading zeros": lambda i: f"{i:03d}",
        "Unicode": lambda i: f"ноде-{i}-日本",
        "emoji": lambda i: "🦊" * (i + 1),
        "spaces": lambda i: f" n {i}",
        "quotes and commas": lambda i: f'"a ""b"", {i}"',
        "line breaks": lambda i: f'"a\nb{i}"',
        "formulas": lambda i: f"=A{i}",
        "long": lambda i: f"{i}" * 5000,
    }.items():
        yield _renamed_ids(name, rename)


def _renamed_ids(name: str, rename: Callable[[int], str]) -> Case:
    def prepare() -> None:
        nodes, edges = tables(graph())
        names = {f"n{i}": rename(i) for i in range(30)}
        for row in nodes[1:]:
            row[0] = names[row[0]]
        write_csv("graph/nodes.csv", nodes)
        write_csv("graph/edges.csv", [edges[0], *([names[a], names[b]] for a, b in edges[1:])])

    def check(_: object) -> None:
        found = predictions("run/predictions.parquet")
        plain = [rename(i) for i in range(30)]
        plain = [t[1:-1].replace('""', '"') if t.startswith('"') else t for t in plain]
        assert list(found) == plain, list(found)[:3]
        some()  # the order of the ids is the order of the nodes, so that the numbers differ

    return train(f"control: ids with {name}", "accepted", prepare, check=check)


def _quoted(rows: Rows) -> Rows:
    return [[f'"{cell}"' if cell else cell for cell in row] for row in rows]


def _columns_reversed(rows: Rows) -> Rows:
    # The order of the features stays as it is.
    keep = 3 if len(rows[0]) > 2 else 0
    return [[*row[keep:], *row[:keep][::-1]] if keep else row[::-1] for row in rows]


def _fill_numbers(rows: Rows, form: str) -> None:
    for row in rows[1:]:
        row[3:] = [form.format(float(cell)) for cell in row[3:]]

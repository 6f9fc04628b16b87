"""CSV files of other dialects and encodings, against Python's csv module."""

import codecs
import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dgt.cli import main
from dgt.data import files
from dgt.data.files.csv_file import open_csv
from dgt.data.files.names import Wanted
from dgt.errors import InputError

NODES = [["id", "label", "f"], ["a", "x", "0.5"], ["b", "y", "1"], ["c", "x", "-2"]]
EDGES = [["source", "target"], ["a", "b"], ["b", "c"]]


def text(rows: list[list[str]], separator: str = ",", end: str = "\n") -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator=end).writerows(rows)
    return buffer.getvalue()


def write(folder: Path, nodes: str | bytes, edges: str | bytes = text(EDGES)) -> Path:
    for name, content in (("nodes.csv", nodes), ("edges.csv", edges)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def is_expected(folder: Path) -> None:
    data = files.read(folder)
    assert data.node_ids == ["a", "b", "c"]
    assert data.class_names == ["x", "y"]
    assert data.x.tolist() == [[0.5], [1.0], [-2.0]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize(("separator", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_other_separators_are_recognized_and_said(separator, word, tmp_path, capsys, caplog):
    is_expected(write(tmp_path, text(NODES, separator), text(EDGES, separator)))
    for name in ("nodes.csv", "edges.csv"):
        assert f"{name}: columns are separated by {word}" in caplog.text
    assert main(["info", str(tmp_path), "--json"]) == 0
    assert capsys.readouterr().out.startswith("{")


def test_commas_are_not_said(tmp_path, caplog):
    is_expected(write(tmp_path, text(NODES)))
    assert caplog.text == ""
    # Labels may contain other separators.
    data = files.read(write(tmp_path, "id,label,f;g\na,x;y,1\nb,x\ty,2\nc,x;y,3\n"))
    assert data.class_names == ["x\ty", "x;y"]
    assert data.feature_names == ["f;g"]
    assert caplog.text == ""


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_byte_order_marks(encoding, separator, tmp_path, caplog):
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    nodes, edges = (mark + text(rows, separator).encode(encoding) for rows in (NODES, EDGES))
    is_expected(write(tmp_path, nodes, edges))
    assert ("text is in UTF-" in caplog.text) == (encoding != "utf-8-sig")
    wrong = mark + text([*NODES, ["a", "x", "1"]], separator).encode(encoding)
    with pytest.raises(InputError, match=r"nodes\.csv: row 5, column 'id': got 'a', expected"):
        files.read(write(tmp_path, wrong, edges))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bytes_that_are_no_text_are_reported_with_their_row(end, tmp_path):
    rows = [*NODES, ["d", "café", "1"]]
    nodes = text(rows, end=end).encode("latin-1")
    with pytest.raises(InputError, match=r"row 5: got the byte 0xe9, expected text in UTF-8; conv"):
        files.read(write(tmp_path, nodes))
    header = text([["id", "caf\xe9"], ["a", "1"]], end=end).encode("latin-1")
    with pytest.raises(InputError, match=r"row 1: got the byte 0xe9, expected text in UTF-8; conv"):
        files.read(write(tmp_path, header))
    late = text([["id", "label"], *([f"n{i}", "x"] for i in range(60_000)), ["z", "é"]], end=end)
    with pytest.raises(InputError, match=r"row 60002: got the byte 0xe9"):
        files.read(write(tmp_path, late.encode("latin-1")))


def test_damaged_utf_16(tmp_path):
    nodes = text(NODES).encode("utf-16")
    with pytest.raises(InputError, match=r"nodes\.csv: (damaged text in UTF-16|row)"):
        files.read(write(tmp_path, nodes[:-1]))
    with pytest.raises(InputError, match=r"nodes\.csv: "):
        files.read(write(tmp_path, nodes[2:]))  # without its mark


@pytest.mark.parametrize("separator", [",", ";"])
def test_rows_above_a_megabyte(separator, tmp_path):
    long = "long " * 300_000
    rows = [*NODES[:3], ["c", long, "-2"], ["d", "y", "3"]]
    data = files.read(write(tmp_path, text(rows, separator)))
    assert data.class_names == [long, "x", "y"]
    assert data.x.squeeze(1).tolist() == [0.5, 1, -2, 3]
    names = [f"f{i:0100}" for i in range(11_000)]
    wide = [["id", *names], *([n, *["1"] * len(names)] for n in "abc")]
    assert files.read(write(tmp_path, text(wide, separator))).x.shape == (3, 11_000)
    wide[2].pop()
    with pytest.raises(InputError, match="row 3: got 11000 cells, expected 11001"):
        files.read(write(tmp_path, text(wide, separator)))
    rows[4][0] = "a"
    with pytest.raises(InputError, match=r"row 5, column 'id': got 'a'"):
        files.read(write(tmp_path, text(rows, separator)))


def test_mixed_line_endings_and_quoted_line_breaks(tmp_path):
    nodes = 'id,label,f\r\na,"x\r\n1",1\n\r\nb,"y\n2",2\r\nc,"x\r\n1",3'
    data = files.read(write(tmp_path, nodes, "source,target\na,b\r\nb,c\r"))
    assert data.class_names == ["x\r\n1", "y\n2"]
    assert data.num_nodes == 3
    with pytest.raises(InputError, match=r"row 9, column 'id': got 'a'"):
        files.read(write(tmp_path, nodes + "\na,x,1\n"))


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(CELLS.filter(bool), CELLS), min_size=1, max_size=6),
    separator=st.sampled_from(",;\t"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_cells_are_those_that_were_written(tmp_path, rows, separator, encoding, end):
    content = io.StringIO()
    writer = csv.writer(
        content, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL, doublequote=True
    )
    writer.writerows([["id", "label"], *rows])
    path = tmp_path / "nodes.csv"
    path.write_bytes(content.getvalue().encode(encoding))
    file = open_csv(path, Wanted({"id": None}, ("id",)))
    assert file.header == ["id", "label"]
    assert file.separator == separator
    table = file.table()
    read = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert [(a, b or "") for a, b in read] == [(a, b) for a, b in rows]

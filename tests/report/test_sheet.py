"""Tables in Markdown files and on a terminal."""

from pathlib import Path

import pytest
from rich.console import Console

from dgt import InputError
from dgt.report.sheet import Sheet, insert, rich_table


def test_a_table_is_inserted_between_its_comments(tmp_path: Path):
    path = tmp_path / "README.md"
    path.write_text("# Über\n\n<!-- other -->x<!-- /other -->\n<!-- a -->\nold\n<!-- /a -->\nend")
    insert(path, "a", "| new |\n")
    once = path.read_text()
    assert once == (
        "# Über\n\n<!-- other -->x<!-- /other -->\n<!-- a -->\n\n| new |\n\n<!-- /a -->\nend"
    )
    insert(path, "a", "| new |\n")
    assert path.read_text() == once


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- a -->",
        "<!-- /a -->",
        "<!-- /a --><!-- a -->",
        "<!-- a --><!-- a --><!-- /a -->",
        "<!-- a --><!-- /a --><!-- /a -->",
    ],
)
def test_missing_or_repeated_comments_are_refused(tmp_path: Path, text: str):
    path = tmp_path / "README.md"
    path.write_text(text)
    with pytest.raises(InputError, match="<!-- a --> and <!-- /a -->"):
        insert(path, "a", "| new |\n")
    assert path.read_text() == text


def test_unreadable_files_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="no such file"):
        insert(tmp_path / "none.md", "a", "")
    with pytest.raises(InputError, match="cannot read"):
        insert(tmp_path, "a", "")
    (tmp_path / "latin.md").write_bytes(b"\xe9<!-- a --><!-- /a -->")
    with pytest.raises(InputError, match="UTF-8"):
        insert(tmp_path / "latin.md", "a", "")


def test_a_table_fits_into_80_columns(capsys):
    columns = ("data set", "model", "accuracy", "std", "runs", "paper", "difference")
    row = ("chameleon-filtered", "dgt-light", "46.29±0.63", "1.75", "12/30", "46.29±0.63", "-0.12")
    sheet = Sheet("Title", columns, [row], ("A note.",), [])
    Console(width=80).print(rich_table(sheet))
    shown = capsys.readouterr().out
    for text in (*columns, *row, "Title", "A note."):
        assert text in shown

"""The code in the README and the documentation runs, and what they refer to exists."""

import ast
import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dgt.cli.app import app, main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

if not DOCS.is_dir():
    pytest.skip("needs the source folder", allow_module_level=True)

FENCE = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<code>.*?)^```$", re.DOTALL | re.M
)
# Commands that run in about a second. The others are only parsed.
QUICK = re.compile(
    r"dgt (info|predict|explain|report|train) my-|dgt reproduce .*--show|dgt \S+ --help"
)
LANGUAGES = {"python", "bash", "csv", "toml", "text"}


class Block(NamedTuple):
    page: str
    number: int
    language: str
    title: str | None
    code: str


def blocks(page: Path) -> Iterator[Block]:
    for number, found in enumerate(FENCE.finditer(page.read_text()), 1):
        name = str(page.relative_to(ROOT))
        yield Block(name, number, found["language"], found["title"], found["code"])


BLOCKS = [block for page in PAGES for block in blocks(page)]
# The files and commands of this page need a copy of the package: see tests/test_extending.py.
EXTENDING = "docs/architecture.md"


def of(language: str) -> list:
    return [
        pytest.param(block, id=f"{block.page}:{block.number}")
        for block in BLOCKS
        if block.language == language and not (block.page == EXTENDING and language == "bash")
    ]


def commands(block: Block) -> Iterator[list[str]]:
    """The words of each command in a shell block, without comments."""
    for line in block.code.replace("\\\n", " ").splitlines():
        for command in line.split("&&"):
            words = shlex.split(re.sub(r"\$\([^)]*\)", "SHELL", command), comments=True)
            if words:
                yield words


def dgt_words(words: list[str]) -> list[str] | None:
    """The words after ``dgt``, also if torchrun starts it."""
    if words[0] == "dgt":
        return words[1:]
    if "torchrun" in words and words[words.index("-m") + 1] == "dgt":
        return words[words.index("-m") + 2 :]
    return None


def fewer_epochs(code: str) -> str:
    """Makes a program faster. Other tests check that training works."""
    return re.sub(r"\bepochs=\d+", "epochs=5", code)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the graph of the page "Your own data" and the recorded results."""
    monkeypatch.chdir(tmp_path)
    for block in BLOCKS:
        if block.language == "csv":
            assert block.title, f"{block.page}: a table without a title"
            path = tmp_path / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.code)
    (tmp_path / "docs").mkdir()
    for page in DOCS.glob("*.md"):
        (tmp_path / "docs" / page.name).write_text(page.read_text())
    (tmp_path / "results").mkdir()
    shutil.copy(ROOT / "results" / "runs.jsonl", tmp_path / "results")
    return tmp_path


def test_every_block_is_of_a_known_language():
    assert {block.language for block in BLOCKS} <= LANGUAGES
    fences = sum(page.read_text().count("\n```") for page in PAGES)
    assert fences == 2 * len(BLOCKS) - sum(page.read_text().startswith("```") for page in PAGES)


@pytest.mark.parametrize("block", of("python"))
def test_python_runs(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    place = f"{block.page}, block {block.number}"
    exec(compile(fewer_epochs(block.code), place, "exec"), {"__name__": "example"})


@pytest.mark.parametrize("block", of("bash"))
def test_commands_are_known(block: Block, folder: Path):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for words in commands(block):
        arguments = dgt_words(words)
        if arguments is not None:
            if "--config" in arguments:
                path = Path(arguments[arguments.index("--config") + 1])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            app.parse_args(arguments, exit_on_error=False, print_error=False)
        elif words[0] == "make":
            assert set(words[1:]) <= targets
        else:
            assert words[0] in {"pip", "export", "pre-commit", "source"}, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_quick_commands_run(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    shells = [b for b in blocks(page) if b.language == "bash" and b.page != EXTENDING]
    for words in (words for block in shells for words in commands(block)):
        if QUICK.match(shlex.join(words)) and "--config" not in words:
            fewer = ["--epochs=5"] if words[1] == "train" and "--help" not in words else []
            assert main([*words[1:], *fewer]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("block", of("toml"))
def test_settings_files_are_valid(block: Block, folder: Path):
    Path("settings.toml").write_text(block.code)
    app.parse_args(
        ["train", "cora", "--config", "settings.toml"], exit_on_error=False, print_error=False
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_inline_commands_and_paths_exist(page: Path):
    inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text()))
    roots = "|".join(("src", "tests", "benchmarks", "results", "docs", "tools"))
    paths = {code for code in inline if re.fullmatch(rf"({roots})/[\w./-]+", code)}
    assert {path for path in paths if "NAME" not in path and not (ROOT / path).exists()} == set()
    for code in inline:
        if code.startswith("python benchmarks/"):
            assert (ROOT / code.split()[1]).is_file(), code


def test_inline_flags_exist(capsys: pytest.CaptureFixture[str]):
    text = "".join(page.read_text() for page in PAGES if page.name != "changelog.md")
    inline = " ".join(re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", inline))
    shown = ""
    for command in (
        "train",
        "prepare",
        "predict",
        "evaluate",
        "explain",
        "explore",
        "report",
        "info",
        "reproduce",
        "tune",
    ):
        assert main([command, "--help"]) == 0
        shown += capsys.readouterr().out
    assert {flag for flag in flags if flag not in shown} <= {"--help", "--max-restarts"}


def test_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Docstrings are part of the API reference."""
    from dgt import NodeClassifier, load

    (example,) = re.findall(
        r"\.\. code-block:: python\n\n((?:        .*\n|\n)+)", NodeClassifier.__doc__ or ""
    )
    monkeypatch.chdir(tmp_path)
    code = fewer_epochs(textwrap.dedent(example))
    exec(code, {"NodeClassifier": NodeClassifier, "data": load("cora")})


def test_the_small_table_has_the_recorded_figures():
    lines = (ROOT / "README.md").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| | Actor"))
    datasets = [cell.strip().lower() for cell in lines[first].split("|")[2:-1]]
    rows = json.loads((ROOT / "results" / "table1.json").read_text())["rows"]
    recorded = {(row["dataset"], row["model"]): row for row in rows}
    count = 0
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        model, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        for dataset, cell in zip(datasets, cells, strict=True):
            row = recorded[dataset, model.lower()]
            paper = "" if row["paper"] is None else f" ({row['paper']:.2f})"
            assert cell == f"{row['mean']:.2f}±{row['ci95']:.2f}{paper}"
            count += 1
    assert count == 25


def test_no_docstring_keeps_restructured_text(monkeypatch: pytest.MonkeyPatch):
    """The API reference would show markup that ``tools/docs/rst.py`` does not translate."""
    monkeypatch.syspath_prepend(ROOT / "tools" / "docs")
    from rst import markdown

    marks = re.compile(r":\w+:`|^ *\.\. .*::|`__?(?!\w)", re.M)
    left = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = markdown(ast.get_docstring(node) or "")
                left += [(path.name, found) for found in marks.findall(text)]
    assert left == []


def test_docstrings_become_markdown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "tools" / "docs")
    from rst import markdown

    text = 'Reads `"A title"\n<https://a.org>`_ at :math:`p_i`:\n\n.. math::\n    a\n    = b\n\nend'
    expected = 'Reads ["A title"](https://a.org) at \\(p_i\\):\n\n\n\\[a = b\\]\n\nend'
    assert markdown(text) == expected
    link = '<autoref identifier="dgt.nn.DGT" optional><code>{}</code></autoref>'
    assert markdown(":class:`~dgt.nn.DGT`") == link.format("DGT")
    assert markdown(":class:`DGT`", "dgt.nn.DGTLight") == link.format("DGT")


def test_the_settings_page_lists_every_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "tools" / "docs")
    from dgt.config import TABLES
    from settings import settings_page

    shown = settings_page()
    for name in TABLES:
        (line,) = re.findall(rf"^\| `{name}` \|.*$", shown, re.M)
        assert all(cell.strip() for cell in line.strip("|").split(" | ")), line

"""User modules, and errors in them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgt.errors import InputError
from dgt.system import plugins
from dgt.system.workers import share


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder that is not on the path yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    monkeypatch.setattr(plugins, "_loaded", {})
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("plugin_")]:
        del sys.modules[name]


def test_a_module_of_the_current_folder_is_imported_once(folder: Path, capsys):
    (folder / "plugin_one.py").write_text("print('hello')\nANSWER = 42\n")
    plugins.load("plugin_one")
    plugins.load("plugin_one")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "hello\n")  # stdout is for results
    assert sys.modules["plugin_one"].ANSWER == 42
    assert plugins.loaded() == ("plugin_one",)


def test_a_module_inside_a_package(folder: Path):
    (folder / "plugin_package").mkdir()
    (folder / "plugin_package" / "inner.py").write_text("ANSWER = 1\n")
    plugins.load("plugin_package.inner")
    assert sys.modules["plugin_package.inner"].ANSWER == 1


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("plugin_none", ["no module 'plugin_none'", "current folder"]),
        ("plugin_none.inner", ["no module 'plugin_none.inner'"]),
        ("plugin_one.py", ["'plugin_one.py'", "such as 'plugin_one'"]),
        ("./criteria/mine.py", ["expected a module name", "'criteria.mine'"]),
        ("", ["expected a module name"]),
    ],
)
def test_names_of_no_module(name: str, parts: list[str]):
    with pytest.raises(InputError) as caught:
        plugins.load(name)
    for part in parts:
        assert part in str(caught.value)
    assert plugins.loaded() == ()


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("\n1 / 0\n", ["line 2", "ZeroDivisionError: division by zero"]),
        ("import nothing_like_it\n", ["line 1", "nothing_like_it"]),
        ("\n\ndef f(:\n", ["line 3", "SyntaxError"]),
        ("raise ValueError('two\\nlines')\n", ["ValueError: two lines"]),
        ("import sys; sys.exit('stop')\n", ["SystemExit: stop"]),
        ("import json\njson.loads('x')\n", ["line 2", "JSONDecodeError"]),
    ],
)
def test_an_error_inside_a_module_is_one_line(folder: Path, code: str, parts: list[str]):
    (folder / "plugin_bad.py").write_text(code)
    with pytest.raises(InputError) as caught:
        plugins.load("plugin_bad")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("plugin_bad.py", *parts):
        assert part in message
    assert plugins.loaded() == ()


def modules(task: int) -> tuple[bool, tuple[str, ...]]:
    return "plugin_two" in sys.modules, plugins.loaded()


def test_workers_import_the_same_modules(folder: Path):
    (folder / "plugin_two.py").write_text("")
    plugins.load("plugin_two")
    assert dict(share(modules, [1], workers=1)) == {1: (True, ("plugin_two",))}

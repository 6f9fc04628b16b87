"""Modules that are executed on first use."""

import importlib
import inspect
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgt.system import deferred


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose package ``slow_package`` is deferred. It counts how often it is executed."""
    package = tmp_path / "slow_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import builtins\n"
        "builtins.executed = getattr(builtins, 'executed', 0) + 1\n"
        "from slow_package.part import LETTER\n"
        "NUMBER = 7\n"
    )
    (package / "part.py").write_text("import slow_package\nLETTER = 'a'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(deferred, "DEFERRED", deferred.DEFERRED | {"slow_package"})
    monkeypatch.setattr("builtins.executed", 0, raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    deferred.defer_imports()
    yield package
    for name in [name for name in sys.modules if name.startswith("slow_package")]:
        del sys.modules[name]


def executed() -> int:
    import builtins

    return builtins.executed  # type: ignore[attr-defined]


def test_module_is_executed_when_an_attribute_is_read(folder: Path):
    module = importlib.import_module("slow_package")
    assert executed() == 0
    assert module.NUMBER == 7
    assert module.LETTER == "a"
    assert executed() == 1
    assert type(module) is type(sys)
    assert importlib.import_module("slow_package") is module


def test_name_and_file_do_not_execute_it(folder: Path):
    module = importlib.import_module("slow_package")
    assert (module.__name__, module.__file__) == ("slow_package", str(folder / "__init__.py"))
    inspect.getmodule(inspect.currentframe())  # reads these of all modules
    assert executed() == 0


def test_submodule_executes_its_package(folder: Path):
    importlib.import_module("slow_package")
    assert importlib.import_module("slow_package.part").LETTER == "a"
    assert executed() == 1


def test_threads_see_a_whole_module(folder: Path):
    path = folder / "__init__.py"
    path.write_text("import time\ntime.sleep(0.2)\n" + path.read_text())
    module = importlib.import_module("slow_package")
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(module.NUMBER)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [7] * 4
    assert executed() == 1


def test_error_is_raised_on_every_use(folder: Path):
    path = folder / "__init__.py"
    path.write_text(path.read_text() + "raise RuntimeError('broken')\n")
    module = importlib.import_module("slow_package")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            module.NUMBER  # noqa: B018
    assert executed() == 2


def test_missing_module_is_reported_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(deferred, "DEFERRED", deferred.DEFERRED | {"no_such_package"})
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        importlib.import_module("no_such_package")


def test_lazy_names():
    get = deferred.lazy_names("mine", {"sqrt": "math"})
    assert get("sqrt")(9) == 3
    with pytest.raises(AttributeError, match="module 'mine' has no attribute 'cube'"):
        get("cube")

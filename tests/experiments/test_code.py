"""The digest of the code that decides a run: what it covers, and what it does not."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dgt
from dgt import NodeClassifier
from dgt.config import CRITERIA, ENCODINGS, MODELS, Config
from dgt.experiments import code
from dgt.experiments.paper import MODELS as PAPER_MODELS
from tests.small import QUICK, block_graph

# They carry settings, files and output, but do not decide a result.
OTHERS = (
    "config",
    "errors",
    "inspection",
    "runs",
    "storage",
    "system",
    "data.files",
    "data.recipe",
)


def executed(config: Config) -> set[str]:
    """Returns the modules of the package whose functions are called while a model is trained."""
    files: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    data = block_graph()
    sys.setprofile(look)
    try:
        NodeClassifier(config).fit(data)
    finally:
        sys.setprofile(None)
    root = Path(dgt.__file__).parent
    inside = [Path(name).relative_to(root) for name in files if Path(name).is_relative_to(root)]
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in inside}
    return {f"dgt.{name}" for name in names if not name.startswith(OTHERS)}


def covered(config: Config) -> set[str]:
    places = [place for place in code.places(config) if place is not None]
    return code.modules(places, config.record.inputs)


CONFIGS = {model: Config.of(model) for model in MODELS} | {
    f"dgt {name}": Config.of("dgt").replace(criteria=(name,))
    for name in CRITERIA
    if CRITERIA[name].tuned
}
CONFIGS |= {
    f"transformer {name}": Config.of("transformer").replace(encoding=name)
    for name in ENCODINGS
    if not name.endswith(("-in", "-out"))
}
PLUS = Config.of("dgt-plus")
CONFIGS |= {
    "dgt-plus directed": PLUS.replace(directed=True),
    "dgt-plus hide": PLUS.replace(labels="hide"),
    "dgt-plus none": PLUS.replace(labels="none"),
}
NAMES = {*PAPER_MODELS, "dgt-plus"}


@pytest.mark.parametrize("name", CONFIGS)
def test_all_code_that_runs_is_covered(name: str):
    config = CONFIGS[name].replace(**{**QUICK, "epochs": 2})
    assert executed(config) - covered(config) == set()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package whose code is hashed in place of the package's own."""
    copied = tmp_path / "dgt"
    ignored = shutil.ignore_patterns("__pycache__", "static", "*.npz")
    shutil.copytree(code.ROOT, copied, ignore=ignored)
    monkeypatch.setattr(code, "ROOT", copied)
    forget()
    yield copied
    forget()


def forget() -> None:
    for function in (code._digest, code._imports, code._tree, code._hash):
        function.cache_clear()


def digests() -> dict[str, str | None]:
    forget()
    return {name: code.digest(Config.of(name)) for name in NAMES}


DGT = {"dgt", "dgt-light"}
GT = {"gt-full", "gt-sparse"}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("training/loop.py", NAMES),
        ("data/splits.py", NAMES),
        ("data/large_benchmarks.py", NAMES),
        ("evaluate/classification.py", NAMES),
        ("baselines/mixhop.py", {"mixhop"}),
        ("baselines/gat.py", {"gat", "gatv2"}),
        ("baselines/structures/latent.py", {"geom-gcn"}),
        ("baselines/structures/distances.py", {"geom-gcn", "graphormer"}),
        ("baselines/deformable_gcn.py", {"deformable-gcn"}),
        ("encodings/katz.py", DGT),
        ("encodings/degree.py", {"dgt-plus"}),
        ("encodings/laplacian.py", GT),
        ("nn/from_config.py", DGT | {"dgt-plus"}),
        ("nn/plus.py", {"dgt-plus"}),
        ("nn/plus_config.py", {"dgt-plus"}),
        ("data/labels.py", NAMES),
        # GT's attention has the type of DGT's.
        ("ops/deformable_attention/cpu.py", DGT | GT | {"dgt-plus"}),
        ("ops/scored_attention/cpu.py", {"dgt-plus"}),
        ("ops/deformable_attention/triton.py", set()),
        ("sequences/ppr.py", {"dgt", "dgt-plus"}),
        ("sequences/alike.py", {"dgt-plus"}),
        ("sequences/make.py", DGT | {"dgt-plus"}),
        ("config/settings.py", set()),
        ("cli/train.py", set()),
        ("report/page.py", set()),
        ("experiments/runner.py", set()),
        ("explore/app.py", set()),
        ("storage/files.py", set()),
    ],
)
def test_which_files_decide_which_models(file: str, changed: set[str]):
    module = "dgt." + file.removesuffix(".py").replace("/", ".")
    assert {name for name in NAMES if module in covered(Config.of(name))} == changed


def test_a_change_is_seen_by_the_models_that_use_the_file(package: Path):
    before = digests()
    path = package / "baselines" / "gat.py"
    path.write_text(path.read_text() + "\nCHANGED = 1\n")
    after = digests()
    assert {name for name in before if before[name] != after[name]} == {"gat", "gatv2"}


def test_comments_docstrings_and_formatting_do_not_count(package: Path):
    path = package / "training" / "steps.py"
    before = digests()
    text = path.read_text().replace("    Args:", "    Arguments:")
    text = text.replace("(logits, ", "(\n        logits,  # why\n        ")
    path.write_text("# a comment\n" + text)
    assert digests() == before
    path.write_text(path.read_text().replace(" / len(nodes)", " * len(nodes)"))
    assert {name for name, found in digests().items() if found != before[name]} == set(before)


def test_criteria_and_encodings_are_those_of_the_run():
    base = code.digest(Config.of("dgt"))
    assert base == code.digest(
        Config.of("dgt").replace(lr=0.5, seed=7, split=3, criteria=Config.of("dgt").criteria)
    )
    others = [
        Config.of("dgt").replace(criteria=("bfs", "ppr")),
        Config.of("dgt").replace(encoding="laplacian"),
        Config.of("dgt").replace(encoding=("katz", "degree")),
        Config.of("dgt").replace(model="dgt-light"),
        PLUS,
        PLUS.replace(criteria=("ppr", "similarity")),
    ]
    found = [code.digest(config) for config in others]
    assert len({base, *found}) == 7


def own(data: Any, length: int) -> Any:
    return None


def test_code_outside_of_the_package_has_no_digest():
    assert code.digest(Config.of("dgt").replace(criteria=("bfs", own))) is None

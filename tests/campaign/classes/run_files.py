"""The files of a run's folder, damaged or with other contents: metrics, model, checkpoint, log."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dgt.runs.modelfile import NODE_KEYS
from dgt.storage.tensors import read_tensors, write_tensors
from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.judge import command
from tests.campaign.material import FLAGS, LONGER, copy, place, predictions, require_answer

RESULTS = ("metrics.jsonl", "model.safetensors", "predictions.parquet")


def cases() -> Iterator[Case]:
    yield from _metrics()
    yield from _model()
    yield from _checkpoint()
    yield from _log()
    yield from _controls()


def _train(folder: str, flags: list[str] = FLAGS) -> list[str]:
    return ["train", str(place() / "graph"), "--out", folder, "--quiet", "--resume", *flags]


PREDICT = ["predict", "run", "--quiet", "--out", "p.parquet"]


def _case(
    name: str,
    expect: Expect,
    tokens: list[str],
    folder: str,
    file: str,
    change: Callable[[Path], object],
    check: Callable[[Any], object] = lambda _: None,
) -> Case:
    def prepare() -> None:
        copy(folder)
        change(Path(folder, file))

    # The folder of the material differs from run to run.
    repeat = shlex.join(tokens).replace(str(place()), ".")
    return Case(
        name, expect, command(*tokens), prepare, (f"{file}|{folder}|graph",), check, f"dgt {repeat}"
    )


def _same_predictions(_: Any) -> None:
    require_answer(predictions("p.parquet"))


def _same_run(_: Any) -> None:
    """The resumed run must equal the uninterrupted one, bit for bit."""
    for name in RESULTS:
        same = Path("half", name).read_bytes() == (place() / "whole" / name).read_bytes()
        assert same, f"{name} differs from that of the uninterrupted run"


def _metrics() -> Iterator[Case]:
    path = place() / "run" / "metrics.json"
    content = path.read_bytes()
    document = json.loads(content)
    for name, changed in [*mutations.damaged(content, "metrics", 6), *mutations.texts()]:
        write = lambda p, c=changed: p.write_bytes(c)
        yield _case(
            f"metrics.json {name}, resumed", "either", _train("run"), "run", "metrics.json", write
        )
    for name, changed in mutations.documents(document, 2, "metrics", 40):
        write = lambda p, c=changed: p.write_text(json.dumps(c))
        yield _case(
            f"metrics.json {name}, resumed", "either", _train("run"), "run", "metrics.json", write
        )
    for value in mutations.REPLACEMENTS:
        write = lambda p, c=value: p.write_text(json.dumps(c))
        name = f"metrics.json is {mutations.short(value)}, predicted"
        yield _case(name, "either", PREDICT, "run", "metrics.json", write, _same_predictions)
    summary = json.loads((place() / "two" / "metrics.json").read_text())
    several = [*_train("two"), "--runs=2"]
    for name, changed in mutations.documents(summary, 1, "summary", 40):
        if name.startswith("runs."):
            continue  # as in a single run
        write = lambda p, c=changed: p.write_text(json.dumps(c))
        yield _case(f"summary {name}, resumed", "either", several, "two", "metrics.json", write)
    yield _case(
        "metrics.json is a folder, resumed",
        "refused",
        _train("run"),
        "run",
        "metrics.json",
        _folder,
    )


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _model() -> Iterator[Case]:
    path = place() / "run" / "model.safetensors"
    for name, changed in mutations.damaged(path.read_bytes(), "model", 40):
        write = lambda p, c=changed: p.write_bytes(c)
        # Nothing but the original is the right model.
        yield _case(
            f"model {name}", "either", PREDICT, "run", "model.safetensors", write, _same_predictions
        )
    yield _case("model is missing", "refused", PREDICT, "run", "model.safetensors", Path.unlink)
    yield _case("model is a folder", "refused", PREDICT, "run", "model.safetensors", _folder)
    tensors, metadata = read_tensors(path)
    facts = json.loads(metadata["dgt"])
    for name, changed in mutations.documents(facts, 3, "facts"):
        write = lambda p, c=changed: write_tensors(p, tensors, {"dgt": json.dumps(c)})
        yield _case(f"facts {name}", "either", PREDICT, "run", "model.safetensors", write)
    for name, text in mutations.texts():
        write = lambda p, t=text: write_tensors(p, tensors, {"dgt": t.decode(errors="replace")})
        yield _case(f"facts {name}", "refused", PREDICT, "run", "model.safetensors", write)
    for name, changed_tensors in _tensor_changes(tensors):
        write = lambda p, t=changed_tensors: write_tensors(p, t, metadata)
        yield _case(f"weights {name}", "refused", PREDICT, "run", "model.safetensors", write)
    yield _case(
        "model of another run",
        "refused",
        PREDICT,
        "run",
        "model.safetensors",
        lambda p: p.write_bytes((place() / "plain" / "model.safetensors").read_bytes()),
    )
    yield _case(
        "a checkpoint for a model",
        "refused",
        PREDICT,
        "run",
        "model.safetensors",
        lambda p: p.write_bytes((place() / "half" / "checkpoint.safetensors").read_bytes()),
    )


def _tensor_changes(tensors: dict[str, Tensor]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Yields tensors with one removed, renamed, or of other values, types or shapes."""
    yield "none at all", {}
    names = [name for name in tensors if name != NODE_KEYS]
    floats = [name for name in names if tensors[name].is_floating_point()]
    for name in (floats[0], floats[len(floats) // 2], floats[-1]):
        value = tensors[name]
        yield f"{name} missing", {n: v for n, v in tensors.items() if n != name}
        yield f"{name} renamed", {f"x{n}" if n == name else n: v for n, v in tensors.items()}
        for bad in (float("nan"), float("inf"), -float("inf")):
            changed = value.clone()
            changed.reshape(-1)[-1] = bad
            yield f"{name} holds {bad}", tensors | {name: changed}
        yield f"{name} larger", tensors | {name: torch.cat([value, value])}
        yield f"{name} empty", tensors | {name: value[:0].contiguous()}
        yield f"{name} with an axis more", tensors | {name: value[None].contiguous()}
        for dtype in (torch.int64, torch.bool, torch.complex64, torch.uint8):
            yield f"{name} of {dtype}", tensors | {name: value.to(dtype)}
    yield "one more", tensors | {"surplus": torch.ones(3)}


def _checkpoint() -> Iterator[Case]:
    path = place() / "half" / "checkpoint.safetensors"
    file, tokens = "checkpoint.safetensors", _train("half", LONGER)
    for name, changed in mutations.damaged(path.read_bytes(), "checkpoint", 40):
        write = lambda p, c=changed: p.write_bytes(c)
        yield _case(f"checkpoint {name}", "either", tokens, "half", file, write, _same_run)
    tensors, metadata = read_tensors(path)
    progress = json.loads(metadata["progress"])
    for name, document in mutations.documents(progress, 2, "progress"):
        write = lambda p, d=document: write_tensors(p, tensors, {"progress": json.dumps(d)})
        yield _case(f"progress {name}", "either", tokens, "half", file, write)
    for name, text in mutations.texts():
        write = lambda p, t=text: write_tensors(
            p, tensors, {"progress": t.decode(errors="replace")}
        )
        yield _case(f"progress {name}", "refused", tokens, "half", file, write)
    for name, changed_tensors in _tensor_changes(tensors):
        write = lambda p, t=changed_tensors: write_tensors(p, t, metadata)
        expect: Expect = "either" if name == "one more" else "refused"
        yield _case(f"state {name}", expect, tokens, "half", file, write)
    for name in ("random", *[n for n in tensors if n.startswith("adam.")][:3]):
        left = {n: v for n, v in tensors.items() if n != name}
        write = lambda p, t=left: write_tensors(p, t, metadata)
        yield _case(f"state without {name}", "refused", tokens, "half", file, write)
    short = {**tensors, "random": tensors["random"][:100]}
    yield _case(
        "state with a short random state",
        "refused",
        tokens,
        "half",
        file,
        lambda p: write_tensors(p, short, metadata),
    )
    model = place() / "run" / "model.safetensors"
    yield _case(
        "a model for a checkpoint",
        "refused",
        tokens,
        "half",
        file,
        lambda p: p.write_bytes(model.read_bytes()),
    )
    yield _case("checkpoint is a folder", "either", tokens, "half", file, _folder, lambda _: None)


def _log() -> Iterator[Case]:
    """Yields damaged logs, which are written anew from the checkpoint."""
    tokens = _train("half", LONGER)
    content = (place() / "half" / "metrics.jsonl").read_bytes()
    for name, changed in mutations.damaged(content, "log", 4):
        write = lambda p, c=changed: p.write_bytes(c)
        yield _case(
            f"control: log {name}", "accepted", tokens, "half", "metrics.jsonl", write, _same_run
        )
    yield _case(
        "control: log missing", "accepted", tokens, "half", "metrics.jsonl", Path.unlink, _same_run
    )


def _controls() -> Iterator[Case]:
    yield _case(
        "control: model unchanged",
        "accepted",
        PREDICT,
        "run",
        "model.safetensors",
        lambda p: None,
        _same_predictions,
    )
    yield _case(
        "control: checkpoint unchanged",
        "accepted",
        _train("half", LONGER),
        "half",
        "config.toml",
        lambda p: None,
        _same_run,
    )
    yield _case(
        "control: complete run resumed",
        "accepted",
        _train("run"),
        "run",
        "config.toml",
        lambda p: None,
    )
    yield _case(
        "control: no metrics, predicted",
        "accepted",
        PREDICT,
        "run",
        "metrics.json",
        Path.unlink,
        _same_predictions,
    )
    yield _case(
        "control: foreign file beside",
        "accepted",
        PREDICT,
        "run",
        "metrics.json",
        lambda p: p.with_name("notes.txt").write_text("x"),
        _same_predictions,
    )
    yield _case(
        "control: rest of a write beside",
        "accepted",
        _train("half", LONGER),
        "half",
        ".model.abc.part.safetensors",
        lambda p: p.write_text("x"),
        _same_run,
    )
    again = [*_train("run")[: -len(FLAGS)], *FLAGS]
    again[again.index("--resume")] = "--overwrite"
    yield _case(
        "control: overwritten",
        "accepted",
        again,
        "run",
        "metrics.json",
        lambda p: None,
        lambda _: require_answer(predictions("run/predictions.parquet")),
    )
    yield _case(
        "control: overwritten though damaged",
        "accepted",
        again,
        "run",
        "model.safetensors",
        lambda p: p.write_bytes(b""),
        lambda _: require_answer(predictions("run/predictions.parquet")),
    )

"""The benchmarks: summaries of measurements, and the models that they compare."""

import argparse
import importlib
import json
import math
from pathlib import Path

import pytest
import torch

from dgt import NodeClassifier
from dgt.cli import main
from dgt.config import Config
from dgt.data import load

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def row(model: str, size: str, nodes: int, seconds: float, form: str = "own") -> dict:
    return {
        "model": model, "size": size, "form": form, "nodes": nodes, "edges": 10 * nodes,
        "seconds": seconds, "peak_bytes": 5000 * nodes, "base_bytes": 0, "setup_seconds": 0.5,
        "threads": 2, "machine": "a machine", "date": "2020-01-01",
    }  # fmt: skip


def test_slopes_ratios_and_the_fastest_form(tmp_path: Path) -> None:
    import summary

    sweep = {"100k": 100_000, "1M": 1_000_000}
    rows = [
        row("dgt", "100k", 100_000, 0.3),
        row("dgt", "1M", 1_000_000, 3.0),
        row("dgt", "twitch", 168_114, 0.9),
        row("gcn", "twitch", 168_114, 3.0, "edges"),
        row("gcn", "twitch", 168_114, 2.0, "csr"),
        {**row("gat", "twitch", 168_114, 0), "failed": "MemoryError: "},
        row("dgt", "1M", 1_000_000, 60.0, "prepare"),
    ]
    results = summary.summarize(rows, sweep)
    assert results["slopes"] == {"dgt": pytest.approx(1)}
    assert results["memory_per_node_spread"] == {"dgt": 1}
    checks = {check["name"]: check for check in results["checks"]}
    assert checks["time of dgt to gcn, twitch"]["value"] == pytest.approx(0.45)
    assert checks["time of dgt to gcn, twitch"]["met"]
    assert all(check["met"] for check in checks.values())
    rows[2]["seconds"] = 1.5
    (check,) = (
        c for c in summary.summarize(rows, sweep)["checks"] if c["name"].startswith("time of dgt")
    )
    assert not check["met"]
    summary.write(tmp_path, rows, results)
    text = (tmp_path / "peers.md").read_text()
    assert "| 1M | dgt | own | 3 | 60 | 5.00 GB |" in text
    assert "| gcn | – | – | 2.00 |" in text
    assert "- time of dgt to gcn, twitch: 0.45, at most 0.6\n" in text
    assert "| twitch | gcn | csr | 2 | 0.5 | 0.84 GB |" in text
    assert "| twitch | gat | own | failed | – | – |" in text


def test_time_to_the_accuracy_of_a_peer(tmp_path: Path) -> None:
    import end_to_end_summary as summary

    def case(model: str, curve: list) -> dict:
        return {
            "size": "twitch", "model": model, "curve": curve, "stopped": "patience",
            "prepare_seconds": 0.5, "prepare_cpu_seconds": 0.7, "test_accuracy": 0.7,
            "peak_bytes": 2e9, "threads": 2, "machine": "a machine", "date": "2020-01-01",
        }  # fmt: skip

    gcn = case("gcn", [[2, 3, 0.5], [4, 6, 0.8], [6, 9, 0.8], [8, 12, 0.7]])
    dgt = case("dgt", [[1, 1, 0.2], [3, 3, 0.8], [5, 5, 0.9]])
    light = case("dgt-light", [[1, 1, 0.7]])
    lost = {"size": "twitch", "model": "sage", "failed": "MemoryError: ", **{
        name: gcn[name] for name in ("threads", "machine", "date")
    }}  # fmt: skip
    rows = [gcn, dgt, light, lost]
    checks = summary.summarize(rows)
    # GCN is first at its best after 4 s; DGT is as good after 3 s.
    assert [check["model"] for check in checks] == ["dgt", "dgt-light"]
    assert checks[0]["share"] == 0.75
    assert checks[0]["cpu_share"] == 0.5
    assert not checks[0]["met"]
    assert checks[0]["cpu_met"]
    assert "target: at most 0.5 (met by CPU time only)" in summary.sentences(checks)[0]
    assert checks[1]["share"] is None
    assert checks[1]["met"] is None
    dgt["curve"][0][2] = 0.8
    assert summary.summarize(rows)[0]["met"]
    gcn["stopped"] = "time"
    assert summary.summarize(rows)[0]["met"] is None
    # GCN has run for 12 CPU seconds; DGT has reached 0.9 in less than half of them.
    open_target = "(open: GCN was ended by a limit; met by CPU time unless it ends above 0.9000)"
    assert open_target in summary.sentences(summary.summarize(rows))[0]
    gcn["curve"][1][2] = 1.0
    assert "target: at most 0.5 (not met)" in summary.sentences(summary.summarize(rows))[0]
    gcn["curve"][1][2] = 0.8
    gcn["stopped"] = "patience"
    summary.write(tmp_path, rows, summary.summarize(rows))
    text = (tmp_path / "end_to_end.md").read_text()
    times = "0.5 (0.7) | 4.0 (6.0) | 8.0 (12.0) | 4.0 (6.0)"
    assert f"| twitch | gcn | {times} | 4 | 0.8000 | 0.7000 | 2.00 GB |" in text
    assert "- dgt-light, twitch: does not reach GCN's best validation accuracy\n" in text


@pytest.mark.parametrize("model", ["dgt", "dgt-light", "dgt-plus", "dgt-near"])
def test_time_to_accuracy_is_that_of_the_estimator(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import end_to_end

    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    # Few features: dgt-plus chooses three blocks, hides labels and averages weights.
    data = load("synthetic:nodes=1500,edges=6000,features=8,classes=5")
    found = end_to_end.train(data, {"model": model, "seed": 3}, 5, math.inf)
    given = end_to_end.config_of(model, seed=3).replace(epochs=5, patience=5)
    classifier = NodeClassifier(given).fit(data)
    assert [at[2] for at in found["curve"]] == [
        pytest.approx(row["val_accuracy"]) for row in classifier.history_
    ]
    assert found["test_accuracy"] == pytest.approx(classifier.score())
    assert found["stopped"] == "steps"


def test_every_model_can_be_told_apart_without_colors() -> None:
    import end_to_end
    import end_to_end_summary as summary

    assert set(summary.STYLES) == set(end_to_end.MODELS)
    for each in zip(*summary.STYLES.values(), strict=True):
        assert len(set(each)) == len(summary.STYLES)


def test_training_to_accuracy_stops_when_it_does_not_improve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import end_to_end

    monkeypatch.setattr(end_to_end, "PATIENCE", 3)
    data = load("synthetic:nodes=300,edges=1500,features=8,classes=3")
    found = end_to_end.train(data, {"model": "gcn", "seed": 0}, 1000, math.inf)
    values = [at[2] for at in found["curve"]]
    assert found["stopped"] == "patience"
    assert len(values) == values.index(max(values)) + 1 + 3
    late = end_to_end.train(data, {"model": "gcn", "seed": 0}, 1000, 0.0)
    assert (late["stopped"], len(late["curve"])) == ("time", 1)


def test_time_of_preparation_on_free_cores() -> None:
    import preparation

    saved: list[float] = []

    def share(own: int, shares: int, power: int) -> int:
        return sum(i**power for i in range(own, 200_000, shares))

    found = preparation.in_turn(2, saved, share, 9, 2)
    assert sum(found) == share(0, 1, 2)
    assert len(found) == 2
    assert saved[0] > 0
    assert preparation.in_turn(2, saved, share, 1, 2) == [sum(found)]
    assert saved[1] == 0  # one task: no other core would help
    row = {
        "size": "a", "cores": 2, "phases": {"b": (9.0, 3.0), "c": (9.0, 1.0)},
        "free_core_seconds": {"b": 1.5, "c": 1.0},
    }  # fmt: skip
    wanted = "a, 2 free cores: 2.5 s, idle for 1.0 of 5.0 core seconds: c 1.0"
    assert preparation.on_free_cores(row) == wanted


def test_finished_cases_are_not_measured_again(tmp_path: Path) -> None:
    import cases

    arguments = cases.parser_of("Title.", str(tmp_path)).parse_args([])
    asked = [{"size": "a", "threads": 2}, {"size": "b", "threads": 2}]
    seen: list[list[str]] = []

    def finish(*given: str) -> list[dict]:
        return cases.finish(
            [case for case in asked if case["size"] in given], in_a_process, arguments, "lines",
            lambda row: "", lambda missing: seen.append([case["size"] for case in missing]),
        )  # fmt: skip

    (row,) = finish("a")
    assert row["doubled"] == "aa"
    rows = finish("a", "b")
    assert rows[0] == row
    assert rows[1]["failed"] == "MemoryError: no room for b"
    arguments.show = True
    asked.append({"size": "c", "threads": 2})
    assert finish("b", "a", "c") == [rows[0], rows[1]]
    assert seen == [["a"], ["b"]]


def in_a_process(case: dict, arguments: argparse.Namespace) -> dict:
    if case["size"] == "b":
        raise MemoryError("no room for b")
    return {"doubled": 2 * case["size"]}


def test_both_forms_of_a_peer_are_the_same_function() -> None:
    import models

    data = load("synthetic:nodes=300,edges=1500,features=8,classes=3")
    for model, forms in models.FORMS.items():
        outputs = []
        for form in forms:
            torch.manual_seed(0)
            network, inputs = models.setup(model, form, data, Config.of("dgt"))
            logits = network.eval()(**inputs)
            assert logits.shape == (300, 3)
            outputs.append(logits)
        for other in outputs[1:]:
            torch.testing.assert_close(outputs[0], other, rtol=1e-4, atol=1e-4)


def test_a_truncated_line_is_skipped(tmp_path: Path) -> None:
    import measure

    (tmp_path / "lines").write_text('{"a": 1}\n{"a": 2}\n{"a"')
    assert measure.read_lines(tmp_path / "lines") == [{"a": 1}, {"a": 2}]
    assert measure.read_lines(tmp_path / "none") == []
    for name in ("lines", "none"):
        measure.append_line(tmp_path / name, {"a": 3})
    assert measure.read_lines(tmp_path / "lines") == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert measure.read_lines(tmp_path / "none") == [{"a": 3}]


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_every_benchmark_can_be_imported(name: str) -> None:
    importlib.import_module(name)


def test_operators_and_their_peers_are_the_same_function() -> None:
    """Except for dropout, which draws other random numbers."""
    import ops

    for name, (_, make) in ops.OPERATORS.items():
        forms = make(ops.QUICK)
        ours, theirs = (forms.step(form) for form in ops.FORMS)
        assert [x.shape for x in ours] == [x.shape for x in theirs]
        if not name.startswith("dropout"):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_the_operator_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    import ops

    ops.main(["--quick", "--json"])
    results = json.loads(capsys.readouterr().out)["operators"]
    assert [row["operator"] for row in results] == list(ops.OPERATORS)
    assert all(row["any_threads"]["ours"] for row in results)
    assert all(row["any_chunks"]["ours"] for row in results if row["any_chunks"])
    ops.main(["--quick", "--only", "dropout"])
    assert "F.dropout" in capsys.readouterr().out


def test_the_gpu_benchmark_runs_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    import gpu

    chosen = ["--models", "dgt", "reference", "gcn", "--sizes", "twitch"]
    gpu.main(["--device", "cpu", "--scale", "0.002", "--rounds", "1", "--json", *chosen])
    results = json.loads(capsys.readouterr().out)
    assert {row["operator"] for row in results["operators"]} == set(gpu.OPERATORS)
    assert all(row["met"] for row in results["operators"])
    assert [row["model"] for row in results["steps"]] == ["dgt", "reference", "gcn"]
    assert all(row["seconds"] > 0 for row in results["steps"])
    assert results["attention"][0]["share"] > 0
    gpu.show(results)
    assert "share of the bandwidth" in capsys.readouterr().out


def test_the_gpu_benchmark_finds_a_wrong_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    import gpu

    forms = gpu.OPERATORS["softmax"]
    cpu = torch.device("cpu")
    assert gpu.error_of("softmax", torch.float32, (5, 2, 4), cpu) < 1e-5

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return forms.operator(x) * (1.01 if x.dtype == torch.float32 else 1)

    monkeypatch.setitem(gpu.OPERATORS, "softmax", forms._replace(operator=wrong))
    assert gpu.error_of("softmax", torch.float32, (5, 2, 4), cpu) > 5e-3


def test_a_raw_table_of_payments_is_read_as_it_is(tmp_path: Path) -> None:
    import fraud

    accounts, edges, _ = fraud.generate(600, seed=0)
    fraud.write(tmp_path / "payments", accounts, edges)
    flags = ["--label=is_fraud", *fraud.SETTINGS, "--epochs=2", "--quiet"]
    assert main(["train", str(tmp_path / "payments"), "--out", str(tmp_path / "run"), *flags]) == 0
    recipe = NodeClassifier.load(tmp_path / "run").facts_.recipe or ()
    assert {c["column"]: c["kind"] for c in recipe} == {
        "opened": "date", "country": "category", "plan": "category", "verified": "boolean",
        "age": "number", "income": "number",
    }  # fmt: skip


@pytest.mark.slow
def test_links_give_fraud_away() -> None:
    import fraud

    # The rule for the defaults was made on the tables of seeds 0 to 2.
    rows = [fraud.compare(12_000, seed, *fraud.SETTINGS) for seed in (3, 4, 5)]
    names = ("dgt", "trees", "trees with neighbors")
    dgt, alone, near = (sum(row[name] for row in rows) for name in names)
    assert all(0.015 < row["positives"] < 0.025 for row in rows)
    assert dgt >= 2 * alone
    assert dgt >= 0.9 * near  # 0.97 when it was measured

"""What was trained on what, with which settings, and the metrics of the run."""

from collections.abc import Callable
from typing import Any

from dgt.config import Config
from dgt.data.splits import PARTS
from dgt.evaluate import METRICS
from dgt.report.display import count, percent, shown
from dgt.report.facts import Facts
from dgt.report.sections.blocks import Block, Cell, Section, Table, Text, labels_of
from dgt.system.progress import duration

PART_NAMES = {"train": "training nodes", "val": "validation nodes", "test": "test nodes"}


def section(facts: list[Facts]) -> Section:
    blocks: list[Block] = [Text(_sentence(each)) for each in facts]
    blocks += [Text(note, warning=True) for each in facts for note in each.notes]
    blocks += [_metrics(facts), _about(facts), _changed(facts), _settings(facts)]
    return Section("overview", "What was trained", blocks)


def _sentence(facts: Facts) -> str:
    sizes, metrics = facts.sizes, facts.metrics
    homophily = sizes["homophily"]
    alike = "" if homophily is None else f" {percent(homophily)} of its edges join equal labels."
    metric = metrics["metric"]
    value = _formatted(metric)(metrics["test"][metric])
    over = "" if facts.runs == 1 else f", on average over {facts.runs} runs"
    return (
        f"{shown(facts.path, 200)}: {metrics['model']} on {shown(facts.graph, 200)}, a graph with "
        f"{count(sizes['nodes'], 'node')}, {count(sizes['edges'], 'edge')}, "
        f"{count(sizes['features'], 'feature')} and {count(sizes['classes'], 'class', 'classes')}."
        f"{alike} The {metric} on test nodes is {value}{over}."
    )


def _metrics(facts: list[Facts]) -> Table:
    """Every number of ``metrics.json`` about the quality of the predictions."""
    parts = [(part, name) for part in reversed(PARTS) for name in facts[0].metrics[part]]
    parts = [(p, name) for p, name in parts if all(name in each.metrics[p] for each in facts)]
    several = any(each.runs > 1 for each in facts)
    caption = "Means over runs ± 95% confidence interval (standard deviation)." if several else ""
    if len(facts) == 1:
        names = dict.fromkeys(name for _, name in parts)
        rows = [[name, *(_metric(facts[0], p, name) for p in PARTS)] for name in names]
        return Table(("metric", *PART_NAMES.values()), rows, caption=caption)
    rows = [
        [f"{name}, {PART_NAMES[p]}", *(_metric(each, p, name) for each in facts)]
        for p, name in parts
    ]
    return Table(("metric", *labels_of(facts)), rows, caption=caption)


def _metric(facts: Facts, part: str, name: str) -> Cell:
    metrics, text = facts.metrics, _formatted(name)
    value = metrics[part][name]
    shown_value = text(value)
    if facts.runs > 1:
        ci95, std = metrics[f"{part}_ci95"][name], metrics[f"{part}_std"][name]
        shown_value += f" ± {text(ci95)} ({text(std)})"
    chosen = part == "test" and name == metrics["metric"]
    return Cell(shown_value, metric=f"{part}.{name}", value=value, mark=chosen)


def _about(facts: list[Facts]) -> Table:
    lines: dict[str, Callable[[Facts], str]] = {
        "graph": lambda each: shown(each.graph, 200),
        "nodes": lambda each: f"{each.sizes['nodes']:,}",
        "edges, undirected": lambda each: f"{each.sizes['edges']:,}",
        "features": lambda each: f"{each.sizes['features']:,}",
        "classes": lambda each: f"{each.sizes['classes']:,}",
        "labeled nodes": lambda each: f"{each.sizes['labelled']:,}",
        "training / validation / test nodes": lambda each: " / ".join(
            f"{each.sizes[part]:,}" for part in PARTS
        ),
        "split": _split,
        "model": lambda each: str(each.metrics["model"]),
        "parameters": lambda each: f"{each.metrics['parameters']:,}",
        "best epoch of all epochs": _epochs,
        "time of training": lambda each: duration(each.metrics["seconds"]),
        "device": lambda each: str(each.metrics["device"]),
        "versions": lambda each: ", ".join(
            f"{name} {version}" for name, version in each.metrics["versions"].items()
        ),
    }
    rows = [[name, *(text(each) for each in facts)] for name, text in lines.items()]
    return Table(("about", *_heads(facts, "this run")), rows, labels=1 + len(facts))


def _split(facts: Facts) -> str:
    kind, split = facts.metrics["splits"], facts.metrics.get("split")
    seed = facts.metrics["seed"]
    if facts.runs > 1:
        return f"{kind}, {facts.runs} runs, first seed {seed}"
    return f"{kind}{'' if split is None else f' {split}'}, seed {seed}"


def _epochs(facts: Facts) -> str:
    best, epochs = facts.metrics["best_epoch"], facts.metrics["epochs"]
    return f"{best} of {epochs}" if facts.runs == 1 else f"{best:.1f} on average; {epochs} in total"


def _changed(facts: list[Facts]) -> Block:
    """The settings that differ from the defaults of the model, or between the runs."""
    flat = [each.config.flat() for each in facts]
    defaults = [Config.of(each.config.model.model).flat() for each in facts]
    rows: list[list[str | Cell]] = [
        [name, *(_setting(own[name]) for own in flat), _setting(defaults[0][name])]
        for name in flat[0]
        if any(own[name] != default[name] for own, default in zip(flat, defaults, strict=True))
        or len({_setting(own[name]) for own in flat}) > 1
    ]
    if not rows:
        return Text("All settings have their default values.")
    caption = "Settings that are not the default." if len(facts) == 1 else "Settings that differ."
    default = f"default of {facts[0].config.model.model}"
    columns = ("setting", *_heads(facts, "value"), default)
    return Table(columns, rows, labels=len(columns), caption=caption)


def _settings(facts: list[Facts]) -> Table:
    flat = [each.config.flat() for each in facts]
    rows = [[name, *(_setting(own[name]) for own in flat)] for name in flat[0]]
    columns = ("setting", *_heads(facts, "value"))
    return Table(columns, rows, labels=len(columns), caption="All settings", folded=True)


def _setting(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, list | tuple):
        return " ".join(shown(each) for each in value)
    return shown(value)


def _heads(facts: list[Facts], single: str) -> list[str]:
    return [single] if len(facts) == 1 else labels_of(facts)


def _formatted(metric: str) -> Callable[[float], str]:
    # A metric of the user's own may not be registered now.
    return METRICS[metric].text if metric in METRICS else lambda value: f"{value:.4f}"

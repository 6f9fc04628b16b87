"""What several networks that predict together gain over a single one."""

from typing import Any

from dgt.data.benchmarks import BENCHMARKS
from dgt.evaluate import summarize
from dgt.experiments.accuracy import METRIC_NOTE, NOTHING, interval
from dgt.experiments.marks import code_counts, code_marks, code_notes
from dgt.experiments.table import Line, Setup, Table
from dgt.experiments.table1 import DATASETS, FEW_FEATURES, found
from dgt.report.sheet import Sheet

MODELS = ("gcn", "dgt-plus")
MEMBERS = 5
TITLE = f"One network and ensembles of {MEMBERS} networks with the same settings"
NOTE = (
    "Test accuracy in percent over the runs that both have finished, with 95% confidence "
    "intervals; the difference is that of the same runs."
)


def setups() -> list[Setup]:
    return [
        Setup(dataset, f"{model}/{members}", found(dataset, model).replace(members=members))
        for dataset in (*DATASETS, *FEW_FEATURES)
        for model in MODELS
        for members in (1, MEMBERS)
    ]


def lay_out(lines: list[Line]) -> Sheet:
    """Lays out the single networks and the ensembles of a model side by side."""
    of = {(line.setup.dataset, line.setup.variant): line for line in lines}
    pairs = [
        (dataset, model, of[dataset, f"{model}/1"], of[dataset, f"{model}/{MEMBERS}"])
        for dataset, model in dict.fromkeys(
            (line.setup.dataset, line.setup.config.model.model) for line in lines
        )
        if {(dataset, f"{model}/1"), (dataset, f"{model}/{MEMBERS}")} <= of.keys()
    ]
    numbers = [_numbers(*pair) for pair in pairs]
    rows = [
        (
            row["dataset"],
            row["model"],
            _shown(row["single"]),
            _shown(row["ensemble"]) + mark,
            _shown(row["difference"], sign=True),
            str(row["runs"]),
        )
        for row, mark in zip(numbers, code_marks(numbers), strict=True)
    ]
    datasets = dict.fromkeys(row["dataset"] for row in numbers)
    by_auroc = [d for d in datasets if BENCHMARKS[d].metric == "auroc"]
    notes = (METRIC_NOTE.format(" and ".join(by_auroc)),) if by_auroc else ()
    columns = ("data set", "model", "one network", f"{MEMBERS} networks", "difference", "runs")
    return Sheet(TITLE, columns, [*rows], (NOTE, *notes, *code_notes(numbers)), numbers)


def _numbers(dataset: str, model: str, single: Line, ensemble: Line) -> dict[str, Any]:
    """Returns the numbers of a row, over the runs that both lines have."""
    metric = BENCHMARKS[dataset].metric
    ones, many = (
        {(r.split, r.seed): 100 * r.test[metric] for r in line.records}
        for line in (single, ensemble)
    )
    both = sorted(ones.keys() & many.keys())

    def over(values: list[float]) -> dict[str, Any] | None:
        return summarize(values) if values else None

    counts = [code_counts(line) for line in (single, ensemble)]
    return {
        "dataset": dataset,
        "model": model,
        "single": over([ones[run] for run in both]),
        "ensemble": over([many[run] for run in both]),
        "difference": over([many[run] - ones[run] for run in both]),
        "runs": len(both),
        **{name: sum(count[name] for count in counts) for name in counts[0]},
    }


def _shown(found: dict[str, Any] | None, sign: bool = False) -> str:
    if found is None:
        return NOTHING
    text = interval(found["mean"], found["ci95"])
    return f"+{text}" if sign and found["mean"] >= 0 else text


TABLE = Table("ensembles", setups, lay_out)

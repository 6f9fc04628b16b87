"""``dgt reproduce``."""

import sys
from pathlib import Path

from rich.console import Console

from dgt.cli.options import Count, Flag, Quiet, Runs, Workers
from dgt.errors import InputError, nearest


def reproduce(
    table: str,
    /,
    *,
    datasets: list[str] | None = None,
    models: list[str] | None = None,
    runs: Runs | None = None,
    workers: Workers | None = None,
    results: Path = Path("results"),
    show: Flag = False,
    readme: Path | None = None,
    verify: Count | None = None,
    seed: int = 0,
    quiet: Quiet = False,
) -> int:
    """Reproduce a table of the paper and compare it with the published numbers.

    Finished runs are recorded in RESULTS/runs.jsonl with a digest of the code that decided them.
    They are repeated only if that code has changed. The table is printed and written to
    RESULTS/TABLE.json and RESULTS/TABLE.md; its figure, if any, to RESULTS/TABLE.png and
    RESULTS/TABLE.pdf.

    Args:
        table: table1 (accuracy on the benchmarks with tuned settings), defaults (the same with
            default settings), efficiency (FLOPs, time and memory), nodesort (orderings and
            criteria), encodings (positional encodings), interpolation (kernel and bilinear;
            epsilon, with figure), attention (which nodes Graphormer and DGT attend to, with
            figure) or ensembles (one network and five that predict together).
        datasets: Datasets to include. Default: all of the table, but the large ones (twitch-gamers,
            ogbn-arxiv, reddit) only if their files are on this machine.
        models: Models to include. Default: all of the table.
        runs: Number of runs per dataset and model: all published splits with seed 0, then with
            seed 1, and so on. Default: 30 for dgt, dgt-light and dgt-plus, 10 for other
            models and on large graphs.
        workers: Number of parallel runs, with one core each. Default: one per core.
        results: Folder for the recorded runs and the tables.
        show: Make the table from the recorded runs, without any training.
        readme: Markdown file in which to replace the text between the comments `<!-- TABLE -->`
            and `<!-- /TABLE -->` with the table.
        verify: Train this number of recorded runs again, chosen at random, and report which results
            differ, and whether other code, another processor or other libraries may be the cause.
            Nothing is written. The exit code is 1 if a result differs although the code and the
            machine are the same.
        seed: Seed of the choice of runs to verify.
    """
    from dgt import experiments
    from dgt.report.sheet import rich_table

    if table not in experiments.TABLES:
        raise InputError(f"unknown table {table!r}; {nearest(table, experiments.TABLES)}")
    if verify is not None:
        if show or readme is not None:
            raise InputError("--verify: cannot be combined with --show or --readme")
        sheet = experiments.verify(
            experiments.TABLES[table],
            verify,
            datasets=datasets,
            models=models,
            runs=runs,
            workers=workers,
            results=results,
            seed=seed,
            progress=not quiet,
        )
        Console().print(rich_table(sheet))
        return int(any(row["unexplained"] for row in sheet.numbers))
    try:
        sheet = experiments.reproduce(
            experiments.TABLES[table],
            datasets=datasets,
            models=models,
            runs=runs,
            workers=workers,
            results=results,
            show=show,
            readme=readme,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        print(
            f"\ninterrupted; finished runs are kept in {results}: "
            "run the same command again to continue",
            file=sys.stderr,
        )
        raise
    Console().print(rich_table(sheet))
    files = [results / f"{table}{suffix}" for suffix in (".json", ".md", ".png", ".pdf")]
    written = [*filter(Path.is_file, files), *([readme] if readme else [])]
    print(f"written: {', '.join(map(str, written))}")
    return 0

"""The command ``dgt``: parses, calls, prints.

What needs torch is imported inside the commands, so that ``--help`` answers at once.
"""

import json
import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Group, Parameter, Token
from cyclopts.argument import ArgumentCollection
from rich.console import Console
from rich.table import Table

from dgt import __version__
from dgt.config import (
    TABLES,
    Config,
    EncodingConfig,
    ModelConfig,
    SequenceConfig,
    TrainConfig,
    check_tables,
    own_defaults,
    read_preset,
    read_toml,
)
from dgt.errors import InputError, RankError, nearest

if TYPE_CHECKING:
    from dgt.explain import Explanation

EXAMPLES = """\
Examples:

    dgt train cora
    dgt train chameleon --model dgt-light --runs 10
    dgt train cora --model gcn
    dgt train my-graph --out my-run      (a folder with nodes.csv and edges.csv)
    dgt predict my-run --out predictions.csv
    dgt explain my-run NODE --out keys.png
    dgt info my-graph
    dgt prepare my-graph --shard 0/4     (ahead of training, a part of a large graph's sequences)
    dgt tune my-graph --trials 100
    dgt reproduce table1 --datasets chameleon
"""
DEFAULTS = Config()


def _settings_from_files(
    app: App, commands: tuple[str, ...], arguments: ArgumentCollection
) -> None:
    """Fills in, for flags that were not given, what the files of settings say: that of --config,
    then the preset; for a run that is resumed, its own."""
    given = {argument.name: argument.tokens for argument in arguments}
    for token in given.get("--config", []):
        _fill_in(arguments, read_toml(Path(token.value)), token.value)
    preset = any(token.implicit_value is True for token in given.get("--preset", []))
    if preset and given.get("GRAPH"):
        graph, model = given["GRAPH"][0].value, _model(arguments)
        _fill_in(arguments, read_preset(graph, model), f"preset {graph}-{model}")
    elif given.get("--resume") and given.get("--out") and not given.get("--config"):
        path = Path(given["--out"][0].value) / "config.toml"
        if path.is_file():
            _fill_in(arguments, read_toml(path), str(path))
    if "--given" in given:
        _note_given(arguments)
    if "--model" in given:
        model = _model(arguments)
        _set(arguments, own_defaults(model), f"default of {model}")


def _fill_in(arguments: ArgumentCollection, tables: dict[str, Any], place: str) -> None:
    # A run's own config.toml also tells its graph and number of runs.
    tables = {name: t for name, t in tables.items() if name not in ("graph", "runs")}
    for values in check_tables(tables, place).values():
        _set(arguments, values, place)


def _set(arguments: ArgumentCollection, values: dict[str, Any], place: str) -> None:
    for name, value in values.items():
        argument = arguments.get(f"--{name.replace('_', '-')}")
        if argument.tokens:
            continue
        for index, single in enumerate(value if isinstance(value, tuple) else [value]):
            argument.append(
                Token(keyword=argument.name, implicit_value=single, source=place, index=index)
            )


def _note_given(arguments: ArgumentCollection) -> None:
    """Lets a command know which settings have a value of the user's, be it the default's."""
    note = arguments.get("--given")
    names = [a.name.removeprefix("--").replace("-", "_") for a in arguments if a.tokens]
    for index, name in enumerate(name for name in names if name in TABLES):
        note.append(Token(keyword=note.name, implicit_value=name, index=index))


def _model(arguments: ArgumentCollection) -> str:
    """The model that the flags or a file name, else the default."""
    for token in arguments.get("--model").tokens:
        return token.value or str(token.implicit_value)
    return DEFAULTS.model.model


app = App(
    name="dgt",
    help="Node classification with the Deformable Graph Transformer.",
    help_epilogue=EXAMPLES,
    version=__version__,
    config=_settings_from_files,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
    default_parameter=Parameter(negative_iterable=(), consume_multiple=True),
)
app["--help"].group = app["--version"].group = "Other"

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def _settings(title: str, order: int) -> Parameter:
    return Parameter(name="*", group=Group(title, sort_key=order))


@app.command
def train(
    graph: str,
    /,
    *,
    out: Path | None = None,
    runs: int = 1,
    config: Path | None = None,
    preset: Flag = False,
    resume: Flag = False,
    overwrite: Flag = False,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
    threads: int | None = None,
    sequences: Annotated[SequenceConfig, _settings("Sequences", 2)] = DEFAULTS.sequences,
    encoding: Annotated[EncodingConfig, _settings("Positional encoding", 3)] = DEFAULTS.encoding,
    model: Annotated[ModelConfig, _settings("Model", 4)] = DEFAULTS.model,
    training: Annotated[TrainConfig, _settings("Training", 5)] = DEFAULTS.train,
) -> None:
    """Train a model on a graph.

    Args:
        graph: A benchmark's name (cora, citeseer, chameleon, squirrel, actor, chameleon-filtered,
            squirrel-filtered, ogbn-arxiv, twitch-gamers, reddit), synthetic:arxiv,
            synthetic:nodes=1e6,edges=1e7 and the like for a graph made up, or the path of a folder,
            an .npz or a .pt file.
        out: Folder for the results. Unset: runs/GRAPH-1, or the next free number.
        runs: Number of runs, over splits and seeds; their mean, standard deviation and 95%
            confidence interval are printed.
        config: TOML file of settings; flags go before it.
        preset: Take the settings found for this benchmark and --model, which come with dgt; flags
            and --config go before them.
        resume: Continue the run in --out, with the settings it was begun with.
        overwrite: Replace the run in --out.
        json_: Print the metrics as JSON on stdout, everything else on stderr.
        quiet: Show no progress.
        threads: Number of CPU threads; the result is the same for any. Unset: all cores.
    """
    settings = Config(sequences=sequences, encoding=encoding, model=model, train=training)
    _require_at_least_one("--runs", runs)
    if resume and out is None:
        raise InputError("--resume: needs --out, the folder of the run to continue")
    if resume and overwrite:
        raise InputError("--resume and --overwrite: choose one of them")
    _use_threads(threads)

    from dgt import distributed, folder
    from dgt.datasets import load
    from dgt.runs import canonical, free_folder, train_runs

    if distributed.restarted() and out is not None:
        resume, overwrite = True, False
    try:
        with distributed.job():
            out = distributed.by_first(lambda: out or free_folder(graph))
            complete = resume and (out / folder.METRICS).is_file()
            metrics = train_runs(
                load(graph, settings.train.splits),
                settings,
                out,
                graph=canonical(graph),
                runs=runs,
                resume=resume,
                overwrite=overwrite,
                progress=not quiet and distributed.rank() == 0,
            )
    except KeyboardInterrupt:
        if out is not None and (out / folder.CONFIG).is_file():
            again = ["dgt", "train", graph, "--out", str(out), "--resume"]
            again += ["--runs", str(runs)] if runs > 1 else []
            print(f"\ninterrupted; to continue: {shlex.join(again)}", file=sys.stderr)
        raise
    if distributed.rank() > 0:
        return
    if complete:
        print(f"{out}: this run is already complete", file=sys.stderr)
    if json_:
        print(json.dumps(metrics, indent=2))
        return
    _show_accuracies(metrics)
    print(f"results in {out}")
    first = out / "run-00" if runs > 1 else out
    print(f"next: {shlex.join(['dgt', 'predict', str(first), '--out', 'predictions.csv'])}")


@app.command
def prepare(
    graph: str,
    /,
    *,
    out: Path | None = None,
    shard: str = "0/1",
    config: Path | None = None,
    preset: Flag = False,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
    threads: int | None = None,
    sequences: Annotated[SequenceConfig, _settings("Sequences", 2)] = DEFAULTS.sequences,
    encoding: Annotated[EncodingConfig, _settings("Positional encoding", 3)] = DEFAULTS.encoding,
    model: Annotated[ModelConfig, _settings("Model", 4)] = DEFAULTS.model,
    training: Annotated[TrainConfig, _settings("Training", 5)] = DEFAULTS.train,
) -> None:
    """Make a large graph's node sequences and Katz columns ahead of training.

    dgt train with the same settings finds them and reads them from their files. What is done is not
    done again: after Ctrl-C or a crash, the same command goes on. Several shards may run at the
    same time, on one machine or on several that share the folder; the files are the same for any
    number of shards and threads.

    Args:
        graph: A benchmark's name or a path, as for dgt train.
        out: Folder for the files, for DGT_CACHE to point to. Unset: the cache.
        shard: I/N: only every N-th block of nodes, from the I-th on; I goes from 0 to N-1.
        config: TOML file of settings; flags go before it.
        preset: Take the settings found for this benchmark and --model.
        json_: Print the result as JSON.
        quiet: Show no progress.
        threads: Number of CPU threads. Unset: all cores.
    """
    settings = Config(sequences=sequences, encoding=encoding, model=model, train=training)
    which = _shard(shard)
    _use_threads(threads)

    from dgt.datasets import load
    from dgt.io import normalise
    from dgt.prepare import precompute

    data = normalise(load(graph, settings.train.splits))
    result = precompute(data, settings, out, which, progress=not quiet)
    if json_:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['made']} blocks made, {result['blocks']} in all, in {result['folder']}")
    if result["missing"]:
        print(f"{result['missing']} blocks are left to other shards")
        return
    where = f"DGT_CACHE={shlex.quote(str(out))} " if out else ""
    print(f"next, with the same settings: {where}{shlex.join(['dgt', 'train', graph])}")


@app.command
def predict(
    run: Path,
    graph: str | None = None,
    /,
    *,
    out: Path,
    quiet: Flag = False,
    threads: int | None = None,
) -> None:
    """Predict the class of every node of a graph with a trained model.

    Args:
        run: Folder that dgt train has made.
        graph: A benchmark's name or a path. Unset: the graph that the model was trained on.
        out: File for the predictions, .csv or .parquet, with the columns id, prediction and
            probability.
        quiet: Print nothing.
        threads: Number of CPU threads. Unset: all cores.
    """
    _use_threads(threads)

    from dgt.datasets import load
    from dgt.estimator import NodeClassifier
    from dgt.folder import read_settings
    from dgt.io import check_predictions_path

    check_predictions_path(out)
    classifier = NodeClassifier.load(run)
    name = graph or read_settings(run).graph
    if name is None:
        raise InputError(f"{run}: does not name its graph; give one after it")
    data = load(name, classifier.config.train.splits)
    classifier.write_predictions(out, data)
    if not quiet:
        print(f"{data.num_nodes} predictions in {out}", file=sys.stderr)


@app.command
def explain(
    run: Path,
    node: str,
    /,
    *,
    top: int = 20,
    out: Path | None = None,
    threads: int | None = None,
) -> None:
    """Show which nodes a prediction rests on: those that the node attends to most.

    The weights are those of the last block, over all criteria and heads; all keys together have
    100%. Models without attention over nodes cannot be explained in this way.

    Args:
        run: Folder that dgt train has made.
        node: The node's own id.
        top: Number of nodes to show.
        out: File for a figure of the same, .png or .pdf.
        threads: Number of CPU threads. Unset: all cores.
    """
    _require_at_least_one("--top", top)
    _use_threads(threads)

    from dgt import plots
    from dgt.datasets import load
    from dgt.estimator import NodeClassifier
    from dgt.folder import read_settings

    if out is not None:
        plots.check_path(out)
    classifier = NodeClassifier.load(run)
    graph = read_settings(run).graph
    if graph is None:
        raise InputError(f"{run}: does not name its graph")
    found = classifier.explain(node, top, load(graph, classifier.config.train.splits))
    _show_keys(found)
    if out is not None:
        plots.save(plots.attention({f"Node {found.id}": found}), out)
        print(f"figure in {out}")


@app.command
def info(graph: str, /, *, json_: Annotated[Flag, Parameter(name="--json")] = False) -> None:
    """Show the size and make-up of a graph.

    Args:
        graph: A benchmark's name or a path.
        json_: Print JSON.
    """
    from dgt import io
    from dgt.datasets import load

    facts = io.info(load(graph))
    if json_:
        print(json.dumps(facts, indent=2))
        return
    table = Table("", graph)
    for name, value in facts.items():
        table.add_row(
            name,
            "unknown"
            if value is None
            else f"{value:,.4g}"
            if isinstance(value, float)
            else f"{value:,}",
        )
    Console().print(table)


@app.command
def tune(
    graph: str,
    /,
    *,
    out: Path | None = None,
    trials: int | None = None,
    runs: int = 3,
    grid: Literal["paper"] | None = None,
    workers: int | None = None,
    config: Path | None = None,
    start: tuple[Path, ...] = (),
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
    given: Annotated[tuple[str, ...], Parameter(show=False)] = (),
    sequences: Annotated[SequenceConfig, _settings("Sequences", 2)] = DEFAULTS.sequences,
    encoding: Annotated[EncodingConfig, _settings("Positional encoding", 3)] = DEFAULTS.encoding,
    model: Annotated[ModelConfig, _settings("Model", 4)] = DEFAULTS.model,
    training: Annotated[TrainConfig, _settings("Training", 5)] = DEFAULTS.train,
) -> None:
    """Search for good settings on a graph.

    Settings are chosen by the mean validation accuracy of a few runs; test nodes play no part. The
    first trial has the defaults. A setting that is given, as a flag or in --config, stays as it is
    and is not searched. The same command again goes on with a search that was interrupted.

    Args:
        graph: A benchmark's name or a path, as for dgt train.
        out: Folder for the search: the best settings as GRAPH-MODEL.toml, every trial in
            trials.jsonl, and what the search needs to go on. Unset: tune/GRAPH-MODEL.
        trials: Number of trials in all, those that are in the folder already included. Unset: 50,
            or every point of the grid.
        runs: Runs that a trial's accuracy is the mean of: the first ones of dgt train --runs. A
            trial that is behind after one of them is given up.
        grid: Go through the paper's grid (for dgt lr, weight decay, blocks and gamma, 162 points)
            instead of choosing by Optuna's TPE. For the models that the paper compares with, TPE
            chooses from this grid too.
        workers: Number of processes, each of one thread. Unset: one for each core.
        config: TOML file of settings that are not searched; flags go before it.
        start: TOML files of settings that are tried right after the defaults, such as what an
            earlier search has found.
        json_: Print the result as JSON on stdout, everything else on stderr.
        quiet: Show no progress.
    """
    settings = Config(sequences=sequences, encoding=encoding, model=model, train=training)
    for name, value in (("--trials", trials), ("--runs", runs), ("--workers", workers)):
        _require_at_least_one(name, 1 if value is None else value)

    from dgt.datasets import short_name
    from dgt.tune import search

    first = [_over(settings, read_toml(path), str(path), given) for path in start]
    out = out or Path("tune") / "-".join(
        [short_name(graph), settings.model.model, *([grid] if grid else [])]
    )
    try:
        found = search(
            graph,
            settings,
            out,
            fixed=given,
            grid=grid,
            runs=runs,
            start=first,
            trials=trials,
            workers=workers,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        print("\ninterrupted; to continue: the same command again", file=sys.stderr)
        raise
    if json_:
        print(json.dumps(found, indent=2))
        return
    _show_trials(found)
    print(f"results in {out}")
    print(f"next: {shlex.join(['dgt', 'train', graph, '--config', found['preset']])}")


@app.command
def reproduce(
    table: str,
    /,
    *,
    datasets: list[str] | None = None,
    models: list[str] | None = None,
    runs: int | None = None,
    workers: int | None = None,
    results: Path = Path("results"),
    show: Flag = False,
    readme: Path | None = None,
    quiet: Flag = False,
) -> None:
    """Make a table of the paper: train all its runs and set our figures beside the published ones.

    Each run that is done goes on record in RESULTS/runs.jsonl and is never done again. The table
    is printed, and written as RESULTS/TABLE.json and RESULTS/TABLE.md; its figure, if it has one,
    as RESULTS/TABLE.png and RESULTS/TABLE.pdf.

    Args:
        table: table1 (accuracy on the benchmarks, with the settings found for each graph and
            model), defaults (the same with the default settings), efficiency (FLOPs, time and
            memory), nodesort (orderings and criteria), encodings (positional encodings),
            interpolation (kernel and bilinear; epsilon, with figure) or attention (whom Graphormer
            and DGT read, with figure).
        datasets: Data sets to take. Unset: all of the table, but of the large ones (twitch-gamers,
            ogbn-arxiv, reddit) only those whose files are on this machine.
        models: Models to take. Unset: all of the table.
        runs: Runs for each data set and model: the published splits with seed 0, then with seed 1,
            and so on. Unset: 30 for dgt and dgt-light, 10 for the other models and on large graphs.
        workers: Number of runs at the same time, each on one core. Unset: one for each core.
        results: Folder for the record of runs and for the tables.
        show: Train nothing; make the table from what is on record.
        readme: Markdown file in which to replace what stands between the comments
            `<!-- TABLE -->` and `<!-- /TABLE -->` with the table.
        quiet: Show no progress.
    """
    for name, value in (("--runs", runs), ("--workers", workers)):
        if value is not None:
            _require_at_least_one(name, value)

    from dgt import experiments, report

    if table not in experiments.TABLES:
        raise InputError(f"unknown table {table!r}; {nearest(table, experiments.TABLES)}")
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
            "to continue, give the same command again",
            file=sys.stderr,
        )
        raise
    Console().print(report.rich_table(sheet))
    files = [results / f"{table}{suffix}" for suffix in (".json", ".md", ".png", ".pdf")]
    written = [*filter(Path.is_file, files), *([readme] if readme else [])]
    print(f"written: {', '.join(map(str, written))}")


def main(tokens: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code: 0, 2 for a mistake in what the user gave,
    1 for a failure of the machine, 130 for Ctrl-C."""
    # Before torch is loaded: its threads then sleep while they wait for one another. Spinning, as
    # is their default, they make training many times slower where other programs run too.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.addLevelName(logging.WARNING, "warning")
    try:
        app(tokens, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RankError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever reads our output has enough; the flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _show_accuracies(metrics: dict[str, Any]) -> None:
    several = "test_accuracy_std" in metrics
    table = Table("nodes", "accuracy", *(["std", "95% CI"] if several else []))
    for part in ("train", "val", "test"):
        name = f"{part}_accuracy"
        row = [f"{metrics[name]:.2%}"]
        if several:
            row += [f"± {metrics[f'{name}_std']:.2%}", f"± {metrics[f'{name}_ci95']:.2%}"]
        table.add_row(part, *row)
    Console().print(table)


def _show_keys(found: "Explanation") -> None:
    label = "no label" if found.label is None else f"label {found.label}"
    table = Table("key", "weight", "hops", "label", "prediction")
    table.title = f"Node {found.id}: {label}, prediction {found.prediction}"
    for key in found.keys:
        hops = "none" if key.hops is None else str(key.hops)
        table.add_row(str(key.id), f"{key.weight:.2%}", hops, key.label or "", key.prediction)
    Console().print(table)
    if found.same_label is not None:
        print(f"attention on nodes with its label: {found.same_label:.1%}")


def _show_trials(found: dict[str, Any]) -> None:
    from dgt.tune import describe

    table = Table("trial", "val accuracy", "settings")
    for trial in found["best"]:
        table.add_row(
            str(trial["trial"]), f"{trial['val_accuracy']:.2%}", describe(trial["settings"])
        )
    Console().print(table)
    if found["importances"]:
        table = Table("setting", "importance")
        for name, share in found["importances"].items():
            table.add_row(name, f"{share:.0%}")
        Console().print(table)


def _over(config: Config, tables: dict[str, Any], place: str, fixed: tuple[str, ...]) -> Config:
    """Settings with those of a file in their place, but for those that are fixed."""
    tables = check_tables({n: t for n, t in tables.items() if n not in ("graph", "runs")}, place)
    settings = {name: value for values in tables.values() for name, value in values.items()}
    return config.replace(**{n: v for n, v in settings.items() if n not in (*fixed, "model")})


def _shard(text: str) -> tuple[int, int]:
    own, slash, count = text.partition("/")
    if not slash or not own.isdecimal() or not count.isdecimal() or int(own) >= int(count):
        raise InputError(f"--shard: got {text!r}, expected I/N with I from 0 to N-1, such as 0/4")
    return int(own), int(count)


def _require_at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{name}: got {value}, expected at least 1")


def _use_threads(threads: int | None) -> None:
    if threads is None:
        return
    _require_at_least_one("--threads", threads)
    import torch

    torch.set_num_threads(threads)  # our own kernels use as many

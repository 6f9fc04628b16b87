"""``dgt prepare``."""

import shlex
from pathlib import Path

from dgt.cli.options import Flag, Json, Modules, Quiet, Threads, print_json, use_threads
from dgt.cli.settings import NO_FLAGS, SettingsFlags, require_used_flags
from dgt.errors import InputError

MOST_SHARDS = 1_000_000


def prepare(
    graph: str,
    /,
    *,
    out: Path | None = None,
    shard: str = "0/1",
    config: Path | None = None,
    preset: Flag = False,
    modules: Modules = (),
    json_: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    settings: SettingsFlags = NO_FLAGS,
) -> None:
    """Precompute the node sequences and Katz columns of a large graph.

    dgt train with the same settings memory-maps the files. Finished work is never repeated: after
    Ctrl-C or a crash, the same command continues. Shards may run in parallel, on one machine or
    on several that share the folder. The files do not depend on the number of shards or threads.

    Args:
        graph: Name of a benchmark or a path, as for dgt train.
        out: Output folder; set DGT_CACHE to it for training. Default: the cache.
        shard: I/N, with I from 0 to N-1: compute only every N-th segment of nodes, starting
            with segment I.
        config: TOML file with settings. Flags take precedence.
        preset: Use the tuned settings that dgt ships for this benchmark and --model.
    """
    chosen, which = settings.config(), _shard(shard)
    require_used_flags(chosen)
    use_threads(threads)

    from dgt.data import load
    from dgt.data.files import normalize
    from dgt.data.recipe import from_table
    from dgt.prepare import precompute, with_default_criteria
    from dgt.training.problem import Problem

    data = load(graph, chosen.train.splits, chosen.data)
    directed = chosen.data.directed
    # The features of a table, and the settings of a rule, depend on the training nodes.
    if from_table(data) or chosen.record.rule is not None:
        problem = Problem.of(data, chosen)
        data, chosen = problem.data, problem.config
    else:
        data = normalize(data, directed=directed)
        chosen = with_default_criteria(chosen, data)
    result = precompute(data, chosen, out, which, progress=not quiet)
    if json_:
        print_json(result)
        return
    print(f"{result['segments']} segments in {result['folder']}, {result['made']} of them new")
    if result["missing"]:
        print(f"{result['missing']} segments are left to other shards")
        return
    cache = f"DGT_CACHE={shlex.quote(str(out))} " if out else ""
    following = ["dgt", "train", graph, *(f"--import={module}" for module in modules)]
    print(f"next, with the same settings: {cache}{shlex.join(following)}")


def _shard(text: str) -> tuple[int, int]:
    index, slash, count = text.partition("/")
    if not slash or not index.isdecimal() or not count.isdecimal() or int(index) >= int(count):
        raise InputError(f"--shard: got {text!r}, expected I/N with I from 0 to N-1, such as 0/4")
    if int(count) > MOST_SHARDS:
        raise InputError(f"--shard: got {count} shards, expected at most {MOST_SHARDS}")
    return int(index), int(count)

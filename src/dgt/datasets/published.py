"""The benchmarks, from their published raw files: in a local folder, the cache, or by download."""

import contextlib
import io as streams
import logging
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torch_geometric.data import Data, download_url
from torch_geometric.datasets import Actor, Planetoid, WikipediaNetwork

from dgt import io
from dgt.datasets import large
from dgt.errors import InputError
from dgt.files import cache_folder

log = logging.getLogger("dgt")

_PLATONOV = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"


@dataclass(frozen=True)
class Benchmark:
    """How a benchmark is read, and what it must then hold."""

    read: Callable[[Path], Data]
    """Reads it from its raw files under a root folder, or downloads them there."""
    folder: str
    """Where under the root its raw files are."""
    figures: tuple[int | None, ...]
    """Nodes, undirected edges, features and classes; None where any number will do."""
    files: str = "*"
    """The names of its raw files."""
    splits: int = 10
    """The number of its published splits."""


def _planetoid(name: str, *figures: int) -> Benchmark:
    def read(root: Path) -> Data:
        return Planetoid(str(root / "planetoid"), name, split="geom-gcn")[0]

    return Benchmark(read, f"planetoid/{name}/geom-gcn/raw", figures)


def _wikipedia(name: str, *figures: int) -> Benchmark:
    def read(root: Path) -> Data:
        return WikipediaNetwork(str(root / "wikipedia"), name, geom_gcn_preprocess=True)[0]

    return Benchmark(read, f"wikipedia/{name}/geom_gcn/raw", figures)


def _filtered(name: str, *figures: int) -> Benchmark:
    def read(root: Path) -> Data:
        file = download_url(f"{_PLATONOV}/{name}.npz", str(root / "platonov"), log=False)
        return io.read_npz(Path(file))

    return Benchmark(read, "platonov", figures, f"{name}.npz")


def _actor(root: Path) -> Data:
    return Actor(str(root / "actor"))[0]


BENCHMARKS = {
    "cora": _planetoid("Cora", 2708, 5278, 1433, 7),
    "citeseer": _planetoid("CiteSeer", 3327, 4552, 3703, 6),
    "chameleon": _wikipedia("chameleon", 2277, 31371, 2325, 5),
    "squirrel": _wikipedia("squirrel", 5201, 198353, 2089, 5),
    "actor": Benchmark(_actor, "actor/raw", (7600, 26659, 932, 5)),
    "chameleon-filtered": _filtered("chameleon_filtered", 890, 8854, 2325, 5),
    "squirrel-filtered": _filtered("squirrel_filtered", 2223, 46998, 2089, 5),
    # Of ogbn-arxiv's 1,166,243 citations, the paper's number, some go both ways.
    "ogbn-arxiv": Benchmark(large.read_arxiv, large.ARXIV, (169_343, 1_157_799, 128, 40), splits=1),
    "twitch-gamers": Benchmark(
        large.read_twitch, large.TWITCH, (168_114, 6_797_557, None, 2), splits=5
    ),
    "reddit": Benchmark(large.read_reddit, large.REDDIT, (232_965, 11_606_919, 602, 41), splits=1),
}
NAMES = tuple(BENCHMARKS)
LARGE = ("twitch-gamers", "ogbn-arxiv", "reddit")


def read_published(name: str) -> Data:
    """A benchmark by name, with its published splits."""
    cached = _cached(name)
    if cached.is_file():
        try:
            data = io.read_npz(cached)
            _check(data, name, str(cached))
            return data
        except InputError as error:
            log.warning("%s; building it again", error)
    data = _build(name)
    try:
        io.write_npz(cached, data)
    except InputError as error:
        log.warning("%s; %s is not kept in the cache", error, name)
    return data


def is_here(name: str) -> bool:
    """Whether a benchmark can be read without a download."""
    return _cached(name).is_file() or _found(BENCHMARKS[name]) is not None


def _cached(name: str) -> Path:
    return cache_folder() / "graphs" / f"{name}.npz"


def _found(benchmark: Benchmark) -> Path | None:
    """The folder that has its raw files."""
    roots = (Path(root) for root in (os.environ.get("DGT_DATA"), cache_folder()) if root)
    folders = (root / benchmark.folder for root in roots)
    return next((folder for folder in folders if _raw_files(folder, benchmark)), None)


def _build(name: str) -> Data:
    """Reads a benchmark in a folder of its own: readers write beside the raw files, which may be
    read only or in use by another process."""
    benchmark = BENCHMARKS[name]
    folder = benchmark.folder
    found = _found(benchmark)
    with tempfile.TemporaryDirectory(prefix="dgt-") as temporary:
        root = Path(temporary)
        if found:
            for file in _raw_files(found, benchmark):
                _link(file, root / folder / file.relative_to(found))
        try:
            with _quiet():
                data = benchmark.read(root)
        except InputError:
            raise
        except Exception as error:
            # PyG, fsspec and urllib each have their own errors for a file that is not there.
            tried = f"read from {found}" if found else "downloaded"
            files = "its raw files" if benchmark.files == "*" else benchmark.files
            raise InputError(
                f"{name}: could not be {tried} ({type(error).__name__}: {error}); without a "
                f"network, put {files} in {cache_folder() / folder}, or set DGT_DATA to a folder "
                f"that has them in {folder}"
            ) from error
        data = io.normalise(data, name)
    _check(data, name, str(found) if found else "download")
    return data


def _raw_files(folder: Path, benchmark: Benchmark) -> list[Path]:
    """A benchmark's files, but for those that a reader has made from them."""
    files = folder.rglob(benchmark.files)
    return [file for file in files if file.is_file() and file.parent.name != "processed"]


def _link(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(file.resolve())
    except OSError:  # a platform without, or one that asks for rights
        shutil.copyfile(file, target)


def _check(data: Data, name: str, place: str) -> None:
    found = io.info(data)
    for key, value in zip(
        ("nodes", "edges", "features", "classes"), BENCHMARKS[name].figures, strict=True
    ):
        if value is not None and found[key] != value:
            raise InputError(f"{place}: not {name}: got {found[key]} {key}, expected {value}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the readers' notes off the terminal, and a dead connection from waiting for ever."""
    timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        with (
            contextlib.redirect_stdout(streams.StringIO()),
            contextlib.redirect_stderr(streams.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        socket.setdefaulttimeout(timeout)

"""The published benchmarks.

Their raw files are read from ``DGT_DATA``, from the cache, or downloaded. Those of the small ones
must have the published SHA-256 sums.
"""

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

from torch_geometric import datasets
from torch_geometric.data import Data

from dgt.data import files, raw_files
from dgt.data import large_benchmarks as large
from dgt.data.direction import is_directed
from dgt.errors import InputError
from dgt.storage.files import cache_folder

log = logging.getLogger("dgt")

_PLATONOV = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"


@dataclass(frozen=True)
class Benchmark:
    """How to read a benchmark, and the size it must have."""

    read: Callable[[Path], Data]
    """Reads the graph from its raw files in a root folder. Without :attr:`url`, it also downloads
    them if they are missing."""
    folder: str
    """Folder of its raw files, relative to the root folder."""
    figures: tuple[int | None, ...]
    """Number of nodes, undirected edges, features and classes; None if it is not checked."""
    files: str = "*"
    """Pattern that its raw files match."""
    splits: int = 10
    """Number of published splits."""
    metric: str = "accuracy"
    """The metric that it is compared by."""
    url: Callable[[str], str] | None = None
    """Returns the address of a raw file, for benchmarks in ``checksums.txt``."""
    directed: bool = False
    """Whether its edges are directed."""
    direction: str | None = None
    """Raw file with the direction of the edges, if it is a file of its own. Without it, the graph
    is read as undirected."""

    def checked_files(self) -> list[str]:
        """Returns the names of the raw files in ``checksums.txt``, without :attr:`direction`."""
        paths = map(Path, raw_files.checksums())
        inside = (path for path in paths if str(path.parent) == self.folder)
        return [path.name for path in inside if path.match(self.files)]


def _planetoid(name: str, *figures: int) -> Benchmark:
    def read(root: Path) -> Data:
        return datasets.Planetoid(str(root / "planetoid"), name, split="geom-gcn")[0]

    def url(file: str) -> str:
        if file.startswith("ind."):
            return f"{datasets.Planetoid.url}/{file}"
        return f"{datasets.Planetoid.geom_gcn_url}/splits/{file}"

    return Benchmark(read, f"planetoid/{name}/geom-gcn/raw", figures, url=url)


def _geom_gcn(base: Callable[[], str], name: str) -> Callable[[str], str]:
    """Returns the addresses of the files of a graph in the repository of Geom-GCN."""

    def url(file: str) -> str:
        return f"{base()}/{f'new_data/{name}' if file.endswith('.txt') else 'splits'}/{file}"

    return url


def _wikipedia(name: str, *figures: int) -> Benchmark:
    def read(root: Path) -> Data:
        return datasets.WikipediaNetwork(str(root / "wikipedia"), name, geom_gcn_preprocess=True)[0]

    url = _geom_gcn(lambda: datasets.WikipediaNetwork.processed_url, name)
    return Benchmark(read, f"wikipedia/{name}/geom_gcn/raw", figures, url=url, directed=True)


def _platonov(
    name: str, *figures: int, metric: str = "accuracy", directed: bool = False
) -> Benchmark:
    direction = f"{name}_directed.npz" if directed else None

    def read(root: Path) -> Data:
        data = files.read_npz(root / "platonov" / f"{name}.npz")
        if direction is not None and (root / "platonov" / direction).is_file():
            own = files.read_npz(root / "platonov" / direction, directed=True)
            data.directed_edge_index = own.directed_edge_index
        return data

    return Benchmark(
        read,
        "platonov",
        figures,
        f"{name}.npz",
        url=lambda file: f"{_PLATONOV}/{file}",
        metric=metric,
        directed=directed,
        direction=direction,
    )


def _actor(root: Path) -> Data:
    return datasets.Actor(str(root / "actor"))[0]


BENCHMARKS = {
    "cora": _planetoid("Cora", 2708, 5278, 1433, 7),
    "citeseer": _planetoid("CiteSeer", 3327, 4552, 3703, 6),
    "chameleon": _wikipedia("chameleon", 2277, 31371, 2325, 5),
    "squirrel": _wikipedia("squirrel", 5201, 198353, 2089, 5),
    "actor": Benchmark(
        _actor,
        "actor/raw",
        (7600, 26659, 932, 5),
        url=_geom_gcn(lambda: datasets.Actor.url, "film"),
        directed=True,
    ),
    "chameleon-filtered": _platonov("chameleon_filtered", 890, 8854, 2325, 5, directed=True),
    "squirrel-filtered": _platonov("squirrel_filtered", 2223, 46998, 2089, 5, directed=True),
    "minesweeper": _platonov("minesweeper", 10_000, 39_402, 7, 2, metric="auroc"),
    "tolokers": _platonov("tolokers", 11_758, 519_000, 10, 2, metric="auroc"),
    # The paper counts 1,166,243 directed citations, some of which go both ways.
    "ogbn-arxiv": Benchmark(
        large.read_arxiv, large.ARXIV, (169_343, 1_157_799, 128, 40), splits=1, directed=True
    ),
    "twitch-gamers": Benchmark(
        large.read_twitch, large.TWITCH, (168_114, 6_797_557, None, 2), splits=5
    ),
    "reddit": Benchmark(large.read_reddit, large.REDDIT, (232_965, 11_606_919, 602, 41), splits=1),
}
NAMES = tuple(BENCHMARKS)
LARGE = ("twitch-gamers", "ogbn-arxiv", "reddit")


def read_benchmark(name: str) -> Data:
    """Reads a benchmark with its published splits."""
    cached, kept = _cached(name), None
    if cached.is_file():
        try:
            kept = files.read_npz(cached)
            _check(kept, name, str(cached))
            if is_directed(kept) or not BENCHMARKS[name].directed:
                return kept
        except InputError as error:
            log.warning("%s; rebuilding it", error)
            kept = None
    try:
        data = _build(name)
    except InputError as error:
        if kept is None:
            raise
        # An older version has cached it without the direction of its edges.
        log.warning("%s; without them, the direction of the edges is not known", error)
        return kept
    try:
        files.write_npz(cached, data)
    except InputError as error:
        log.warning("%s; %s is not cached", error, name)
    return data


def is_here(name: str) -> bool:
    """Returns whether a benchmark can be read without a download."""
    return _cached(name).is_file() or _found(BENCHMARKS[name]) is not None


def _cached(name: str) -> Path:
    return cache_folder() / "graphs" / f"{name}.npz"


def _found(benchmark: Benchmark) -> Path | None:
    """Returns the folder with the raw files of a benchmark, if there is one."""
    roots = (Path(root) for root in (os.environ.get("DGT_DATA"), cache_folder()) if root)
    folders = (root / benchmark.folder for root in roots)
    return next((folder for folder in folders if _raw_files(folder, benchmark)), None)


def _build(name: str) -> Data:
    """Reads a benchmark from copies or links in a temporary folder.

    PyG's readers write next to the raw files, which may be read-only or in use by another
    process.
    """
    benchmark = BENCHMARKS[name]
    folder = benchmark.folder
    found, missing = _found(benchmark), None
    with tempfile.TemporaryDirectory(prefix="dgt-") as temporary:
        root = Path(temporary)
        try:
            with _quiet():
                if benchmark.url is not None:
                    names = benchmark.checked_files()
                    raw_files.obtain(names, found, root / folder, folder, benchmark.url)
                    missing = _obtain_direction(benchmark, found, root)
                elif found:
                    for file in _raw_files(found, benchmark):
                        _link(file, root / folder / file.relative_to(found))
                data = benchmark.read(root)
        except InputError:
            raise
        except Exception as error:
            # PyG, fsspec and urllib all raise different errors if a file is missing.
            tried = f"read from {found}" if found else "downloaded"
            wanted = "its raw files" if benchmark.files == "*" else benchmark.files
            raise InputError(
                f"{name}: could not be {tried} ({type(error).__name__}: {error}); without a "
                f"network connection, copy {wanted} to {cache_folder() / folder}, or set DGT_DATA "
                f"to a folder that contains them in {folder}"
            ) from error
        data = files.normalize(data, name, directed=benchmark.directed and missing is None)
    if missing is not None:
        log.warning("%s; the direction of the edges of %s is not known", missing, name)
    _check(data, name, str(found) if found else "download")
    return data


def _obtain_direction(benchmark: Benchmark, found: Path | None, root: Path) -> str | None:
    """Copies or downloads the file with the direction of the edges. Returns why it is missing."""
    file, folder = benchmark.direction, benchmark.folder
    if file is None or benchmark.url is None:
        return None
    try:
        raw_files.obtain([file], found, root / folder, folder, benchmark.url)
    except OSError as error:
        (root / folder / file).unlink(missing_ok=True)
        return f"{file}: could not be downloaded ({type(error).__name__}: {error})"
    return None


def _raw_files(folder: Path, benchmark: Benchmark) -> list[Path]:
    """Returns the raw files of a benchmark, without those that a reader created from them."""
    files = folder.rglob(benchmark.files)
    return [file for file in files if file.is_file() and file.parent.name != "processed"]


def _link(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(file.resolve())
    except OSError:  # symbolic links are not supported or not permitted
        shutil.copyfile(file, target)


def _check(data: Data, name: str, place: str) -> None:
    found = files.info(data)
    for key, value in zip(
        ("nodes", "edges", "features", "classes"), BENCHMARKS[name].figures, strict=True
    ):
        if value is not None and found[key] != value:
            raise InputError(f"{place}: not {name}: got {found[key]} {key}, expected {value}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences the readers and limits the time to wait for a connection."""
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

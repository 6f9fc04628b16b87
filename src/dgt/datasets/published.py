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
from pathlib import Path

from torch_geometric.data import Data, download_url
from torch_geometric.datasets import Actor, Planetoid, WikipediaNetwork

from dgt import io
from dgt.errors import InputError
from dgt.files import cache_folder

log = logging.getLogger("dgt")

_PLATONOV = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"


def _planetoid(root: Path, name: str) -> Data:
    return Planetoid(str(root / "planetoid"), name, split="geom-gcn")[0]


def _wikipedia(root: Path, name: str) -> Data:
    return WikipediaNetwork(str(root / "wikipedia"), name, geom_gcn_preprocess=True)[0]


def _actor(root: Path, name: str) -> Data:
    return Actor(str(root / "actor"))[0]


def _filtered(root: Path, name: str) -> Data:
    folder = root / "platonov"
    return io.read_npz(Path(download_url(f"{_PLATONOV}/{name}.npz", str(folder), log=False)))


# name: what reads it, its name there, the folder of its raw files, and what it must hold:
# nodes, undirected edges, features, classes
_PUBLISHED: dict[str, tuple[Callable[[Path, str], Data], str, str, tuple[int, int, int, int]]] = {
    "cora": (_planetoid, "Cora", "planetoid/Cora/geom-gcn/raw", (2708, 5278, 1433, 7)),
    "citeseer": (_planetoid, "CiteSeer", "planetoid/CiteSeer/geom-gcn/raw", (3327, 4552, 3703, 6)),
    "chameleon": (
        _wikipedia,
        "chameleon",
        "wikipedia/chameleon/geom_gcn/raw",
        (2277, 31371, 2325, 5),
    ),
    "squirrel": (
        _wikipedia,
        "squirrel",
        "wikipedia/squirrel/geom_gcn/raw",
        (5201, 198353, 2089, 5),
    ),
    "actor": (_actor, "actor", "actor/raw", (7600, 26659, 932, 5)),
    "chameleon-filtered": (_filtered, "chameleon_filtered", "platonov", (890, 8854, 2325, 5)),
    "squirrel-filtered": (_filtered, "squirrel_filtered", "platonov", (2223, 46998, 2089, 5)),
}
NAMES = tuple(_PUBLISHED)


def published(name: str) -> Data:
    """A benchmark by name, with its published splits."""
    cached = cache_folder() / "graphs" / f"{name}.npz"
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


def _build(name: str) -> Data:
    """Reads a benchmark with PyG's own class, in a folder of its own: the class writes beside the
    raw files, which may be read only or in use by another process."""
    read, own_name, folder, _ = _PUBLISHED[name]
    roots = [Path(root) for root in (os.environ.get("DGT_DATA"), cache_folder()) if root]
    wanted = f"{own_name}.npz" if read is _filtered else "*"
    found = next((r for r in roots if any((r / folder).glob(wanted))), None)
    with tempfile.TemporaryDirectory(prefix="dgt-") as temporary:
        root = Path(temporary)
        if found:
            (root / folder).mkdir(parents=True)
            for file in filter(Path.is_file, (found / folder).glob(wanted)):
                shutil.copyfile(file, root / folder / file.name)
        try:
            with _quiet():
                data = read(root, own_name)
        except Exception as error:
            # PyG, fsspec and urllib each have their own errors for a file that is not there.
            tried = f"read from {found / folder}" if found else "downloaded"
            files = wanted if read is _filtered else "its raw files"
            raise InputError(
                f"{name}: could not be {tried} ({type(error).__name__}: {error}); without a "
                f"network, put {files} in {cache_folder() / folder}, or set DGT_DATA to a folder "
                f"that has them in {folder}"
            ) from error
        data = io.normalise(data, name)
    _check(data, name, str(found / folder) if found else "download")
    return data


def _check(data: Data, name: str, place: str) -> None:
    found = io.info(data)
    wanted = dict(zip(("nodes", "edges", "features", "classes"), _PUBLISHED[name][3], strict=True))
    for key, value in wanted.items():
        if found[key] != value:
            raise InputError(f"{place}: not {name}: got {found[key]} {key}, expected {value}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps PyG's notes off the terminal, and a dead connection from waiting for ever."""
    timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        with contextlib.redirect_stderr(streams.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        socket.setdefaulttimeout(timeout)

"""Folders for caches, also on machines where neither the package nor a home folder is writable.

An example is a container that runs as another user than the one that has installed the package.
"""

import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def user_cache() -> Path:
    """Returns the folder ``dgt`` in the cache folder of the user, or a temporary folder if that
    cannot be written."""
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    try:
        if base and sys.platform != "darwin":
            folder = Path(base)
        else:
            inside = "Library/Caches" if sys.platform == "darwin" else ".cache"
            folder = Path.home() / inside
    except RuntimeError:  # there is no home folder
        return temporary()
    return folder / "dgt" if is_writable(folder / "dgt") else temporary()


def use_writable_caches() -> None:
    """Makes numba and Matplotlib cache their files where that is possible.

    By default, numba uses the folder of the package, then the home folder, and fails if it can
    write to neither of them. Matplotlib warns. Folders that the user has set are kept.
    """
    if "NUMBA_CACHE_DIR" not in os.environ and not is_writable(PACKAGE / "__pycache__"):
        os.environ["NUMBA_CACHE_DIR"] = str(user_cache() / "numba")
        if "numba" in sys.modules:  # it has already read the variable
            sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
    if "MPLCONFIGDIR" not in os.environ and not _has_home():
        os.environ["MPLCONFIGDIR"] = str(temporary() / "matplotlib")


@cache
def temporary() -> Path:
    """Returns a temporary folder that no other user can write to.

    Its name is fixed for a user, so that compiled functions are found again. numba unpickles them,
    so a folder of another user, who may have chosen the same name, is not used.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"dgt-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return _new()
    private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    if not private or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
        return _new()
    return folder if is_writable(folder) else _new()


def is_writable(folder: Path) -> bool:
    """Returns whether files can be written to a folder, or to the folder that it would be in."""
    for each in (folder, *folder.parents):
        if each.exists():
            return each.is_dir() and os.access(each, os.W_OK | os.X_OK)
    return False


def _new() -> Path:
    return Path(tempfile.mkdtemp(prefix="dgt-"))


def _has_home() -> bool:
    try:
        return is_writable(Path.home() / ".config")
    except RuntimeError:
        return False

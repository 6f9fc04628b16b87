"""The folders of the further members of an ensemble, in that of a run, which has the first one's
files."""

from pathlib import Path

from dgt.errors import InputError
from dgt.runs.files import CHECKPOINT, EPOCHS

MEMBERS = "members"


def member_path(run: Path, number: int) -> Path:
    """Returns the folder of a member; members are numbered from 1, and the first has none."""
    return run / MEMBERS / f"{number:02d}"


def find_members(run: Path) -> list[Path]:
    """Returns the folders of members, without links."""
    if (run / MEMBERS).is_symlink():
        return []
    found = (run / MEMBERS).glob("[0-9][0-9]*")
    return sorted(path for path in found if path.is_dir() and not path.is_symlink())


def require_members(run: Path) -> None:
    """Raises an error if a folder of a member is a link or a file, or if one of its files is a link
    or a folder."""
    places = [run / MEMBERS]
    if places[0].is_dir() and not places[0].is_symlink():
        places += sorted(places[0].glob("[0-9][0-9]*"))
    for path in places:
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise InputError(f"{path}: expected a folder, not a link or a file")
        for name in (CHECKPOINT, EPOCHS):
            require_file(path / name)


def require_file(path: Path) -> None:
    """Raises an error if a file of a run is a link or a folder."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InputError(f"{path}: expected a regular file, not a link or a folder")


def clear_members(run: Path) -> None:
    """Removes the files of all members. All other files are kept, and links are not followed."""
    for member in find_members(run):
        for name in (CHECKPOINT, EPOCHS):
            (member / name).unlink(missing_ok=True)
        for part in member.glob(".*.part*"):  # leftovers of interrupted writes
            part.unlink(missing_ok=True)
        if not any(member.iterdir()):
            member.rmdir()
    folder = run / MEMBERS
    if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()

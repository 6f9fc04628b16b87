"""Finds out which column of a table means what."""

from dataclasses import dataclass
from pathlib import Path

from dgt.errors import InputError, nearest
from dgt.system.notes import note_once

GUESSES = {
    "id": ("id", "node_id", "nodeid", "node", "user_id", "user", "account_id", "account"),
    "label": ("label", "class", "y"),
    "split": ("split",),
    "source": ("source", "src", "from", "source_id", "src_id", "from_id", "node1", "sender", "u"),
    "target": ("target", "dst", "to", "target_id", "dst_id", "to_id", "node2", "receiver", "v"),
    "weight": ("weight",),
}
"""Names of columns that are tried in this order, in any case."""


@dataclass(frozen=True)
class Wanted:
    """The columns that a table should have."""

    chosen: dict[str, str | None]
    """Column that the user has set for each role, or None to guess it."""
    required: tuple[str, ...]
    """Roles that must have a column."""
    optional: tuple[str, ...] = ()
    """Roles whose column may be missing even if the user has set it."""

    def guess(self, role: str, header: list[str]) -> str | None:
        """Returns the column of a role that is not set."""
        if role in header:
            return role
        lower = {name.lower(): name for name in reversed(header)}
        found = (lower[guess] for guess in GUESSES[role] if guess in lower)
        return next((name for name in found if name not in self.chosen.values()), None)

    def are_in(self, header: list[str]) -> bool:
        """Returns whether a header has all required columns."""
        return all((self.chosen[r] or self.guess(r, header)) in header for r in self.required)

    def find(self, path: str, header: list[str]) -> dict[str, str]:
        """Returns the column of each role.

        Args:
            path: Name of the file in error messages.
            header: Names of the columns.
        """
        found: dict[str, str] = {}
        for role, given in self.chosen.items():
            name = given or self.guess(role, header)
            if given is not None and given not in header:
                if role in self.optional:
                    continue
                raise InputError(
                    f"{path}: no column {given!r} for {role}; {nearest(given, header)}"
                )
            if name is not None:
                found[role] = name
            elif role in self.required:
                shown = ", ".join(repr(h) for h in header[:8]) + (", ..." if header[8:] else "")
                like = nearest(role, header)
                hint = f"{like} Otherwise, name" if like.endswith("?") else "name"
                raise InputError(
                    f"{path}: no column {role!r}, found {shown}; {hint} the column: --{role} NAME"
                )
        for role, name in found.items():
            twice = [other for other in found if found[other] == name and other != role]
            if twice:
                raise InputError(f"{path}: column {name!r} cannot be both {role} and {twice[0]}")
        guessed = [
            f"{name!r} as {role}"
            for role, name in found.items()
            if name not in (role, self.chosen[role])
        ]
        if guessed:
            note_once(f"{Path(path).name}: using {', '.join(guessed)}")
        return found

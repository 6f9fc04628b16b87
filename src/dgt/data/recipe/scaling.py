"""Fills in missing numbers and scales them, with numbers from the training nodes."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dgt.data.magnitude import LARGEST

# From this share of zeros on, nonnegative numbers are not centered: zero stays zero.
SPARSE_SHARE = 0.5


@dataclass(frozen=True)
class Scaling:
    """The features of a column of numbers: (number - center) / scale, and whether it is missing."""

    fill: float
    """Number for a missing cell: the median of the training nodes."""
    center: float = 0.0
    scale: float = 1.0
    missing: bool = False
    """Whether training nodes have missing cells, which then become a feature of their own."""

    def __post_init__(self) -> None:
        numbers = (self.fill, self.center, self.scale)
        if not all(type(each) in (int, float) and abs(each) <= LARGEST for each in numbers):
            raise ValueError(f"expected numbers of at most {LARGEST:g}, got {numbers}")
        if self.scale == 0 or not isinstance(self.missing, bool):
            raise ValueError(f"scale {self.scale}, missing {self.missing!r}")

    @classmethod
    def fit(cls, numbers: np.ndarray, standardize: bool) -> "Scaling":
        """Chooses the numbers for a column.

        Numbers that are nonnegative and mostly zero are divided by the largest one, so that
        columns of 0 and 1 stay as they are. All others get mean 0 and standard deviation 1.

        Args:
            numbers: Those of the training nodes, NaN for missing ones. Shape: ``(N,)``.
            standardize: Whether to scale.
        """
        from sklearn.preprocessing import MaxAbsScaler, StandardScaler

        present = ~np.isnan(numbers)
        if not present.any():
            return cls(fill=0.0, missing=False)
        fill, missing = float(np.median(numbers[present])), bool(not present.all())
        filled = np.where(present, numbers, fill)[:, None]
        if not standardize or set(np.unique(filled)) <= {0.0, 1.0}:
            return cls(fill, missing=missing)
        if filled.min() >= 0 and np.mean(filled == 0) >= SPARSE_SHARE:
            return cls(fill, scale=float(MaxAbsScaler().fit(filled).scale_[0]), missing=missing)
        scaler = StandardScaler().fit(filled)
        return cls(fill, float(scaler.mean_[0]), float(scaler.scale_[0]), missing)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the features of numbers, float32 ``(D, 1)`` or, with ``missing``, ``(D, 2)``."""
        absent = np.isnan(numbers)
        scaled = (np.where(absent, self.fill, numbers) - self.center) / self.scale
        columns = [scaled, absent] if self.missing else [scaled]
        return np.stack(columns, axis=1).astype(np.float32)

    def names(self, name: str) -> list[str]:
        """Returns the names of the features."""
        return [name, f"{name}: missing"] if self.missing else [name]

    def text(self) -> str:
        """Says what becomes of the column."""
        changed = (self.center, self.scale) != (0.0, 1.0)
        how = f"({{}} - {self.center:.4g}) / {self.scale:.4g}" if changed else "as it is"
        how = how.format("x").replace("(x - 0) / ", "x / ")
        return f"{how}; missing: {self.fill:.4g} and a column" if self.missing else how

    def stored(self) -> dict[str, Any]:
        """Returns plain values for a file."""
        return asdict(self)

"""Dates and times as a number and as points on the circles of the year, the week and the day."""

from typing import Any

import numpy as np

from dgt.config import DataConfig
from dgt.data.recipe import parse
from dgt.data.recipe.scaling import Scaling
from dgt.data.recipe.table import Cells

DAY = 86_400.0
CIRCLES = {"year": 365.2425 * DAY, "week": 7 * DAY, "day": DAY}
"""Seconds of each period."""


def fit_dates(
    cells: Cells, training: Cells, settings: DataConfig, option: str | None
) -> dict[str, Any] | None:
    """Scales the days since 1970; the circle of the day is only used if there are times."""
    seconds, order = parse.dates(cells, option)
    seen = np.append(seconds, np.nan)[training.codes]
    present = seen[~np.isnan(seen)]
    if not len(present):
        return None
    circles = [*CIRCLES][: 3 if (present % DAY != 0).any() else 2]
    days = Scaling.fit(seen / DAY, settings.standardize).stored()
    return {"order": order, "days": days, "circles": circles}


def date_rows(cells: Cells, fitted: dict[str, Any]) -> np.ndarray:
    seconds = np.append(parse.dates(cells, fitted["order"])[0], np.nan)
    days = Scaling(**fitted["days"]).rows(seconds / DAY)
    return np.concatenate([days, _circles(seconds, fitted["circles"])], axis=1)


def date_names(name: str, fitted: dict[str, Any]) -> list[str]:
    return [*Scaling(**fitted["days"]).names(name), *_circle_names(name, fitted["circles"])]


def date_text(fitted: dict[str, Any]) -> str:
    days = Scaling(**fitted["days"]).text().replace("x", "days")
    return f"{days}; place in the {', '.join(fitted['circles'])}"


def fit_times(
    cells: Cells, training: Cells, settings: DataConfig, option: str | None
) -> dict[str, Any] | None:
    """Uses the circle of the day, and a column for missing cells if there are any."""
    seen = np.append(parse.times(cells), np.nan)[training.codes]
    if np.isnan(seen).all():
        return None
    return {"missing": bool(np.isnan(seen).any())}


def time_rows(cells: Cells, fitted: dict[str, Any]) -> np.ndarray:
    seconds = np.append(parse.times(cells), np.nan)
    absent = np.isnan(seconds)[:, None].astype(np.float32)
    return np.concatenate([_circles(seconds, ["day"]), absent][: 1 + fitted["missing"]], axis=1)


def time_names(name: str, fitted: dict[str, Any]) -> list[str]:
    return _circle_names(name, ["day"]) + [f"{name}: missing"] * fitted["missing"]


def time_text(fitted: dict[str, Any]) -> str:
    return "place in the day" + ("; missing: a column" if fitted["missing"] else "")


def _circles(seconds: np.ndarray, circles: list[str]) -> np.ndarray:
    """Returns sine and cosine of each period, float32 ``(D, 2 * periods)``; 0 for NaN."""
    angles = [2 * np.pi * (seconds / CIRCLES[circle] % 1) for circle in circles]
    columns = [wave(angle) for angle in angles for wave in (np.sin, np.cos)]
    return np.nan_to_num(np.stack(columns, axis=1)).astype(np.float32)


def _circle_names(name: str, circles: list[str]) -> list[str]:
    return [f"{name}: {wave} of the {circle}" for circle in circles for wave in ("sin", "cos")]

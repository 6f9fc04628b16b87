"""Colors that are readable on a light and on a dark page."""

RUN_COLORS = (
    "#3b7fc4",
    "#d96c1e",
    "#2f9566",
    "#9566c7",
    "#cf4257",
    "#1f9393",
    "#a36d45",
    "#c45c9a",
)
DASHES = ("solid", "dashed", "dotted", "dashdot")
CLASS_COLORS = (
    "#3b7fc4", "#d96c1e", "#2f9566", "#cf4257", "#9566c7", "#a36d45",
    "#c45c9a", "#8a8f1c", "#1f9393", "#6474d8", "#b98500", "#5a8f3c",
)  # fmt: skip
REST_COLOR = "#8b9199"
RIGHT, WRONG = "#6d9dc9", "#d4303f"
KIND_COLORS = ("#8b9199", "#2f9566", "#cf4257", "#c9b458")  # itself, same, other, no label
HOP_COLORS = ("#8b9199", "#2b6cb0", "#4f97d3", "#8cbfe6", "#e0a15c", "#c2571a")

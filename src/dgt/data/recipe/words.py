"""Categories as one column each, and text as hashed words or parts of words."""

from typing import Any

import numpy as np

from dgt.config import DataConfig
from dgt.data.recipe import parse
from dgt.data.recipe.table import Cells

# Categories with a column of their own, the most common ones of the training nodes.
MOST_CATEGORIES = 100
# With this number of words on average, text is hashed by words, else by parts of words.
HASH_WORDS = 3
OTHER, MISSING = "(other)", "(missing)"


def fit_categories(
    cells: Cells, training: Cells, settings: DataConfig, option: str | None
) -> dict[str, Any] | None:
    """Chooses the categories that get a column: all, or the most common ones if there are many."""
    counted: dict[str, int] = {}
    for word, count in zip(parse.words(cells).to_pylist(), training.counts().tolist(), strict=True):
        if count:  # several values may differ only by spaces
            counted[word] = counted.get(word, 0) + count
    common = sorted(counted, key=lambda word: (-counted[word], word))
    missing = bool((training.codes < 0).any())
    if not common:
        return None
    return {
        "categories": sorted(common[:MOST_CATEGORIES]),
        "other": len(common) > MOST_CATEGORIES,
        "missing": missing,
    }


def category_rows(cells: Cells, fitted: dict[str, Any]) -> np.ndarray:
    """Returns one column per category, and one for others and for missing cells if there were any
    among the training nodes. A category without a column is a row of zeros."""
    known = {word: i for i, word in enumerate(fitted["categories"])}
    last = len(known)
    found = [known.get(word, -1) for word in parse.words(cells).to_pylist()]
    rows = np.zeros((len(found) + 1, last + fitted["other"] + fitted["missing"]), dtype=np.float32)
    index = np.array(found, dtype=np.int64)
    rows[np.flatnonzero(index >= 0), index[index >= 0]] = 1
    if fitted["other"]:
        rows[np.flatnonzero(index < 0), last] = 1
    rows[-1, -1] = float(fitted["missing"])
    if not fitted["missing"]:
        rows[-1] = 0
    return rows


def unseen(cells: Cells, fitted: dict[str, Any]) -> tuple[int, list[str]]:
    """Returns the number of nodes whose category has no column, and some of these categories."""
    known = set(fitted["categories"])
    counts = cells.counts()
    new = [
        (word, int(counts[i]))
        for i, word in enumerate(parse.words(cells).to_pylist())
        if word not in known and counts[i]
    ]
    return sum(count for _, count in new), sorted({word for word, _ in new})


def category_names(name: str, fitted: dict[str, Any]) -> list[str]:
    others = [OTHER] * fitted["other"] + [MISSING] * fitted["missing"]
    return [f"{name}={word}" for word in [*fitted["categories"], *others]]


def category_text(fitted: dict[str, Any]) -> str:
    words = fitted["categories"]
    shown = ", ".join(words[:4]) + (", ..." if len(words) > 4 else "")
    others = [OTHER] * fitted["other"] + [MISSING] * fitted["missing"]
    also = f", {' and '.join(others)}" if others else ""
    return f"a column for each of {len(words)} categories ({shown}){also}"


def fit_text(
    cells: Cells, training: Cells, settings: DataConfig, option: str | None
) -> dict[str, Any] | None:
    """Chooses between words and parts of words."""
    texts, counts = parse.words(cells).to_pylist(), training.counts()
    lengths = [len(text.split()) for i, text in enumerate(texts) if counts[i]]
    if not lengths:
        return None
    by_words = float(np.mean(lengths)) >= HASH_WORDS
    return {
        "hashed": "words" if by_words else "characters",
        "ngrams": [1, 2] if by_words else [3, 4],
        "columns": settings.text_columns,
    }


def text_rows(cells: Cells, fitted: dict[str, Any]) -> np.ndarray:
    """Returns hashed n-grams, each row of L2 norm 1. A missing cell is a row of zeros."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer="word" if fitted["hashed"] == "words" else "char_wb",
        token_pattern=r"(?u)\b\w+\b" if fitted["hashed"] == "words" else None,
        ngram_range=tuple(fitted["ngrams"]),
        n_features=fitted["columns"],
        dtype=np.float32,
    )
    texts = parse.words(cells).to_pylist()
    rows = np.zeros((len(texts) + 1, fitted["columns"]), dtype=np.float32)
    if texts:
        rows[:-1] = hashing.transform(texts).toarray()
    return rows


def text_names(name: str, fitted: dict[str, Any]) -> list[str]:
    return [f"{name}: hash {i}" for i in range(fitted["columns"])]


def text_text(fitted: dict[str, Any]) -> str:
    low, high = fitted["ngrams"]
    return f"{low} to {high} {fitted['hashed']} hashed into {fitted['columns']} columns"

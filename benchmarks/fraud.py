"""Compares dgt-plus with gradient-boosted trees on raw tables of accounts and payments.

    python benchmarks/fraud.py --nodes 12000 --tables 3

Each table is generated from a seed, in the form in which such data comes: ids and countries as
text, dates, missing cells, payments as ``src,dst``. About 2% of the accounts are fraudulent. Who is
fraudulent depends on whom an account deals with and hardly on its own columns, and is drawn at
random, so that no model can know it for sure. ``dgt train`` reads the table as it is, with the
defaults of dgt-plus or the flags that are given. The trees are scikit-learn's
HistGradientBoostingClassifier, with settings chosen on the validation nodes, once on the columns of
each account, and once with the true statistics of its neighbors, the planted ones included. All are
compared by their average precision on the test nodes. The rule for the defaults was made on the
tables of seeds 0 to 2, among others, so that only other tables, from seed 3 on, are a fair
comparison.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import OrdinalEncoder

COUNTRIES = ("AT", "BR", "DE", "ES", "FR", "IN", "KE", "NG", "PL", "US")
PLANS = ("basic", "plus", "business")
LAST_DAY = np.datetime64("2024-06-30")
POSITIVES = 0.02
SETTINGS = ("--model", "dgt-plus")
Columns = dict[str, np.ndarray]
TREES = [{"learning_rate": rate, "max_leaf_nodes": n} for rate in (0.03, 0.1) for n in (7, 31)]


def generate(nodes: int, seed: int) -> tuple[Columns, np.ndarray, Columns]:
    """Returns the table of accounts, the payments of shape ``(E, 2)``, and the true statistics of
    the neighbors."""
    rng = np.random.default_rng(seed)
    days = np.round(rng.gamma(1.3, 500, nodes)).astype(int)
    verified = rng.random(nodes) < np.where(days < 150, 0.45, 0.85)
    country = rng.choice(COUNTRIES, nodes, p=np.array([9, 9, 14, 10, 12, 16, 5, 8, 7, 10]) / 100)
    plan = rng.choice(PLANS, nodes, p=[0.7, 0.2, 0.1])
    age = np.clip(rng.normal(41, 14, nodes), 18, 92).round()
    income = rng.lognormal(10.2, 0.6, nodes).round(-2)

    # Some accounts send many payments, most receive few. Accounts prefer their own country.
    weights = rng.pareto(2.5, nodes) + 0.3
    first = rng.choice(nodes, 8 * nodes, p=weights / weights.sum())
    second = rng.integers(0, nodes, 8 * nodes)
    kept = (country[first] == country[second]) | (rng.random(8 * nodes) < 0.6)
    edges = np.stack([first, second], axis=1)[kept & (first != second)]

    # The planted signal: fraudulent accounts deal with new and with unverified accounts.
    own = {"days": days, "unverified": ~verified, "age": age, "income": income}
    own |= {each: plan == each for each in PLANS} | {each: country == each for each in COUNTRIES}
    near = neighbor_means(edges, own)
    score = 2.0 * scaled(near["unverified"]) - 2.0 * scaled(near["days"])
    score += 1.5 * ~verified + 1.0 * (plan == "business")
    low, high = -30.0, 10.0
    for _ in range(60):  # the intercept that gives the wanted share of positives
        middle = (low + high) / 2
        mean = (1 / (1 + np.exp(-(score + middle)))).mean()
        low, high = (middle, high) if mean < POSITIVES else (low, middle)
    fraud = rng.random(nodes) < 1 / (1 + np.exp(-(score + low)))

    accounts = {
        "account_id": np.array([f"AC-{number:06d}" for number in rng.permutation(nodes)]),
        "opened": (LAST_DAY - days).astype(str),
        "country": country,
        "age": age.astype(int).astype(str),
        "income": income.astype(int).astype(str),
        "plan": plan,
        "verified": np.where(verified, "yes", "no"),
        "is_fraud": fraud.astype(int),
    }
    for column, gaps, word in (("country", 0.03, ""), ("age", 0.1, ""), ("income", 0.2, "n/a")):
        accounts[column] = np.where(rng.random(nodes) < gaps, word, accounts[column])
    return accounts, edges, near


def scaled(numbers: np.ndarray) -> np.ndarray:
    return (numbers - numbers.mean()) / numbers.std()


def neighbor_means(edges: np.ndarray, columns: Columns) -> Columns:
    """Returns the mean of each column over the distinct neighbors of a node, and their number."""
    both = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    nodes = len(next(iter(columns.values())))
    degree = np.bincount(both[:, 0], minlength=nodes)
    sums = {
        name: np.bincount(both[:, 0], values[both[:, 1]].astype(float), nodes)
        for name, values in columns.items()
    }
    return {name: each / np.maximum(degree, 1) for name, each in sums.items()} | {"number": degree}


def write(folder: Path, accounts: Columns, edges: np.ndarray) -> None:
    """Writes the tables as CSV files."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = accounts["account_id"]
    payments = {"src": ids[edges[:, 0]], "dst": ids[edges[:, 1]]}
    for name, columns in (("nodes", accounts), ("edges", payments)):
        table = pa.table({title: pa.array(values) for title, values in columns.items()})
        pa.csv.write_csv(table, folder / f"{name}.csv")


def train(folder: Path, out: Path, *flags: str) -> pa.Table:
    """Runs ``dgt train`` and returns its predictions, in the order of the accounts."""
    command = [sys.executable, "-m", "dgt", "train", str(folder), "--label", "is_fraud"]
    subprocess.run([*command, "--out", str(out), "--quiet", *flags], check=True)
    return pa.parquet.read_table(out / "predictions.parquet")


def own_columns(accounts: Columns) -> np.ndarray:
    """Returns the columns of the accounts as the trees take them, the two categories first."""
    words = np.stack([accounts["country"], accounts["plan"]], axis=1)
    numbers = [
        accounts["opened"].astype("datetime64[D]").astype(float),
        accounts["verified"] == "yes",
        *(
            np.where(np.isin(cells, ["", "n/a"]), "nan", cells).astype(float)
            for cells in (accounts["age"], accounts["income"])
        ),
    ]
    return np.column_stack([OrdinalEncoder().fit_transform(words), *numbers])


def trees(columns: np.ndarray, fraud: np.ndarray, split: np.ndarray) -> float:
    """Returns the average precision of the trees on the test nodes, with the settings and the
    number of trees that are best on the validation nodes."""
    best = (-1.0, 0.0)
    nodes = {part: split == part for part in ("train", "val", "test")}
    for settings in TREES:
        model = HistGradientBoostingClassifier(
            **settings, max_iter=200, early_stopping=False, random_state=0,
            categorical_features=[0, 1],
        )  # fmt: skip
        model.fit(columns[nodes["train"]], fraud[nodes["train"]])
        stages = zip(
            model.staged_predict_proba(columns[nodes["val"]]),
            model.staged_predict_proba(columns[nodes["test"]]),
            strict=True,
        )
        for val, test in stages:
            score = average_precision_score(fraud[nodes["val"]], val[:, 1])
            found = average_precision_score(fraud[nodes["test"]], test[:, 1])
            best = max(best, (score, found), key=lambda pair: pair[0])
    return best[1]


def compare(nodes: int, seed: int, *flags: str) -> dict[str, Any]:
    """Returns the average precision of dgt and of the trees on one table."""
    accounts, edges, near = generate(nodes, seed)
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "payments", Path(place) / "run"
        write(folder, accounts, edges)
        predictions = train(folder, out, *flags)
        epochs = json.loads((out / "metrics.json").read_text())["epochs"]
    if predictions["id"].to_pylist() != accounts["account_id"].tolist():
        raise RuntimeError("the predictions are not in the order of the accounts")
    fraud = accounts["is_fraud"]
    split = np.array(predictions["split"].to_pylist())
    test, own = split == "test", own_columns(accounts)
    found = predictions["probability:1"].to_numpy()
    return {
        "seed": seed,
        "positives": float(fraud.mean()),
        "dgt": average_precision_score(fraud[test], found[test]),
        "trees": trees(own, fraud, split),
        "trees with neighbors": trees(np.column_stack([own, *near.values()]), fraud, split),
        "epochs": epochs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=12_000)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=3, help="the seed of the first table")
    chosen, flags = parser.parse_known_args()
    rows = []
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.tables):
        rows.append(compare(chosen.nodes, seed, *(flags or SETTINGS)))
        print({name: round(value, 3) for name, value in rows[-1].items()}, flush=True)
    dgt, alone, near = (
        np.mean([row[name] for row in rows]) for name in ("dgt", "trees", "trees with neighbors")
    )
    print(
        f"means: dgt {dgt:.3f}; {dgt / alone:.2f} times the trees, {dgt / near:.2f} times the "
        "trees with neighbors"
    )


if __name__ == "__main__":
    main()

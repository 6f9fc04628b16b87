"""Versions of the code that were shown to give the same results.

The digest of the code that decides a run (:mod:`dgt.experiments.code`) also changes if its results
do not. ``dgt reproduce NAME --verify`` shows whether they do: it trains recorded runs again with
today's code and compares all metrics and the best epoch.
"""

EQUAL: tuple[frozenset[str], ...] = (
    # Rare classes are counted among train and val nodes only, and the status of training names the
    # loss. 14 runs of dgt-plus on seven graphs,
    # trained again, were the same to the last digit; on these graphs, no class is rare.
    frozenset(
        {
            "17543a7b82eb9e3f3be2de738ff55e6b",
            "4cc2bd6faa099c98e80f957aba8ecd16",
            "09915fda085703f9e9e27e3e743751dc",
        }
    ),
    frozenset(
        {
            "af33e9bff4e4b659006911ef50b529c3",
            "a5b7263c9416060c1c81de736a635112",
            "ffdc90b95a6d8c8bb2b87a4a019b4709",
        }
    ),
    frozenset(
        {
            "48deebf2a8dd9e7f34b5bde04dd3b926",
            "36bd5fa93404990708969e9761ecec0b",
            "772d7ae28a855beda6b4a44284db8e18",
        }
    ),
)
"""Groups of digests. For the same settings, their code gives the same results."""


def same_results(code: str | None, other: str | None) -> bool:
    """Returns whether two digests are of code that gives the same results."""
    return code == other or any({code, other} <= group for group in EQUAL)

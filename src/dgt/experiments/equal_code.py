"""Versions of the code that were shown to give the same results.

The digest of the code that decides a run (:mod:`dgt.experiments.code`) also changes if its results
do not. ``dgt reproduce NAME --verify`` shows whether they do: it trains recorded runs again with
today's code and compares all metrics and the best epoch.
"""

from typing import NamedTuple


class Equal(NamedTuple):
    """Versions of the code that give the same results for the same settings."""

    codes: frozenset[str]
    datasets: frozenset[str] | None = None
    """The data sets for which this holds. None: all."""


def _codes(digests: str) -> frozenset[str]:
    return frozenset(digests.split())


EQUAL: tuple[Equal, ...] = (
    # dgt-plus since 0.2.0: rare classes are counted among train and val nodes only, adjacency
    # matrices and scores of hubs are computed in other ways, and there are ensembles and an average
    # after each step. The rule chooses other encodings on directed graphs with many features only.
    Equal(
        _codes(
            "17543a7b82eb9e3f3be2de738ff55e6b 4cc2bd6faa099c98e80f957aba8ecd16 "
            "09915fda085703f9e9e27e3e743751dc 0e60760c56eebd1ac4cee4093f9a69a2"
        ),
        frozenset({"cora", "citeseer", "minesweeper", "tolokers"}),
    ),
    Equal(_codes("4469306203a1efd46ce48886eaa085dd 0e60760c56eebd1ac4cee4093f9a69a2")),
    Equal(
        _codes(
            "af33e9bff4e4b659006911ef50b529c3 a5b7263c9416060c1c81de736a635112 "
            "ffdc90b95a6d8c8bb2b87a4a019b4709 8c35b2f056d0ad0f195b24f1caf86f47"
        )
    ),
    Equal(
        _codes(
            "48deebf2a8dd9e7f34b5bde04dd3b926 36bd5fa93404990708969e9761ecec0b "
            "772d7ae28a855beda6b4a44284db8e18 4245307cbd593dd1f88542fe6c2af5d2"
        ),
        frozenset({"minesweeper", "tolokers"}),
    ),
    Equal(_codes("e92e658f38680e43e37aa19feaaf676f 4245307cbd593dd1f88542fe6c2af5d2")),
    Equal(_codes("b4282c984b97a18f656ed148f92fb740 9e2f14997f7a0373c83def587691c0d3")),
    # Baselines: the same, as far as it concerns them.
    Equal(_codes("4ac5a872062acd18eb3ef48d8cfd9233 264e923d391dae2e087d924ac3352ce4")),
    Equal(
        _codes(
            "18641df7cf7d810fe00b594f39ac74a1 a8df6e4793fb0dc841e5d6e037912e47 "
            "15435cbfe565372a2fcd5bee38f035b5"
        )
    ),
    Equal(
        _codes(
            "cc7ceceb70b60a6582c771f19cec5018 191f70908d17c68094da20875fd338c1 "
            "bd6cd57d70ab0b586704fa30d2fae23b"
        )
    ),
    Equal(
        _codes(
            "845d17b042b0cff112e30d7a0d9e1090 de0b67aa232e80d405006ff7c7af7909 "
            "7d28af8ac415336b5f5efb6ce5926d49"
        )
    ),
    Equal(
        _codes(
            "5596d31cb95028da67a6bea64d9e8b12 24fef70c662d76ad7a8ef20c5d66093d "
            "7d04124cba256cc70b2e8769c8df5d73"
        )
    ),
    Equal(
        _codes(
            "e930071afb05042e8023866816f34b05 ce192b348de9e489a133aeb44e6f7539 "
            "48aff5b67aac4f78a51951a6fd754b2c"
        )
    ),
    Equal(
        _codes(
            "c014c5458a9253c115a9141043114cbb 93747fadcc05af13109dac00d1f95b53 "
            "8c72d3a57294fced892418951a00eb79"
        )
    ),
    Equal(
        _codes(
            "40a5470727255feccc680d52c894fe62 1d99f88e2f2b3bd74645e8e6399ac2b5 "
            "8fda74b917cc7d7efdc62247ae997469"
        )
    ),
    Equal(
        _codes(
            "a40c228db9610493505e87d4ba793646 e3015e27f18a2437793be23677b81fbe "
            "2268f97b527125b06b83e4ace7f09739"
        )
    ),
    Equal(
        _codes(
            "7ee23658db4dec6931b38cec5e8f6926 a0f6d15bb45110c57c95cdaab9c1b277 "
            "f0efae94c4556db8f0e3ecc460e584ed"
        )
    ),
    Equal(
        _codes(
            "285f598b7878b08ad1df9223065d0f08 735a31d51a5a2ff6f96cd6bba28838ef "
            "d2b9055fbfce784ba4ad4b7e7e8680d8"
        )
    ),
)
"""Versions of the code that were trained again and compared, see ``results/README.md``."""


def same_results(code: str | None, other: str | None, dataset: str) -> bool:
    """Returns whether two digests are of code that gives the same results on a data set."""
    return code == other or any(
        {code, other} <= equal.codes and (equal.datasets is None or dataset in equal.datasets)
        for equal in EQUAL
    )

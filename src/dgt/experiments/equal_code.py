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
    # dgt-plus: rare classes are counted among train and val nodes only, adjacency matrices and
    # scores of hubs are computed in other ways, ensembles were added, and averages are taken after
    # each step. The rule chooses another encoding for directed edges and many features.
    Equal(
        _codes(
            "09915fda085703f9e9e27e3e743751dc 17543a7b82eb9e3f3be2de738ff55e6b "
            "4cc2bd6faa099c98e80f957aba8ecd16 520ab7492d154f5a0db3a3595e0b67ac"
        ),
        frozenset({"cora", "citeseer", "minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "36bd5fa93404990708969e9761ecec0b 48deebf2a8dd9e7f34b5bde04dd3b926 "
            "772d7ae28a855beda6b4a44284db8e18 8e37794a509836bc89a4167e91d0a375"
        ),
        frozenset({"minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "0e60760c56eebd1ac4cee4093f9a69a2 4469306203a1efd46ce48886eaa085dd "
            "520ab7492d154f5a0db3a3595e0b67ac"
        )
    ),
    Equal(
        _codes(
            "9e2f14997f7a0373c83def587691c0d3 b4282c984b97a18f656ed148f92fb740 "
            "df02a7649a27952c48285fe696400134"
        )
    ),
    Equal(
        _codes(
            "4245307cbd593dd1f88542fe6c2af5d2 e92e658f38680e43e37aa19feaaf676f "
            "8e37794a509836bc89a4167e91d0a375"
        )
    ),
    Equal(_codes("8c35b2f056d0ad0f195b24f1caf86f47 5588cd971ac1a5812d2360cfda227953")),
    # Other models: the same, as far as it concerns them.
    Equal(
        _codes(
            "18641df7cf7d810fe00b594f39ac74a1 a8df6e4793fb0dc841e5d6e037912e47 "
            "1ade64ca2186c8b53f2dc03a66b41df5"
        )
    ),
    Equal(
        _codes(
            "191f70908d17c68094da20875fd338c1 cc7ceceb70b60a6582c771f19cec5018 "
            "b953ace166fd5fb924f6e828a862af14"
        )
    ),
    Equal(
        _codes(
            "845d17b042b0cff112e30d7a0d9e1090 de0b67aa232e80d405006ff7c7af7909 "
            "5722ed8e0b37efa26fc66852b3d31998"
        )
    ),
    Equal(
        _codes(
            "24fef70c662d76ad7a8ef20c5d66093d 5596d31cb95028da67a6bea64d9e8b12 "
            "548dbc0596d68b38fa95a06599ee7c66"
        )
    ),
    Equal(
        _codes(
            "ce192b348de9e489a133aeb44e6f7539 e930071afb05042e8023866816f34b05 "
            "74cf8149bc6683a12d933ae16b0f0e4a"
        )
    ),
    Equal(
        _codes(
            "93747fadcc05af13109dac00d1f95b53 c014c5458a9253c115a9141043114cbb "
            "1f155a3d547c5569875a44c5d870ce88"
        )
    ),
    Equal(
        _codes(
            "1d99f88e2f2b3bd74645e8e6399ac2b5 40a5470727255feccc680d52c894fe62 "
            "dfc223f6140f26d72f0012b6a2a94fc5"
        )
    ),
    Equal(
        _codes(
            "a40c228db9610493505e87d4ba793646 e3015e27f18a2437793be23677b81fbe "
            "c2978bef4bf5d8849982c0356bbee533"
        )
    ),
    Equal(
        _codes(
            "7ee23658db4dec6931b38cec5e8f6926 a0f6d15bb45110c57c95cdaab9c1b277 "
            "ad31fbf5b0b50c5339ad98bd9f778f4f"
        )
    ),
    Equal(
        _codes(
            "285f598b7878b08ad1df9223065d0f08 735a31d51a5a2ff6f96cd6bba28838ef "
            "e4bdcfefe54ebf893ee284e75988c271"
        )
    ),
    Equal(
        _codes(
            "264e923d391dae2e087d924ac3352ce4 4ac5a872062acd18eb3ef48d8cfd9233 "
            "9a8be91cf1f25a6261063dec2065692d"
        )
    ),
    Equal(_codes("be3498d6b99806a61f02ae4001ed1197 1dd9dc051dd33ee4e563d2ce295f83d9")),
    Equal(_codes("9df5e94c7d28ba8605b0a4821d4dd9e3 4f7e6a69f6771f9f33ea1f5a1b974010")),
    Equal(_codes("ada68bfbee2bce55c1737d321aec4734 80c37eb210233f8ad0b383c03e898086")),
    Equal(_codes("9deb856ac71de697e72c43de42fb393f ae46857d1c75cc001c6c60716e4b867c")),
)
"""Versions of the code whose runs were trained again and compared."""


def same_results(code: str | None, other: str | None, dataset: str) -> bool:
    """Returns whether two digests are of code that gives the same results on a data set."""
    return code == other or any(
        {code, other} <= equal.codes and (equal.datasets is None or dataset in equal.datasets)
        for equal in EQUAL
    )

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
            "4cc2bd6faa099c98e80f957aba8ecd16 2f4264da56275c45f4132d93ec059780"
        ),
        frozenset({"cora", "citeseer", "minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "36bd5fa93404990708969e9761ecec0b 48deebf2a8dd9e7f34b5bde04dd3b926 "
            "772d7ae28a855beda6b4a44284db8e18 7556dad60cd3dea891fc9f061ffc0ac7"
        ),
        frozenset({"minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "0e60760c56eebd1ac4cee4093f9a69a2 4469306203a1efd46ce48886eaa085dd "
            "2f4264da56275c45f4132d93ec059780"
        )
    ),
    Equal(
        _codes(
            "9e2f14997f7a0373c83def587691c0d3 b4282c984b97a18f656ed148f92fb740 "
            "2a78058860a0a31dd3f5131610f1d8c2"
        )
    ),
    Equal(
        _codes(
            "4245307cbd593dd1f88542fe6c2af5d2 e92e658f38680e43e37aa19feaaf676f "
            "7556dad60cd3dea891fc9f061ffc0ac7"
        )
    ),
    Equal(_codes("8c35b2f056d0ad0f195b24f1caf86f47 21f3caefa5bb1ef145db9eed88a0b83a")),
    # Other models: the same, as far as it concerns them.
    Equal(
        _codes(
            "18641df7cf7d810fe00b594f39ac74a1 a8df6e4793fb0dc841e5d6e037912e47 "
            "aaaecb4b5184a6025373a96b19a0b35e"
        )
    ),
    Equal(
        _codes(
            "191f70908d17c68094da20875fd338c1 cc7ceceb70b60a6582c771f19cec5018 "
            "e01d360bb230d1f01431887251f262ec"
        )
    ),
    Equal(
        _codes(
            "845d17b042b0cff112e30d7a0d9e1090 de0b67aa232e80d405006ff7c7af7909 "
            "275f3e862a6a6092849bdbccf56889dc"
        )
    ),
    Equal(
        _codes(
            "24fef70c662d76ad7a8ef20c5d66093d 5596d31cb95028da67a6bea64d9e8b12 "
            "19d4b658ebaac182e20fc2979da69744"
        )
    ),
    Equal(
        _codes(
            "ce192b348de9e489a133aeb44e6f7539 e930071afb05042e8023866816f34b05 "
            "8d0678e066dc9c8200d7519d4076bc6f"
        )
    ),
    Equal(
        _codes(
            "93747fadcc05af13109dac00d1f95b53 c014c5458a9253c115a9141043114cbb "
            "66389e95f6f13a2dd8a32352b0c1382c"
        )
    ),
    Equal(
        _codes(
            "1d99f88e2f2b3bd74645e8e6399ac2b5 40a5470727255feccc680d52c894fe62 "
            "a0fa85e29664ebd75286793ccdc4352b"
        )
    ),
    Equal(
        _codes(
            "a40c228db9610493505e87d4ba793646 e3015e27f18a2437793be23677b81fbe "
            "6e0be96d7727d7fbde143fbaea779167"
        )
    ),
    Equal(
        _codes(
            "7ee23658db4dec6931b38cec5e8f6926 a0f6d15bb45110c57c95cdaab9c1b277 "
            "5226a41ef144b947ae8b0d61c2118d9d"
        )
    ),
    Equal(
        _codes(
            "285f598b7878b08ad1df9223065d0f08 735a31d51a5a2ff6f96cd6bba28838ef "
            "960bc77727735767136f2685b1e5eb33"
        )
    ),
    Equal(
        _codes(
            "264e923d391dae2e087d924ac3352ce4 4ac5a872062acd18eb3ef48d8cfd9233 "
            "158611022996589badfcc1bb70d7aae4"
        )
    ),
    Equal(_codes("be3498d6b99806a61f02ae4001ed1197 c2b27d9dd705fa1bd28ce0381fcef16c")),
    Equal(_codes("9df5e94c7d28ba8605b0a4821d4dd9e3 782de156a77638a35e652f3b21fdf763")),
    Equal(_codes("ada68bfbee2bce55c1737d321aec4734 e901bcf38e0b64282fd534c60f577e74")),
    Equal(_codes("9deb856ac71de697e72c43de42fb393f 327589a61601f433c2910c12e3088d83")),
)
"""Versions of the code whose runs were trained again and compared."""


def same_results(code: str | None, other: str | None, dataset: str) -> bool:
    """Returns whether two digests are of code that gives the same results on a data set."""
    return code == other or any(
        {code, other} <= equal.codes and (equal.datasets is None or dataset in equal.datasets)
        for equal in EQUAL
    )

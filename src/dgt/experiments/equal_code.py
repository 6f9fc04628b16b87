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


# dgt-plus: rare classes are counted among train and val nodes only, adjacency matrices and scores
# of hubs are computed in other ways, ensembles were added, and averages are taken after each step.
# The rule chooses another encoding for directed edges and many features. Other models: the same, as
# far as it concerns them. Last, own models may tie weights, and more of their mistakes are refused.
EQUAL: tuple[Equal, ...] = (
    Equal(
        _codes(
            "09915fda085703f9e9e27e3e743751dc 17543a7b82eb9e3f3be2de738ff55e6b "
            "4cc2bd6faa099c98e80f957aba8ecd16 2f4264da56275c45f4132d93ec059780 "
            "e1ed95c976fc25b5fdcbc3cc42e8dccd"
        ),
        frozenset({"cora", "citeseer", "minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "36bd5fa93404990708969e9761ecec0b 48deebf2a8dd9e7f34b5bde04dd3b926 "
            "772d7ae28a855beda6b4a44284db8e18 7556dad60cd3dea891fc9f061ffc0ac7 "
            "3fb0cc4aa8a314f27d946bf0eee84dd9"
        ),
        frozenset({"minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "0e60760c56eebd1ac4cee4093f9a69a2 4469306203a1efd46ce48886eaa085dd "
            "2f4264da56275c45f4132d93ec059780 e1ed95c976fc25b5fdcbc3cc42e8dccd"
        )
    ),
    Equal(
        _codes(
            "9e2f14997f7a0373c83def587691c0d3 b4282c984b97a18f656ed148f92fb740 "
            "2a78058860a0a31dd3f5131610f1d8c2 4dce207a78275d5a2430a47c5180de91"
        )
    ),
    Equal(
        _codes(
            "4245307cbd593dd1f88542fe6c2af5d2 e92e658f38680e43e37aa19feaaf676f "
            "7556dad60cd3dea891fc9f061ffc0ac7 3fb0cc4aa8a314f27d946bf0eee84dd9"
        )
    ),
    Equal(
        _codes(
            "8c35b2f056d0ad0f195b24f1caf86f47 21f3caefa5bb1ef145db9eed88a0b83a "
            "715966b23d903ccd7a07dbdf2b8da1ed"
        )
    ),
    Equal(
        _codes(
            "18641df7cf7d810fe00b594f39ac74a1 a8df6e4793fb0dc841e5d6e037912e47 "
            "aaaecb4b5184a6025373a96b19a0b35e 0aaef4406806a1eb51b96282db2bba76"
        )
    ),
    Equal(
        _codes(
            "191f70908d17c68094da20875fd338c1 cc7ceceb70b60a6582c771f19cec5018 "
            "e01d360bb230d1f01431887251f262ec 8c47b504d22beeb46c3ec1819f77acbe"
        )
    ),
    Equal(
        _codes(
            "845d17b042b0cff112e30d7a0d9e1090 de0b67aa232e80d405006ff7c7af7909 "
            "275f3e862a6a6092849bdbccf56889dc 2aa173a7c40dbd0759c65243ca0be710"
        )
    ),
    Equal(
        _codes(
            "24fef70c662d76ad7a8ef20c5d66093d 5596d31cb95028da67a6bea64d9e8b12 "
            "19d4b658ebaac182e20fc2979da69744 d11d6f53ca3b32aabcbbf5bb6a7ae128"
        )
    ),
    Equal(
        _codes(
            "ce192b348de9e489a133aeb44e6f7539 e930071afb05042e8023866816f34b05 "
            "8d0678e066dc9c8200d7519d4076bc6f e4d09a9a343a8101f4f7113457f9f7bc"
        )
    ),
    Equal(
        _codes(
            "93747fadcc05af13109dac00d1f95b53 c014c5458a9253c115a9141043114cbb "
            "66389e95f6f13a2dd8a32352b0c1382c 1f1ce66120db13ad683fa62691e9cf84"
        )
    ),
    Equal(
        _codes(
            "1d99f88e2f2b3bd74645e8e6399ac2b5 40a5470727255feccc680d52c894fe62 "
            "a0fa85e29664ebd75286793ccdc4352b d993e15ef702af8f64a965772d80bac3"
        )
    ),
    Equal(
        _codes(
            "a40c228db9610493505e87d4ba793646 e3015e27f18a2437793be23677b81fbe "
            "6e0be96d7727d7fbde143fbaea779167 f80986e1b361a3c7aca77b7e530d0a4e"
        )
    ),
    Equal(
        _codes(
            "7ee23658db4dec6931b38cec5e8f6926 a0f6d15bb45110c57c95cdaab9c1b277 "
            "5226a41ef144b947ae8b0d61c2118d9d 096f825124c40308123a95618eba81b3"
        )
    ),
    Equal(
        _codes(
            "285f598b7878b08ad1df9223065d0f08 735a31d51a5a2ff6f96cd6bba28838ef "
            "960bc77727735767136f2685b1e5eb33 7d0410884ec0d090e3920096a410cdbf"
        )
    ),
    Equal(
        _codes(
            "264e923d391dae2e087d924ac3352ce4 4ac5a872062acd18eb3ef48d8cfd9233 "
            "158611022996589badfcc1bb70d7aae4 de2fcc1121f08afa6238dca2bc9d4474"
        )
    ),
    Equal(
        _codes(
            "be3498d6b99806a61f02ae4001ed1197 c2b27d9dd705fa1bd28ce0381fcef16c "
            "5adf1d87c268a3b3ebadb0506027ac5e"
        )
    ),
    Equal(
        _codes(
            "9df5e94c7d28ba8605b0a4821d4dd9e3 782de156a77638a35e652f3b21fdf763 "
            "1cc47c74fc686789860c94431b193b8d"
        )
    ),
    Equal(
        _codes(
            "ada68bfbee2bce55c1737d321aec4734 e901bcf38e0b64282fd534c60f577e74 "
            "05208d877af7413baf8ce30ebdd710f8"
        )
    ),
    Equal(
        _codes(
            "9deb856ac71de697e72c43de42fb393f 327589a61601f433c2910c12e3088d83 "
            "fc2ba745abe58c2438e6268bae4050f0"
        )
    ),
    Equal(_codes("cb9bc2c9f48002c65773e4df7820f2bd ac29515e008ff702f1aee5ae820686aa")),
    Equal(_codes("6350caa16fb7f270f0f3ac9f86f39b4a 1df39c30f239437b012cf02780fd7d12")),
    Equal(_codes("e0fafd77c405d6d110efbf3a7b053965 28d430b5bd5043931386ef11b7634300")),
    Equal(_codes("0ddfbd7ed443d7919c526b8aaae5bc9c 1019e47f91e2da60d7e49c3e83dc75f8")),
    Equal(_codes("99b4928951221e838421c70cd96cd887 854f66e31ef25827021a2f52316b6b5d")),
    Equal(_codes("1e81cbb46ff31b2800ac6a5a109b00db 19b05ff6194550848aa88d06e3de5d92")),
    Equal(_codes("691ad74e35c5bc8bd4d5f3f1f4d9ac5c f59f04c21ad5956ba487afca2920a195")),
    Equal(_codes("b48a287cf5e6ffa2bf776a59abb68962 1984f94ce6650d6d428830b7a98545c3")),
    Equal(_codes("1af71f810e2b5b345f29370db25f6abd 8ebea3d990ddef72e2ef0244d6396213")),
    Equal(_codes("de508d5f88be94dd0442bff16c6205c9 5d3dc6bde4ec9d6404d3156f37e52c37")),
    Equal(_codes("63ed669936bb97e299ead8c53f1ab907 86b29fdbb79778fa3e100b1c9358ec67")),
    Equal(_codes("49cde9af7d54d68adb5c13f12f28e590 d6ed7509856289465cffdc9d33653fc7")),
    Equal(_codes("fb41b5c10b29f4feaf49ebd669655fd9 42db85f0080dacc908ac5a8b93594b1f")),
    Equal(_codes("61bac9dd2345324114aa60415cfbf844 611ea2f943a414bd0d1d39e90fc64858")),
    Equal(_codes("78a1024a50588a79a77419684cc522c0 84821b9fe35f1688fa0d4c41434df644")),
    Equal(_codes("802f75c7b80874c8dcb8326aa5a3957b e9eca05b82b403ad9e61762f631fe02b")),
    Equal(_codes("a6e8479f92928bde31a027f190e6021e 3ae0762252ad82e6ef024c3b79910279")),
)
"""Versions of the code whose runs were trained again and compared."""


def same_results(code: str | None, other: str | None, dataset: str) -> bool:
    """Returns whether two digests are of code that gives the same results on a data set."""
    return code == other or any(
        {code, other} <= equal.codes and (equal.datasets is None or dataset in equal.datasets)
        for equal in EQUAL
    )

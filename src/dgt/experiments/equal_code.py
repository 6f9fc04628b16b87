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
# far as it concerns them. Last, own models may tie weights.
EQUAL: tuple[Equal, ...] = (
    Equal(
        _codes(
            "09915fda085703f9e9e27e3e743751dc 17543a7b82eb9e3f3be2de738ff55e6b "
            "4cc2bd6faa099c98e80f957aba8ecd16 2f4264da56275c45f4132d93ec059780 "
            "96fd90732d3d2da3503d46ee7c3028db"
        ),
        frozenset({"cora", "citeseer", "minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "36bd5fa93404990708969e9761ecec0b 48deebf2a8dd9e7f34b5bde04dd3b926 "
            "772d7ae28a855beda6b4a44284db8e18 7556dad60cd3dea891fc9f061ffc0ac7 "
            "d157a6a4ce5736002e179e93eaba4920"
        ),
        frozenset({"minesweeper", "tolokers"}),
    ),
    Equal(
        _codes(
            "0e60760c56eebd1ac4cee4093f9a69a2 4469306203a1efd46ce48886eaa085dd "
            "2f4264da56275c45f4132d93ec059780 96fd90732d3d2da3503d46ee7c3028db"
        )
    ),
    Equal(
        _codes(
            "9e2f14997f7a0373c83def587691c0d3 b4282c984b97a18f656ed148f92fb740 "
            "2a78058860a0a31dd3f5131610f1d8c2 5f0c2784cec1b9fe3f2ba1c3d6885f81"
        )
    ),
    Equal(
        _codes(
            "4245307cbd593dd1f88542fe6c2af5d2 e92e658f38680e43e37aa19feaaf676f "
            "7556dad60cd3dea891fc9f061ffc0ac7 d157a6a4ce5736002e179e93eaba4920"
        )
    ),
    Equal(
        _codes(
            "8c35b2f056d0ad0f195b24f1caf86f47 21f3caefa5bb1ef145db9eed88a0b83a "
            "5055548b60b89489f5498099f3f485bc"
        )
    ),
    Equal(
        _codes(
            "18641df7cf7d810fe00b594f39ac74a1 a8df6e4793fb0dc841e5d6e037912e47 "
            "aaaecb4b5184a6025373a96b19a0b35e 12c878123c604c52b9a688f2219633fc"
        )
    ),
    Equal(
        _codes(
            "191f70908d17c68094da20875fd338c1 cc7ceceb70b60a6582c771f19cec5018 "
            "e01d360bb230d1f01431887251f262ec 53da2cad7d64bac82bddcfa9af3276a5"
        )
    ),
    Equal(
        _codes(
            "845d17b042b0cff112e30d7a0d9e1090 de0b67aa232e80d405006ff7c7af7909 "
            "275f3e862a6a6092849bdbccf56889dc c6e88a0c233d553fe02c6715a99adea5"
        )
    ),
    Equal(
        _codes(
            "24fef70c662d76ad7a8ef20c5d66093d 5596d31cb95028da67a6bea64d9e8b12 "
            "19d4b658ebaac182e20fc2979da69744 5aaeb3ffb55df74e924b9ed2b6553cdb"
        )
    ),
    Equal(
        _codes(
            "ce192b348de9e489a133aeb44e6f7539 e930071afb05042e8023866816f34b05 "
            "8d0678e066dc9c8200d7519d4076bc6f d491e4ac417c74d14b6ff7d2bf5ae262"
        )
    ),
    Equal(
        _codes(
            "93747fadcc05af13109dac00d1f95b53 c014c5458a9253c115a9141043114cbb "
            "66389e95f6f13a2dd8a32352b0c1382c 71c20b90c6866a5e180c6409fd360a48"
        )
    ),
    Equal(
        _codes(
            "1d99f88e2f2b3bd74645e8e6399ac2b5 40a5470727255feccc680d52c894fe62 "
            "a0fa85e29664ebd75286793ccdc4352b 13636986cc3da8411e04d0371f82d3e9"
        )
    ),
    Equal(
        _codes(
            "a40c228db9610493505e87d4ba793646 e3015e27f18a2437793be23677b81fbe "
            "6e0be96d7727d7fbde143fbaea779167 af7717c20ed33a529693b4c1f7097508"
        )
    ),
    Equal(
        _codes(
            "7ee23658db4dec6931b38cec5e8f6926 a0f6d15bb45110c57c95cdaab9c1b277 "
            "5226a41ef144b947ae8b0d61c2118d9d c2b0e3cb72022a2192c61173eafe9239"
        )
    ),
    Equal(
        _codes(
            "285f598b7878b08ad1df9223065d0f08 735a31d51a5a2ff6f96cd6bba28838ef "
            "960bc77727735767136f2685b1e5eb33 a8ad084c166b763bf69d1522a39a59d3"
        )
    ),
    Equal(
        _codes(
            "264e923d391dae2e087d924ac3352ce4 4ac5a872062acd18eb3ef48d8cfd9233 "
            "158611022996589badfcc1bb70d7aae4 d912330bd63456f15dad054325ac53e9"
        )
    ),
    Equal(
        _codes(
            "be3498d6b99806a61f02ae4001ed1197 c2b27d9dd705fa1bd28ce0381fcef16c "
            "c6f079ff20d48deaed832565b7d5d1ff"
        )
    ),
    Equal(
        _codes(
            "9df5e94c7d28ba8605b0a4821d4dd9e3 782de156a77638a35e652f3b21fdf763 "
            "b8730ba1e70370ab916a88cb2eda1b65"
        )
    ),
    Equal(
        _codes(
            "ada68bfbee2bce55c1737d321aec4734 e901bcf38e0b64282fd534c60f577e74 "
            "144301c64077aaaa2d6c7f81ed842c57"
        )
    ),
    Equal(
        _codes(
            "9deb856ac71de697e72c43de42fb393f 327589a61601f433c2910c12e3088d83 "
            "bcdacfc334aff0c737e9c336e4fe7c3a"
        )
    ),
    Equal(_codes("de508d5f88be94dd0442bff16c6205c9 26d728e87690025d7cd5d80e8eea9a8e")),
    Equal(_codes("78a1024a50588a79a77419684cc522c0 b8d8d8583c7c87dc72d26e650be7d612")),
    Equal(_codes("cb9bc2c9f48002c65773e4df7820f2bd c6f4ca722358166e3ddadbf71b342e69")),
    Equal(_codes("802f75c7b80874c8dcb8326aa5a3957b b815144434e7044903647e2d3145b63a")),
    Equal(_codes("99b4928951221e838421c70cd96cd887 4104bda29a31516a5b8c7460034448fb")),
    Equal(_codes("61bac9dd2345324114aa60415cfbf844 1bcb153f77007db78ede48bfe2315eab")),
    Equal(_codes("b48a287cf5e6ffa2bf776a59abb68962 a889bdd7e49c7057f4452ee93f4815ea")),
    Equal(_codes("e0fafd77c405d6d110efbf3a7b053965 57e835964205881f5d0a13360592423a")),
    Equal(_codes("6350caa16fb7f270f0f3ac9f86f39b4a 670866594ed53a40e14988b5a088ef21")),
    Equal(_codes("63ed669936bb97e299ead8c53f1ab907 7fb6e93f87232e89605dbadb445d25b3")),
    Equal(_codes("691ad74e35c5bc8bd4d5f3f1f4d9ac5c 202695898af5eed78511cd4e6b54b6f9")),
    Equal(_codes("49cde9af7d54d68adb5c13f12f28e590 16acb4c312206607e5354def3b4d9cef")),
    Equal(_codes("0ddfbd7ed443d7919c526b8aaae5bc9c cefc25d496618f77118d74885875354f")),
    Equal(_codes("1e81cbb46ff31b2800ac6a5a109b00db 5a9eb883c7ff5001a371fb7077018b89")),
    Equal(_codes("a6e8479f92928bde31a027f190e6021e 87d70176cc2b9014029a1a3948760665")),
    Equal(_codes("fb41b5c10b29f4feaf49ebd669655fd9 db77bda129062a68b5e6558124eaf522")),
    Equal(_codes("1af71f810e2b5b345f29370db25f6abd 49c8276159ffa287f0f8cddd285ca412")),
)
"""Versions of the code whose runs were trained again and compared."""


def same_results(code: str | None, other: str | None, dataset: str) -> bool:
    """Returns whether two digests are of code that gives the same results on a data set."""
    return code == other or any(
        {code, other} <= equal.codes and (equal.datasets is None or dataset in equal.datasets)
        for equal in EQUAL
    )

"""Published figures for comparison: those of the paper, and of others where it has none."""

from typing import NamedTuple

PAPER = "Park, Yun et al. 2022"
BEST_GCN = "best published GCN (Luo et al. 2024)"


class Figure(NamedTuple):
    """A published accuracy in percent."""

    mean: float | None
    ci95: float | None
    source: str
    missing: str | None = None
    """Printed instead of a mean: OOM or N/A."""


# Table 1 as printed: mean ± 95% confidence interval.
_TABLE1 = """
model          actor       squirrel    chameleon   cora        citeseer    twitch-gamers ogbn-arxiv  reddit
mlp            35.05±0.38  31.66±0.82  47.11±0.71  75.10±0.84  73.54±0.69  61.14±0.06    53.89±0.21  70.03±0.16
gcn            30.13±0.30  50.42±0.66  66.33±0.64  87.22±0.26  76.08±0.43  64.34±0.12    71.27±0.11  95.06±0.03
gat            30.25±0.39  54.26±1.21  66.85±0.88  86.21±0.43  75.71±0.42  62.90±0.22    70.92±0.11  OOM
graphsage      35.24±0.49  43.75±0.75  63.28±0.68  86.94±0.36  76.25±0.53  64.73±0.11    70.19±0.11  96.27±0.01
jknet          30.39±0.35  55.17±0.62  67.81±0.86  87.17±0.33  76.33±0.53  65.08±0.07    71.00±0.15  95.28±0.02
sgc            29.43±0.41  35.07±0.51  49.95±1.15  87.33±0.39  75.47±0.56  60.47±0.14    66.56±0.01  94.72±0.00
gatv2          30.54±0.41  57.41±0.94  67.25±0.58  86.10±0.41  75.63±0.49  64.15±0.09    71.01±0.15  OOM
mixhop         35.79±0.33  38.78±0.86  59.27±0.83  87.16±0.38  75.95±0.57  65.20±0.12    71.47±0.15  96.23±0.04
geom-gcn       31.53±0.31  37.98±0.42  60.70±0.91  85.38±0.55  76.57±0.56  N/A           N/A         N/A
h2gcn          35.32±0.34  36.89±0.80  58.21±0.70  87.73±0.64  76.88±0.54  OOM           OOM         OOM
deformable-gcn 36.53±0.42  62.09±0.68  71.03±0.57  87.32±0.44  76.67±0.43  OOM           70.22±0.19  OOM
transformer    36.61±0.39  31.00±0.60  45.93±0.83  73.75±0.71  72.99±0.61  OOM           OOM         OOM
graphormer     36.54±0.44  36.25±0.72  50.15±1.26  73.44±0.90  72.60±0.63  OOM           OOM         OOM
gt-full        34.53±0.38  32.33±0.64  49.07±1.25  69.51±1.01  70.18±0.67  OOM           OOM         OOM
gt-sparse      34.69±0.35  44.22±0.67  64.82±0.57  85.63±0.44  75.49±0.58  63.09±0.71    71.45±0.14  OOM
dgt-light      36.86±0.53  62.58±0.57  73.04±0.65  86.60±0.60  75.72±0.40  65.59±0.25    71.18±0.13  96.14±0.05
dgt            36.93±0.39  63.78±0.59  73.48±0.88  87.55±0.59  77.04±0.57  66.09±0.22    71.77±0.10  96.32±0.02
"""  # noqa: E501

# Orderings and criteria of NodeSort, from the main paper; PPR alone and features alone are from its
# appendix.
_NODESORT = """
ordering  cora        citeseer    chameleon   squirrel
AR        81.53±1.21  72.27±0.72  70.51±0.45  62.44±0.62
AB        81.22±1.14  72.28±0.69  71.95±0.49  62.31±0.89
AM        83.28±0.77  70.20±0.84  72.41±0.57  62.28±0.81
RB        86.60±0.60  75.72±0.40  73.04±0.65  62.58±0.57
RP        86.31±0.45  75.42±0.64  72.66±0.77  62.57±0.59
RF        84.09±0.62  75.31±0.61  72.67±0.80  62.66±0.73
RM        87.55±0.59  77.04±0.57  73.48±0.88  63.78±0.59
"""

_ENCODINGS = """
model-encoding        cora        citeseer    chameleon   squirrel
transformer/none      73.75±0.71  72.99±0.61  45.93±0.83  31.00±0.60
transformer/node2vec  81.52±0.68  72.07±0.58  49.00±0.82  39.15±0.53
transformer/laplacian 69.51±1.01  70.18±0.67  49.07±1.25  32.33±0.64
transformer/katz      81.44±1.16  73.02±0.71  72.13±0.60  59.79±0.76
dgt/none              86.32±0.52  76.61±0.61  59.44±0.87  46.59±0.75
dgt/node2vec          86.80±0.51  75.36±0.54  62.02±0.63  50.26±0.54
dgt/laplacian         83.94±0.67  76.21±0.61  58.02±0.91  43.86±0.67
dgt/katz              87.55±0.59  77.04±0.57  73.48±0.88  63.78±0.59
"""

# The last row is that of DGT in Table 1; the paper prints it with Chameleon and Squirrel swapped.
_INTERPOLATION = """
interpolation  cora        citeseer    chameleon   squirrel    twitch-gamers
bilinear       86.02±0.53  76.61±0.56  68.51±0.86  61.69±0.65  65.30±0.15
rbf            87.55±0.59  77.04±0.57  73.48±0.88  63.78±0.59  66.09±0.22
"""

# In units of 10^9 multiply-adds.
_FLOPS = """
model        chameleon  cora  citeseer  squirrel  twitch-gamers  ogbn-arxiv
transformer  1.06       1.26  2.29      4.29      3622           -
graphormer   1.78       2.26  3.79      7.88      -              -
gt-full      1.07       1.27  2.31      4.31      3623           -
gt-sparse    0.43       0.43  0.99      1.49      17.04          20.24
dgt-light    0.43       0.36  0.87      1.24      8.05           5.02
dgt          0.49       0.65  1.05      2.63      16.19          6.66
"""

# Share of the attention on nodes with the query's label, for the node in the paper's figure.
ATTENTION = {"graphormer": 0.21, "dgt": 0.97}


def _parse(text: str) -> dict[tuple[str, str], Figure]:
    """Returns accuracies by data set and name of the row."""
    figures = {}
    for place, cell in _cells(text).items():
        mean, found, ci95 = cell.partition("±")
        figures[place] = (
            Figure(float(mean), float(ci95), PAPER) if found else Figure(None, None, PAPER, cell)
        )
    return figures


def _cells(text: str) -> dict[tuple[str, str], str]:
    (_, *datasets), *rows = (line.split() for line in text.strip().splitlines())
    return {
        (dataset, name): cell
        for name, *cells in rows
        for dataset, cell in zip(datasets, cells, strict=True)
        if cell != "-"
    }


TABLE1 = _parse(_TABLE1)
MODELS = tuple(dict.fromkeys(model for _, model in TABLE1))
"""The models in the paper, a subset of ``dgt.models.MODELS``."""
NODESORT = _parse(_NODESORT)
ENCODINGS = _parse(_ENCODINGS)
INTERPOLATION = _parse(_INTERPOLATION)
FLOPS = {place: float(cell) for place, cell in _cells(_FLOPS).items()}
FILTERED = {
    "chameleon-filtered": Figure(46.29, None, BEST_GCN),
    "squirrel-filtered": Figure(45.01, None, BEST_GCN),
}


def table1(dataset: str, model: str) -> Figure | None:
    """Returns the figure to compare ours with in Table 1."""
    return TABLE1.get((dataset, model)) or FILTERED.get(dataset)

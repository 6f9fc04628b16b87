"""Ids and labels that try to break a page, and a graph that is full of them."""

import torch
from torch_geometric.data import Data

from tests.small import block_graph

SCRIPTS = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<body onload=window.pwned=1>",
    "<a href=javascript:window.pwned=1>x</a>",
    "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<base href=//evil.example>",
    "<form action=//evil.example><input>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[x]]>",
    "<math><mtext><script>window.pwned=1</script>",
]
QUOTES = [
    "'",
    '"',
    "`",
    "'\"`",
    '" onmouseover="window.pwned=1',
    "' onfocus='window.pwned=1' autofocus='",
    "';window.pwned=1;//",
    '";window.pwned=1;//',
    "${window.pwned=1}",
    "{{constructor.constructor('window.pwned=1')()}}",
    "\\",
    "\\u003cscript\\u003e",
    "&lt;script&gt;",
    "&#60;script&#62;",
    "%3Cscript%3E",
]
STRANGE = [
    "x" * 20_000,
    "<b>" * 3_000,
    "שלום עולם",
    "مرحبا\u202eevil",
    "\u202eright to left",
    "a\u0000b",
    "\u0001\u0002\u001f",
    "line\nbreak\r\n\ttab",
    "\u2028\u2029",
    "💥" * 40,
    "e\u0301" * 50,
    "\ufeff",
    "__proto__",
    "constructor",
    '=HYPERLINK("http://evil.example")',
]
HOSTILE = SCRIPTS + QUOTES + STRANGE


def hostile_graph() -> Data:
    """Every id, class and column has a hostile name."""
    data = block_graph(nodes=150, classes=4)
    ids = [*HOSTILE, *(f"{i}{text[:50]}" for i, text in enumerate(HOSTILE))]
    ids += [f"plain-{i}" for i in range(150 - len(ids))]
    data.node_ids = ids
    data.class_names = [SCRIPTS[0], QUOTES[4], STRANGE[3], "x" * 5000]
    data.feature_names = [*SCRIPTS[2:8], *QUOTES[4:8], STRANGE[1], "=1+1"]
    data.y = torch.arange(150) % 4
    data.name = "<script>window.pwned=1</script>"
    return data

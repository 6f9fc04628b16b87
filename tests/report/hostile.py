"""Names that a page must show without executing them or breaking."""

SCRIPTS = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</ScRiPt ><img src=x onerror=alert(3)>",
    "<img src=x onerror=alert(4)>",
    "<svg onload=alert(5)>",
    "<iframe src='javascript:alert(6)'>",
    "<a href='javascript:alert(7)'>a</a>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=http://127.0.0.1:9/a.css>",
    "<img src=http://127.0.0.1:9/a.png>",
    "<base href=http://127.0.0.1:9/>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "</title><script>alert(8)</script>",
    "</style><script>alert(9)</script>",
    "</table></section></body></html>",
    "<!-- <script>",
    "-->",
    "]]>",
    "<![CDATA[",
    "javascript:alert(10)",
]
QUOTES = [
    "'", '"', "`", "''\"\"", "\" onmouseover=\"alert(11)", "' autofocus onfocus='alert(12)",
    "\\", "\\\"", "\\u003cscript\\u003ealert(13)", "${alert(14)}", "{{ 7 * 7 }}", "{% raw %}",
    "{0}", "%s%n", "@label", "@{color_error}{safe}", "$index", "&lt;b&gt;", "&amp;", "a & b",
]  # fmt: skip
FORMULAS = ["$$\\frac{1}{2}$$", "\\[x^2\\]", "\\(y\\)", "$$a", "$$ $$ $$"]
UNICODE = [
    "\u202eright to left", "\u2067שלום", "مرحبا", "\u200b", "\ufeffmark", "日本語", "e\u0301" * 20,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2028line", "Z\u0335\u0321\u0322a",
]  # fmt: skip
CONTROL = ["nul \x00 nul", "bell \x07", "\x1b[31mred", "\x7f", "\x85next"]
LONG = ["x" * 10_000, "<b>" * 3_000, "word " * 2_000]
BLANK = [" ", "  two", "\t"]
HOSTILE = SCRIPTS + QUOTES + FORMULAS + UNICODE + CONTROL + LONG + BLANK

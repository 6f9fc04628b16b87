"""Reads CSV files: their encoding, their separator and the place of each row."""

import codecs
import contextlib
import csv
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dgt.data.files.names import Wanted
from dgt.errors import InputError

log = logging.getLogger("dgt")

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# The byte-order mark of UTF-32 starts with that of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UTF8 = "utf-8-sig"  # with or without a byte-order mark
ADVICE = "expected text in UTF-8; convert the file, for instance with iconv -f latin1 -t utf-8"
ZERO_BYTES = "not a CSV file: got zero bytes, expected text in UTF-8"
MOST_BYTES = 2**31 - 1  # of a block, and thus of a row


@dataclass(frozen=True)
class CSVFile:
    """A CSV file with its header and its dialect."""

    path: Path
    encoding: str
    separator: str
    header: list[str]

    def table(self) -> pa.Table:
        """Reads all rows. Every cell is a string, or null if it is empty."""
        try:
            table = self._parse(pa.csv.ReadOptions().block_size)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if not re.search("straddling|cannot infer number of columns", str(error)):
                raise self.mistake() or error from None
            # A row or the header is longer than a block.
            size = min(2 * self.path.stat().st_size + 2, MOST_BYTES)
            try:
                table = self._parse(size)
            except (pa.ArrowInvalid, UnicodeDecodeError) as again:
                raise self.mistake() or again from None
        if any(_has_line_break(column) for column in table.columns):
            # Either intended, or an unclosed quote has swallowed the rows below it.
            problem = self.mistake()
            if problem:
                raise problem
        return table

    def _parse(self, block_size: int) -> pa.Table:
        encoding = "utf8" if self.encoding == UTF8 else self.encoding
        return pa.csv.read_csv(
            self.path,
            read_options=pa.csv.ReadOptions(block_size=block_size, encoding=encoding),
            # Quoted labels and ids may contain line breaks.
            parse_options=pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in self.header},
                null_values=[""],
                strings_can_be_null=False,
            ),
        )

    def place(self, row: int) -> str:
        """Returns the line of the file at which a data row starts; the header is row 1.

        Reads the file again: quoted cells may span several lines, and empty lines are not rows.
        """
        with _opened(self.path, self.encoding, errors="replace") as file:
            reader = csv.reader(file, delimiter=self.separator)
            start = count = 0
            for cells in reader:
                if cells:
                    if count == row + 1:
                        return f"row {start + 1}"
                    count += 1
                start = reader.line_num
        return f"row {row + 2}"

    def mistake(self) -> InputError | None:
        """Returns the first error in the file, if any; slow, and strict about quotes."""
        line, width = 0, len(self.header)
        try:
            with _opened(self.path, self.encoding) as file:
                reader = csv.reader(file, delimiter=self.separator, strict=True)
                for cells in reader:
                    if cells and len(cells) != width:
                        return InputError(
                            f"{self.path}: row {line + 1}: got {len(cells)} cells, expected {width}"
                        )
                    line = reader.line_num
        except UnicodeDecodeError:
            return _not_text(self.path, self.encoding)
        except csv.Error as error:
            return InputError(f"{self.path}: row {line + 1}: {error}")
        return None


def open_csv(path: Path, wanted: Wanted) -> CSVFile:
    """Reads the header, and finds the encoding and the separator.

    Commas are expected. A file is separated by semicolons or tabs if only then its header has the
    required columns.

    Args:
        path: The file.
        wanted: Columns that the header should have.
    """
    encoding = _encoding(path)
    headers = {}
    try:
        for separator in SEPARATORS:
            with _opened(path, encoding) as file:
                headers[separator] = next(csv.reader(file, delimiter=separator), [])
    except UnicodeDecodeError:
        raise _not_text(path, encoding) from None
    except csv.Error as error:
        raise InputError(f"{path}: row 1: not a CSV file: {error}") from None
    if any("\0" in name for name in headers[","]):
        raise InputError(f"{path}: row 1: {ZERO_BYTES}")
    fitting = [s for s, header in headers.items() if wanted.are_in(header)]
    separator = fitting[0] if fitting else ","
    if separator != ",":
        log.warning("%s: columns are separated by %s", path, SEPARATORS[separator])
    if encoding != UTF8:
        log.warning("%s: text is in %s", path, encoding.upper())
    return CSVFile(path, encoding, separator, headers[separator])


def _encoding(path: Path) -> str:
    with open(path, "rb") as file:
        start = file.read(4)
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), UTF8)


@contextlib.contextmanager
def _opened(path: Path, encoding: str, errors: str = "strict") -> Iterator[TextIO]:
    """Opens a file for the csv module, without a limit on the length of a cell."""
    limit = csv.field_size_limit(MOST_BYTES)
    try:
        with open(path, encoding=encoding, errors=errors, newline="") as file:
            yield file
    finally:
        csv.field_size_limit(limit)


def _not_text(path: Path, encoding: str) -> InputError:
    """Returns the error for bytes that are no text, with the row of the first one."""
    if encoding != UTF8:
        return InputError(f"{path}: damaged text in {encoding.upper()}; {ADVICE}")
    content = path.read_bytes()
    if b"\0" in content:
        return InputError(f"{path}: {ZERO_BYTES}")
    for number, line in enumerate(re.split(rb"\r\n|\n|\r", content), start=1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            found = f"row {number}: got the byte 0x{line[error.start]:02x}"
            return InputError(f"{path}: {found}, {ADVICE}")
    return InputError(f"{path}: {ADVICE}")


def _has_line_break(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_string(column.type):
        return False
    return any(pc.any(pc.match_substring(column, end)).as_py() for end in "\n\r")

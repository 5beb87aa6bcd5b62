# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A table of boards, as spreadsheets export it: a line of names of columns, then a line for each board."""

from __future__ import annotations

import csv
import io
from typing import Any, Iterable, Sequence

from ...core.errors import BadInput
from ...core.typed_keys import FLAG, shown
from ...site.proxy_config import PDU
from ..documents import Asked, named, text_of
from ..source_site import BOARD_KEYS, PDU_KEYS, Board, Site

#: What else people call a column → its key.
ALSO = {
    **dict.fromkeys(("board", "host", "hostname", "label"), "name"),
    **dict.fromkeys(("mac_address", "hwaddr", "hardware_address"), "mac"),
    **dict.fromkeys(("ip_address", "ipv4", "address"), "ip"),
    **dict.fromkeys(("architecture", "cpu_arch"), "arch"),
    **dict.fromkeys(("cpus", "cores"), "vcpus"),
    **dict.fromkeys(("memory", "ram", "ram_mb", "memory_mib"), "memory_mb"),
    **dict.fromkeys(("disk_gb", "storage_gb"), "local_gb"),
    "pdu_outlet": "outlet",
    **dict.fromkeys(("boot_driver", "firmware"), "driver"),
}
#: Begins the names of columns that say what the board's PDU is: pdu_driver, pdu_host …
OF_PDU = "pdu_"
#: What spreadsheets write for a flag.
FLAGS = {**dict.fromkeys(("true", "yes"), True), **dict.fromkeys(("false", "no"), False)}
DELIMITERS = ",;\t|"
#: Words of columns that may hold what no file of ours does.
SECRETS = ("password", "passwd", "community", "secret", "token")


def read(asked: Asked) -> Site:
    site = Site()
    for path in asked.files(".csv", ".tsv", ".txt"):
        add(site, text_of(path), named(path))
    return site


def add(site: Site, text: str, source: str) -> None:
    """Add the boards of a table."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(DELIMITERS, key=first.count)
    try:
        rows = [row for row in _rows(text, delimiter) if any(cell.strip() for cell in row[1])]
    except csv.Error as error:
        raise BadInput(f"is no table: {error}", source, "export it as CSV, in UTF-8") from error
    if not rows:
        raise BadInput("is empty", source, "give a line of names of columns, and one for each board")
    columns = [_column(name) for name in rows[0][1]]
    if not {"name", "mac"} & set(columns):
        what = f"its first line names neither a column name nor mac: {shown(', '.join(rows[0][1]))}"
        raise BadInput(what, source, f"name its columns: name, {', '.join(BOARD_KEYS)}")
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
    if twice:
        raise BadInput(f"has two columns that mean {', '.join(twice)}", source, "leave one of each")
    site.notes += _not_taken(columns, rows[0][1], source)
    for number, cells in rows[1:]:
        _add_row(site, columns, cells, f"{source}:{number}")


def _rows(text: str, delimiter: str) -> Iterable[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    for row in reader:
        yield reader.line_num, row


def _column(name: str) -> str:
    word = name.strip().lower().replace(" ", "_").replace("-", "_")
    return ALSO.get(word, word)


def _not_taken(columns: Sequence[str], names: Sequence[str], source: str) -> Iterable[str]:
    known = {"name", *BOARD_KEYS, *(OF_PDU + key for key in (*PDU_KEYS, "username"))}
    for column, name in zip(columns, names):
        if column in known or not column:
            continue
        why = ": secrets belong into a vault" if any(word in column for word in SECRETS) else ""
        yield f"{source}: column {shown(name.strip())} is not taken{why}"


def _typed(key: str, text: str) -> Any:
    """Return what a cell says of a PDU: a list of banks or outlets, a flag, or its text."""
    if key in ("banks", "outlets"):
        return [one.strip() for one in text.split(",")]
    return FLAGS.get(text.lower(), text) if key in PDU.keys and PDU.keys[key].kind is FLAG else text


def _add_row(site: Site, columns: Sequence[str], cells: Sequence[str], where: str) -> None:
    if len(cells) > len(columns):
        what = f"has {len(cells)} cells where the first line has {len(columns)}"
        raise BadInput(what, where, 'put a cell with the delimiter in it into quotes ("a,b")')
    row = {column: cell.strip() for column, cell in zip(columns, cells) if column}
    board = Board(row.get("name") or row.get("mac") or where, where)
    for key in BOARD_KEYS:
        board.take_field(key, row.get(key))
    site.boards.append(board)
    if not row.get("pdu"):
        return
    pdu = site.pdu(row["pdu"], where)
    for key in (*PDU_KEYS, "username"):
        value = row.get(OF_PDU + key)
        if not value:
            continue
        pdu.where, earlier = where, pdu.where
        pdu.take(key, _typed(key, value))
        pdu.where = earlier

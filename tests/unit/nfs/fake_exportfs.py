# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`exportfs` of nfs-utils 2.6 as exportfs(8) describes it: -o, -u, -s and -r over a table in a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TABLE, FILES = Path(os.environ["FAKE_ETAB"]), Path(os.environ["FAKE_EXPORTS_D"])
#: What exportfs -s shows besides what was given, seen with 2.6.2.
SHOWN = "{path}  {client}({first},wdelay,hide,{rest},secure,no_all_squash)"


def fail(text):
    print(f"exportfs: {text}", file=sys.stderr)
    sys.exit(1)


def read():
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return {tuple(line.split()[:2]): line.split()[2] for line in lines}


def write(table):
    TABLE.write_text("".join(f"{path} {client} {options}\n" for (path, client), options in table.items()))


def main(arguments):
    table = read()
    if arguments == ["-s"]:
        for (path, client), options in table.items():
            first, _comma, rest = options.partition(",")
            print(SHOWN.format(path=path, client=client, first=first, rest=rest))
    elif arguments == ["-r"]:
        table = {}
        for file in sorted(FILES.glob("*.exports")):
            for line in file.read_text().splitlines():
                path, client = line.split()
                table[path, client.partition("(")[0]] = client.partition("(")[2].rstrip(")")
    elif arguments[:1] == ["-o"] and len(arguments) == 3:
        client, _colon, path = arguments[2].partition(":")
        if not os.path.isdir(path):
            fail(f"Failed to stat {path}: No such file or directory")
        table[path, client] = arguments[1]
    elif arguments[:1] == ["-u"] and len(arguments) == 2:
        client, _colon, path = arguments[1].partition(":")
        if table.pop((path, client), None) is None:
            fail(f"Could not find '{client}:{path}' to unexport.")
    else:
        fail("usage: exportfs [-adfhioruvs] [host:/path]")
    write(table)


main(sys.argv[1:])

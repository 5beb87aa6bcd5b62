# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`busctl` as seen from nfs-ganesha 4.3 on Debian 12: its export manager over a JSON file, with its own error texts.

It reads export files as strictly as ganesha does, and sees to its rules: ids and pseudo paths are unique, paths exist.
"""

from __future__ import annotations

import json
import os
import re
import sys

STATE = os.environ["FAKE_GANESHA"]
TARGET = ["call", "org.ganesha.nfsd", "/org/ganesha/nfsd/ExportMgr", "org.ganesha.nfsd.exportmgr"]
EXPORT = re.compile(
    r"EXPORT \{\n"
    r"  Export_Id = (?P<id>\d+);\n"
    r'  Path = "(?P<path>/[^"\n]*)";\n'
    r'  Pseudo = "(?P<pseudo>/[^"\n]*)";\n'
    r"  Attr_Expiration_Time = 0;\n"
    r"  Access_Type = None;\n"
    r"  Squash = no_root_squash;\n"
    r"  Protocols = 3, 4;\n"
    r"  SecType = sys;\n"
    r"  FSAL \{ Name = VFS; \}\n"
    r"  CLIENT \{ Clients = (?P<client>[0-9.]+); Access_Type = RW; \}\n"
    r"\}\n"
)


def fail(text):
    print(f"Call failed: {text}", file=sys.stderr)
    sys.exit(1)


def answer(kind, *data):
    print(json.dumps({"type": kind, "data": list(data)}, separators=(",", ":")))


def add(exports, path, expression):
    if not os.path.isfile(path):
        fail(f"error 2 (No such file or directory) when attempting to stat config file {path}")
    with open(path, encoding="utf-8") as file:
        found = EXPORT.fullmatch(file.read())
    if not found or expression != f"EXPORT(Export_Id={found['id']})":
        fail(f"Error while parsing {path}")
    if found["id"] in exports:
        fail(f"Selected entries in {path} already active!!!")
    taken = [export for export in exports.values() if export["pseudo"] == found["pseudo"]]
    if taken or not os.path.isdir(found["path"]):
        reason = "invalid param value" if taken else "block validation"
        fail(
            f"0 export entries in {path} added because ({reason}) errors. Details:\n"
            f"Config File ({path}:1): 1 validation errors in block EXPORT\n"
            f"Config File ({path}:1): Errors found in configuration block EXPORT"
        )
    exports[found["id"]] = dict(path=found["path"], pseudo=found["pseudo"], clients=[found["client"]])
    answer("s", "1 exports added")


def display(exports, number):
    export = exports.get(number)
    if export is None:
        fail("lookup_export failed with Export id not found")
    clients = [[f"{client}/32", 0, 0, 255, 1, 4294967294, 4294967294, 0, 53490146, 480] for client in export["clients"]]
    answer("qsssa(siyyiuuuuu)", int(number), export["path"], export["pseudo"], "", clients)


def show(exports):
    protocols = [[name, False] for name in ("NFSv3", "MNT", "NMLv4", "RQUOTA", "NFSv40", "NFSv41", "NFSv42", "9P")]
    rows = [[0, "/", protocols, [0, 0]]]
    rows += [[int(number), export["pseudo"], protocols, [0, 0]] for number, export in exports.items()]
    answer("(tt)a(qs((sb)(sb)(sb)(sb)(sb)(sb)(sb)(sb))(tt))", [1795162415, 133115314], rows)


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--json=short" not in sys.argv or arguments[:4] != TARGET:
        fail("Unknown method or interface")
    if not os.path.exists(STATE):
        fail("The name org.ganesha.nfsd was not provided by any .service files")
    with open(STATE, encoding="utf-8") as file:
        text = file.read()
    exports = json.loads(text)
    method, signature, values = arguments[4], (arguments[5:] or [""])[0], arguments[6:]
    if (method, signature) == ("AddExport", "ss"):
        add(exports, *values)
    elif (method, signature) == ("RemoveExport", "q"):
        if exports.pop(values[0], None) is None:
            fail("lookup_export failed with Export id not found")
    elif (method, signature) == ("DisplayExport", "q"):
        display(exports, *values)
    elif (method, signature) == ("ShowExports", ""):
        show(exports)
    else:
        fail("Unknown method or interface")
    if exports != json.loads(text):
        with open(STATE, "w", encoding="utf-8") as file:
            json.dump(exports, file)


main()

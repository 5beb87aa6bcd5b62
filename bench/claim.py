# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a claim takes when the boards file holds ten boards, and when it holds ten thousand.

`bench/claim.py [BOARDS …]`, from the repository's root: what module board_claim does on the proxy (read both files,
find the boards that fit, one transaction), without Ansible's own start.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, "build")

from goals import record, turns

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_fit import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import write as write_boards
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar

SAMPLE = Path("roles/lab/files/tilera_boards").read_text()
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 1, "local_gb": 500, "cpu_arch": "tilepro64"}
TIMES = turns(9)


def many(number):
    """A boards file of `number` boards like the sample's first."""
    line = SAMPLE.split("\n1 ", 1)[0].split("\n", 1)[1].replace("\\\n", "")
    rest = line.split(None, 3)[3]
    lines = []
    for board in range(1, number + 1):
        high, middle, low = board >> 16 & 255, board >> 8 & 255, board & 255
        lines.append(f"{board} 10.{high}.{middle}.{low} 02:00:00:{high:02X}:{middle:02X}:{low:02X} {rest}")
    return parse("\n".join(lines), "bench")


def claims(number):
    """Seconds of each of TIMES claims on a proxy of `number` boards, all but the claimed ones free."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: f"{folder}/{name}" for name in ("boards_file", "config", "state_db")}
        write_boards(files["boards_file"], many(number))
        config = {"state_folder": folder, "run_folder": folder, "roots_overcommit": 10000}
        Path(files["config"]).write_text(json.dumps(config))
        # the sample's boards are Tilera's, whose kernels get no arguments
        packed = image_tar(f"{folder}/image.tar", **{"image.json": '{"arch": "tilepro64"}'})
        ImageStore(f"{folder}/images").import_image(packed, "image")
        for turn in range(TIMES):
            start = time.perf_counter()
            with Proxy(files) as proxy:
                present(proxy, ClaimRequest(f"bench-{turn}", "bench", FLAVOR, "image", KEY), Change())
            yield time.perf_counter() - start


sizes = [int(word) for word in sys.argv[1:]] or [10, 1000, 10000]
print("claim of one board, files read and transaction committed (ms, median and slowest of", TIMES, "claims)")
medians = {}
for number in sizes:
    seconds = list(claims(number))
    medians[number] = statistics.median(seconds) * 1000
    print(f"{number:>8} boards {medians[number]:8.1f} {max(seconds) * 1000:8.1f}", flush=True)
if {10, 10000} <= set(medians):
    record("a claim with 10,000 boards, beside 10", f"{medians[10000]:.0f} ms beside {medians[10]:.0f} ms")

# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one request costs for many boards beside few: `bench/growth.py [BOARDS …]`, from the root folder.

Boards and their PDU are played and need no time, so what is seen is ours: claim, start, board_info and stop of all
boards in one call each, and the table and page of status. Seconds of the processor, and of the clock. What costs the
same for each board, however many there are, grows with exponent 1: the slope of a line through the logarithms.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from math import log
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build"))

from goals import record  # noqa: E402

from ansible_collections.hetero.compute.bench.big_site import Site, boards  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_claims import present  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.board_fit import ClaimRequest  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import information  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import descriptors  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore  # noqa: E402
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import write  # noqa: E402
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page  # noqa: E402
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_many_boards import fill  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import Site as Played  # noqa: E402
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar  # noqa: E402

SIZES = (8, 100, 1000, 4000)
#: Boards whose start has a goal of its own, and the goals.
RACK, SECONDS, EXPONENT = 1000, 30.0, 1.1
#: Open files that a process may have, until it asks for more (ulimit -n).
FILES = 1024
#: Those of a played board: its lock, and what is open while it is started.
OF_PLAYED = 4
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 1, "local_gb": 500, "cpu_arch": "tilepro64"}


def used():
    """Seconds of the processor, of this process and of those that it has waited for."""
    return time.process_time() + sum(os.times()[2:4])


@contextmanager
def timed(costs, verb):
    """Note what the block takes as costs[verb]: (seconds of the processor, seconds)."""
    processor, clock = used(), time.perf_counter()
    yield
    costs[verb] = (used() - processor, time.perf_counter() - clock)


def claims(number, costs):
    """One request for half of the boards, of which two in three fit."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: f"{folder}/{name}" for name in ("boards_file", "config", "state_db")}
        write(files["boards_file"], boards(number))
        config = dict(state_folder=folder, run_folder=folder, roots_overcommit=10**6)
        Path(files["config"]).write_text(json.dumps(config))
        packed = image_tar(f"{folder}/image.tar", **{"image.json": '{"arch": "tilepro64"}'})
        ImageStore(f"{folder}/images").import_image(packed, "image")
        with timed(costs, "claim"), Proxy(files) as proxy:
            present(proxy, ClaimRequest("bench", "bench", FLAVOR, "image", KEY, count=number // 2), Change())


def verbs(number, costs):
    """Start, look and stop of all boards that a proxy has."""
    with tempfile.TemporaryDirectory() as folder:
        site = Played(Path(folder))
        fill(site, number, tftp=0.0, nfs=0.0, running=0.0)
        site.config["boots_at_once"] = 0
        site.write()
        for verb in ("start", "info", "stop"):
            with timed(costs, verb):
                if verb == "info":
                    with site.proxy() as proxy:
                        information(proxy)
                    continue
                result = site.run(verb, *range(number))
            if result.get("failed"):
                sys.exit(result["msg"])


def shown(number, costs):
    site = Site(1, number, 0)
    with timed(costs, "status"):
        status_table(site.seen, {"tp64.8x8": FLAVOR}, site.seen_hosts)
    with timed(costs, "page"):
        status_page(site.seen, hosts=site.seen_hosts)


def exponent(sizes, seconds):
    """Slope of the line that comes nearest to the logarithms; what takes less than 0.1 ms counts as that."""
    return statistics.linear_regression([log(size) for size in sizes], [log(max(one, 1e-4)) for one in seconds]).slope


def limit_files(boards):
    """Have 1,024 open files, as a login has. A played board has no ssh client, and takes fewer than others."""
    descriptors.OF_BOARD = OF_PLAYED
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = descriptors.BESIDES + OF_PLAYED * boards
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, max(hard, needed)))


def main(sizes):
    seen = {}
    limit_files(max(sizes))
    shown(2, {})  # what is imported at the first call is not the boards'
    for number in sizes:
        costs = {}
        for part in (claims, verbs, shown):
            part(number, costs)
        for verb, (processor, clock) in costs.items():
            seen.setdefault(verb, []).append(processor)
            each = f"{processor * 1000 / number:9.2f} ms a board"
            print(f"{number:>6} boards  {verb:8}{processor:9.2f} s of processor {clock:9.2f} s {each}", flush=True)
        if number == RACK:
            clock = costs["start"][1]
            record("1,000 played boards, started in one request", f"{clock:.1f} s", clock <= SECONDS)
    if len(sizes) < 2:
        return
    slopes = {verb: exponent(sizes, seconds) for verb, seconds in seen.items()}
    print(f"exponents: {', '.join(f'{verb} {slope:.2f}' for verb, slope in slopes.items())}", flush=True)
    worst = max(slopes, key=slopes.get)
    met = slopes[worst] <= EXPONENT if (min(sizes), max(sizes)) == (SIZES[0], SIZES[-1]) else None
    text = f"{slopes[worst]:.2f} ({worst})"
    record("cost of one request, 8 to 4,000 played boards, exponent", text, met)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or list(SIZES))

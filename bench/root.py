# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A private root for a board, a file system of 500 GB over its image, beside a copy by `cp -a`; the lab's Debian image.

`bench/root.py`, from the repository's root, as root; the image is the one the lab has built in the cache folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, "build")

from goals import record, say, turns

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.room import Room
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hetero-compute"
TIMES = turns(5)
#: Of a flavor with local_gb 500.
SIZE = 500 << 30


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    archives = sorted(CACHE.glob("board-*.tar"), key=lambda path: path.stat().st_mtime)
    if not archives:
        sys.exit(f"no image in {CACHE}: make lab-up builds it")
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        store = ImageStore(os.path.join(folder, "images"))
        imported = timed(lambda: store.import_image(str(archives[-1]), "bench"))
        image = store.get("bench")
        ours, made_by_copy = [], []
        say(f"imported in {imported:.1f} s; {TIMES} roots by each way")
        for turn in range(TIMES):
            root = Root(folder, turn)
            try:
                ours.append(timed(lambda root=root: root.create(image, "bench", Room(folder, 1000), SIZE)))
            finally:
                root.unmount(Deadline(10))
            copy = os.path.join(folder, f"copy-{turn}")
            made_by_copy.append(timed(lambda copy=copy: subprocess.run(["cp", "-a", image.root, copy], check=True)))
        unmount(image.root)
    size = archives[-1].stat().st_size / 2**20
    print(f"image of {size:.0f} MB, imported once in {imported:.1f} s")
    print(f"a private root of it (s, best and worst of {TIMES})")
    print(f"ours    {min(ours):8.3f} {max(ours):8.3f}")
    print(f"cp -a   {min(made_by_copy):8.3f} {max(made_by_copy):8.3f}")
    record("a private root, beside cp -a", f"{min(ours) * 1000:.0f} ms beside {min(made_by_copy) * 1000:.0f} ms")


main()

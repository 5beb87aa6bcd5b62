# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller computes for a request and for `status` among 10,000 boards behind 100 proxies and 20 GPU hosts.

`bench/filters.py [PROXIES [BOARDS_EACH]]`, from the repository's root: the filters alone. What owners need to answer,
and Ansible to ask them, is not in it.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, "build")

import yaml
from big_site import Site
from goals import record, say, turns

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.schedule import schedule
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table

TIMES = turns(5)
TYPES = yaml.safe_load(Path("playbooks/vars/instance_types.yml").read_text())["hetero_instance_types"]
GPU_HOSTS = 20


def timed(name, work):
    """The median of TIMES turns, said. Seconds of the processor, for a filter waits for nothing."""
    seconds = []
    for _turn in range(TIMES):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    say(f"{name:56} {statistics.median(seconds):7.3f} {min(seconds):7.3f} {max(seconds):7.3f}")
    return statistics.median(seconds)


def main(proxies=100, boards_each=100):
    site = Site(proxies, boards_each, GPU_HOSTS)
    answers = [*site.answers, *site.host_answers]
    ours = dict(TYPES["tp64.8x8"], name="tp64.8x8")
    nobody = dict(ours, name="too large", memory_mb=2**30)
    say(f"{proxies * boards_each} boards; s, median, best and worst of {TIMES}")
    worst = max(
        timed("schedule one board", lambda: schedule(answers, ours, name="bob")),
        timed("schedule 500 boards", lambda: schedule(answers, ours, name="bob", count=500, strategy="pack")),
        timed("schedule what nobody has", lambda: schedule(answers, nobody, name="bob")),
    )
    both = timed("snapshots", lambda: (snapshots(site.answers), snapshots(site.host_answers, hosts=True)))
    table = timed("status_table", lambda: status_table(site.seen, TYPES, site.seen_hosts))
    page = timed("status_page", lambda: status_page(site.seen, hosts=site.seen_hosts))
    record("schedule among 10,000 boards", f"{worst:.2f} s", worst < 1)
    record("status of 10,000 boards, as a table", f"{both + table:.2f} s")
    record("the same as a page", f"{both + page:.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-reap`: ends the containers and guests whose lease is over, as terminate does. Roles gpu_lxc and
kvm_guests have a timer each, for their own kind.

One that another verb works on, or that cannot be ended, keeps its claim, and the next turn tries again.
"""

from __future__ import annotations

import argparse
import sys
import time

from ..change import Change
from ..instances import left
from .config import CONFIG
from .host import Host
from .instances import KINDS, Options, absent

VERB = "gpu-reap"
#: Seconds for each instance: others' work on it, and its end by force.
PATIENCE = 60.0


def reap(host, say, kinds=tuple(KINDS)):
    """End each instance of these kinds whose lease is over; True where all of them could be ended."""
    ended = True
    for claim in host.store.claims():
        now = time.time()
        if claim.kind not in kinds or claim.expires is None or claim.expires > now:
            continue
        result = absent(host, claim.instance, Options(timeout=PATIENCE, over=True), Change())
        over = f"{claim.instance} of {claim.owner}: its lease is {left(claim.expires - now)}"
        if result.get("failed"):
            say(f"{over}, and it could not be ended: {result['msg']}; it is tried again")
            ended = False
        elif host.store.claim_of(claim.instance) is None:
            host.store.event(claim.instance, VERB, f"{over}; ended, its devices are free")
            say(f"{over}; ended, its devices are free")
    return ended


def main(arguments):
    parser = argparse.ArgumentParser(
        prog=f"hetero {VERB}", description="End the instances whose lease is over, and free what they had."
    )
    parser.add_argument("--config", default=CONFIG, help="the host's configuration (%(default)s)")
    parser.add_argument("--kind", choices=sorted(KINDS), help="only containers (lxc) or guests (kvm)")
    options = parser.parse_args(arguments)
    with Host(options.config, VERB, create=False) as host:
        kinds = [options.kind] if options.kind else list(KINDS)
        return 0 if reap(host, lambda text: sys.stdout.write(f"{text}\n"), kinds) else 1

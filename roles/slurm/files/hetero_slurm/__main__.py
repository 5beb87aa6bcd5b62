# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that Slurm's controller calls: `resume HOSTLIST`, `suspend HOSTLIST` and `prolog` (of slurmctld); and
`sync`.

Each may be killed anywhere and run again. What they do is said in the log that /etc/slurm/hetero.json names.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import logging.handlers
import os
import pwd
import resource
import signal
import sys

from controller import Controller
from job import prolog
from plays import Plays
from power import resume, suspend
from site_file import AGAIN, Site, SiteError
from sync import sync

#: Bytes of the log file, and how many older ones are kept.
LOG_SIZE, LOG_FILES = 1 << 20, 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="hetero-slurm", description="Slurm's nodes are instances of hetero.compute.")
    parser.add_argument("--site", default="/etc/slurm/hetero.json", help="what the role wrote")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("resume", "suspend"):
        verbs.add_parser(verb).add_argument("nodes", help="Slurm's hostlist, such as tp64-[1-3]")
    for verb in ("prolog", "sync"):
        verbs.add_parser(verb)
    given = parser.parse_args()
    try:
        site = Site.read(given.site)
        _must_be_its_user(site.folder)
    except (SiteError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    _log_to(site.log, given.verb)
    os.environ.update(SLURM_CONF=site.slurm_conf, PATH=site.path)
    # A daemon may have it ignored, and plays end by it (plays.py); a program has a file open for each slot (slots.py).
    signal.signal(signal.SIGINT, signal.default_int_handler)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    controller, plays = Controller(), Plays(site)
    try:
        if given.verb == "prolog":
            prolog(site, controller, os.environ)
        elif given.verb == "sync":
            sync(site, controller, plays)
        else:
            names, others = site.known(controller.names(given.nodes))
            if names:
                {"resume": resume, "suspend": suspend}[given.verb](site, controller, plays, names)
            if others:
                raise SiteError(f"{', '.join(others)}: no slot of this site, and left alone: {AGAIN}")
    except (SiteError, OSError, ValueError) as error:
        logging.error("%s", error)
        return 1
    return 0


def _must_be_its_user(folder: str) -> None:
    """Raise SiteError for another user, such as root: what it writes there keeps Slurm's own programs out."""
    owner = os.stat(folder).st_uid
    if os.geteuid() != owner:
        with contextlib.suppress(KeyError):
            name = pwd.getpwuid(owner).pw_name
            raise SiteError(f"{folder} is {name}'s alone to write: put this before the command: runuser -u {name} --")
        raise SiteError(f"{folder} belongs to no user of this machine ({owner}): {AGAIN}")


def _log_to(path: str, verb: str) -> None:
    """Log to a file that does not grow without end; to standard error where it cannot be written."""
    os.umask(0o077)
    handler: logging.Handler
    try:
        handler = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_SIZE, backupCount=LOG_FILES)
    except OSError:
        handler = logging.StreamHandler()
    form = f"%(asctime)s {verb}[%(process)d] %(message)s"
    logging.basicConfig(level=logging.INFO, handlers=[handler], format=form)


if __name__ == "__main__":
    sys.exit(main())

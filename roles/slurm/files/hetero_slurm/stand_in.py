# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots whose boards cannot run slurmd: one on the controller stands in for each, and their user gets an ssh login.

The stand-in runs as Slurm's own user, who is root on all nodes, so it may begin no program of a job: `salloc` is what
such a slot is for. It is started when the board runs, has the user's key, and the slot's comment says how to log in, so
a job begins when its login works. A login is taken back with the board: who is root there can make further ones, so
nothing less than the end of the root does it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Iterable, Iterator, Sequence

from site_file import SiteError

if TYPE_CHECKING:
    from controller import Job
    from site_file import Site
    from slots import Slots

#: Written by the role beside slurm.conf, for what is this machine's own.
CONFIG = "hetero-stand-in.conf"
#: What a stand-in runs in place of slurmstepd, for each step and batch script. Slurm refuses most of them before: this
#: user cannot read a step's credential. A batch script has none, and only its folder's change of owner would fail.
NO_STEP = "/usr/bin/false"
#: Seconds that a board has for one login; its sshd has answered before (provision_instance).
LOGIN = 60
#: Bytes of a file that a slurmd writes: what a job's user has it log.
FILE_SIZE = 4 << 20
#: Seconds that a killed process has to be gone, and between two looks: it is no child of this program's.
LAST, TRY = 10.0, 0.05
#: One line of an authorized_keys without options (sshd(8)).
KEY = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+( [ -~]*)?\Z")
#: Run again, it adds nothing.
PUT = 'umask 077; mkdir -p .ssh; read -r k; grep -qsxF "$k" .ssh/authorized_keys || echo "$k" >> .ssh/authorized_keys'


def let_in(site: Site, slots: Slots, name: str, jobs: Sequence[Job]) -> str:
    """Give the user of a slot's job its board; return how the user logs in, or why not.

    :param jobs: what has the slot; none where its job was cancelled.
    :raises SiteError: the board does not let this controller in.
    """
    if len(jobs) != 1:
        several = "several jobs have it, and a login is one user's alone: see OverSubscribe of its partition"
        return several if jobs else "nobody's job"
    (job,) = jobs
    try:
        key = _key(site, job.user)
    except SiteError as error:
        return str(error)
    way = _way(site, name)
    # First: whatever is killed from here on, the root is no other job's.
    slots.lend(name, job.number)
    _put(site, name, key)
    return way


def start(site: Site, name: str, booted: bool = True) -> None:
    """Start a slurmd in a session of its own, which stays while slurmctld is restarted; end the one before it.

    :param booted: whether it says that its node has just booted, which Slurm waits for, and ends a job for.
    """
    end(site, [name])
    folder = os.path.join(site.folder, "stand-ins")
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, f"{name}.log"))
    with open(_begun(site, name), "w", encoding="ascii") as file:
        file.write(_configuration(site))
    slurmd = ["slurmd", "-D", *(["-b"] if booted else []), "-d", NO_STEP, *_of(site, name)]
    argv = ["prlimit", f"--fsize={FILE_SIZE}", *slurmd]
    none = subprocess.DEVNULL
    # with Python's own signals, of which SIGXFSZ is ignored: it goes on where its log is full
    subprocess.Popen(
        argv, cwd=folder, stdin=none, stdout=none, stderr=none, start_new_session=True, restore_signals=False
    )
    logging.info("%s: a slurmd stands in for it", name)


def keep(site: Site, name: str) -> None:
    """Start a slurmd that is gone from under its job, or again one that was begun with another slurm.conf, where it may
    have another port: Slurm would take the board for dead, and end the job.
    """
    began = ""
    with contextlib.suppress(FileNotFoundError), open(_begun(site, name), encoding="ascii") as file:
        began = file.read()
    if began != _configuration(site) or not any(_running(site, [name])):
        start(site, name, booted=False)


def end(site: Site, names: Iterable[str]) -> None:
    """End what stands in for slots, where anything does; it has given its port back then."""
    until, names = time.monotonic() + LAST, list(names)
    for pid in _running(site, names):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while any(_running(site, names)) and time.monotonic() < until:
        time.sleep(TRY)


def _key(site: Site, user: str) -> str:
    """Return a user's public key, which an operator has put among the site's."""
    path = os.path.join(site.keys, f"{os.path.basename(user)}.pub")
    try:
        with open(path, encoding="utf-8") as file:
            key = file.read().strip()
    except (OSError, ValueError) as error:
        raise SiteError(f"{user} has no key: put it into {path} on the controller") from error
    if not KEY.match(key):
        raise SiteError(f"{path} has not one public key: give one line, such as ssh-ed25519 AAAA…")
    return key


def _way(site: Site, name: str) -> str:
    """Return how a user logs in, of the file that provision_instance has written: the address and the host key."""
    with open(_config(site, name), encoding="utf-8") as file:
        text = file.read()
    address, known = (re.search(rf"^ *{word} +(.*)$", text, re.M) for word in ("HostName", "KnownHostsCommand"))
    if not address or not known:
        raise SiteError(f"{_config(site, name)} has no address or host key: see hetero-slurm.log")
    return f"ssh root@{address[1]} {' '.join(known[1].split()[-2:])}"


def _put(site: Site, name: str, key: str) -> None:
    own = os.path.join(site.folder, ".ssh", "id_ed25519")
    argv = ["ssh", "-F", _config(site, name), "-i", own, "-o", "BatchMode=yes", "-o", f"ConnectTimeout={LOGIN}", name]
    try:
        done = subprocess.run(
            [*argv, PUT], check=False, capture_output=True, text=True, errors="replace", input=f"{key}\n", timeout=LOGIN
        )
    except subprocess.TimeoutExpired as error:
        raise SiteError(f"{name}: no login within {LOGIN} s, to give it its user's key") from error
    if done.returncode:
        raise SiteError(f"{name}: no login to give it its user's key: {done.stderr.strip()[-200:]}")


def _running(site: Site, names: Iterable[str]) -> Iterator[int]:
    """Yield the processes of this user that stand in for slots."""
    wanted = [_of(site, name) for name in names]
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().decode(errors="replace").split("\0")
                if words[-5:-1] in wanted and os.stat(f"/proc/{entry}").st_uid == os.geteuid():
                    yield int(entry)


def _of(site: Site, name: str) -> list[str]:
    """Return the words by which a slurmd is a slot's."""
    return ["-N", name, "-f", os.path.join(os.path.dirname(site.slurm_conf), CONFIG)]


def _begun(site: Site, name: str) -> str:
    """Return the file that says with which slurm.conf a slurmd was begun."""
    return os.path.join(site.folder, "stand-ins", f"{name}.begun")


def _configuration(site: Site) -> str:
    """Return what tells one slurm.conf from another; "" where there is none."""
    with contextlib.suppress(FileNotFoundError):
        return str(os.stat(site.slurm_conf).st_mtime_ns)
    return ""


def _config(site: Site, name: str) -> str:
    return os.path.join(site.folder, "ssh", name)

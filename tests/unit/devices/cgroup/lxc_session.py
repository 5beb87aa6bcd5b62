# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers about one container to a test that is not in its mount namespace: what modules
cgroup_devices and cgroup_info say, what may be opened, and what the kernel says inside. Speaks JSON, a line a question.
"""

from __future__ import annotations

import json
import subprocess
import sys

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_container
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.liblxc import Container
from ansible_collections.hetero.compute.plugins.modules import cgroup_devices, cgroup_info

MAKE = "n=/tmp/n$$; busybox mknod $n {kind} {major} {minor}"
OPEN = {"rw": ": <>$n", "r": ": <$n", "w": ": >$n"}


class Session:
    def __init__(self, lxcpath, name):
        self.container = Container(name, lxcpath)
        self.held = []

    @property
    def cgroup(self):
        return of_container(self.container.init_pid, self.container.name)

    def start(self):
        self.container.start(60)
        return self.cgroup.version

    def stop(self):
        self.container.stop()
        return True

    def module(self, check=False, **arguments):
        params = dict(dict(cgroup=None, container=None, lxcpath=self.container.lxcpath, state="allowed"), **arguments)
        try:
            return cgroup_devices.work(params, check)
        except HeteroError as error:
            return {"failed": str(error)}

    def info(self, *rules):
        params = dict(cgroup=None, container=self.container.name, lxcpath=self.container.lxcpath, rules=rules)
        try:
            return cgroup_info.work(params, False)
        except HeteroError as error:
            return {"failed": str(error)}

    def lxc(self, item, rule):
        """lxc-cgroup, as an operator types it."""
        argv = ["lxc-cgroup", "-P", self.container.lxcpath, "-n", self.container.name, item, rule]
        return subprocess.run(argv, check=False, timeout=600).returncode

    def opens(self, rule):
        """Whether the container's root can open the device, asked inside: an open that finds no driver passed."""
        one = parse(rule)
        script = MAKE.format(**one._asdict()) + " || exit 9; " + OPEN[one.access] + "; e=$?; busybox rm $n; exit $e"
        argv = ["lxc-attach", "-P", self.container.lxcpath, "-n", self.container.name, "--", "/bin/sh", "-c", script]
        done = subprocess.run(argv, check=False, timeout=600, capture_output=True, text=True)
        if "Operation not permitted" in done.stderr:
            return False
        assert done.returncode == 0 or "No such device" in done.stderr, (done.returncode, done.stderr)
        return True

    def may(self, *rules):
        return [self.cgroup.may(*parse(rule)) for rule in rules]

    def direct(self):
        """[[name, whether it is ours]] of the programs on the container's cgroup."""
        return [[program.name, program.own is not None] for program in self.cgroup.v2.direct]

    def everything(self):
        return self.cgroup.allows_everything()

    def foreign(self):
        """Somebody swaps LXC's program for an equal one, behind its back."""
        (program,) = self.cgroup.v2.direct
        old, new = bpf.open_program(program.id), bpf.load(program.instructions, "swapped")
        with self.cgroup.v2._directory() as cgroup, bpf.closing(old), bpf.closing(new):
            bpf.attach(cgroup, new, replace=old)
        return True


def main():
    session = Session(*sys.argv[1:3])
    for line in sys.stdin:
        verb, words, named = json.loads(line)
        print(json.dumps(getattr(session, verb)(*words, **named)), flush=True)


if __name__ == "__main__":
    main()

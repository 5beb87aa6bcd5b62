# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root in a container leaves what is hard to remove: its lease ends all the same, and so does everybody else's."""

from __future__ import annotations

import shlex

from conftest import GPU_HOST

TINY = {"name": "c1.tiny", "memory_mb": 64, "vcpus": 1, "local_gb": 1, "extra_specs": {"hypervisor": "s== LXC"}}
#: More levels than Python calls itself; by names of one letter, as the shell knows no path of more than 4,096.
DEEP = "mkdir /root/a && cd /root/a && i=0 && while [ $i -lt 1900 ]; do mkdir d && cd d && i=$((i+1)) || exit 1; done"
MANY = "cd /root && n=$(printf %0240d 0) && i=0 && while [ $i -lt 2000 ]; do : > $n$i; i=$((i+1)); done; ls | wc -l"
#: As if the hours had passed, by the database and by the records of the claims.
OVER = """
import json, pathlib, sqlite3
for path in pathlib.Path("/var/lib/hetero/host.claims").glob("mole-*.json"):
    path.write_text(json.dumps(dict(json.loads(path.read_text()), expires=1.0)))
db = sqlite3.connect("/var/lib/hetero/host.db")
db.execute("UPDATE instances SET expires = 1 WHERE request = 'mole'")
db.commit()
"""


def test_deep_folders_end_neither_the_reaper_nor_a_termination(up):
    """Lost: with 1,500 nested folders a tenant stopped its own end for ever, and all others' on that node."""
    more = dict(flavor="c1.tiny", hetero_extra_instance_types={"c1.tiny": TINY})
    up.play("provision_instance", instance="mole", count=2, hours=1, **more)
    try:
        up.ssh("mole-1", DEEP)
        assert int(up.ssh("mole-1", MANY)) >= 2000
        up.on_node(GPU_HOST, "chattr +i /var/lib/lxc/mole-1/rootfs/root/a")
        up.on_node(GPU_HOST, f"python3 -c {shlex.quote(OVER)}")
        said = up.on_node(GPU_HOST, "hetero host reap --kind lxc", check=False)
        # the host's own timer may be quicker
        assert said.returncode == 0, said.stdout
        assert not up.on_node(GPU_HOST, "ls -d /var/lib/lxc/mole-*", check=False).stdout.startswith("/")
    finally:
        up.terminate("mole")

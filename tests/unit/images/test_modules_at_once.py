# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role debian_image puts into initrds in place of mkinitramfs's own function: modules, those they need, firmware.

`modprobe`, `modinfo` and `add_firmware` are played. Scenario pcs boots with
the real ones: its machines find their disks and networks.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

FUNCTION = Path(__file__).resolve().parents[3] / "roles" / "debian_image" / "files" / "modules-at-once"
#: `e1000e` needs ptp; `gone` is of another architecture: modprobe says nothing, and ends with 1. The second time, with
#: soft dependencies, there is one more.
MODPROBE = """#!/bin/sh
case " $* " in *" e1000e "*) printf 'insmod %s/ptp.ko \\ninsmod %s/e1000e.ko debug=1\\nbuiltin mii\\n' "$M" "$M" ;; esac
case " $* " in *" igc "*) printf 'insmod %s/ptp.ko \\ninsmod %s/igc.ko \\n' "$M" "$M" ;; esac
case " $* " in *--ignore-install*) ;; *) printf 'insmod %s/soft.ko \\n' "$M" ;; esac
case " $* " in *" gone "*) exit 1 ;; esac
"""
MODINFO = "#!/bin/sh\ncase $* in *igc.ko*) printf 'intel/b.bin\\nintel/b.bin\\nintel/a.bin\\n' ;; esac\n"
TRIED = """
. "$FUNCTION"
add_firmware() { echo "$1"; return 1; }
version=6.1.0
manual_add_modules
manual_add_modules e1000e gone
touch -d @5 "$DESTDIR$M/ptp.ko"
manual_add_modules igc
manual_add_modules igc
"""


@pytest.fixture
def there(tmp_path):
    """Programs and modules, and an initrd that is empty."""
    modules = tmp_path / "lib" / "modules"
    for folder in (modules, tmp_path / "bin", tmp_path / "initrd"):
        folder.mkdir(parents=True)
    for name in ("ptp", "e1000e", "igc", "soft", "other"):
        (modules / f"{name}.ko").write_text(name)
    for name, text in (("modprobe", MODPROBE), ("modinfo", MODINFO)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    return dict(os.environ, PATH=path, M=str(modules), DESTDIR=str(tmp_path / "initrd"), FUNCTION=str(FUNCTION))


def test_the_modules_are_there_with_all_that_they_need(there):
    """Lost: a board without its network card or disk, since one module, or its firmware, is not in the initrd."""
    done = subprocess.run(["sh", "-c", TRIED], env=there, capture_output=True, text=True, timeout=600, check=True)
    laid = Path(there["DESTDIR"] + there["M"])
    assert {path.name: path.read_text() for path in laid.iterdir()} == {
        f"{name}.ko": name for name in ("ptp", "e1000e", "igc", "soft")
    }
    assert (laid / "ptp.ko").stat().st_mtime == 5, "one that is there stays"
    assert done.stdout.split() == ["intel/a.bin", "intel/b.bin"]
    assert done.stderr == ""


def test_what_is_lent_does_the_work_of_mkinitramfs_itself_and_no_hook_finds_it(there, tmp_path):
    """Lost: minutes of zstd under emulation; or a board whose initrd has a program of the machine that built it."""
    lent = tmp_path / "lent"
    lent.mkdir()
    for name in ("zstd", "dpkg-deb"):
        (lent / name).write_text(f"#!/bin/sh\necho {name} is lent: $*\n")
        (lent / name).chmod(0o755)
    (tmp_path / "bin" / "zstd").write_text("#!/bin/sh\necho that of the root\n")
    (tmp_path / "bin" / "zstd").chmod(0o755)
    function = tmp_path / "function"
    function.write_text(FUNCTION.read_text().replace("/hetero-native/bin", str(lent)))
    tried = '. "$FUNCTION"; compress="zstd -9"; $compress -c "a file"; sh -c "zstd -9"'
    env = {**there, "FUNCTION": str(function)}
    done = subprocess.run(["dash", "-c", tried], env=env, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.splitlines() == ["zstd is lent: -9 -c a file", "that of the root"]

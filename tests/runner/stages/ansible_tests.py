# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages that run ansible-test: sanity, and the quick unit tests through Ansible's own loader."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from runner.places import BIN, BUILD, OLDEST_PYTHON, PYTHON, ROOT, environment
from runner.stages.units import ONLY_IN_STAGE_UNIT
from runner.tools import StageFailed, counted, tool
from turns import todays


def checkout():
    """A copy of this tree as ansible-test wants it: a git checkout of its own at …/ansible_collections/hetero/compute.

    Without a .git of its own the copy would lie in a folder that git ignores, and ansible-test would skip all targets
    and end with 0. tests/output in it holds ansible-test's virtual environment: it stays, and is not tested.
    """
    copy = BUILD / "ansible-test" / "ansible_collections" / "hetero" / "compute"
    kept = copy.parent / "output"
    if (copy / "tests" / "output").exists():
        (copy / "tests" / "output").rename(kept)
    shutil.rmtree(copy, ignore_errors=True)
    git = ["git", "-c", "safe.directory=*"]
    listed = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        # a file that git knows may be deleted in the working tree
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    subprocess.run([*git, "init", "--quiet"], cwd=copy, check=True)
    (copy / ".git" / "info" / "exclude").write_text("/tests/output/\n")
    subprocess.run([*git, "add", "--all"], cwd=copy, check=True)
    if kept.exists():
        kept.rename(copy / "tests" / "output")
    return copy


def ansible_test_home():
    """Environment of ansible-test: a home of its own under build/, kept, for it holds its virtual environments.

    Its pip comes from a host of its own, by a script of the name below; the pip that Python brings does as well, and
    comes from no host at all. pip's cache and settings stay the user's.
    """
    home = BUILD / "ansible-test"
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in (".cache", ".config"):
        (Path.home() / name).mkdir(exist_ok=True)
        if not (home / name).is_symlink():
            (home / name).symlink_to(Path.home() / name)
    (code,) = BIN.parent.glob("lib/python3*/site-packages/ansible_test/_internal/python_requirements.py")
    for version in re.findall(r"\bpip='([0-9.]+)'", code.read_text()):
        (cache / f"get_pip_{version.replace('.', '_')}.py").write_text(GET_PIP)
    return environment(HOME=str(home))


#: Each of its nine environments gets a pip of its own: made once for each Python, and copied.
GET_PIP = """\
import os
import shutil
import subprocess
import sys
import sysconfig

site = sysconfig.get_path('purelib')
kept = '%s-%d.%d' % ((os.environ['GET_PIP'],) + sys.version_info[:2])
if os.path.isdir(kept):
    shutil.copytree(kept, site, dirs_exist_ok=True)
else:
    options = [option for option in sys.argv[1:] if option not in ('--no-setuptools', '--no-wheel')]
    subprocess.check_call([sys.executable, '-m', 'ensurepip', '--default-pip'])
    subprocess.check_call([sys.executable, '-m', 'pip', 'install'] + options)
    shutil.rmtree(kept + '.partial', ignore_errors=True)
    shutil.copytree(site, kept + '.partial')
    os.rename(kept + '.partial', kept)
"""


#: Sanity test `import` reads each file as if it were the first, with all that it imports, and Ansible's loader compiles
#: all of that each time: three hundred files for the largest. Here the same text is compiled once in a process.
COMPILE_ONCE = """\
import builtins

real, kept = builtins.compile, {}


def compile(source, filename, mode, flags=0, dont_inherit=False, optimize=-1, **more):
    if more or mode != 'exec' or not dont_inherit or not isinstance(source, (str, bytes)):
        return real(source, filename, mode, flags, dont_inherit, optimize, **more)
    made_from = (source, filename, flags, optimize)
    if made_from not in kept:
        kept[made_from] = real(source, filename, mode, flags, True, optimize)
    return kept[made_from]


builtins.compile = compile
"""


def have_compiled_once(log, copy, env, *python):
    """Have the environments of sanity test `import` there, and each process in them compile a text once.

    :param python: `--python` and which one; nothing for every Python found here.
    """
    argv = [BIN / "ansible-test", "sanity", "--local", "--color", "no", "--prime-venvs", "--test", "import", *python]
    tool(log, argv, cwd=copy, env=env)
    venvs = Path(env["HOME"], ".ansible", "test", "venv")
    for site in venvs.glob("sanity*/*/*/lib/python*/site-packages"):
        (site / "compile_once.py").write_text(COMPILE_ONCE)
        (site / "compile_once.pth").write_text("import compile_once\n")


#: Sanity tests of which another stage shows the same with the tools of .venv: `package` has ansible-doc print all
#: plugins, Galaxy's importer and the site have it as JSON; `docs` has antsibull-changelog look at the fragments.
SHOWN_ELSEWHERE = ("ansible-doc", "changelog")


def sanity(log):
    """ansible-test sanity, its slow parts on a part: pylint on today's plugins, imports on two Pythons."""
    this = ["--python", PYTHON]
    plugins = sorted(path.relative_to(ROOT) for path in ROOT.glob("plugins/**/*.py"))
    runs = [(this, without("pylint", *SHOWN_ELSEWHERE)), (this, ["--test", "pylint", *todays(plugins, 3)])]
    # Debian 12 has no such Python; stage `ruff` finds syntax that is too new
    if shutil.which(f"python{OLDEST_PYTHON}", path=environment()["PATH"]):
        runs.append((["--python", OLDEST_PYTHON], ["--test", "compile", "--test", "import"]))
    return _sanity(log, *runs)


def sanity_everywhere(log):
    """ansible-test sanity of everything, imports and compile on every Python found here."""
    return _sanity(log, ([], without(*SHOWN_ELSEWHERE)))


def without(*names):
    return [word for name in names for word in ("--skip-test", name)]


def _sanity(log, *runs):
    """
    :param runs: which Python, as words for ansible-test, none for every one found here; and which tests, as words.
    """
    copy, env = checkout(), ansible_test_home()
    for python in dict.fromkeys(tuple(python) for python, _tests in runs):
        have_compiled_once(log, copy, env, *python)
    argv = [BIN / "ansible-test", "sanity", "--local", "--color", "no"]
    output = "".join(tool(log, [*argv, *python, *tests], cwd=copy, env=env) for python, tests in runs)
    names = set(re.findall(r'^Running sanity test "([a-z0-9-]+)"', output, re.MULTILINE))
    lost = {"compile", "import", "pep8", "pylint", "validate-modules", "yamllint"} - names
    if lost:
        raise StageFailed(f"not run: {', '.join(sorted(lost))}")
    pythons = set(re.findall(r"^Running sanity test .* on Python ([0-9.]+)", output, re.MULTILINE))
    return f"{len(names)} tests, Python {' '.join(sorted(pythons, key=lambda name: int(name[2:])))}"


def ansible_unit(log):
    """ansible-test units: the quick unit tests once more, through Ansible's own collection loader."""
    folder = ROOT / "tests" / "unit"
    # by their files: a folder stands for all folders in it
    files = [path.relative_to(folder) for path in sorted(folder.rglob("test_*.py"))]
    quick = [path for path in files if path.parent.as_posix() not in ONLY_IN_STAGE_UNIT]
    argv = [BIN / "ansible-test", "units", "--venv", "--python", PYTHON, "--color", "no"]
    argv += [f"tests/unit/{path}" for path in quick]
    output = tool(log, argv, cwd=checkout(), env=ansible_test_home())
    return f"{counted(r'^=+ .*?([0-9]+) passed', output, 'tests')} tests"

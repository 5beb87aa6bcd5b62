# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""extensions/ci/board: what a job gets, and what is left of it. If these fail, a board stays with a job that is over,
or a team looks for a fault of its code that is a board's.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys

import posix_acl
import pytest

from ansible_collections.hetero.compute.tests.unit.ci.conftest import CI, LIMIT, keeper_of

GITLAB = dict(CI_JOB_ID="4711", CI_SERVER_HOST="gitlab.example.com")


def test_a_job_gets_a_board_and_gives_it_back(machine):
    """Lost: the board, the way to it, or the status of the job's own tests."""
    command = 'env | grep ^HETERO_ | sort; ssh -G -F "$HETERO_SSH_CONFIG" "$HETERO_INSTANCE"; exit 7'
    report = machine.folder / "report.json"
    words = ("--flavor", "tp64.8x8", "--report", str(report), "-e", "attempts=1", "--", "sh", "-c", command)
    rc, out, said = machine.run("run", *words, **GITLAB)
    assert rc == 7, said
    (name,) = re.findall(r"^HETERO_INSTANCE=(gitlab-4711-[0-9a-f]{8})$", out, re.M)
    assert "\nHETERO_NODE=board0\n" in out
    assert "HETERO_ADDRESS=10.0.1.1\n" in out
    assert f"\nHETERO_SSH=ssh -F {machine.state}/{name}/ssh_config {name}\n" in out
    assert "\nhostname 10.0.1.1\n" in out
    assert f"\nidentityfile {machine.state}/{name}/key\n" in out
    (first, asked), (last, ended) = machine.calls
    assert (first, last) == ("provision_instance", "terminate_instance")
    key = asked.pop("key")
    folder = f"{machine.state}/{name}/ssh"
    terms = dict(flavor="tp64.8x8", attempts="1", hours="2", wait="60", owner="ci")
    assert asked == dict(terms, instance=name, hetero_ssh_folder=folder)
    assert re.fullmatch(rf"ssh-ed25519 \S+ {name}", key)
    assert ended == dict(instance=name, owner="ci", hetero_ssh_folder=folder, only_key=key)
    assert list(machine.state.iterdir()) == []
    told = json.loads(report.read_text())
    assert (told["ended"], told["status"], told["code"], told["instance"]) == ("command", 7, 7, name)


@pytest.mark.parametrize(
    ("ending", "code", "words", "gives_back"),
    [
        ("request", 111, "the request is wrong: said", False),
        ("none", 112, "no node was free in time: said", False),
        ("boot", 113, "the board did not come up (fault of: board): said", True),
        ("owner", 114, "a node cannot be reached: said", True),
        ("other", 115, "Ansible, or a file, failed on this machine: said", True),
    ],
)
def test_each_ending_has_a_code(machine, ending, code, words, gives_back):
    """Lost: whether to run the job again, to mend its file, or to look at the board."""
    machine.says("provision_instance", ending, "said", "board" if ending == "boot" else None, ["PXE-E53"])
    report, touched = machine.folder / "report.json", machine.folder / "touched"
    rc, out, said = machine.run("run", "--flavor", "x", "--report", str(report), "--", "touch", str(touched))
    assert (rc, out, touched.exists()) == (code, "", False), said
    assert said.endswith(f"board: {words}\n")
    told = json.loads(report.read_text())
    assert (told["ended"], told["why"], told["code"], told["console"]) == (ending, "said", code, ["PXE-E53"])
    assert ("terminate_instance" in machine.verbs) == gives_back
    assert list(machine.state.iterdir()) == []


def test_a_commands_own_code_is_never_taken_for_one_of_ours(machine):
    """Lost: that a test failed, by chance with the number of a boot that failed."""
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "sh", "-c", "exit 113")
    assert (rc, "the command ended with 113, which says something else here: 110" in said) == (110, True)
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "sh", "-c", "kill -9 $$")
    assert rc == 128 + signal.SIGKILL
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "no-such-program")
    assert (rc, "board: no-such-program: No such file or directory\n" in said) == (127, True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run", "--flavor", "{{ lookup('pipe', 'id') }}", "--", "true"), "flavor is \"{{ lookup('pipe', 'id') }}\""),
        (("run", "--flavor", "x", "--hours", "none", "--", "true"), "hours is none: give some"),
        (("run", "--flavor", "x", "--name", "../x", "--", "true"), "'../x' is no name of an instance"),
        (("run", "--", "true"), "name a flavor: HETERO_FLAVOR, or --flavor"),
        (("run", "--flavor", "x"), "name a command: board run --flavor FLAVOR -- COMMAND"),
        (("take", "--flavour", "x"), "unrecognized arguments: --flavour x: is --flavor meant? board {run,take,"),
        (("run", "--flavour=x", "--", "true"), "unrecognized arguments: --flavour=x: is --flavor meant?"),
        (("run", "--flavor", "x", "--hrs", "1", "--", "true"), "is --hours meant?"),
        (("run", "--flavor", "x", "-i", "/nowhere", "--", "true"), "there is no inventory /nowhere: name the site's"),
        (("take", "--flavor", "x", "-e", "only_key=x"), "-e only_key=x: give OPTION=VALUE"),
        (("take", "-e", "key_file=/etc/shadow"), "-e key_file=/etc/shadow: give OPTION=VALUE"),
    ],
)
def test_what_is_refused_before_anything_is_asked(machine, words, why):
    """Lost: a runner's machine, to a variable of a job that Ansible runs; or a board without an end."""
    rc, _out, said = machine.run(*words)
    assert (rc, why in said, machine.calls) == (111, True, []), said
    assert "Traceback" not in said
    assert [path.name for path in machine.state.glob("*")] == []


def test_ansible_is_not_there(machine):
    """Lost: what to do, to a traceback."""
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "true", HETERO_ANSIBLE_PLAYBOOK="/no/ansible-playbook")
    assert (rc, "/no/ansible-playbook: no such program: activate Ansible" in said) == (115, True), said
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "true", HETERO_STATE="/proc/state")
    assert (rc, "Traceback" in said) == (115, False), said
    assert "board: Ansible, or a file, failed on this machine: " in said
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "true", HETERO_ANSIBLE_PLAYBOOK="false")
    assert (rc, "provision_instance ended with 1 and told no outcome" in said) == (115, True), said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("where", ["provision_instance", "command", "terminate_instance"])
def test_a_job_that_is_killed_gives_its_board_back(machine, where, number):
    """Lost: a board for two hours, each time somebody cancels a job."""
    if where != "command":
        machine.hangs(where)
    own = machine.folder / "command"
    command = f"echo $$ > {own}; echo command runs; exec sleep 100" if where == "command" else "true"
    process = machine.start("run", "--flavor", "x", "--", "sh", "-c", command, RUNNER_TRACKING_ID="1")
    output = process.stdout if where == "command" else process.stderr
    while (line := output.readline()) != f"{where} runs\n":
        assert line
    wait, (name,) = keeper_of(process), {options["instance"] for _playbook, options in machine.calls}
    process.send_signal(number)
    if where == "terminate_instance":
        if number != signal.SIGKILL:  # it goes on with what it does
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
        machine.goes_on(where)
    # the command had ended before its board was being given back
    code = 0 if where == "terminate_instance" else 128 + number
    assert process.wait(LIMIT) == (-signal.SIGKILL if number == signal.SIGKILL else code)
    wait()
    assert machine.verbs[:1] == ["provision_instance"]
    assert (machine.verbs[-1], (machine.state / name).exists()) == ("terminate_instance", False), machine.calls
    if where == "command" and number == signal.SIGKILL:
        os.kill(int(own.read_text()), signal.SIGKILL)  # a runner that kills a job so ends what it has started
    elif where == "command":
        assert not os.path.exists(f"/proc/{own.read_text().strip()}"), "it worked on a board that is another's by now"


def test_take_and_give_back(machine):
    """Lost: a board for a job of several steps; or its second give-back, which is a job's failure."""
    rc, out, said = machine.run("take", "--flavor", "x", **GITLAB)
    assert rc == 0, said
    (name,) = re.findall(r"^export HETERO_INSTANCE=(\S+)$", out, re.M)
    assert f"export HETERO_SSH='ssh -F {machine.state}/{name}/ssh_config {name}'\n" in out
    key = (machine.state / name / "key.pub").read_text()
    rc, again, said = machine.run("take", "--flavor", "x", **GITLAB)
    assert (rc, again, (machine.state / name / "key.pub").read_text()) == (0, out, key), said
    machine.says("terminate_instance", "owner", "p1 cannot be asked")
    rc, out, said = machine.run("give-back", **GITLAB)
    assert (rc, "p1 cannot be asked" in said, (machine.state / name).exists()) == (114, True, True)
    machine.goes_on("terminate_instance")
    for _time in range(2):
        rc, out, said = machine.run("give-back", **GITLAB)
        assert (rc, out, list(machine.state.iterdir())) == (0, "", []), said
    assert {options["instance"] for _verb, options in machine.calls} == {name}
    assert machine.verbs == [*["provision_instance"] * 2, *["terminate_instance"] * 2]
    assert [options["only_key"] for verb, options in machine.calls if verb != "provision_instance"] == [key.strip()] * 2


#: A job of several steps as a shell has it.
STEPS = """
{shell}
eval "$({take})"
echo "take: $?"
$HETERO_SSH echo on the machine of the CI
"""


@pytest.mark.parametrize("words", ["--flavor x --name mine", "--flavour x"])
def test_nothing_for_a_board_runs_on_the_machine_that_got_none(machine, words):
    """Lost: the machine of the CI, to a test for a board, as `eval` of nothing is a success and runs what follows."""
    machine.says("provision_instance", "none", "all boards are in use")
    code = 112 if "mine" in words else 111
    for shell, ends in (("export HETERO_SSH='echo of another board:'", (1, f"take: {code}\n")), ("set -e", (code, ""))):
        script = STEPS.format(take=f"{CI}/board take {words}", shell=shell)
        rc, out, said = machine.run("-c", script, program="/bin/bash")
        assert (rc, out) == ends, said
    assert machine.verbs == ["provision_instance"] * 2 * (code == 112)


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
@pytest.mark.parametrize("python", ["/no/python3", "false"])
def test_nothing_for_a_board_runs_on_a_machine_without_python(machine, shell, python):
    """Lost: the same, as Python is not there, or ends before it comes to a word of ours."""
    script = f'eval "$({CI}/board take --flavor x)" && echo taken; $HETERO_SSH echo runs here'
    rc, out, said = machine.run("-c", script, program=shell, HETERO_PYTHON=python)
    assert (rc, out) == (1, ""), said


@pytest.mark.parametrize("more", ["2> log", "|| exit"])
def test_a_shell_gives_back_what_it_took_in_a_shell_of_its_own(machine, more):
    """Lost: a board until its lease ends, since `give-back` looked for that of another process, and said nothing."""
    script = f'eval "$({CI}/board take --flavor x {more})"; {CI}/board give-back; {CI}/board give-back'
    rc, _out, said = machine.run("-c", script, program="/bin/bash")
    assert (rc, machine.verbs, list(machine.state.iterdir())) == (0, ["provision_instance", "terminate_instance"], [])
    assert said.endswith(": this machine has nothing of that name to give back\n")


def test_what_a_job_has_stays_when_it_asks_again(machine):
    """Lost: the board that a job works on, as its second `take` met a proxy node that was just restarted."""
    words = ("take", "--flavor", "x", "--name", "mine")
    assert machine.run(*words)[0] == 0
    machine.says("provision_instance", "owner", "p1 cannot be asked")
    rc, _out, said = machine.run(*words)
    assert (rc, (machine.state / "mine" / "board.json").exists()) == (114, True), said
    machine.hangs("provision_instance")
    process = machine.start(*words)
    assert process.stderr.readline() == "provision_instance runs\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT) == 128 + signal.SIGTERM
    assert "terminate_instance" not in machine.verbs


def test_what_stays_is_said(machine):
    """Lost: that a board was not given back, or the status of a job whose tests went well."""
    machine.says("terminate_instance", "owner", "p1 cannot be asked")
    rc, _out, said = machine.run("run", "--flavor", "x", "--name", "mine", "--", "true")
    assert rc == 0, said
    assert said.endswith("board: mine was not given back: p1 cannot be asked\nIts lease ends it at the latest.\n")


def test_two_runs_of_one_name(machine):
    """Lost: the board of the one that is not yet over."""
    words = ("run", "--flavor", "x", "--name", "mine", "--")
    first = machine.start(*words, "sh", "-c", f"echo runs; while [ ! -e {machine.folder}/over ]; do sleep 0.05; done")
    assert first.stdout.readline() == "runs\n"
    rc, _out, said = machine.run(*words, "true")
    assert (rc, "mine is the board of another `board run`" in said) == (111, True), said
    assert machine.verbs == ["provision_instance"]
    (machine.folder / "over").touch()
    assert first.wait(LIMIT) == 0
    assert machine.verbs == ["provision_instance", "terminate_instance"]


def test_it_works_by_a_link_and_needs_nothing(machine):
    """Lost: `board` for who links it into a folder of the path, or has a python3 without packages."""
    link = machine.folder / "bin" / "board"
    link.symlink_to(CI / "board")
    python = os.path.realpath(shutil.which("python3", path="/usr/bin"))
    words = ("run", "--flavor", "x", "--", "sh", "-c", "echo $PYTHONPATH-")
    rc, out, said = machine.run(*words, program=link, HETERO_PYTHON=python)
    assert (rc, out) == (0, "-\n"), said


def test_nobody_else_writes_what_ssh_obeys(machine):
    """Lost: the runner's user, to who changes ssh_config in a folder that a service without a umask has made."""
    state = machine.folder / "home" / "state"
    words = f"umask 0; exec {CI}/board take --flavor x --name mine --state {state}"
    rc, _out, said = machine.run("-c", words, program="/bin/sh")
    assert rc == 0, said
    made = [state.parent, state, state / "mine", state / "mine" / "ssh"]
    assert [oct(path.stat().st_mode & 0o777) for path in made] == ["0o700"] * len(made)
    assert [path.name for path in (state / "mine").iterdir() if path.is_file() and path.stat().st_mode & 0o022] == []


@pytest.mark.parametrize("whose", ["everybody's", "another's", "a group's", "its ACL's", "below", "by a link"])
@pytest.mark.parametrize("verb", ["run", "take", "give-back"])
def test_a_folder_for_keys_in_which_others_write_is_refused(machine, verb, whose):
    """Lost: the runner's user, with the site's key, to another user of its machine: ssh runs what stands in the
    ssh_config of a folder in /tmp whose name somebody has guessed.
    """
    machine.state.mkdir()
    if whose == "everybody's":
        machine.state.chmod(0o1777)
    elif whose == "its ACL's":
        posix_acl.let_write(machine.state, 1234)
    elif whose == "below":
        machine.folder.chmod(0o777)
    elif os.geteuid():
        pytest.skip("a folder of another user or group needs root: run as root")
    elif whose == "a group's":
        os.chown(machine.state, -1, pwd.getpwnam("daemon").pw_gid)
        machine.state.chmod(0o775)
    elif whose == "by a link":
        machine.state.rmdir()
        (machine.folder / "mine").mkdir()
        machine.state.symlink_to(machine.folder / "mine")
        os.lchown(machine.state, 65534, 65534)
    else:
        os.chown(machine.state, 65534, 65534)
    rc, _out, said = machine.run(verb, "--flavor", "x", "--name", "mine", *(("--", "true") if verb == "run" else ()))
    assert (rc, machine.calls, list(machine.state.iterdir())) == (111, [], []), said
    assert ": set HETERO_STATE (or --state) to one that is yours alone" in said


def test_a_groups_accounts_are_known_though_one_was_removed():
    """Lost: the same, in a folder whose group names an account before them that is no more."""
    names = "private.grp.getgrgid = lambda number: SimpleNamespace(gr_mem=['left-us', 'daemon'])"
    code = f"from types import SimpleNamespace; from heteroci import private; {names}; print(private._others(54321))"
    done = subprocess.run([sys.executable, "-c", code], cwd=CI, capture_output=True, text=True, check=True)
    assert done.stdout == "{'daemon'}\n"


@pytest.mark.parametrize("left", ["key", "key.pub"])
def test_half_a_key_is_made_anew(machine, left):
    """Lost: all boards of a name, for a process that was killed, or a full disk, while the key was written."""
    folder = machine.state / "mine"
    folder.mkdir(parents=True)
    subprocess.run(["touch", folder / left, folder / "keeper.log"], check=True)
    rc, _out, said = machine.run("take", "--flavor", "x", "--name", "mine")
    assert rc == 0, said
    assert machine.calls[0][1]["key"].startswith("ssh-ed25519 ")


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("true", 115)])
def test_a_report_that_cannot_be_written(machine, command, code):
    """Lost: the command's own code, and the word on the file, to a traceback."""
    report = machine.folder / "none" / "report.json"
    words = ("run", "--flavor", "x", "--report", str(report), "--", "sh", "-c", command)
    rc, _out, said = machine.run(*words)
    assert (rc, "Traceback" in said) == (code, False), said
    assert said.endswith(f"board: {report} was not written: No such file or directory\n")
    assert machine.verbs[-1] == "terminate_instance"


def test_output_that_the_command_left_unblocked(machine):
    """Lost: the board, for the whole lease: Ansible refuses such output, and an ssh that is ended leaves it so."""
    program = machine.folder / "bin" / "ansible-playbook"
    first, rest = program.read_text().split("\n", 1)
    check = "import os, sys\nassert os.get_blocking(1) and os.get_blocking(2), 'Ansible requires blocking IO'\n"
    program.write_text(f"{first}\n{check}{rest}")
    command = f"{sys.executable} -c 'import os; [os.set_blocking(fd, False) for fd in (1, 2)]'"
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "sh", "-c", command)
    assert (rc, machine.verbs, "was not given back" in said) == (0, ["provision_instance", "terminate_instance"], False)


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own needs root: run as root")
@pytest.mark.parametrize("full", ["keys", "all"])
def test_no_space_for_the_playbook_that_gives_back(machine, full):
    """Lost: a board until its lease ends, as the folder for keys is full; where all is, the status of a job whose tests
    are over, and which board stays.
    """
    machine.state.mkdir()
    fill = f"n=0; while mkdir {machine.state}/$n; do n=$((n + 1)); done 2>&-; exit 7"
    own = f"mount -t tmpfs -o mode=700,size=1m,nr_inodes=64 small {machine.state} && "
    if full == "all":
        own += f"mount -t tmpfs -o size=8k small {machine.tmp} && "
    own += f"exec {CI}/board run --flavor x --name mine"
    words = ("--propagation", "private", "-m", "sh", "-c", f'{own} -- sh -c "$0"', fill)
    rc, _out, said = machine.run(*words, program="/usr/bin/unshare")
    assert (rc, "Traceback" in said) == (7, False), said
    assert ("board: mine was not given back: [Errno " in said) == (full == "all"), said
    assert machine.verbs == ["provision_instance", "terminate_instance"][: 1 if full == "all" else 2]


def test_nohup_is_obeyed(machine):
    """Lost: a board and hours of tests, for a terminal that went away, as the user had foreseen."""
    words = ("board", "run", "--flavor", "x", "--", "sh", "-c", "echo command runs; sleep 0.5; exit 7")
    process = machine.start("-c", 'trap "" HUP; exec "$0" "$@"', str(CI / words[0]), *words[1:], program="/bin/sh")
    assert process.stdout.readline() == "command runs\n"
    process.send_signal(signal.SIGHUP)
    assert process.wait(LIMIT) == 7


def test_a_playbook_whose_outcome_could_not_be_written(machine):
    """Lost: a board for the whole lease, as the disk was full when the playbook that got it ended."""
    program = machine.folder / "bin" / "ansible-playbook"
    full = "os.environ['HETERO_OUTCOME'] = '/dev/full'\n"
    program.write_text(program.read_text().replace("sys.exit(main(", f"{full}sys.exit(main("))
    rc, _out, said = machine.run("run", "--flavor", "x", "--", "true")
    assert (rc, machine.verbs) == (115, ["provision_instance", *["terminate_instance"] * 2]), said


@pytest.mark.parametrize(
    "outcome",
    ["null", "{}", '["given"]', '{"ending": "given"}', '{"ending": "odd"}', '{"ending": "given", "instances": []}'],
)
@pytest.mark.parametrize("verb", ["run", "take"])
def test_an_outcome_that_is_none(machine, verb, outcome):
    """Lost: a board until its lease ends, whose key was removed, to a file that somebody has written into."""
    more = {} if outcome in ("null", '["given"]') else dict(text="", blame=None, console=[], instances=[{}])
    said = json.dumps(dict(more, **json.loads(outcome))) if more else outcome
    (machine.folder / "says-provision_instance.json").write_text(said)
    program = machine.folder / "bin" / "ansible-playbook"
    program.write_text(program.read_text().replace("return 0 if", "return 0 if playbook == 'provision_instance' or"))
    words = ("--flavor", "x", "--name", "mine", *(("--", "true") if verb == "run" else ()))
    rc, _out, said = machine.run(verb, *words)
    assert (rc, "Traceback" in said, "told no outcome" in said) == (115, False, True), said
    assert (machine.verbs, list(machine.state.iterdir())) == (["provision_instance", "terminate_instance"], [])


def test_what_a_request_left_out_is_left_out_at_its_end(machine):
    """Lost: the board until its lease ends, as a node that is down is asked for it."""
    rc, _out, said = machine.run("run", "--flavor", "x", "-e", "without=p2", "-e", "wipe=zero", "--", "true")
    assert rc == 0, said
    (_verb, ended) = machine.calls[-1]
    assert (ended["without"], ended["wipe"], "flavor" in ended) == ("p2", "zero", False)
    assert machine.run("take", "--flavor", "x", "--part", "1", "-e", "without=p2")[0] == 0
    assert machine.run("give-back", "--part", "1")[0] == 0
    assert (machine.calls[-1][0], machine.calls[-1][1]["without"]) == ("terminate_instance", "p2")


@pytest.mark.parametrize("folder", ["my keys", "a\tb", "'", '"', "$(id)", "a*", "a%h", "a\\b"])
def test_a_folder_for_keys_that_a_shell_would_not_find_is_refused(machine, folder):
    """Lost: the job, whose board boots, and whose first login fails; it is given back, and so on, all night."""
    state = machine.folder / folder
    for verb, more in (("run", ("--", "true")), ("take", ()), ("give-back", ())):
        for words, env in (((), dict(HETERO_STATE=str(state))), (("--state", str(state)), {})):
            rc, _out, said = machine.run(verb, "--flavor", "x", *words, *more, **env)
            assert (rc, machine.calls) == (111, []), said
            assert "in $HETERO_SSH: set HETERO_STATE (or --state) to one of letters, digits and . _ -" in said
    assert not state.exists()


def test_a_folder_for_keys_may_have_letters_of_all_languages(machine):
    """Lost: the login of who is called so."""
    state = machine.folder / "Zoë"
    command = 'set -- $HETERO_SSH; test -f "$3" && ssh -G -F "$3" "$4" && echo "$#"'
    rc, out, said = machine.run("run", "--flavor", "x", "--", "sh", "-c", command, HETERO_STATE=str(state))
    assert (rc, out.splitlines()[-1]) == (0, "4"), said

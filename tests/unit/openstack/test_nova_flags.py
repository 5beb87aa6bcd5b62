# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options in nova.conf. If these fail, Nova starts with other options than were asked for, or a user's file is spoiled.

What counts is oslo.config's word: the library itself reads the files.

Tests openstack/block.py, openstack/config_files.py.
"""

from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack import block
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack.config_files import (
    CONF,
    FLAGFILE,
    group,
    parse,
    split,
)
from ansible_collections.hetero.compute.plugins.modules.nova_flags import work

OURS = {
    "DEFAULT": {"connection_type": "baremetal", "cpu_arch": "tilepro64"},
    "baremetal": {"tile_pdu_ip": "10.0.100.1", "tile_power_wait": 9},
}
#: A nova.conf as packages ship it: a long comment behind the options, sections in any order, a secret.
SHIPPED = """\
[DEFAULT]
# compute
verbose = True
rpc_backend = rabbit
  and_more
rabbit_password = "s3cret"
# cpu_arch = something

#scheduler_default_filters = A,B

[database]
connection = mysql://nova:s3cret@localhost/nova
"""
BLOCK = f"{block.BEGIN}\nconnection_type = baremetal\ncpu_arch = tilepro64\n{block.END}\n"


def oslo(path, *options):
    """What oslo.config reads from a file: {(section, name): value or None}."""
    conf = cfg.ConfigOpts()
    for section, name in options:
        conf.register_opt(cfg.StrOpt(name), None if section == "DEFAULT" else section)
    conf(["--config-file", str(path)])
    return {(section, name): conf[name] if section == "DEFAULT" else conf[section][name] for section, name in options}


def wanted():
    return {(section, name): str(value) for section, options in OURS.items() for name, value in options.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "nova.conf"


def flags(path, check=False, **more):
    params = dict(path=str(path), format=CONF, flags=OURS, override=False, state="present")
    return work(dict(params, **more), check)


def test_each_option_lands_in_its_section_and_the_rest_is_untouched(path):
    path.write_text(SHIPPED)
    path.chmod(0o640)
    os.chown(path, 12345, 23456)
    result = flags(path)
    assert result["changed"]
    text = path.read_text()
    assert text.replace(BLOCK, "").startswith(SHIPPED)
    assert 'rabbit_password = "s3cret"\n' + BLOCK in text
    assert text.endswith(f"\n[baremetal]\n{block.BEGIN}\ntile_pdu_ip = 10.0.100.1\ntile_power_wait = 9\n{block.END}\n")
    assert oslo(path, *wanted()) == wanted()
    assert result["effective"]["baremetal"] == {"tile_pdu_ip": "10.0.100.1", "tile_power_wait": "9"}
    seen = path.stat()
    assert (stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid) == (0o640, 12345, 23456)
    assert "s3cret" not in json.dumps(result), "a diff shows the user's password"
    assert os.listdir(path.parent) == ["nova.conf"]


def test_a_second_run_changes_nothing_and_absent_gives_the_file_back(path):
    path.write_text(SHIPPED + "[baremetal]\ntftp_root = /tftpboot\n")
    before = path.read_text()
    assert flags(path)["changed"]
    once = path.read_text()
    assert not flags(path)["changed"]
    assert path.read_text() == once
    assert flags(path, flags={"DEFAULT": OURS["DEFAULT"]})["changed"]
    assert "tile_pdu_ip" not in path.read_text()
    assert flags(path, state="absent")["changed"]
    assert path.read_text() == before
    assert not flags(path, state="absent")["changed"]


def test_check_mode_tells_all_and_touches_nothing(path):
    result = flags(path, check=True)
    assert result["changed"]
    assert not path.exists()
    assert result["effective"]["DEFAULT"]["cpu_arch"] is None
    assert "connection_type = baremetal" in str(result["diff"][0]["after"])
    path.write_text(SHIPPED)
    assert flags(path, check=True)["changed"]
    assert path.read_text() == SHIPPED


def test_a_new_file_is_readable_for_nova(path):
    assert flags(path)["changed"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert oslo(path, *wanted()) == wanted()
    assert not flags(path)["changed"]


def test_what_is_there_otherwise_is_named_by_its_lines(path):
    """A hand-written connection_type must not fight with ours unseen: which of the two counts is not obvious."""
    path.write_text("[DEFAULT]\nconnection_type=libvirt\ncpu_arch: tilepro64\n[x]\n[DEFAULT]\nconnection_type = xen\n")
    before = path.read_text()
    with pytest.raises(Refused, match=r"line 2: connection_type = libvirt; line 6: connection_type = xen"):
        flags(path)
    assert path.read_text() == before
    result = flags(path, override=True)
    assert [(said["name"], said["line"], said["effect"]) for said in result["elsewhere"]] == [
        ("connection_type", 2, "overridden"), ("connection_type", 6, "overridden"), ("cpu_arch", 3, "kept"),
    ]  # fmt: skip
    assert oslo(path, *wanted()) == wanted()
    assert path.read_text().count("cpu_arch") == 1, "an option that is right already was written twice"
    assert not flags(path, override=True)["changed"]
    # the numbers are those of the file as it is, with our block in it
    path.write_text(path.read_text().replace("[x]\n", "[x]\n[DEFAULT]\nbaremetal_driver = fake\n"))
    with pytest.raises(Refused) as error:
        flags(path, override=False)
    number = path.read_text().split("\n").index("connection_type = xen") + 1
    assert f"line {number}: connection_type = xen" in str(error.value)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[DEFAULT]\nverbose\n", 2, "is no option"),
        ("verbose = 1\n", 1, "is in no section"),
        ("[DEFAULT\n", 1, "is no section"),
        ("[]\n", 1, "is no section"),
        ("[DEFAULT]\n  verbose = 1\n", 2, "continues no option"),
        ("[DEFAULT]\na = 1\n\n  b\n", 4, "continues no option"),
        ("[DEFAULT]\n= 1\n", 2, "has no name"),
        (f"[DEFAULT]\n{block.BEGIN}\na = 1\n", 2, "begins a block"),
    ],
)
def test_a_file_that_nova_cannot_read_is_left_alone(path, text, line, what):
    """The line is named. That oslo.config refuses such a file shows that it is no rule of our own."""
    path.write_text(text)
    with pytest.raises(BadInput, match=f"line {line}: {what}"):
        flags(path)
    assert path.read_text() == text
    if block.BEGIN not in text:
        with pytest.raises(cfg.ConfigFileParseError):
            oslo(path)


@pytest.mark.parametrize("value", ['"quoted"', "'", " blank", "blank ", "two\nlines", "a\u2028b"])
def test_a_value_that_nova_would_read_otherwise_is_refused(path, value):
    with pytest.raises(BadInput):
        flags(path, flags={"DEFAULT": {"cpu_arch": value}})
    assert not path.exists()


def test_names_that_are_none(path):
    """A name may not smuggle in a section or another option."""
    for name in ("[x]", "#a", "a=b", "a:b", " a", "", "a\nb", "a]", "\u00e4"):
        with pytest.raises(BadInput):
            flags(path, flags={"DEFAULT": {name: "1"}})
        with pytest.raises(BadInput):
            flags(path, flags={name: {"cpu_arch": "1"}})
    with pytest.raises(BadInput, match="no mapping"):
        flags(path, flags={"DEFAULT": "verbose"})
    assert not path.exists()


def test_a_flag_file_of_essex(path):
    """A flag a line, and the last one counts (gflags), so ours come last; a flag file has no groups."""
    path.write_text("# nova\n--verbose\n--connection_type=libvirt\n--nodaemon\n")
    with pytest.raises(Refused, match="line 3: connection_type = libvirt"):
        flags(path, format=FLAGFILE, flags={"DEFAULT": OURS["DEFAULT"]})
    more = dict(format=FLAGFILE, flags={"DEFAULT": OURS["DEFAULT"]}, override=True)
    assert flags(path, **more)["changed"]
    assert path.read_text().endswith(
        f"--nodaemon\n{block.BEGIN}\n--connection_type=baremetal\n--cpu_arch=tilepro64\n{block.END}\n"
    )
    assert not flags(path, **more)["changed"]
    with pytest.raises(BadInput, match=r"\[baremetal\]: a flag file has no sections"):
        flags(path, format=FLAGFILE)
    path.write_text("[DEFAULT]\n")
    with pytest.raises(BadInput, match="line 1: is no flag"):
        flags(path, **more)


def test_a_file_that_others_link_to_stays_one(path, tmp_path):
    path.write_bytes(SHIPPED.replace("\n", "\r\n").encode())
    (tmp_path / "link").symlink_to(path)
    flags(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n")
    assert oslo(path, *wanted()) == wanted()


def test_what_cannot_be_read(path, tmp_path):
    for wrong, what in ((tmp_path, "cannot be read"), (tmp_path / "no" / "nova.conf", "install nova-compute")):
        with pytest.raises(HeteroError, match=what):
            flags(wrong)
    path.write_bytes(b"[DEFAULT]\na = \xff\n")
    with pytest.raises(BadInput, match="byte 14"):
        flags(path)


NAMES = ["connection_type", "cpu_arch", "tile_pdu_ip", "other", "a b"]
LINE = st.one_of(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(NAMES),
        st.sampled_from(["=", " = ", ":", " : "]),
        st.sampled_from(["baremetal", "1", "", '"x"', "a=b:c", "'", "  y  ", "x # y"]),
    ),
    st.sampled_from(["[DEFAULT]", "[baremetal]", "[BareMetal]", "[ DEFAULT ]", "[default]", "[x]", "[x", "[]"]),
    st.sampled_from(["", "   ", "# c", "; c", "  more", "\tmore = 1", "junk", "= 1", "\x0c", "\x1f"]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(LINE, max_size=14), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_every_file_is_read_as_oslo_config_reads_it(tmp_path_factory, lines, end, last):
    """Any file: refused by both, or the same values before, ours and the user's own after, and back again."""
    text = end.join(["[DEFAULT]", *lines]) + (end if last else "")
    path = tmp_path_factory.mktemp("nova") / "nova.conf"
    path.write_bytes(text.encode())
    everything = [(section, name) for section in ("DEFAULT", "baremetal", "x") for name in NAMES]
    try:
        before = oslo(path, *everything)
    except cfg.ConfigFileParseError:
        with pytest.raises(BadInput):
            flags(path, override=True)
        assert path.read_bytes() == text.encode()
        return
    parsed = parse(split(text), CONF, "nova.conf")
    assert {option: parsed.value(group(option[0]), option[1]) for option in everything} == before
    flags(path, override=True)
    after = oslo(path, *everything)
    mine = {option: value for option, value in wanted().items() if option in after}
    assert after == {**before, **mine}
    assert not flags(path, override=True)["changed"]
    flags(path, state="absent")
    assert oslo(path, *everything) == before
    assert path.read_bytes().startswith(text.encode())

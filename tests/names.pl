# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# perl nfs3.pl+names.pl SERVER EXPORT FOLDER SECRET MADE: root on a board with names that no kernel sends, for they have / in
# them. FOLDER leads from its root to a folder of the proxy's, where file SECRET is; MADE begins the names of what it makes
# there. Says of each call whether it was served, and what it read; and first whether the way works, by names in its own root.
my ($export, $folder, $secret, $made) = @ARGV;
my $root = mounted(port_of($MOUNT), $export) or die "cannot mount $export";
my $nfs = dial(2049);

# Nothing is said of mode, owner, size and times of what is made.
my $attributes = pack 'N6', (0) x 6;
sub named { return opaque($root) . opaque(shift) }

# The rest of an answer that says yes; undef for one that says no, or that the call was not understood.
sub asked {
    my ($procedure, $body) = @_;
    ask($nfs, $NFS, 3, $procedure, $body);
    my $answer = answer($nfs);
    # A call that the server cannot decode (GARBAGE_ARGS) has no status.
    my ($status, $rest) = length $answer ? unpack('N a*', $answer) : ();
    return defined $status && $status == 0 ? $rest : undef;
}
sub try { my ($call, $answer) = @_; printf "%s %s\n", defined $answer ? 'served' : 'refused', $call; return $answer }
sub lookup { my $answer = asked($LOOKUP, named(shift)); return defined $answer ? unpack 'N/a', $answer : undef }

my $own = 'made-by-its-tenant';
asked($CREATE, named($own) . pack('N', 0) . $attributes);
print "works\n" if lookup($own) and defined asked($REMOVE, named($own)) and !lookup($own);
print "the root is left by ..\n" if (lookup('..') // $root) ne $root;
for my $name ("$folder/$secret", "etc/../$folder/$secret", '/etc/shadow', 'etc/hostname', 'etc/') {
    my $handle = try("LOOKUP $name", lookup($name)) or next;
    my $answer = asked($READ, opaque($handle) . pack('N3', 0, 0, 256)) // next;
    my ($has, $rest) = unpack 'N a*', $answer;
    printf "read %s: %s\n", $name, unpack('x8 N/a', $has ? substr($rest, 84) : $rest) =~ s/\n.*//sr;
}
my $there = "$folder/$made";
try("CREATE", asked($CREATE, named("$there-file") . pack('N', 0) . $attributes));
try("MKDIR", asked($MKDIR, named("$there-folder") . $attributes));
try("SYMLINK", asked($SYMLINK, named("$there-link") . $attributes . opaque('/')));
try("LINK", asked($LINK, opaque(lookup('etc/hostname') // lookup('bin') // $root) . named("$there-hard")));
asked($CREATE, named($own) . pack('N', 0) . $attributes);
try("RENAME", asked($RENAME, named($own) . named("$there-renamed")));
asked($REMOVE, named($own));
try("REMOVE", asked($REMOVE, named("$there-file")));
try("RMDIR", asked($RMDIR, named("$there-folder")));

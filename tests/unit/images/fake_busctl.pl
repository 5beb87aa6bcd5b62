# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# `busctl` as seen from nfs-ganesha 4.3 on Debian 12: its export manager over the JSON file $FAKE_GANESHA, with its own
# error texts. It reads export files as strictly as ganesha does, and sees to its rules: ids and pseudo paths are unique,
# paths exist. A verb calls it dozens of times: what only looks is answered before there is a Perl (fake_busctl.sh), and
# Perl, which is on any Debian, is there in 2 ms, Python in 20. To load strict.pm and warnings.pm takes longer than all
# of this; test_played_server.py holds the text to them.

my @TARGET = ("call", "org.ganesha.nfsd", "/org/ganesha/nfsd/ExportMgr", "org.ganesha.nfsd.exportmgr");
my $EXPORT = qr/
    EXPORT\ \{\n
    \ \ Export_Id\ =\ (\d+);\n
    \ \ Path\ =\ "(\/[^"\n]*)";\n
    \ \ Pseudo\ =\ "(\/[^"\n]*)";\n
    \ \ Attr_Expiration_Time\ =\ 0;\n
    \ \ Access_Type\ =\ None;\n
    \ \ Squash\ =\ no_root_squash;\n
    \ \ Protocols\ =\ 3;\n
    \ \ SecType\ =\ sys;\n
    \ \ FSAL\ \{\ Name\ =\ VFS;\ \}\n
    \ \ CLIENT\ \{\ Clients\ =\ ([0-9.]+);\ Access_Type\ =\ RW;\ \}\n
    \}\n
/x;
# What the file holds, as Python's json writes it: {"7": {"path": …, "pseudo": …, "clients": [one or none]}, …}
my $WORD = qr/"([^"\\]*)"/;
my $KEPT = qr/"(\d+)": \{"path": $WORD, "pseudo": $WORD, "clients": \[(?:$WORD)?\]\}/;
# The value that ganesha's own type signature gives each protocol and time; nobody reads them.
my $PROTOCOLS = join ",", map { "[\"$_\",false]" } qw(NFSv3 MNT NMLv4 RQUOTA NFSv40 NFSv41 NFSv42 9P);

sub fail {
    print STDERR "Call failed: $_[0]\n";
    exit 1;
}

sub answer {
    my ($kind, @data) = @_;
    local $" = ",";
    print "{\"type\":\"$kind\",\"data\":[@data]}\n";
}

sub slurp {
    open my $file, "<", $_[0] or die "$_[0]: $!";
    local $/;
    return scalar <$file>;
}

sub kept {
    my ($text) = @_;
    my @exports;
    my ($inner) = $text =~ /\A\{(.*)\}\n?\z/s or die "$ENV{FAKE_GANESHA} holds no exports: $text";
    while ($inner =~ /\G(?:, )?$KEPT/gc) {
        push @exports, {id => $1, path => $2, pseudo => $3, client => $4};
    }
    die "$ENV{FAKE_GANESHA} holds more than exports: $text" if $inner =~ /\G./s;
    return @exports;
}

sub keep {
    my @rows = map {
        my $clients = defined $_->{client} ? "\"$_->{client}\"" : "";
        "\"$_->{id}\": {\"path\": \"$_->{path}\", \"pseudo\": \"$_->{pseudo}\", \"clients\": [$clients]}"
    } @_;
    my $whole = "$ENV{FAKE_GANESHA}.$$";  # who looks takes no turn
    open my $file, ">", $whole or die "$whole: $!";
    print $file "{", join(", ", @rows), "}";
    close $file or die "$whole: $!";
    rename $whole, $ENV{FAKE_GANESHA} or die "$ENV{FAKE_GANESHA}: $!";
}

sub add {
    my ($exports, $path, $expression) = @_;
    -f $path or fail("error 2 (No such file or directory) when attempting to stat config file $path");
    my %found;  # by number: Ubuntu 20.04's perl-base has no %+
    @found{qw(id path pseudo client)} = slurp($path) =~ /\A$EXPORT\z/ or fail("Error while parsing $path");
    $expression eq "EXPORT(Export_Id=$found{id})" or fail("Error while parsing $path");
    fail("Selected entries in $path already active!!!") if grep { $_->{id} eq $found{id} } @$exports;
    my $taken = grep { $_->{pseudo} eq $found{pseudo} } @$exports;
    if ($taken || !-d $found{path}) {
        my $reason = $taken ? "invalid param value" : "block validation";
        fail("0 export entries in $path added because ($reason) errors. Details:\n"
            . "Config File ($path:1): 1 validation errors in block EXPORT\n"
            . "Config File ($path:1): Errors found in configuration block EXPORT");
    }
    answer("s", "\"1 exports added\"");
    keep(@$exports, \%found);
}

sub display {
    my ($exports, $number) = @_;
    my ($export) = grep { $_->{id} eq $number } @$exports or fail("lookup_export failed with Export id not found");
    my $clients = defined $export->{client}
        ? "[\"$export->{client}/32\",0,0,255,1,4294967294,4294967294,0,53490146,480]" : "";
    answer("qsssa(siyyiuuuuu)", $number, "\"$export->{path}\"", "\"$export->{pseudo}\"", "\"\"", "[$clients]");
}

sub show {
    my @rows = map { "[$_->{id},\"$_->{pseudo}\",[$PROTOCOLS],[0,0]]" } {id => 0, pseudo => "/"}, @_;
    local $" = ",";
    answer("(tt)a(qs((sb)(sb)(sb)(sb)(sb)(sb)(sb)(sb))(tt))", "[1795162415,133115314]", "[@rows]");
}

my $short = grep { $_ eq "--json=short" } @ARGV;
my @arguments = grep { !/^--/ } @ARGV;
my @target = splice @arguments, 0, 4;
$short && "@target" eq "@TARGET" or fail("Unknown method or interface");
-e $ENV{FAKE_GANESHA} or fail("The name org.ganesha.nfsd was not provided by any .service files");
# It changes one thing at a time, as its one thread for D-Bus does: until this ends, no other change begins.
open my $turn, "<", $0 or die "$0: $!";
flock $turn, 2 or die "$0: $!";  # LOCK_EX
my @exports = kept(slurp($ENV{FAKE_GANESHA}));
my ($method, $signature, @values) = (@arguments, "", "");
my $called = "$method $signature";
if ($called eq "AddExport ss") {
    add(\@exports, @values);
} elsif ($called eq "RemoveExport q") {
    my @left = grep { $_->{id} ne $values[0] } @exports;
    @left < @exports or fail("lookup_export failed with Export id not found");
    keep(@left);
} elsif ($called eq "DisplayExport q") {
    display(\@exports, $values[0]);
} elsif ($called eq "ShowExports ") {
    show(@exports);
} else {
    fail("Unknown method or interface");
}

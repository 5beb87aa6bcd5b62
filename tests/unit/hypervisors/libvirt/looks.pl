# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What only looks is answered here, in the words of virsh.py: a verb looks dozens of times, and Perl begins in a fifth of
# the time that Python takes. Everything else, and each failure, is that file's. virsh.program() sets $root and @python.
my ($defined, $running) = ("$root/etc/libvirt/qemu", "$root/run/libvirt/qemu");
my @words = @ARGV;
splice @words, 0, $words[0] eq '-c' ? 2 : 1 while @words && $words[0] =~ /^-/;
my ($command, $name, @rest) = @words;

# The names of the domains in a folder.
sub names {
    opendir my $folder, shift or return;
    return map { /^(.*)\.xml\z/s ? $1 : () } readdir $folder;
}

# A domain's XML; undef where there is none.
sub text {
    my ($folder, $name) = @_;
    open my $file, '<:raw', "$folder/$name.xml" or return undef;
    my $whole = do { local $/; <$file> };
    my $begin = index $whole, '<domain';
    return substr $whole, $begin, rindex($whole, '</domain>') + length('</domain>') - $begin;
}

sub answer {
    open my $log, '>>:raw', "$root/virsh" or die "$root/virsh: $!";
    print {$log} join(' ', @words), "\n";
    close $log;
    print @_;
    exit 0;
}

if (!-e "$root/kill-at" && !-e "$root/fail-$command") {
    if ($command eq 'list') {
        my %there = -e "$root/forgot" ? () : map { $_ => 1 } names($defined), names($running);
        answer(map { "$_\n" } sort keys %there);
    }
    if ($command =~ /^(?:domstate|dominfo|dumpxml)\z/ && defined $name) {
        for my $folder ($defined, $running) {
            my ($found) = grep { index(text($folder, $_) // '', "<uuid>$name</uuid>") >= 0 } names($folder);
            if (defined $found) { $name = $found; last }
        }
        my ($live, $kept) = (text($running, $name), text($defined, $name));
        if (defined $live || defined $kept) {
            answer(defined $live ? "running\n\n" : "shut off\n\n") if $command eq 'domstate';
            my $inactive = grep { $_ eq '--inactive' } @rest;
            answer($inactive && defined $kept ? $kept : $live // $kept) if $command eq 'dumpxml';
            my ($persistent, $auto) = (defined $kept ? 'yes' : 'no', -e "$defined/autostart/$name.xml" ? 'enable' : 'disable');
            answer("Name:           $name\nPersistent:     $persistent\nAutostart:      $auto\n");
        }
    }
}
exec { $python[0] } @python, @ARGV or die "$python[0]: $!";

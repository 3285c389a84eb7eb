# SPDX-License-Identifier: MIT
# What perl runs: much of the language once.  Nothing depends on time or chance.
use strict;
use warnings;
no warnings qw(once void redefine numeric uninitialized misc);
use utf8;
$| = 1;
binmode STDOUT, ':utf8';
my $go = <STDIN>;
my @out;
sub one { my $v = shift; !defined $v ? 'undef' : ref $v eq 'ARRAY' ? join(',', @$v) : ref $v eq 'HASH' ? join(',', map { "$_=$$v{$_}" } sort keys %$v) : ref $v =~ /^(?:CODE|GLOB|SCALAR|REF|LVALUE)$/ ? ref $v : "$v" }
sub say_ { print join('|', map { one($_) } @_), "\n" }
sub part { print "-- $_[0]\n"; }

part 'numbers';
say_ 7 + 3, 7 - 3, 7 * 3, 7 / 3, 7 % 3, -7 % 3, 2 ** 10, 1e3, 0x1f, 0b101, 0o17 // 0, 1_000, 10 <=> 9, 'a' cmp 'b', 5 & 3, 5 | 3, 5 ^ 3, ~5 & 255, 1 << 4, 256 >> 2, !1, !0, not(0), 1 .. 5;
say_ int(3.7), abs(-2), sqrt(16), sprintf('%.5f %.5f %.5f %.5f', sin 1, cos 1, atan2(1, 2), exp 1), log(10), hex('ff'), oct('0x1f'), oct('755'), 9 x 3, 18446744073709551615 + 1, -17 / 4, 1e308 * 10, -9 ** 0.5;
{ use integer; say_ 7 / 2, -7 / 2, -7 % 3, 5 * 3, 1 << 3, 7 <=> 3, - 3; }
{ no strict 'refs'; use bigint; say_ 2 ** 80; }
say_ sprintf('%d|%5s|%-5s|%05d|%+d|%x|%X|%#o|%b|%e|%g|%G|%s|%c|%%|%v d|%2$s|%*d|%.3s|%vd', 42, 'ab', 'ab', 42, 42, 255, 255, 8, 5, 12345.678, 1e-10, 1e20, 'str', 65, '1.2.3', 5, 3, 'truncate', '1.22.333');
my ($i, $j) = (5, 5); say_ $i++, ++$i, $i--, --$i, $i += 2, $i -= 1, $i *= 3, $i /= 2, $i **= 2, $i %= 7, $i x= 3, $i .= 'z', $j ||= 4, $j &&= 6, $j //= 9, $j <<= 2, $j >>= 1, $j |= 1, $j ^= 3, $j &= 0xff;
my $z = 'az'; $z++; my $zz = 'Zz'; $zz++; my $a9 = 'a9'; $a9++; say_ $z, $zz, $a9, '10' + '20abc', '3 apples' * 2, '0 but true' + 5, 'inf' + 0, 'nan' + 0 ne 'x';

part 'strings';
my $s = 'The quick brown fox';
say_ length $s, uc $s, lc $s, ucfirst lc $s, lcfirst $s, reverse($s) . '', index($s, 'quick'), rindex($s, 'o'), substr($s, 4, 5), substr($s, -3), join('-', split / /, $s), ord('A'), chr(9731), lc 'ÀÉ', CORE::fc('ß'), 'a' lt 'b', 'a' x 3, "\x41\x{263a}\t\Qa.b\E\U up\E\l X", quotemeta 'a+b', crypt('x', 'ab') // 'none';
{ my $t = $s; substr($t, 0, 3) = 'A'; substr($t, 2, 5, 'slow'); (my $u = $t) =~ tr/a-y/b-z/; $t =~ tr/a-zA-Z//cd; my $n = ($s =~ tr/o//); say_ $t, $u, $n, $s =~ tr/a-c/A-C/r, lc($s) =~ y/a-z//csr; chop $t; chomp(my $c = "line\n"); say_ $t, $c; vec(my $v = '', 3, 4) = 15; say_ unpack('b*', $v), pos($s) // 'nopos'; local $_ = 'topic'; say_ length, uc, ucfirst; study; }
say_ sprintf('%vd', '1.2'), "@{[ map { $_ * 2 } 1 .. 3 ]}", <<"A" . <<'B' . <<~C, 'x' . -foo => "${\ 'ref'}", __PACKAGE__, __LINE__;
heredoc $s
A
raw $s
B
    indented
      more
    C
say_ join ',', unpack('A3 a3 Z* n N v V C c w H4 h4 B8 b8 s S l L q Q f d U/a*', pack('A3 a3 Z* n N v V C c w H4 h4 B8 b8 s S l L q Q f d U/a*', 'ab', 'cd', 'zed', 1, 2, 3, 4, 5, -6, 300, '1f2e', '1f2e', '10101010', '01010101', -1, 1, -2, 2, -3, 3, 1.5, 2.5, 'counted'));
say_ unpack('%32C*', 'checksum'), unpack('(A2)*', 'aabbcc'), unpack('x2 X a @4 a', 'abcdefg'), pack('(a)3 x2 j J', 1, 2, 3, 4, 5) eq '', unpack('u', pack 'u', 'uuencode me please, I am a long string of text'), unpack('w*', pack 'w*', 1, 128, 16384);

part 'regex';
for my $r (qr/(\w+)\s+(\w+)/, qr/(?<first>q\w+)/i, qr/\b(.)(.)\w*\2?\b/x, qr/(?:a|e|i|o|u){1,2}?n/, qr/[^\W\d_]+(?= fox)/, qr/(?<!x)o(?!w)/, qr/^(?:(The)|A) (?(1)quick|slow)/, qr/(\((?:[^()]++|(?1))*\))/, qr/\p{Lu}\p{IsLower}*+/, qr/(?|b(r)|f(o))/, qr/q(?{ $j = 7 })u/, qr/\Gx|fo\K./, qr/(?i:QUICK)\h\N+\z/s, qr/(?>b.*?n)(*SKIP)./, qr/[[:alpha:][:^digit:]]{3,}?k/m, qr/a{,2}|\x{66}\o{157}\N{U+78}/) {
	my $t = "$s (a (b) c)";
	if ($t =~ $r) { say_ "$r", $&, $`, $', $1, $2, $+, "@-", "@+", $+{first}, $^N; } else { say_ "$r", 'no'; }
	say_ scalar(my @all = $t =~ /$r/g), ($t =~ s/$r/<$&>/gr), join '/', split $r, $t, 4;
}
{ my $t = 'aaa bbb'; my $n = () = $t =~ /\w/g; (my $e = $t) =~ s/(\w+)/length($1) . $1/ge; (my $ee = '$n') =~ s/(\$\w+)/$1/ee; while ($t =~ /(\w)/gc) { $n .= pos $t } $t =~ /\G$/; say_ $n, $e, $ee, pos $t, join(',', 'x1y22z' =~ /(\d+)/g), 'αβγ' =~ /^\w+$/ ? 1 : 0, "a\nb" =~ /a$/m, 'AbC' =~ /^abc$/i, 'foobar' =~ s/(?<x>o+)/[$+{x}]/r, join('|', split(//, 'abc')), join('|', split(' ', '  lead and trail ')), join('|', split(/(,)/, 'a,b,,c,,')), eval { 'x' =~ /${\ '('}/; 1 } // $@ =~ /Unmatched/; }
say_ map { eval { my $r = qr/$_/; 1 } ? 'fine' : $@ =~ s/ at .*//sr } '(', '[z-a]', 'a**', '\p{Nope}', '(?<n', 'x{3,1}', '(?z)', '\\';

part 'lists';
my @a = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3);
say_ scalar @a, $#a, "@a[1,2]", "@a[-2..-1]", (sort @a)[0], join(',', sort { $b <=> $a } @a), join(',', reverse sort { $a <=> $b } @a), join(',', map { $_ % 2 ? ($_) : () } @a), scalar(grep { $_ > 3 } @a), exists $a[20], wantarray;
push @a, 7, 8; unshift @a, 0; my $p = pop @a; my $q = shift @a; my @sp = splice @a, 2, 3, 'x', 'y'; splice @a, -1; say_ $p, $q, "@sp", "@a", delete $a[0], join(',', each @{[9]}), join(',', keys @sp), "@{[%sp[0,1]]}";
my %h = (one => 1, two => 2, three => 3, map { $_ => ord } 'a' .. 'e'); my %inv = reverse %h;
say_ map { "$_=$h{$_}" } sort keys %h; say_ exists $h{one}, delete $h{two}, join(',', @h{qw(a b)}), scalar(%h) > 0, scalar(keys %h), $inv{97}, join(',', map { $_ // 'u' } delete @h{qw(a nope)}), join(',', sort { $a <=> $b } values %h), join(',', %h{one});
while (my ($k, $v) = each %h) { $h{$k} = $v + 1 } say_ sort { $a <=> $b } values %h; { local $h{one} = 99; local @h{qw(b c)} = (1, 2); say_ @h{qw(one b c)}; } say_ $h{one};
my $deep = { list => [1, [2, 3], { k => 'v' }], code => sub { "called @_" }, ref => \'scalar', glob => \*STDOUT }; say_ $deep->{list}[1][0], $$deep{list}->[2]{k}, $deep->{code}->(1, 2), ${ $deep->{ref} }, ref $deep->{glob}, scalar @{ $deep->{list} }, $deep->{list}->@*, join ',', map { ref } values %{{ a => [], b => {}, c => sub { }, d => \1, e => qr/x/, f => \\1 }} ? 'refs' : ''; push @{ $deep->{auto}{vivified} }, 1; say_ exists $deep->{auto}{vivified}[0], $#{ $deep->{list} };
my ($x, $y, @rest) = (1 .. 5); ($x, $y) = ($y, $x); my ($u) = (my $cnt = () = (1, 2, 3)); say_ $x, $y, "@rest", $cnt, (1, 2, 3)[1], (sub { wantarray ? 'list' : 'scalar' })->(), scalar((sub { wantarray ? 'list' : 'scalar' })->()), join(',', (1) x 3), 'a' .. 'e', 'aa' .. 'ad';

part 'flow';
OUTER: for my $m (1 .. 5) { for (my $n = 0; $n < 5; $n++) { next OUTER if $n == 3 && $m == 2; last OUTER if $m == 4; redo if $n == 4 && $j++ < 9; $cnt += $m * $n; } continue_(); } sub continue_ { $cnt++ } say_ $cnt;
my $w = 0; while ($w < 5) { $w++; next if $w == 2; } continue { $cnt++ } until ($w <= 0) { $w -= 2 } do { $w++ } while ($w < 3); do { $w++ } until $w > 5; unless ($w) { say_ 'no' } elsif ($w > 5) { say_ 'elsif' } else { say_ 'else' } say_ $w, $cnt, ($w > 3 ? 'big' : 'small'), $w && 'and', 0 || 'or', undef // 'dor', (1 xor 1) || 'xor'; foreach my $v (reverse 1 .. 3) { $cnt .= $v } for (my @c = (1, 2)) { $_ *= 2 } { last if 1; say_ 'not here' } goto SKIP; say_ 'skipped'; SKIP: say_ $cnt;
sub fact { my $n = shift; $n < 2 ? 1 : $n * fact($n - 1) } sub proto(&@) { my $f = shift; map { $f->($_) } @_ } sub sig { my ($a, %o) = @_; return wantarray ? ($a, %o) : $a } sub lv : lvalue { $cnt } sub tail { @_ = ("tail @_"); goto &sig } { use feature qw(signatures state current_sub say fc bitwise); no warnings; sub named($p, $q = $p * 2, @r) { state $calls = 0; $calls++; "$p $q @r $calls" } say_ named(1), named(1, 2, 3), eval { named() } // 'too few', (sub { my $n = shift; $n < 2 ? 1 : $n * __SUB__->($n - 1) })->(5), '12' |. '3', 12 | 3; say 'say'; } say_ fact(10), (proto { $_[0] + 1 } 1, 2, 3), sig(1, k => 2), scalar(tail('x')), defined &fact, exists &nope; lv() = 77; say_ $cnt, (caller)[0], do { local $_ = 5; $_ + 1 };
my @closures = map { my $n = $_; sub { $n += shift // 1 } } 1 .. 3; say_ map { $_->(), $_->(5) } @closures; our $g = 'global'; sub show { $g } { local $g = 'local'; say_ show(); our @g = (1, 2); } say_ show(); { no strict 'refs'; *{'main::made'} = sub { 'made' }; say_ &{'made'}(), ${'main::g'}, main->can('made') ? 1 : 0; } say_ made();
say_ eval { die { code => 5 } } // $@->{code}, eval { die "plain\n" } // $@, eval 'syntax error here +' // ($@ =~ /syntax/ ? 'syntax' : $@), eval '2 + 3 * 4', eval { eval { die "inner\n" }; die "outer: $@" } // $@, eval { my $n = 1 / 0; 1 } // $@ =~ s/ at .*//sr, eval { undef->method } // $@ =~ s/ at .*//sr, eval { Nope->new } // $@ =~ s/ \(.*//sr, eval { my @l = (1) x -1; 'ok' }; { local $SIG{__WARN__} = sub { print "warned: ", $_[0] =~ s/ at .*//sr }; warn 'careful'; my $un; use warnings 'uninitialized'; my $n = "$un"; local $SIG{__DIE__} = sub { print "dying: ", $_[0] =~ s/ at .*//sr, "\n" }; eval { die 'hook' }; } { use feature 'try'; no warnings; eval q{ try { die "t\n" } catch ($e) { say_ "caught $e" } }; }
local $SIG{USR1} = sub { say_ 'signal', $_[0] }; kill USR1 => $$; local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 0; die "no alarm\n" }; say_ $@; { local $SIG{SEGV} = 'IGNORE'; } say_ scalar(grep { $_ } map { sprintf '%s', $_ } sort { $a cmp $b } keys %SIG) > 20;

part 'objects';
package Animal { our %count; sub new { my ($c, %o) = @_; $count{$c}++; bless { name => 'none', %o }, $c } sub name { $_[0]{name} } sub speak { my $s = shift; sprintf '%s says %s', $s->name, $s->sound } sub sound { 'nothing' } sub DESTROY { print "destroyed $_[0]{name}\n" } sub AUTOLOAD { our $AUTOLOAD; my $n = $AUTOLOAD =~ s/.*:://r; return if $n eq 'DESTROY'; "autoloaded $n" } }
package Dog { our @ISA = 'Animal'; sub new { my $c = shift; my $s = $c->SUPER::new(@_); $s->{tricks} = []; $s } sub sound { 'Woof' } use overload '+' => sub { Dog->new(name => $_[0]{name} . '+' . (ref $_[1] ? $_[1]{name} : $_[1])) }, '""' => sub { "Dog($_[0]{name})" }, '<=>' => sub { my ($a, $b, $sw) = @_; $sw ? -1 : 1 }, 'bool' => sub { 1 }, '==' => sub { 0 }, '@{}' => sub { $_[0]->() if 0; [1, 2] }, '&{}' => sub { my $s = shift; sub { "code of $s->{name} @_" } }, '<>' => sub { 'read' }, 'neg' => sub { 'neg' }, 'abs' => sub { 'abs' }, '.' => sub { "cat" }, 'x' => sub { 'rep' }, '~~' => sub { 1 }, 'cmp' => sub { "$_[0]{name}" cmp "$_[1]" }; }
package main;
{ my $d = Dog->new(name => 'Rex'); my $class = 'Dog'; my $m = 'speak'; say_ $d->speak, $d->$m, $class->can('sound')->(), $d->isa('Animal'), Dog->isa('HASH'), ref $d, $d->unknown(1), "$d", ($d + 'x')->name, -$d, abs $d, scalar @$d, &$d(7), <$d>, $d cmp 'Q', $d == 1 ? 1 : 0, $d->DOES('Animal'), UNIVERSAL::isa([], 'ARRAY'); my $e = $d; $e += 'y'; say_ $e->name; }
package Counter { sub TIESCALAR { my $v = $_[1]; bless \$v } sub FETCH { ${ $_[0] }++ } sub STORE { ${ $_[0] } = $_[1] } } package Upper { require Tie::Hash; our @ISA = 'Tie::StdHash'; sub STORE { $_[0]{uc $_[1]} = $_[2] } } package Rev { require Tie::Array; our @ISA = 'Tie::StdArray'; sub FETCH { scalar reverse $_[0][$_[1]] } } package Handle { sub TIEHANDLE { bless [] } sub PRINT { my $s = shift; push @$s, @_; 1 } sub READLINE { "line of tied\n" } sub PRINTF { my $s = shift; push @$s, sprintf shift, @_ } sub CLOSE { 1 } }
package main;
tie my $t, 'Counter', 5; say_ $t, $t, $t; $t = 1; say_ $t, ref tied $t; untie $t; tie my %th, 'Upper'; $th{abc} = 1; say_ keys %th; tie my @ta, 'Rev'; push @ta, 'abc', 'def'; say_ @ta, scalar @ta; tie *TH, 'Handle'; print TH 'a', 'b'; printf TH '%d', 5; say_ scalar <TH>, @{ tied *TH }; close TH; { my $weak; { require Scalar::Util; my $strong = [1]; Scalar::Util::weaken($weak = $strong); say_ defined $weak; } say_ defined $weak; say_ 1, Scalar::Util::blessed(bless {}, 'X'), Scalar::Util::reftype(bless [], 'X'), Scalar::Util::looks_like_number('1e5'), Scalar::Util::dualvar(5, 'five') . ''; }

part 'input, output';
open my $f, '>', 'file.txt' or die; print $f "line $_\n" for 1 .. 20; printf $f '%s', "last"; close $f; open $f, '<', 'file.txt'; my $first = <$f>; my @some = <$f>; say_ $first =~ s/\n//r, scalar @some, $., eof $f, tell $f; seek $f, 5, 0; read $f, my $buf, 7; say_ $buf =~ s/\n/~/r, getc $f; close $f; open $f, '+<', 'file.txt'; { local $/ = undef; my $all = <$f>; say_ length $all; seek $f, 0, 0; local $/ = \10; say_ scalar(my @recs = <$f>); } truncate $f, 50; close $f; say_ -s 'file.txt', -e 'nope' ? 1 : 0, -f 'file.txt', -d '.', -r _, -w _, -x 'file.txt' ? 1 : 0, -z _ ? 1 : 0, (stat 'file.txt')[7], -T 'file.txt', -l 'file.txt' ? 1 : 0; open my $mem, '<', \"in\nmemory\n"; say_ map { s/\n//r } <$mem>; open my $dup, '>&', \*STDOUT; open my $app, '>>:encoding(UTF-8)', 'file.txt'; print $app "\x{263a}\n"; close $app; open my $pipe, '-|', 'echo piped; exit 3'; say_ <$pipe> =~ s/\n//r, close($pipe) ? 1 : 0, $? >> 8; say_ `echo backtick` =~ s/\n//r, system('exit 2') >> 8, (map { s/\n//r } qx(printf 'a\\nb\\n')); mkdir 'd'; rename 'file.txt', 'd/f'; symlink 'f', 'd/l'; link 'd/f', 'd/h'; chmod 0600, 'd/f'; utime 1, 2, 'd/f'; opendir my $dh, 'd'; say_ sort grep !/^\./, readdir $dh; closedir $dh; say_ readlink 'd/l', join(',', glob 'd/*'), (stat 'd/f')[9]; unlink glob 'd/*'; rmdir 'd'; say_ open(my $bad, '<', 'nope') ? 1 : "$!"; $! = 2; say_ $! + 0, exists $!{ENOENT}, $0 ? 1 : 0, join(',', sort grep /^(TZ|LC_ALL)$/, keys %ENV);
format STDOUT_TOP =
Name   Value
------------
.
format STDOUT =
@<<<<< @>>>> @||||| @##.##
$x, $y, $s, $w
~~ ^<<<<<<
$s
.
$s = 'several words to wrap'; write; { local ($,, $\) = ('-', "!\n"); print 1, 2, 3; } say_ sprintf('%s', select), fileno STDIN; my $pid = fork; if (!$pid) { exit 7 } waitpid $pid, 0; say_ $? >> 8; pipe my $r, my $wr; if (!($pid = fork)) { close $r; syswrite $wr, 'from child'; close $wr; require POSIX; POSIX::_exit(0) } close $wr; sysread $r, $buf, 100; waitpid $pid, 0; say_ $buf; say_ join ',', @{[localtime 86400]}[5, 4, 3], scalar gmtime 0; say_ +(getpwuid 0)[0], sprintf('%o', umask), getppid() > 1, (times)[0] >= 0; say_ sort { $a <=> $b } map { int rand 1 } 1 .. 3; srand 42; select undef, undef, undef, 0.001; sleep 0; require Socket; socketpair my $sa, my $sb, Socket::AF_UNIX(), Socket::SOCK_STREAM(), 0; syswrite $sa, 'socket'; shutdown $sa, 1; sysread $sb, $buf, 10; say_ $buf;

part 'modules';
require Data::Dumper; { local $Data::Dumper::Sortkeys = 1; local $Data::Dumper::Useperl = 1; print Data::Dumper::Dumper([1, { a => [undef, \'x'], b => 'c' }, \$s]); } require List::Util; say_ 1, List::Util::sum(1 .. 10), List::Util::max(@rest), &List::Util::first(sub { $_ > 3 }, @rest), &List::Util::reduce(sub { $a * $b }, 1 .. 5), List::Util::uniq(1, 1, 2); require Text::Wrap; $Text::Wrap::columns = 20; print Text::Wrap::wrap('', '  ', 'some words that are wrapped here'), "\n"; require Text::ParseWords; say_ 1, Text::ParseWords::shellwords(q{a "b c" d\ e 'f g'}); require Text::Balanced; say_ 1, Text::Balanced::extract_bracketed('(a (b) c) rest', '()'); require Time::Local; say_ 1, Time::Local::timegm(0, 0, 0, 1, 0, 100); require Math::BigInt; say_(Math::BigInt->new("123456789012345678901234567890")->bmul(3)->bpow(2)); require JSON::PP; my $js = JSON::PP->new->canonical; say_ $js->encode({ a => [1, 'two', undef, \1], b => { c => 1.5 } }), $js->decode('{"x":[1,2,{"y":"\u263a"}]}')->{x}[2]{y}; require Storable; say_ 1, Storable::thaw(Storable::freeze([1, { a => 2 }]))->[1]{a}; require Digest::MD5; say_ 1, Digest::MD5::md5_hex('x'); require MIME::Base64; say_ 1, MIME::Base64::encode_base64('encode', ''); require Encode; say_ length Encode::encode('UTF-16', "\x{263a}x"), Encode::decode('iso-8859-1', "\xe9"); require Getopt::Long; { local @ARGV = qw(--name=x -v -v rest); my ($n, $v); Getopt::Long::GetOptions('name=s' => \$n, 'v+' => \$v); say_ $n, $v, @ARGV; } require File::Spec; say_ 1, File::Spec->catfile('a', 'b'), File::Spec->canonpath('a/./b//c'); require POSIX; say_ 1, POSIX::floor(1.5), POSIX::strftime('%Y', gmtime 0), POSIX::strtol('ff', 16);
say_ sort { $a cmp $b } map { sprintf '%s%s', $_, length } qw(sorting by string several words); say_ sort { length $a <=> length $b or $a cmp $b } qw(ccc a bb aa b); say_ join ',', sort { $a <=> $b } map { ($_ * 7919) % 101 } 1 .. 60; say_ lc(sprintf '%vd', $^V) =~ /^5/ ? 1 : 0, $] > 5; BEGIN { print "begin\n" } INIT { print "init\n" } END { print "end\n" } say_ map { chr(ord(uc) ^ 32) } split //, 'Flip'; say_ "last: $#{[1,2,3]}", prototype('CORE::push'), defined prototype(\&proto), ref \my @anon, ref sub { }, ref \*STDIN, ref \substr('x', 0), ref \pos, ref qr/x/, \1 == \1 ? 1 : 0; say_ reverse 'a' .. 'c'; say_ lock(my $lk) ? 1 : 1, local($;) // 'subsep', "@{[ %{{ a => 1 }} ]}"; reset; dump_() if 0; sub dump_ { } say_ sprintf '%s', join ',', map { (caller $_)[3] // 'none' } 0 .. 1; say_ eval { require Nope::Module; 1 } ? 1 : $@ =~ /^Can't locate/; say_ do { no strict; $::{fact} ? 1 : 0 }, __FILE__ ne '', (defined $DB::sub) + 0;
print "END-OF-RUN\n";
$go = <STDIN>;

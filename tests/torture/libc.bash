# What bash is fed under probes on all of libc: it forks, pipes, waits, traps.
set -u
echo "arguments: $# $*"
declare -A map=([a]=1 [b]=2)
list=(z y x "w v")
for i in "${list[@]}" "${!map[@]}"; do printf '%-5s|%q|%03d\n' "$i" "$i" "${#i}"; done | sort
total=0
while read -r n rest; do total=$((total + n)); done <<<$'1 a\n22 b\n333 c'
echo "total $total $((total ** 2 % 97)) $((0x1f | 8#17))"
f() { local x=$1; [ "$x" -le 1 ] && echo 1 || echo $((x * $(f $((x - 1))))); }
f 6
s="The Quick Brown Fox"
echo "${s,,} ${s^^} ${s/Quick/Slow} ${s##* } ${s%% *} ${s:4:5} ${#s} ${s//[aeiou]/_}"
[[ $s =~ ([A-Z][a-z]+)\ ([A-Z]) ]] && echo "${BASH_REMATCH[1]}-${BASH_REMATCH[2]}"
case $s in *[Qq]uick*) echo case ;; esac
trap 'echo got USR1' USR1
kill -USR1 $$
trap 'echo leaving' EXIT
(exit 3); echo "status $?"
{ (echo sub; kill -9 $BASHPID); } 2>/dev/null; echo "killed $?"
sleep 0.01 & wait $!; echo "waited $?"
cat <<E | tr a-z A-Z | head -n 2
here $((1 + 1))
document
cut off
E
seq 1 50 | paste -sd+ | bc 2>/dev/null || echo no bc
mkdir -p d/{a,b}/c && touch d/a/{1,2,3} && (cd d && echo */ a/? **/c) && find d | sort && rm -r d
exec 5<>file; echo "to five" >&5; read -r back <file; echo "$back"; exec 5>&-; rm file
coproc cat; echo through >&"${COPROC[1]}"; read -r x <&"${COPROC[0]}"; echo "$x"; kill "$COPROC_PID"; wait 2>/dev/null
read -t 0.01 -r none </dev/null || echo "nothing to read"
printf -v out '%(%Y)T %s' 0 end; echo "$out"
ulimit -c; umask; type -t cd; hash -r; compgen -A builtin | head -n 3
diff <(echo a) <(echo b); echo "diff $?"
nosuchcommand 2>/dev/null; echo "missing $?"
select_me() { local IFS=:; echo "$*"; }; select_me a b c
eval 'echo "${list[*]:1:2}"'
echo end

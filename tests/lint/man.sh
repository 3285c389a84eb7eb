#!/bin/sh
# SPDX-License-Identifier: MIT
# The command, its help and its man pages say the same: each subcommand of
# `ukprobe --help` has a page and each page a subcommand; the options of a page
# are those of --help; the pages are clean and refer to pages that exist.
#
#	tests/lint/man.sh [UKPROBE]
set -u
cd "$(dirname "$0")/../.." || exit 1
ukprobe=${1:-${O:-build}/ukprobe}
bad=0

complain()
{
	echo "man.sh: $*" >&2
	bad=1
}

[ -x "$ukprobe" ] || { complain "no $ukprobe: build it first"; exit 1; }

commands=$("$ukprobe" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
[ -n "$commands" ] || complain "ukprobe --help lists no commands"

for c in $commands; do
	[ -f "docs/man/ukprobe-$c.1" ] || complain "$c has no man page"
	grep -q "^\.It Xr ukprobe-$c 1" docs/man/ukprobe.1 || complain "ukprobe.1 doesn't name $c"
	grep -Eq "(^|[^a-z])$c([^a-z]|$)" samples/ukprobe.bash || complain "completion lacks $c"
done

# Options as sorted words, -x and --long.
of_help()
{
	"$ukprobe" "$1" --help | grep -v '^  ukprobe ' | grep -oE '(^|[ [])-(-[a-z]+|[a-z])' |
		tr -d ' [' | sort -u
}

# In mdoc, "Fl x" is -x and "Fl Fl long" is --long.
of_page()
{
	grep -E '^\.(It|Op) ?Fl|^\.Fl' "$1" | sed 's/Fl Fl Ar.*//; s/Ar [A-Z]*//g; s/,/ /g' |
		grep -oE 'Fl (Fl )?[a-z]+' | sed 's/Fl Fl /--/; s/Fl /-/' | sort -u
}

for page in docs/man/ukprobe-*.1; do
	c=${page#docs/man/ukprobe-}
	c=${c%.1}
	case " $(echo $commands) " in
	*" $c "*) ;;
	*)
		complain "$page is of no command"
		continue
		;;
	esac
	help=$(of_help "$c")
	man=$(of_page "$page")
	[ "$help" = "$man" ] || complain "options of $c: --help has" $help, "$page has" $man
done

# Cross references into our own pages.
for ref in $(sed -n 's/.*Xr \(ukprobe[a-z-]*\) \([0-9]\).*/\1.\2/p' docs/man/*.[0-9] | sort -u); do
	[ -f "docs/man/$ref" ] || complain "a page refers to $ref, which doesn't exist"
done

if command -v mandoc >/dev/null; then
	# What isn't installed can't be found: those references are checked above.
	lint=$(mandoc -Tlint -Wstyle docs/man/*.[0-9] 2>&1 |
		grep -v -e 'referenced manual not found' -e 'outdated mandoc.db')
	[ -z "$lint" ] || complain "$lint"
else
	echo "man.sh: skipped the lint of the pages: no mandoc (package mandoc)"
fi
exit $bad

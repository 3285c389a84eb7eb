# SPDX-License-Identifier: MIT
# Completion of ukprobe(1) for bash: source it, or put it into
# /usr/share/bash-completion/completions/ukprobe.

_ukprobe()
{
	local commands="trace latency stat list blacklist funcs verify cure doctor"
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local i options=

	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "$commands --help --version" -- "$cur"))
		return
	fi
	# Behind -- the words are the command's own.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			COMPREPLY=($(compgen -o default -- "$cur"))
			return
		fi
	done
	case $prev in
	-p | --pid)
		COMPREPLY=($(compgen -W "$(cd /proc && printf '%s\n' [0-9]*)" -- "$cur"))
		return
		;;
	-o | --output)
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	-n | --count | --for | --max-overhead)
		return
		;;
	--ret)
		COMPREPLY=($(compgen -W "auto exit call slot" -- "$cur"))
		return
		;;
	esac
	case ${COMP_WORDS[1]} in
	trace) options="--pid --count --for --ret --max-overhead --strict --any-text --follow --output --help" ;;
	latency) options="--pid --for --ret --follow --max-overhead --json --output --help" ;;
	stat) options="--pid --for --ret --max-overhead --strict --any-text --follow --json --output --help" ;;
	help) options=$commands ;;
	*) options="--pid --help" ;;
	esac
	COMPREPLY=($(compgen -W "$options" -- "$cur"))
}

complete -F _ukprobe ukprobe

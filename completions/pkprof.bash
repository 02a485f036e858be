# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion of pkprof's subcommands, options and their values, for bash; and for zsh, after
# `autoload -U bashcompinit && bashcompinit`. What there is to complete is asked of the program
# itself, by its --help, so it is what this version has.

_pkprof_help() { # PROGRAM [SUBCOMMAND]
  COLUMNS=1000 "$@" --help 2>/dev/null
}

# "  --view VIEW:{ledger,flat,graph}": the values of an option that has a choice.
_pkprof_values() { # OPTION
  sed -nE "s/^  ([^ ]*,)?$1 [^{]*\{([^}]*)\}.*/\2/p" | tr , ' '
}

_pkprof() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]}
  local i sub='' below='' help choices=''
  COMPREPLY=()
  # Behind "--" is another program's command line.
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      return
    fi
  done
  if [[ ${program##*/} == pkprof ]]; then
    # Before the subcommand there may be --config and its FILE.
    for ((i = 1; i < COMP_CWORD; ++i)); do
      if [[ ${COMP_WORDS[i]} == --config ]]; then
        ((++i))
      elif [[ ${COMP_WORDS[i]} != -* ]]; then
        sub=${COMP_WORDS[i]}
        # Of a subcommand of its own, as in `pkprof store add`.
        ((i + 1 >= COMP_CWORD)) || below=${COMP_WORDS[i + 1]}
        break
      fi
    done
    if [[ -z $sub && $before != --config ]]; then
      choices=$(_pkprof_help "$program" | sed -n '/^Subcommands:/,$ s/^  \([a-z]*\) .*/\1/p')
      mapfile -t COMPREPLY < <(compgen -W "$choices --config --help --version" -- "$word")
      return
    fi
  fi
  # shellcheck disable=SC2086 # none, where there are no subcommands
  help=$(_pkprof_help "$program" $sub)
  choices=$(sed -n '/^Subcommands:/,$ s/^  \([a-z]*\)  .*/\1/p' <<<"$help")
  if [[ -n $choices && -n $below ]]; then
    choices=''
    help=$(_pkprof_help "$program" "$sub" "$below")
  fi
  if [[ $before == -* ]]; then choices=$(_pkprof_values "$before" <<<"$help"); fi
  if [[ -z $choices && $word == -* ]]; then
    choices=$(grep -oE '^  (-[A-Za-z],)?--[a-z-]+(,--[a-z-]+)*' <<<"$help" | grep -oE -- '--[a-z-]+')
  fi
  if [[ -n $choices ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -o filenames -o bashdefault -F _pkprof pkprof pkgprof pkgmon

# SPDX-License-Identifier: Apache-2.0
# Each option is everywhere: in the parser, --help, the completions, the manual, the sample of job.ini.
# The manual's pages have no faults, and each function has one.
. "$CT_SOURCE/tests/e2e/lib.sh"
man=$CT_BUILD/packaging/man
ctctl=$CT_BUILD/bin/ctctl

# all_in NAME TEXT WORD...: TEXT has each word.
all_in() {
    local what=$1 text=$2 word missing=
    shift 2
    for word; do [[ $text == *"$word"* ]] || missing+=" $word"; done
    expect "$what" is "$missing" ""
}
plain() { sed 's/\\-/-/g; s/\\(bu/-/g' "$1"; }

# The names of the enumerators are those of the options: the one list that is not made from the rows.
mapfile -t names < <(sed -n '/^enum option {/,/^};/s/^    OPTION_\([A-Z_]*\),$/\1/p' "$CT_SOURCE/config/option_table.h" | tr 'A-Z_' 'a-z-')
expect "the table has its options" [ ${#names[@]} -gt 60 ]
run --help
all_in "--help has each" "$out" "${names[@]/#/--}"
for shell in bash zsh fish; do
    run --print-completion=$shell
    all_in "so does the completion of $shell" "$out" "${names[@]/#/$([ $shell = fish ] && echo '-l ' || echo '--')}"
done
all_in "and ctrun(1)" "$(plain "$man/ctrun.1")" "${names[@]/#/Fl -}"
for name in "${names[@]}"; do
    run "--$name=" # most are wrong without a value, but none is unknown
    [[ $err == *"unrecognized"* ]] && unknown="${unknown-} $name"
done
expect "the parser knows each" is "${unknown-}" ""
mapfile -t keys < <(plain "$man/ctrun.ini.5" | sed -n 's/^\.It Ic \([a-z-]*\) No =.*/\1/p')
expect "ctrun.ini(5) has all but those of the command line" is "$(comm -3 <(printf '%s\n' "${names[@]}" | sort) <(printf '%s\n' "${keys[@]}" | sort) | tr -d '\t' | tr '\n' ' ')" \
    "detach dry-run explain help job print-completion version "
all_in "so does the sample" "$(cat "$CT_SOURCE/config/ctrun.ini")" "${keys[@]/#/;}"
mapfile -t variables < <(grep -oE '"(PET|CT|TORCH)_[A-Z_]+"' "$CT_SOURCE/config/option_table.c" "$CT_SOURCE/runtime/bootstrap/variables.c" | cut -d'"' -f2 | sort -u |
    grep -vE '^CT_(BUILD|JOBS|STALLS|HOSTS_NODE|HOSTS_NAMES|SLOTS)$')
all_in "ctrun-environment(7) has each variable" "$(cat "$man/ctrun-environment.7")" "${variables[@]/#/Ev }"
all_in "and docs/protocol.md those of libct" "$(cat "$CT_SOURCE/docs/protocol.md")" \
    $(sed -n 's/^    { "\(CT_[A-Z_]*\)",.*/\1/p' "$CT_SOURCE/runtime/bootstrap/variables.c" | grep -xvFf <(grep -oE '"CT_[A-Z_]+"' "$CT_SOURCE/config/option_table.c" | tr -d '"') | grep -vE '^CT_(BUILD|JOBS|STALLS)$')

mapfile -t ctctls < <(sed -n '/^enum ctctl_option {/,/^};/s/^    CTCTL_\([A-Z_]*\),$/\1/p' "$CT_SOURCE/launcher/ctctl/command_table.h" | tr 'A-Z_' 'a-z-')
mapfile -t commands < <("$ctctl" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
all_in "the helps of ctctl and its commands have each of ctctl's" "$("$ctctl" --help; for command in "${commands[@]}"; do "$ctctl" $command --help; done)" "${ctctls[@]/#/--}"
all_in "and ctctl(1)" "$(plain "$man/ctctl.1")" "${ctctls[@]/#/Fl -}"

mapfile -t functions < <(grep -ohE '^CT_API .*' "$CT_SOURCE"/include/*.h | grep -oE 'ct_[a-z0-9_]+\(' | tr -d '(' | sort -u)
statuses=$(sed -n 's/^    X(\([A-Z_]*\), .*/CT_\1/p' "$CT_SOURCE/include/ct.h")
for function in "${functions[@]}"; do
    page=$man/man3/$function.3
    sections=$(sed -n 's/^\.Sh //p' "$page" | tr '\n' ,)
    [ "$sections" = "NAME,LIBRARY,SYNOPSIS,DESCRIPTION,RETURN VALUE,ERRORS,EXAMPLE,SEE ALSO," ] || incomplete+=" $function"
    awk '/^\.Sh/ && heading { empty = 1 } { heading = /^\.Sh/ } END { exit empty }' "$page" || incomplete+=" $function:empty"
    sed -n '/^\.Sh EXAMPLE/,/^\.Sh SEE/p' "$page" | grep -q "\b$function(" || incomplete+=" $function:example"
    # Who returns a ct_status can at least be called wrongly.
    ! grep -q "^ct_status $function(" "$page" || grep -q '^\.It Dv CT_ERR_' "$page" || incomplete+=" $function:errors"
done
expect "each function has a page with all sections" is "${incomplete-}" ""
expect "their errors are the statuses of ct.h" is "$(sed -n 's/^\.It Dv //p' "$man"/man3/*.3 | sort -u)" "$(grep -vx CT_OK <<<"$statuses" | sort)"
run --nproc-per-node=2 "$CT_BUILD/bin/snippets"
expect "the examples run" has "$code $out" "0 "
pages=("$man"/*.[0-9] "$man"/man3/*.3)
if command -v mandoc >/dev/null; then
    expect "mandoc finds no fault" is "$(mandoc -T lint -W warning "${pages[@]}")" ""
fi
if man --version >/dev/null 2>&1 && command -v groff >/dev/null; then
    expect "nor does man --warnings" is "$(for page in "${pages[@]}"; do man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null; done)" ""
fi
finish

#!/usr/bin/env bash
# The digest of a folder, as the annotation interlock.dev/digest has it: digest.sh FOLDER
# With a second argument, the lines that it is made of are left in that file.
set -euo pipefail
export LC_ALL=C
lines=${2:-$(mktemp)}
cd "$1"
escaped() {
    local text=${1//\\/\\\\}
    printf '%s' "${text//$'\n'/\\n}"
}
find . -mindepth 1 ! -type s -print0 | while IFS= read -r -d '' path; do
    size=0 content=- target=
    case $(find "$path" -maxdepth 0 -printf %y) in
    f)
        size=$(find "$path" -maxdepth 0 -printf %s)
        content=$(b3sum --no-names -- "$path")
        ;;
    l)
        size=$(find "$path" -maxdepth 0 -printf %s)
        # The x keeps newlines at the end of the target.
        target=$(find "$path" -maxdepth 0 -printf '%lx')
        target=" -> $(escaped "${target%x}"; echo x)" target=${target%x}
        ;;
    b | c) content=$(stat -c '%Hr:%Lr' -- "$path") ;;
    esac
    find "$path" -maxdepth 0 -printf '%y %m %U:%G '
    # Ten digits behind the dot become nine.
    printf '%s %s %s ' "$size" "$(find "$path" -maxdepth 0 -printf %T@ | sed 's/\(\.[0-9]\{9\}\).*/\1/')" "$content"
    escaped "${path#./}"
    printf '%s\n' "$target"
done | sort >"$lines"
b3sum --no-names -- "$lines"
[ $# -gt 1 ] || rm -f -- "$lines"

#!/bin/sh
# bench/arm_cycles.sh [PATTERN] - modelled cycles per weight and column of the packed ARM kernels whose names contain PATTERN: one column, then
# eight. What packing costs is measured by a run without calls and taken off.
#
# Needs qemu-user, llvm, and the model in ../shared/tools/armmodel (MODEL=); PROGRAM= is make CONFIG=arm64 build/arm64/bench/arm_cycles.
set -eu
model=${MODEL:-../shared/tools/armmodel/armmodel}
program=${PROGRAM:-build/arm64/bench/arm_cycles}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() # NAME COLUMNS CALLS CORE -> JSON
{
    python3 "$model" --core "$4" --qemu-cpu cortex-a76 --json "$work/$3.json" -- "$program" "$1" "$2" "$3" 2>/dev/null >"$work/$3.weights"
}

one() # NAME COLUMNS CORE
{
    calls=$((128 / $2))
    run "$1" "$2" 0 "$3"
    run "$1" "$2" "$calls" "$3"
    python3 - "$work/$calls.json" "$work/0.json" "$(cat "$work/$calls.weights")" <<'PYTHON'
import json, sys
many, none = (json.load(open(path))["modelled_cycles"] for path in sys.argv[1:3])
print("%.3f" % ((many - none) / float(sys.argv[3])))
PYTHON
}

printf '%-24s %-11s %8s %8s\n' kernel core '1 column' '8 columns'
qemu-aarch64 "$program" list | grep -- "${1:-}" | while read -r name; do
    for core in $(case $name in *dotprod) echo cortex-a55 ;; *) echo cortex-a53 apple-a7 ;; esac); do
        printf '%-24s %-11s %8s %8s\n' "$name" "$core" "$(one "$name" 1 "$core")" "$(one "$name" 8 "$core")"
    done
done

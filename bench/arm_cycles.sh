#!/bin/sh
# bench/arm_cycles.sh [PATTERN] - modelled cycles per weight and column of every packed ARM kernel: one column and eight.
# Needs qemu-user, llvm and the model in ../shared/tools/armmodel; PROGRAM= names a static, unstripped bench/arm_cycles.
set -eu
model=${MODEL:-../shared/tools/armmodel/armmodel}
program=${PROGRAM:-build/arm64/bench/arm_cycles}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

one() # NAME COLUMNS CORE
{
    weights=$(python3 "$model" --core "$3" --qemu-cpu cortex-a76 --json "$work/json" -- "$program" "$1" "$2" "$((64 / $2))" 2>/dev/null)
    python3 - "$work/json" "$weights" <<'PYTHON'
import json, sys
symbols = json.load(open(sys.argv[1]))["by_symbol"]
kernel = [v for name, v in symbols.items() if name.startswith("tile_") or name.endswith(("_gemv", "_gemm"))]
print("%.3f" % (sum(v["modelled_cycles"] for v in kernel) / float(sys.argv[2])))
PYTHON
}

printf '%-24s %-11s %8s %8s\n' kernel core '1 column' '8 columns'
qemu-aarch64 "$program" list | grep -- "${1:-}" | while read -r name; do
    for core in $(case $name in *dotprod) echo cortex-a55 ;; *) echo cortex-a53 ;; esac); do
        printf '%-24s %-11s %8s %8s\n' "$name" "$core" "$(one "$name" 1 "$core")" "$(one "$name" 8 "$core")"
    done
done

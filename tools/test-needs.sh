#!/bin/sh
# Installs what `make test` needs: Debian packages (as root or by sudo) and a Python environment in build/venv.
# What cannot be installed is named in one line; the tests that need it then skip.
packages="gcc g++ binutils clang libclang-rt-14-dev qemu-user python3-venv"
case $(uname -m) in
x86_64) packages="$packages gcc-aarch64-linux-gnu gcc-i686-linux-gnu" ;;
esac

missing=
for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
if [ -n "$missing" ]; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    echo "installing$missing"
    { $sudo apt-get -qq update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing; } > /dev/null 2>&1 ||
        echo "could not install$missing: tests that need them are skipped"
fi

python=build/venv/bin/python
[ -x $python ] || python3 -m venv build/venv || echo "could not make build/venv: tests in Python are skipped"
[ -x $python ] || exit 0
$python -c 'import numpy, pytest, xdist' 2>/dev/null ||
    $python -m pip install --quiet --disable-pip-version-check numpy pytest pytest-xdist ||
    echo "could not install numpy and pytest: tests in Python are skipped"
exit 0

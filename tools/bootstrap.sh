#!/usr/bin/env bash
# Installs what building, testing and the demo need, and only what is missing: Debian packages (as root or through
# sudo) and a Python virtual environment in .venv. Safe to run again; says what it does.
#
#   tools/bootstrap.sh build     compilers and libraries
#   tools/bootstrap.sh demo      build + the demo's Python packages; with --spark also PySpark and a Java runtime
#   tools/bootstrap.sh wheel     build + what makes a wheel that runs elsewhere
#   tools/bootstrap.sh system    the Debian packages of `test`
#   tools/bootstrap.sh test      everything that `make test` uses (also the default)
#   tools/bootstrap.sh bench     test + the libraries that `make bench` compares with
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-test}
with=${2:-}

say() { printf '%s\n' "-- $*"; }

build_packages=(build-essential cmake ninja-build pkg-config libpcre2-dev libxml2-dev zlib1g-dev libprotobuf-c-dev protobuf-c-compiler)
demo_packages=("${build_packages[@]}" python3 python3-venv python3-dev iproute2 nftables)
wheel_packages=("${build_packages[@]}" python3 python3-venv python3-dev)
test_packages=("${demo_packages[@]}" ccache liblz4-dev liblzma-dev clang clang-format llvm libxml2-utils tshark tcpdump libzmq3-dev redis-tools fish zsh chromium chromium-driver mandoc systemd
    protobuf-compiler libprotobuf-dev flatbuffers-compiler libflatbuffers-dev)
bench_packages=("${test_packages[@]}" libpgm-dev cyclonedds-dev cyclonedds-tools)

# clang names its sanitizer and fuzzer runtime by version; ask the distribution which one goes with `clang`.
clang_runtime() {
    local version
    version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1)
    if [ -n "$version" ]; then
        printf 'libclang-rt-%s-dev\n' "$version"
    fi
}

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing Debian packages: ${missing[*]}"
    # dumpcap's question about non-root capture must not stop an unattended installation.
    echo 'wireshark-common wireshark-common/install-setuid boolean false' | as_root debconf-set-selections || true
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; then
        say "cannot install as $(id -un): as root, run: apt-get install ${missing[*]}"
        exit 1
    fi
}

system_packages() {
    if ! command -v apt-get >/dev/null; then
        say "no apt-get here: make sure that the equivalents of these are installed: $*"
        return 0
    fi
    local package needed=0
    for package in "$@"; do
        is_installed "$package" || needed=1
    done
    if [ $needed = 1 ]; then
        say "refreshing the package lists"
        as_root apt-get update -q >/dev/null || say "package lists not refreshed; trying with the ones at hand"
    fi
    install_packages "$@"
    if [ "$purpose" = test ] || [ "$purpose" = system ] || [ "$purpose" = bench ]; then
        local runtime
        runtime=$(clang_runtime)
        [ -z "$runtime" ] || install_packages "$runtime"
    fi
}

# A program of a Debian package that is a server, too. Unpacked, not installed: no machine is to start a server for a
# test. Its file is put into .venv/brokers.
unpacked() {
    local package=$1 path=$2 without=$3 folder name
    name=$(basename "$path")
    if [ -x ".venv/brokers/$name" ] || ! command -v apt-get >/dev/null; then
        return 0
    fi
    say "unpacking $name into .venv/brokers"
    folder=$(mktemp -d)
    if (cd "$folder" && apt-get download -q "$package" && dpkg -x "$package"_*.deb .) >/dev/null 2>&1; then
        install -D "$folder/$path" ".venv/brokers/$name"
    else
        say "cannot download $package: $without"
    fi
    rm -rf "$folder"
}

# Spark runs on Java, 17 or later; any that is there will do.
java_runtime() {
    local version=
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    if command -v "$java" >/dev/null; then
        version=$("$java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -1)
    fi
    if [ "${version:-0}" -lt 17 ]; then
        system_packages default-jre-headless
    fi
}

# The distribution's Python, where it is new enough: its headers are those that are installed above, and it is compiled
# with all optimizations, which one that was built at home often is not: the tests take a fifth longer with such a one.
# UM_PYTHON names another. A .venv that is there keeps its own.
base_python() {
    local own=/usr/bin/python3
    if [ -n "${UM_PYTHON:-}" ]; then
        printf '%s\n' "$UM_PYTHON"
    elif [ -x "$own" ] && "$own" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        printf '%s\n' "$own"
    else
        printf 'python3\n'
    fi
}

# For the tests, Python compiles what they import when they do: three quarters of the modules are never wanted, and to
# compile all takes ten seconds.
python_packages() {
    local requirements=$1 stamp compile= python
    if [ "$purpose" = test ]; then compile=--no-compile; fi
    if [ ! -x .venv/bin/python ]; then
        python=$(base_python)
        say "creating the virtual environment .venv with $python"
        "$python" -m venv .venv
    fi
    stamp=.venv/.installed-$(basename "$requirements")
    if ! cmp -s "$requirements" "$stamp"; then
        say "installing Python packages of $requirements into .venv"
        DIST_EXTRA_CONFIG=${DIST_EXTRA_CONFIG:-$PWD/tools/quick_wheels.cfg} \
            .venv/bin/python -m pip install -q --disable-pip-version-check --use-pep517 $compile -r "$requirements" || return 1
        cp "$requirements" "$stamp"
    fi
}

case "$purpose" in
    build) system_packages "${build_packages[@]}" ;;
    wheel)
        system_packages "${wheel_packages[@]}"
        python_packages tools/requirements-wheel.txt
        ;;
    system) system_packages "${test_packages[@]}" ;;
    demo)
        system_packages "${demo_packages[@]}"
        python_packages tools/requirements-demo.txt
        if [ "$with" = --spark ]; then
            java_runtime
            python_packages tools/requirements-spark.txt
        fi
        ;;
    test | bench)
        if [ "$purpose" = test ]; then system_packages "${test_packages[@]}"; else system_packages "${bench_packages[@]}"; fi
        python_packages tools/requirements-demo.txt
        python_packages tools/requirements-wheel.txt
        python_packages tools/requirements-test.txt
        java_runtime
        python_packages tools/requirements-spark.txt
        unpacked nats-server usr/sbin/nats-server "the comparisons with it are left out"
        unpacked prometheus usr/bin/promtool "alert rules and metrics are not checked by it"
        if [ "$purpose" = bench ] && ! python_packages tools/requirements-bench.txt; then
            say "not installed: $(tr '\n' ' ' <tools/requirements-bench.txt)- the comparisons with it are left out"
        fi
        ;;
    *)
        echo "usage: tools/bootstrap.sh [build|demo [--spark]|wheel|system|test|bench]" >&2
        exit 2
        ;;
esac

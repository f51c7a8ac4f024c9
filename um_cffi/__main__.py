"""`python -m um_cffi`: versions, features and paths, for bug reports. With arguments: the command `um`."""

from __future__ import annotations

import platform
import sys

from um_cffi.binding import paths
from um_cffi.binding._native import ffi, lib

FEATURES = {
    "transport TCP": ("context", "transport_tcp_port_low"),
    "transport LBT-RM": ("source", "transport_lbtrm_destination_port"),
    "transport LBT-RU": ("context", "transport_lbtru_port_low"),
    "transport LBT-IPC": ("source", "transport_lbtipc_transmission_window_size"),
    "transport LBT-SMX": ("source", "transport_lbtsmx_transmission_window_size"),
    "resolution by multicast": ("context", "resolver_multicast_address"),
    "resolution through lbmrd": ("context", "resolver_unicast_daemon"),
    "TLS": ("context", "use_tls"),
    "compression": ("context", "compression"),
    "persistence": ("source", "ume_store"),
}


def _version(distribution: str) -> str:
    import importlib.metadata  # not for the commands: it takes a tenth of what their start does

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _text(pointer: object) -> str:
    return bytes(ffi.string(pointer)).decode()


def report() -> list[tuple[str, str]]:
    """Name and value of everything worth knowing about this installation."""
    rows = [
        ("um_cffi", _version("um-cffi")),
        ("libum", _text(lib.um_version())),
        ("lbm_version", _text(lib.lbm_version())),
        ("python", f"{platform.python_version()} {platform.python_implementation()}"),
        ("platform", platform.platform()),
    ]
    rows += [(name, _version(name)) for name in ("cffi", "numpy", "pyarrow", "pandas", "rich")]
    rows += [(f"feature: {name}", state) for name, state in features().items()]
    rows += [
        ("include", paths.get_include()),
        ("library", paths.get_library()),
        ("pkg-config", paths.get_pkgconfig_dir()),
        ("share", paths.get_share()),
        ("programs", " ".join(paths.programs())),
    ]
    return rows


def features() -> dict[str, str]:
    """What works in this version, as its option table says: yes or not yet."""
    from um_cffi.binding.options import OPTIONS

    found = {}
    for name, (scope, option) in FEATURES.items():
        known = OPTIONS.get(scope, {}).get(option)
        found[name] = "yes" if known is not None and known.acts == "yes" else "not yet"
    return found


def print_report() -> None:
    """Print report() as two columns."""
    rows = report()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")


def main() -> int:
    """Print the report, or run `um` with the arguments."""
    if len(sys.argv) > 1:
        from um_cffi.commands import main as command

        return command(sys.argv[1:])
    print_report()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Requirement I2: the source distribution builds and installs without a network, from what it carries."""

from __future__ import annotations

import tarfile
from pathlib import Path

from packaging_support import ROOT, Built


def names(built: Built) -> set[str]:
    with tarfile.open(built.sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_i2_a_wheel_is_built_from_the_sdist_offline(built: Built) -> None:
    # The fixture ran `pip wheel --no-index --no-build-isolation` on the sdist in a network namespace without network.
    assert built.sdist.name == "um_cffi-0.1.0.tar.gz"
    assert built.plain.name.startswith("um_cffi-0.1.0-cp39-abi3-linux_")


def test_i2_the_sdist_carries_every_source(built: Built) -> None:
    wanted = {"pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"}
    for pattern in (
        "csrc/**/*.[ch]",
        "csrc/**/*.def",
        "include/*.h",
        "examples/c/*.[ch]",
        "um_cffi/**/*.py",
        "um_cffi/binding/*.c",
        "cmake/*",
        "proto/*.proto",
    ):
        wanted |= {str(path.relative_to(ROOT)) for path in Path(ROOT).glob(pattern)}
    assert wanted <= names(built), wanted - names(built)


def test_i2_the_sdist_carries_no_build_products(built: Built) -> None:
    products = [
        name
        for name in names(built)
        if name.endswith((".o", ".so", ".a", ".pyc")) or name.startswith(("build", ".venv"))
    ]
    assert not products

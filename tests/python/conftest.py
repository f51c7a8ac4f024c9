"""The wheel and the source distribution, built once for all tests that look at them."""

from __future__ import annotations

import os

import packaging_support
import pytest


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> packaging_support.Built:
    """The sdist of this tree and the wheel built from it offline."""
    if os.environ.get("UM_SANITIZED"):
        pytest.skip("the wheel has a build of its own")
    pytest.importorskip("scikit_build_core")
    return packaging_support.build_all(tmp_path_factory.mktemp("dist"))

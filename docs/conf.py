"""Sphinx settings; the pages are Markdown. The Python reference is made from docstrings: build the binding first."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

project = "libum"
author = "the libum contributors"
copyright = "the libum contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_title = "libum"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

# Docstrings are plain text with `names` in backquotes.
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

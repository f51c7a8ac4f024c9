"""Sphinx settings; the pages are Markdown."""

project = "libum"
author = "the libum contributors"
copyright = "the libum contributors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_title = "libum"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

"""Sphinx settings of the site; deploy/docs stages the pages and calls sphinx-build."""

import os
import pathlib
import sys

sys.path.insert(0, os.environ["PERCS_PYTHON"])

project = "PERCS network emulator"
author = "The PERCS emulator's authors"
copyright = "Apache License 2.0"  # pylint: disable=redefined-builtin
version = release = os.environ["PERCS_VERSION"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "breathe"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
exclude_patterns = ["CONTENTS"]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_image"]
# Names of what a block is, which no highlighter knows: shown as they are.
highlight_language = "text"

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}

breathe_projects = {"percs": os.environ["PERCS_DOXYGEN_XML"]}
breathe_default_project = "percs"
breathe_default_members = ("members",)

html_theme = "furo"
html_title = f"PERCS network emulator {version}"
html_static_path = []
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False}


def setup(app):
    """`rooms` is the table of CONTRIBUTING.md, `goal` and `csv` are formats without a lexer."""
    from pygments.lexers import TextLexer
    for name in ("rooms", "goal", "csv", "promela"):
        app.add_lexer(name, TextLexer)


assert pathlib.Path(os.environ["PERCS_PYTHON"], "percs").is_dir(), "deploy/docs builds the package"

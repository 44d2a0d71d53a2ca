"""What a maintainer runs before a release: `python -m release package` and `python -m release checklist`.

It needs only the standard library, git, and `build` for the package; `tox -e package` brings that.
"""

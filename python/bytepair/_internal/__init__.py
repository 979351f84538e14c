"""Internal helpers of the subpackages: argument checks, hints, lazy imports, progress, drawing.

`sandbox` renders templates of Jinja, also in a child process.
"""

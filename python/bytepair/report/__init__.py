"""An evaluation in, one page of HTML out, with its tables and plots.

    >>> import bytepair
    >>> tok = bytepair.train(bytepair.sample.paths(), vocab_size=1000)
    >>> page = bytepair.report.to_html(bytepair.evaluate.measure(tok, against=[]))
    >>> page.startswith("<!doctype html>"), "<script" in page
    (True, False)

The page is one file without scripts or external resources, so it can be stored, printed and mailed.
Its colours follow the light or dark mode of the system.
"""

from bytepair.report.page import save, save_sizes_plot, sizes_plot, to_html

__all__ = ["save", "save_sizes_plot", "sizes_plot", "to_html"]
